"""Commands on documents: what they refuse, and what they leave as it is."""

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


def test_a_line_of_brackets_without_end_is_refused(invoke: Invoke) -> None:
    done = invoke("dict", "put", "main", "-", stdin="[" * 200_000)
    assert isinstance(done.exception, ServiceError)
    assert done.exception.code == "bad_input"
