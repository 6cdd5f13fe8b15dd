"""Help in the reader's language: its table has each paragraph of help that the commands have, and no other."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from node.cli.command_table import GROUPS, TYPERS_WORDS
from node.cli.main import app
from node.runtime.language import load_help

if TYPE_CHECKING:
    from typer._click import Command

TABLE = load_help("de")
OF_HELP = "Show this message and exit."


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def _paragraphs(command: "Command") -> Iterator[str]:
    for paragraph in (command.help or "").split("\n\n"):
        yield paragraph.replace("\\[", "[")
    for parameter in command.params:
        yield (getattr(parameter, "help", None) or "").replace("\\[", "[")
    if isinstance(command, TyperGroup):
        for name in command.list_commands(typer.Context(command)):
            yield from _paragraphs(command.commands[name])


@pytest.mark.slow
def test_every_paragraph_of_help_has_german_and_no_other_has() -> None:
    group = get_command(app)
    said = {*_paragraphs(group), *GROUPS, group.epilog or "", *TYPERS_WORDS.values(), OF_HELP} - {""}
    assert {"without German": said - TABLE.keys(), "that nothing says": TABLE.keys() - said} == {
        "without German": set(),
        "that nothing says": set(),
    }


def test_german_help_names_the_same_commands_and_options() -> None:
    named = re.compile(r"`[^`]+`|--[a-z-]+")
    for english, german in TABLE.items():
        assert sorted(named.findall(english)) == sorted(named.findall(german)), json.dumps(english)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line, said",
    [
        ([], ("Beginnen", "Einen Beitrag schreiben", "Der Ordner des Knotens", "Befehle sprechen mit")),
        (["member", "exclude"], ("Ein Mitglied ausschließen", "Argumente", "[nötig]", "Diese Hilfe zeigen")),
        (["member"], ("Mitglieder eines Repos", "Befehle", "Eine Einladung widerrufen")),
    ],
)
def test_help_is_german_where_the_environment_says_so(
    line: list[str],
    said: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    with pytest.raises(SystemExit):
        get_command(app).main([*line, "--help"], prog_name="ravel")
    shown = capsys.readouterr().out
    assert [one for one in said if one not in shown] == []
    monkeypatch.delenv("LANG")
    with pytest.raises(SystemExit):
        get_command(app).main([*line, "--help"], prog_name="ravel")
    assert "Options" in capsys.readouterr().out, "and English again, within one process too"
