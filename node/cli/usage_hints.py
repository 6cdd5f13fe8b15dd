"""Next steps for a command line that names no command, lacks an argument or has one too many.

Click says what is wrong with a line; people who type their first ones need what to type instead, in their language.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperArgument, TyperGroup

from node.cli.command_table import say_typers_words
from node.cli.hints import command
from node.runtime.language import in_language

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
"""Commands of other programs that people type by habit -> Ravel's own."""
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
"""Missing argument -> command that lists its possible values."""
_MEANT: Final = MappingProxyType(
    {
        "add": ("put", "create", "set"),
        "all": ("list",),
        "change": ("edit", "put", "set", "rename"),
        "create": ("add", "put", "invite"),
        "delete": ("rm", "remove", "revoke", "exclude", "forget"),
        "get": ("show", "list"),
        "kick": ("exclude",),
        "list": ("show",),
        "ls": ("list",),
        "new": ("create", "add", "invite"),
        "put": ("add", "set"),
        "remove": ("rm", "exclude", "revoke", "forget"),
        "rm": ("remove", "revoke", "exclude", "forget"),
        "set": ("put", "add", "grant"),
        "show": ("list", "look", "get", "pull"),
        "update": ("edit", "put", "set", "rename"),
        "write": ("put", "add", "edit"),
    }
)
"""Words that people type in a group -> what a group may have in their place, the best first."""
_PLAINER: Final = (
    (re.compile(r"Input should be a valid integer\b.*"), "it must be a whole number"),
    (re.compile(r"Input should be a valid number\b.*"), "it must be a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"it must be \1 or more"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"it must be \1 or less"),
    (re.compile("Value error, "), ""),
)
"""Patterns of pydantic's messages about a value, with what people read instead."""
_QUOTES: Final = "A text of several words stands in quotes; what is set by an option has its name before it"
_MAIN: Final = "main"
"""The branch that most repos have."""
_NEAR: Final = 0.7
"""Least likeness of a word and a command, from 0 to 1, at which the command is suggested."""
_SHOWN_MAX: Final = 5
"""Commands that one hint names."""


def add_hint(group: TyperGroup, error: Exception) -> None:
    """Add to a usage error what to type instead, and say it in the reader's language. Other errors stay as they are."""
    format_message: Callable[[], str] | None = getattr(error, "format_message", None)
    name = type(error).__name__  # typer exports none of these classes
    if format_message is None:
        return
    say_typers_words()
    if name == "NoArgsIsHelpError":  # whose message is the help
        return
    said, hints = format_message(), list[str]()
    if said.startswith("Got unexpected extra argument"):
        hints = [_QUOTES]
    elif found := re.match(r"No such command '(.*?)'\.", said):
        hints = list(_find_command(group, getattr(error, "ctx", None), found[1]))
        said = found[0] if hints else said  # what is near in letters alone leads astray
    elif name == "MissingParameter":
        hints = list(_explain_missing(error))
    for words, plain in _PLAINER:
        said = words.sub(plain, said)
    if hints:
        said = f"{said.removesuffix('.')}."
    whole = " ".join((in_language(said), ". ".join(map(in_language, hints)))).rstrip()
    vars(error)["format_message"] = lambda: whole


def _find_command(group: TyperGroup, context: "Context | None", typed: str) -> Iterator[str]:
    """Name the commands that do what was typed; none if none is known."""
    at = getattr(context, "command", None)
    if context is not None and isinstance(at, TyperGroup) and at is not group:
        meant = [one for one in _MEANT.get(typed, ()) if one in at.commands]
        if near := meant or difflib.get_close_matches(typed, at.commands, 1, _NEAR):
            yield f"Type: {command(f'{context.info_name} {near[0]}')}"
        elif context.info_name == "post":  # the group is about posts that are there
            yield f"Type: {command(f'write {_MAIN} {shlex.quote(typed)}')}"
        yield f"There are: {', '.join(at.commands)}"
    elif other := _OF_OTHER_PROGRAMS.get(typed):
        yield f"Type: {command(other)}"
    else:
        paths = sorted(_paths_of(group, typed), key=lambda path: not path.startswith("repo "))[:_SHOWN_MAX]
        if paths:
            yield f"Type: {', '.join(map(command, paths))}"
        elif not difflib.get_close_matches(typed, group.commands, 1):
            yield f"See: {command('--help')}"


def _paths_of(group: TyperGroup, typed: str) -> Iterator[str]:
    """Yield commands of groups that are called so."""
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from (f"{name} {path}" for path in one.commands if path == typed)


def _explain_missing(error: Any) -> Iterator[str]:  # noqa: ANN401  # of a class that typer does not export
    """Say how each argument before the missing one was understood, and where to look it up."""
    parameter, context = error.param, error.ctx
    if not isinstance(parameter, TyperArgument) or context is None:
        return
    arguments = [one for one in context.command.params if isinstance(one, TyperArgument)]
    given = [(one, value) for one in arguments if isinstance(value := context.params.get(one.name), str)]
    for one, value in given:
        yield f"{value!r} was taken for the {(one.metavar or str(one.name)).strip('{}[]').lower()}"
    if len(given) == 1 and given[0][0].name == "branch" and parameter is arguments[-1] is arguments[1]:
        above = context.parent.info_name if context.parent.parent is not None else ""  # a group
        path = f"{above} {context.info_name}".lstrip()
        yield f"Type: {command(f'{path} {_MAIN} {shlex.quote(given[0][1])}')}"
    if shows := _NAMES.get(str(parameter.name)):
        yield f"See: {command(shows)}"
