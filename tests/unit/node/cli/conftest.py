"""Commands called in the tests' process; options before a command are those of one test."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from node.cli import main as main_module
from node.cli.hints import note_options
from node.cli.main import app

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def _called_without_options() -> Iterator[None]:
    note_options(None, None)  # tests elsewhere call the program in this process too
    yield
    note_options(None, None)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Calls a command whose daemon answers by these functions."""

    def invoke(*arguments: str, stdin: str = "", **answers: object) -> Result:
        api: Any = SimpleNamespace(**answers)
        monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
        return CliRunner().invoke(app, arguments, input=stdin)

    return invoke


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the program in this process, and return its exit code."""
    monkeypatch.setattr("sys.argv", ["ravel", *arguments])
    with pytest.raises(SystemExit) as caught:
        main_module.main()
    return int(caught.value.code or 0)
