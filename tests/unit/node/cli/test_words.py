"""Sentences of commands name what the answer or the command has, and commands that exist."""

import importlib
import inspect
import string
from typing import Any, Final

import pytest

import ravel.types
from node.cli import words
from node.cli.command_table import COMMANDS
from node.cli.printing import Says
from tests.unit.node.cli.test_answers import TYPES

_MADE: Final = {"called", "asks", "role", "where", "passing", "hidden"}
"""Values that commands add for their sentences."""


def _commands() -> dict[str, Any]:
    modules = {
        importlib.import_module(f"node.cli.{target.partition(':')[0]}") for target in COMMANDS.values()
    }
    return {
        f"{module.__name__}.{name}": one
        for module in modules
        for name, one in vars(module).items()
        if isinstance(getattr(one, "printer", None), Says) and one.__module__ == module.__name__
    }


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("name", sorted(_commands()))
def test_a_sentence_names_what_there_is(name: str) -> None:
    command = _commands()[name]
    parameters = set(inspect.signature(command).parameters)
    given = parameters | {f"{one}_given" for one in parameters}
    answer = TYPES.get(command.answer)
    if answer is None and command.answer != "Empty":
        return  # it is made by the command
    fields = set() if answer is None else set(answer.__annotations__)
    known = given | fields | {f"{one}_short" for one in fields} | _MADE
    texts = [
        command.printer.sentence,
        *(one if isinstance(one, str) else one[0] for one in command.printer.commands),
    ]
    for text in texts:
        if isinstance(text, str):
            assert _names(text) <= known, text


@pytest.mark.parametrize("name", [name for name in vars(words) if isinstance(vars(words)[name], Says)])
def test_next_steps_are_commands_that_exist(name: str) -> None:
    for command in vars(words)[name].commands:
        first = (command if isinstance(command, str) else command[0]).removeprefix("--home NEW ").split()[0]
        assert first in COMMANDS


def test_types_of_answers_were_found() -> None:
    assert inspect.getmodule(TYPES["RepoView"]) is ravel.types.repos
