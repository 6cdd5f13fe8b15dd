"""All commands by name, each imported when it is chosen: `ravel status` imports no other command.

Importing all commands and having typer read their signatures takes longer than most commands run. So the top level is a
group whose table of commands names modules; help and completion, which list all, import all.
"""

import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from node.runtime.errors import EXIT_STOPPED
from node.runtime.language import help_in_language

if TYPE_CHECKING:  # types that typer uses in the signatures of its public classes, and does not export itself
    from typer._click import Command, Context, HelpFormatter, Parameter

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Begin": {
        "up": "up_commands:up",
        "open": "node_commands:open_page",
        "down": "up_commands:down",
        "status": "node_commands:status",
        "doctor": "care_commands:doctor",
        "use": "use_command:use",
        "me": "people_commands:me",
        "name": "people_commands:name",
        "id": "node_commands:show_id",
        "init": "key_commands:init",
        "run": "node_commands:run",
    },
    "Write and read": {
        "write": "branch_commands:write",
        "reply": "post_commands:reply",
        "edit": "post_commands:edit",
        "delete": "post_commands:delete",
        "log": "branch_commands:log",
        "search": "search_commands:search",
        "watch": "watch_commands:watch",
        "post": "post_commands:post",
        "text": "text_commands:text",
        "document": "document_commands:document",
        "set": "document_commands:set_",
        "dict": "document_commands:dict_",
        "json": "json_commands:json_",
        "file": "file_commands:file",
        "tag": "branch_commands:tag",
    },
    "Share": {
        "repo": "repo_commands:repo",
        "branch": "branch_commands:branch",
        "member": "member_commands:member",
        "device": "device_commands:device",
        "recovery": "recovery_commands:recovery",
        "requests": "request_commands:requests",
        "inbox": "inbox_commands:inbox",
        "bundle": "bundle_commands:bundle",
    },
    "Connect": {
        "peer": "peer_commands:peer",
        "relay": "relay_commands:relay",
        "browser": "access_commands:browser",
        "token": "access_commands:token",
        "api": "access_commands:call_api",
    },
    "Study": {
        "export": "export_commands:export",
        "analyze": "export_commands:analyze",
        "study": "export_commands:study",
        "audit": "export_commands:audit",
        "import": "import_commands:import_",
    },
    "Care": {
        "backup": "care_commands:backup",
        "restore": "care_commands:restore",
        "storage": "node_commands:storage",
        "config": "config_commands:config",
        "key": "key_commands:key",
        "fsck": "care_commands:fsck",
        "gc": "care_commands:collect",
        "debug": "care_commands:debug",
        "uninstall": "service_commands:uninstall",
    },
    "Look inside": {
        "show": "branch_commands:show",
        "why": "branch_commands:why",
        "tangle": "tangle_commands:tangle",
        "feed": "tangle_commands:feed",
        "quorum": "member_commands:quorum",
    },
}
"""Heading of the help -> name -> `MODULE:ATTRIBUTE` in this package: a function, or a `Typer` of several commands."""
COMMANDS: Final = MappingProxyType(
    {name: place for group in GROUPS.values() for name, place in group.items()}
)
"""Name -> place of each command, in the order of help."""
_HEADINGS: Final = {name: heading for heading, group in GROUPS.items() for name in group}


_COLOURS: Final = re.compile(r"\[(?=[a-z#/@][^\[]*\])")
"""Text that rich takes for the name of a colour."""
TYPERS_WORDS: Final = MappingProxyType(
    {
        "ARGUMENTS_PANEL_TITLE": "Arguments",
        "OPTIONS_PANEL_TITLE": "Options",
        "COMMANDS_PANEL_TITLE": "Commands",
        "DEFAULT_STRING": "[default: {}]",
        "ENVVAR_STRING": "[env var: {}]",
        "REQUIRED_LONG_STRING": "[required]",
        "ERRORS_PANEL_TITLE": "Error",
        "RICH_HELP": "Try [blue]'{command_path} {help_option}'[/] for help.",
        "ABORTED_TEXT": "Aborted.",
    }
)
"""Typer's own words in help and errors, by their names in typer. Its line of usage stays: names and brackets."""


REPO_LEFT_OUT: Final = "node.cli.repo_left_out"
"""Key in the `meta` of a command's context: true where its line names no repo."""


