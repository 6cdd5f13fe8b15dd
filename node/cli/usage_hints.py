"""Next steps for a command line that names no command, lacks an argument or has one too many.

Click says what is wrong with a line; people who type their first ones need what to type instead.
"""

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperArgument, TyperGroup

from node.cli.hints import command

if (
    TYPE_CHECKING
):  # a type that typer uses in the signatures of its public classes, and does not export itself
    from typer._click import Context

_OF_OTHER_PROGRAMS: Final = MappingProxyType(
    {
        "exit": "down",
        "find": "search",
        "help": "--help",
        "login": "open",
        "ls": "repo list",
        "messages": "log",
        "quit": "down",
        "read": "log",
        "recover": "up --words",
        "send": "write",
        "start": "up",
        "stop": "down",
        "version": "--version",
    }
)
"""Words that people type by habit -> what it is called here."""
_NAMES: Final = MappingProxyType(
    {
        "branch": "branch list",
        "commit": "log BRANCH",
        "file": "file list BRANCH",
        "peer": "peer list",
        "repo": "repo list",
        "user": "member list",
    }
)
"""Argument that is missing -> command that shows what may stand there."""
_SHOWN_MAX: Final = 5
"""Commands that one hint names."""


def add_hint(group: TyperGroup, error: Exception) -> None:
    """Add to the message of a usage error what to type instead. Errors of other kinds stay as they are."""
    said = str(getattr(error, "message", ""))
    hint = ""
    if said.startswith("Got unexpected extra argument"):
        said += "."
        hint = "A text of several words stands in quotes; what is set by an option has its name before it"
    elif found := re.match(r"No such command '(.*?)'\.", said):
        context = getattr(error, "ctx", None)
        hint = _find_command(group, context, found[1])
        said = found[0] if hint else said  # what is near in letters alone leads astray
    elif type(error).__name__ == "MissingParameter":
        hint = _explain_missing(error)
    if hint:
        error.message = f"{said} {hint}".strip()  # type: ignore[attr-defined]  # typer exports no class that has it


def _find_command(group: TyperGroup, context: "Context | None", typed: str) -> str:
    """Name the commands that do what was typed; empty if none is known."""
    at = getattr(context, "command", None)
    if isinstance(at, TyperGroup) and at is not group:
        return f"There are: {', '.join(at.commands)}"
    if meant := _OF_OTHER_PROGRAMS.get(typed):
        return f"Type: {command(meant)}"
    paths = sorted(_paths_of(group, typed), key=lambda path: not path.startswith("repo "))[:_SHOWN_MAX]
    return f"Type: {', '.join(map(command, paths))}" if paths else ""


def _paths_of(group: TyperGroup, typed: str) -> Iterator[str]:
    """Yield commands of groups that are called so."""
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from (f"{name} {path}" for path in one.commands if path == typed)


def _explain_missing(error: Any) -> str:  # noqa: ANN401  # of a class that typer does not export
    """Say how each argument before the missing one was understood, and where to look it up."""
    parameter, context = error.param, error.ctx
    if not isinstance(parameter, TyperArgument) or context is None:
        return ""
    given = [one for one in context.command.params if isinstance(one, TyperArgument)]
    taken = [
        f"{value!r} was taken for the {(one.metavar or str(one.name)).strip('{}[]').lower()}"
        for one in given
        if isinstance(value := context.params.get(one.name), str)
    ]
    shows = _NAMES.get(str(parameter.name))
    return ". ".join([*taken, *([f"See: {command(shows)}"] if shows else [])])
