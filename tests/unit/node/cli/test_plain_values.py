"""Values of simple types are taken as typer itself takes them, and all else by typer."""

from pathlib import Path
from typing import Annotated, Final

import pytest
import typer
from typer.core import TyperArgument, TyperOption
from typer.testing import CliRunner

from node.cli import plain_values
from node.cli.plain_values import take_plainly

_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@_app.command()
def show(
    words: Annotated[list[str] | None, typer.Argument()] = None,
    name: Annotated[str | None, typer.Option()] = None,
    limit: Annotated[int, typer.Option(min=1, max=20)] = 5,
    size: Annotated[float | None, typer.Option()] = None,
    file: Annotated[Path | None, typer.Option()] = None,
    out: Annotated[Path | None, typer.Option(allow_dash=True)] = None,
    is_long: Annotated[bool, typer.Option("--long")] = False,
) -> None:
    """Print what came."""
    print([words, name, limit, size, file, out, is_long])


_LINES: Final[tuple[list[str], ...]] = (
    [],
    ["one", "two", "--name", "a name", "--limit", "20", "--long"],
    ["--name", "", "--limit", "007"],
    ["--limit", "0"],
    ["--limit", "21"],
    ["--limit", "-1"],
    ["--limit", "five"],
    ["--limit", "1_0"],
    ["--limit", " 7 "],
    ["--limit", "9" * 30],
    ["--limit", "٣"],
    ["--name", "\udc80"],
    ["--file", "no/such/file", "--out", "-"],
    ["--file", "-"],
    ["--file", ""],
    ["--file", "/"],
    ["--size", "1.5"],
)


@pytest.mark.parametrize("line", _LINES, ids=repr)
def test_a_value_is_what_typer_makes_of_it(line: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    take_plainly()
    plain = CliRunner().invoke(_app, line)
    for kind in (TyperOption, TyperArgument):
        monkeypatch.setattr(kind, "get_runtime_param", plain_values._ask_typer)
    by_typer = CliRunner().invoke(_app, line)
    assert (plain.exit_code, plain.output) == (by_typer.exit_code, by_typer.output)


def test_a_file_that_must_not_be_read_is_left_to_typer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_plainly()
    (tmp_path / "closed").touch()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "is not readable" in CliRunner().invoke(_app, ["--file", str(tmp_path / "closed")]).output
