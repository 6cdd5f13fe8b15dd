"""Values of simple types are taken as typer itself takes them."""

from pathlib import Path
from typing import Annotated, Final

import pytest
import typer
from typer.main import get_command

from node.cli.command_table import take_plainly

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
def test_a_value_is_what_typer_makes_of_it(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for is_plain in (True, False):
        command = get_command(_app)
        if is_plain:
            take_plainly(command)
        with pytest.raises(SystemExit) as ended:
            command.main(line, prog_name="show")
        answers.append((ended.value.code, capsys.readouterr()))
    assert answers[0] == answers[1]
