"""Sentences of the node and of commands in another language: the tables say what the code says, and speakers fill them."""

import ast
import itertools
import re
from pathlib import Path

import pytest
import typer

from node.cli.answers import WORD_FIELDS
from node.runtime.language import Speaker, in_language, load_table

NODE = Path(__file__).parents[4] / "node"
TABLE = load_table("de")
PEOPLE_MEET = ("membership", "network", "content", "authoring", "care")
"""Packages whose refusals people meet on the page and in a terminal."""
FOR_PROGRAMS = re.compile(
    r"Yjs|update|cursor|clock|client id|state vector|index|sorted query|answer|bundle|JSON|conflicts|bodies|key rotation"
)
"""Words of refusals that only programs meet."""


@pytest.mark.parametrize(
    "said, meant",
    [
        ("no repo is called 'x'; did you mean 'y'?", "Repo namens 'x' gibt es hier nicht; meinst du 'y'?"),
        ("Joined garden. You may write.", "Du bist in garden aufgenommen. Du darfst schreiben."),
        (
            "in sync with Ben's laptop, relay.example and 2 more since yesterday 10:02",
            "gleichauf mit Ben's laptop, relay.example und 2 weitere seit gestern 10:02",
        ),
        (
            "in sync with your Desk since yesterday 10:02",
            "gleichauf mit deinem Gerät Desk seit gestern 10:02",
        ),
        (
            "your place has passed to Ann's phone: what is here stays, and this computer writes no more; "
            "in sync with your other computer",
            "dein Platz ist an Ann's phone übergegangen: Was hier ist, bleibt, und dieser Computer schreibt nicht mehr; "
            "gleichauf mit deinem anderen Computer",
        ),
        ("in sync with your other computer", "gleichauf mit deinem anderen Computer"),
        (
            "behind by 3 commits, to come from Ben; 2 of your files are on this computer only, as far as known",
            "3 Commits im Rückstand, Nachschub von Ben; 2 Dateien von dir nur auf diesem Computer, soweit bekannt",
        ),
        (
            "Removed a.png, b. txt from main for all members.",
            "a.png, b. txt ist für alle Mitglieder aus main entfernt.",
        ),
        ("file 2, a.png: a file has at most 5 bytes", "Datei 2, a.png: eine Datei hat höchstens 5 Bytes"),
        (
            "Created write, with a branch called main. You own it.",
            "write ist angelegt, mit einem Zweig main. Es gehört dir.",
        ),
        (
            "--actions takes read, write, manage, separated by commas",
            "--actions nimmt read, write, manage, durch Kommas getrennt",
        ),
        ("'foo' is no action", "'foo' ist keine Aktion"),
        (
            "Backed up to /b/1: 5 KiB, of which 2 KiB are new.",
            "Gesichert in /b/1: 5 KiB, davon sind 2 KiB neu.",
        ),
        ("what no table has stays as it is", "what no table has stays as it is"),
        ("what no table has of this stays as it is", "what no table has of this stays as it is"),
        (
            "this user is itself a device of somebody here; run it there",
            "dieser Nutzer ist hier selbst ein Gerät von jemandem; mach es dort",
        ),
    ],
)
def test_a_sentence_is_said_with_its_values(said: str, meant: str) -> None:
    assert Speaker(TABLE)(said) == meant


@pytest.mark.parametrize(
    "environment, meant",
    [
        ({"LANG": "de_AT.UTF-8"}, "Verbindung abgelehnt"),
        ({"LC_ALL": "C.UTF-8", "LANG": "de_DE"}, "connection refused"),
        ({"LC_MESSAGES": "de", "LANG": "en_GB"}, "Verbindung abgelehnt"),
        ({"LANG": "../de"}, "connection refused"),
        ({"LANG": "fr_FR"}, "connection refused"),
        ({}, "connection refused"),
    ],
)
def test_the_environment_chooses_the_language(
    environment: dict[str, str], meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert in_language("connection refused") == meant
    assert in_language("  connection refused") == f"  {meant}", "what stands before a line stays"


_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)+)"')
"""A text in the source, in one line: to parse 450 files takes ten times as long."""


@pytest.mark.slow
def test_every_sentence_of_the_tables_is_one_that_the_code_says() -> None:
    """Sentences are composed of parts, so that pairs of words are looked for: most of each are in the code."""
    code = {
        pair
        for folder in (NODE, NODE.parent / "clients/python/ravel", Path(typer.__file__).parent)
        for path in folder.rglob("*.py")
        for text in _TEXT.findall(path.read_text(encoding="utf-8"))
        for pair in _pairs(text)
    }
    stale = []
    for english in TABLE:
        pairs = _pairs(english)
        if sum(pair in code for pair in pairs) * 2 < len(pairs) - 1:
            stale.append(english)
    assert stale == []


