"""Commands on documents: what they refuse, and what they leave as it is."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from node.cli.main import app
from node.runtime.errors import ServiceError

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Calls a command whose daemon answers by these functions."""

    def invoke(*arguments: str, stdin: str = "", **answers: object) -> Result:
        api: Any = SimpleNamespace(**answers)
        monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
        return CliRunner().invoke(app, arguments, input=stdin)

    return invoke


def _text(text: str) -> Callable[..., dict[str, object]]:
    return lambda *_, **__: {"text": text, "update": "", "faults": [], "refused": 0, "passed_over": 0}


def test_a_text_that_is_not_there_empties_no_file(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("as it was pulled before")
    pull = ("text", "pull", "main", "--root", "notse", "-o", str(out))
    done = invoke(*pull, pull_text=_text(""))
    assert isinstance(done.exception, ServiceError)
    assert done.exception.code == "not_found"
    assert out.read_text() == "as it was pulled before"
    assert invoke(*pull, pull_text=_text("newer")).exit_code == 0
    assert out.read_text() == "newer"


def test_a_text_that_finds_no_room_leaves_the_file_that_was_there(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("as it was pulled before")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = invoke("text", "pull", "main", "--root", "a", "-o", str(out), pull_text=_text("newer"))
    assert isinstance(done.exception, ServiceError)
    assert (done.exception.code, out.read_text()) == ("storage_failed", "as it was pulled before")
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("value", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "c": 1, "a": 1}}]'])
def test_a_value_with_a_key_that_stands_twice_is_refused(invoke: Invoke, value: str) -> None:
    for arguments, stdin in (((value,), ""), (("-",), value)):
        done = invoke("json", "put", "main", "", *arguments, stdin=stdin)
        assert isinstance(done.exception, ServiceError)
        assert done.exception.code == "bad_input"
        assert "the key 'a' stands twice" in done.exception.message


def test_a_line_of_brackets_without_end_is_refused(invoke: Invoke) -> None:
    done = invoke("dict", "put", "main", "-", stdin="[" * 200_000)
    assert isinstance(done.exception, ServiceError)
    assert done.exception.code == "bad_input"


def test_an_absent_key_comes_with_a_list_that_can_be_typed(invoke: Invoke) -> None:
    done = invoke("dict", "rm", "main", "x", edit_dict=lambda **_: {"erased": []})
    assert isinstance(done.exception, ServiceError)
    assert done.exception.advice == "`ravel dict list BRANCH` shows what there is"


def test_a_put_value_is_sent_as_it_was_written(invoke: Invoke) -> None:
    sent: list[Any] = []

    def edit_json(_branch: str, edits: object, **_: object) -> dict[str, object]:
        sent.append(edits)
        return {"commits": []}

    value = {"a": [1, {"a": 2}], "b": {"a": None}}
    assert invoke("json", "put", "main", "", json.dumps(value), edit_json=edit_json).exit_code == 0
    assert sent[0][0]["value"] == value


@pytest.mark.parametrize("sort", ["", "due"], ids=["by name", "sorted"])
@pytest.mark.parametrize("limit, has_more", [(1, True), (2, True), (3, False), (4, False)])
def test_a_query_says_whether_there_are_more(invoke: Invoke, sort: str, limit: int, has_more: bool) -> None:
    def find(_branch: str, *, cursor: str, limit: int, **_: object) -> dict[str, object]:
        start = int(cursor or 0)
        found = [{"name": str(one), "value": one} for one in range(3)][start : start + limit]
        end = start + len(found)
        return {"documents": found, "unreadable": [], "cursor": str(end) if not sort and end < 3 else None}

    options = ("--sort", sort, "--limit", str(limit), "--json")
    done = invoke("json", "query", "main", *options, follow_json_documents=find)
    answer = json.loads(done.stdout)
    assert (len(answer["documents"]), answer["more"]) == (min(limit, 3), has_more)
    assert ("there are more than" in done.stderr) == has_more