class LazyGroup(TyperGroup):
    """The top level, whose commands are those of `COMMANDS`."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  # handed on to typer as it hands them
        super().__init__(**attributes)
        self.commands = _Commands()
        self.help, self.epilog = (help_in_language(one or "") for one in (self.help, self.epilog))
        take_plainly(self)
        _say_help(self)

    def invoke(self, ctx: "Context") -> Any:  # noqa: ANN401  # what a command gives, as click has it
        """Run the command. Say what to type instead of a line that names none, or lacks something."""
        try:
            return super().invoke(ctx)
        except typer.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C at a question
                print(file=sys.stderr)
                raise typer.Exit(EXIT_STOPPED) from None
            say_typers_words()
            raise
        except Exception as error:  # of a class that typer does not export
            import_module("node.cli.usage_hints").add_hint(self, error)
            raise

    def list_commands(self, ctx: "Context") -> list[str]:  # typer's own loads each command for its name
        """List all names, in the order of help."""
        return list(self.commands)


class _Commands(MutableMapping[str, "Command"]):
    """The commands of a group by name. Names are known at once; a command is imported when it is first looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}
        self._names: dict[str, str] = dict(COMMANDS)

    def __getitem__(self, name: str) -> "Command":
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: "Command") -> None:
        self._names.setdefault(name, "")
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:  # else inherited, and imports the command to tell
        return name in self._names

    def _load(self, name: str) -> "Command":
        module, _, attribute = self._names[name].partition(":")
        found = getattr(import_module(f"node.cli.{module}"), attribute)
        holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        heading = help_in_language(_HEADINGS.get(name, ""))
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name, rich_help_panel=heading)
            whole = get_command(holder)
            assert isinstance(whole, TyperGroup), "typer makes a group of what has one"
            command = whole.commands[name]
        else:
            holder.command(name, rich_help_panel=heading)(found)
            command = get_command(holder)
        _prepare_help(command)
        return command


def take_plainly(command: "Command") -> None:
    """Let a command's options and arguments take a value of their own type as it is.

    typer converts each value, given or not, by pydantic: a quarter of a command's time, and 9 MB of a daemon.
    """
    all_params = command.get_params

    def get_params(ctx: "Context") -> "list[Parameter]":
        found = all_params(ctx)  # with those that typer adds itself
        for one in found:
            if isinstance(one, TyperArgument | TyperOption) and "get_runtime_param" not in vars(one):
                vars(one)["get_runtime_param"] = _PlainValue(one).get
                one.help = help_in_language(one.help or "") or None  # of those that typer adds
        return found

    vars(command)["get_params"] = get_params


class _PlainValue:
    """Converter of one parameter. Values of another type, or not in Unicode, are left to typer."""

    def __init__(self, parameter: TyperArgument | TyperOption) -> None:
        self._ask_typer = parameter.get_runtime_param
        self._type = parameter.type_descriptor.annotation

    def get(self) -> "_PlainValue":
        """Return this converter, as typer asks for it."""
        return self

    def coerce(self, value: Any, param: "Parameter", ctx: "Context") -> Any:  # noqa: ANN401  # as typer calls it
        """Return the value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(self._type, type) and isinstance(value, self._type) and _is_text(value):
            return value
        if get_args(self._type) == (str,) and isinstance(value, list | tuple) and all(map(_is_text, value)):
            return [*value]
        return self._ask_typer().coerce(value, param, ctx)  # type: ignore[arg-type]  # it is of typer's kinds


def let_repo_be_left_out(command: "Command") -> None:
    """Let a command be called without its optional first argument, the repo.

    If there are only as many values as other required arguments, they mean these. `ctx.meta` then has REPO_LEFT_OUT.
    """
    arguments = [one for one in command.params if isinstance(one, TyperArgument)]
    needed = [one.name for one in arguments if one.required]
    if not needed or arguments[0].name != "repo" or arguments[0].required:
        return
    parse = command.parse_args

    def parse_args(ctx: "Context", args: list[str]) -> list[str]:
        found, _, _ = command.make_parser(ctx).parse_args([*args])
        if [name for name in needed if found[str(name)] is None] == needed[-1:] and found["repo"] is not None:
            ctx.meta[REPO_LEFT_OUT] = True
            return parse(ctx, ["", *args])
        return parse(ctx, args)

    vars(command)["parse_args"] = parse_args


def _is_text(value: object) -> bool:
    """Return False for an argument that is not Unicode, which has surrogates."""
    try:
        return value.encode() is not None if isinstance(value, str) else True
    except UnicodeEncodeError:
        return False


def _say_help(command: "Command") -> None:
    """Translate what typer adds to help into the reader's language: typer asks for that once, when it is imported."""
    show = command.format_help

    def format_help(ctx: "Context", formatter: "HelpFormatter") -> None:
        say_typers_words()
        show(ctx, formatter)

    vars(command)["format_help"] = format_help


def say_typers_words() -> None:
    """Translate typer's own words around help and errors into the reader's language."""
    words = import_module("typer.rich_utils")  # takes its time: only help and errors need it
    for name, english in TYPERS_WORDS.items():
        setattr(words, name, help_in_language(english))


def _prepare_help(command: "Command") -> None:
    """Show help in the reader's language, as it is written: typer keeps line breaks, and takes words in [] for colours."""
    paragraphs = (help_in_language(" ".join(one.split())) for one in (command.help or "").split("\n\n"))
    command.help = _COLOURS.sub(r"\\[", "\n\n".join(paragraphs))
    command.short_help = command.help.partition(". ")[0].removesuffix(
        "."
    )  # one line of a list, where it fits
    take_plainly(command)
    let_repo_be_left_out(command)
    _say_help(command)
    for parameter in command.params:
        if isinstance(parameter, TyperArgument | TyperOption) and parameter.help:
            parameter.help = _COLOURS.sub(r"\\[", help_in_language(parameter.help))
    if isinstance(command, TyperGroup):
        for one in command.commands.values():
            _prepare_help(one)