def _pairs(text: str) -> set[tuple[str, str]]:
    parts = re.split(r"\{\d\}", text.lower())
    return {pair for part in parts for pair in itertools.pairwise(re.findall(r"[a-z']+", part))}


def test_what_a_sentence_means_has_its_values_and_no_others() -> None:
    for english, meant in TABLE.items():
        assert set(re.findall(r"\{(\d)\*?\}", meant)) <= set(re.findall(r"\{(\d)\}", english)), english


@pytest.mark.slow
def test_refusals_that_people_meet_are_said_in_german() -> None:
    speaker = Speaker(TABLE)
    english = [one for one in _refusals() if speaker(one) == one and not FOR_PROGRAMS.search(one)]
    assert english == []


@pytest.mark.slow
def test_sentences_that_commands_say_are_said_in_german() -> None:
    """Most are composed: of these, those that are one text with values in it."""
    speaker = Speaker(TABLE)
    english = [one for one in _said_by_commands() if speaker(one.lstrip()) == one.lstrip()]
    assert english == []


def test_headings_of_tables_and_words_in_their_cells_are_said_in_german() -> None:
    headings = {
        heading
        for path in (NODE / "cli").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Table", "print_table")
        for heading in _headings(call)
    }
    assert {"person", "state", "circuits today"} <= headings
    assert sorted(headings - {""} - TABLE.keys()) == []
    words = {
        word.value
        for path in (NODE.parent / "clients/python/ravel/types").glob("*.py")
        for field in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(field, ast.AnnAssign) and getattr(field.target, "id", "") in WORD_FIELDS
        for choice in ast.walk(field.annotation)
        for word in _choices(choice)
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value
    }
    assert {"connected", "write", "false"} <= words
    assert sorted(words - TABLE.keys()) == []


def _headings(call: ast.Call) -> list[str]:
    """Return the headings of a table that a call prints, or describes."""
    if getattr(call.func, "id", "") == "Table":
        lists = [
            call.args[1:],
            *(one.value.elts for one in call.keywords if isinstance(one.value, ast.Tuple)),
        ]
    else:
        lists = [call.args[0].elts] if isinstance(call.args[0], ast.Tuple) else []
    found = (_heading_of(column) for columns in lists for column in columns)
    return [one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _heading_of(part: ast.expr) -> ast.expr:
    if isinstance(part, ast.Tuple):
        return part.elts[0]
    return part.args[0] if isinstance(part, ast.Call) and part.args else part


def _choices(choice: ast.AST) -> list[ast.expr]:
    """Return what a field can be, where the node says `Literal` or `one_of`."""
    if isinstance(choice, ast.Subscript) and getattr(choice.value, "id", "") == "Literal":
        return choice.slice.elts if isinstance(choice.slice, ast.Tuple) else [choice.slice]
    return choice.args if isinstance(choice, ast.Call) and getattr(choice.func, "id", "") == "one_of" else []


def _said_by_commands() -> list[str]:
    """Sentences with `X` for each value: of `say`, of questions, and of the printers' first arguments."""
    calls = (
        one
        for path in (NODE / "cli").rglob("*.py")
        for one in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Name)
        and one.func.id in ("say", "say_wrapped", "confirm", "agrees", "Says")
        and one.args
    )
    questions = (
        one.value
        for path in (NODE / "cli").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and function.name == "question"
        for one in function.body
        if isinstance(one, ast.Return) and one.value is not None
    )
    given = (*(one.args[0] for one in calls), *questions)
    messages = (one for one in given if isinstance(one, ast.Constant | ast.JoinedStr))
    return sorted({said for one in messages if (said := _filled(one)) and re.search(r"[a-z] [a-z]", said)})


def _refusals() -> list[str]:
    """Refusals with `X` for each value."""
    calls = (
        one
        for package in PEOPLE_MEET
        for path in (NODE / package).rglob("*.py")
        if "ServiceError(" in (text := path.read_text(encoding="utf-8"))
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "ServiceError"
    )
    messages = (one.args[1] for one in calls if len(one.args) > 1)
    return sorted({said for one in messages if (said := _filled(one))})


def _filled(message: ast.expr) -> str:
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    if not all(isinstance(one, ast.Constant | ast.FormattedValue) for one in parts):
        return ""
    said = "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in parts)
    return said if len(re.sub("X", "", said)) > 10 else ""
