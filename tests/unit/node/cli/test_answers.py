"""Printers of answers name fields that the answers have."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_type_hints

import pytest
import typer

import ravel.types
from node.cli.answers import Fields, Table, prints
from node.cli.command_table import COMMANDS

if TYPE_CHECKING:
    from ravel import Client


def _answer_types() -> dict[str, type]:
    found: dict[str, type] = {}
    for info in pkgutil.iter_modules(ravel.types.__path__):
        module = importlib.import_module(f"ravel.types.{info.name}")
        found |= {name: one for name, one in vars(module).items() if inspect.isclass(one)}
    return found


TYPES: Final = _answer_types()


def _commands() -> dict[str, Any]:
    names = dict.fromkeys(target.partition(":")[0] for target in COMMANDS.values())
    modules = [importlib.import_module(f"node.cli.{name}") for name in names]
    return {
        f"{module.__name__.removeprefix('node.cli.')}.{name}": one
        for module in modules
        for name, one in vars(module).items()
        if isinstance(getattr(one, "printer", None), Fields | Table) and one.__module__ == module.__name__
    }


@pytest.mark.parametrize(
    "name, command", _commands().items(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_printer_names_fields_of_the_answer(name: str, command: Any) -> None:  # noqa: ANN401  # a command
    answer = TYPES.get(command.answer)
    if answer is None:  # an answer of no endpoint
        return
    hints = get_type_hints(answer)
    printer = command.printer
    if isinstance(printer, Table):
        assert printer.rows in hints, name
        (row,) = get_args(hints[printer.rows])
        hints = get_type_hints(row)
    for column in printer.columns:
        source = column if isinstance(column, str) else column[1]
        assert not isinstance(source, str) or source in hints, f"{name}: {source}"


def test_a_repo_that_is_an_option_is_not_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    @prints()
    def search(api: "Client", repo: Annotated[str, typer.Option("--repo")] = "") -> Mapping[str, object]:
        return {"repo": repo}

    search(as_json=True, context_of_run=None, repo="")
    assert capsys.readouterr().out == '{"repo": ""}\n', "no daemon was asked for the repo in use"
