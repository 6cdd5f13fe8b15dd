"""CLI: config: show, check and change settings of the configuration file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli.answers import Outcome, print_fields, print_table, prints
from node.cli.completion import complete_keys
from node.cli.inputs import read_typed
from node.cli.printing import is_terminal
from node.cli.shared import SetOption, say, settings
from node.runtime.errors import ServiceError
from ravel.characters import display_safe

if TYPE_CHECKING:
    from node.home.config_editing import ConfigChange
    from node.home.config_layers import Setting
    from node.home.home import Home

config = typer.Typer(no_args_is_help=True, help="Show, change and check settings.")

KeyArgument = Annotated[
    str, typer.Argument(help="SECTION.KEY, such as network.listen.", autocompletion=complete_keys)
]


def _print_settings(home: "Home") -> None:
    print(home.config_path)
    if is_terminal():  # a variable is the key in capitals: it would take the room that keys and values need
        print_table(("key", "value", "source"), ((one.key, one.text, one.source) for one in home.settings))
        return
    print_table(
        ("key", "value", "source", "variable"),
        ((one.key, one.text, one.source, one.variable) for one in home.settings),
    )


@config.command("show")
@prints(_print_settings)
def show_config(context: typer.Context, options: SetOption = None) -> Outcome:
    """Print every setting with its source: default, file, environment or option."""
    from node.home.home import open_home

    home = open_home(settings(context).home, options or ())
    answer = {"config": str(home.config_path), "settings": [_as_json(one) for one in home.settings]}
    return Outcome(answer, shown=home)


def _as_json(one: "Setting") -> dict[str, object]:
    return {"key": one.key, "value": one.value, "source": one.source, "variable": one.variable}


def _print_check(answer: Mapping[str, Any]) -> None:
    print(f"{answer['config']} is good")
    for key in answer["overridden"]:
        print(f"overridden by the environment: {key}")
    for note in answer["notes"]:
        print(f"note: {note}")


@config.command("check")
@prints(_print_check)
def check_config(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Another configuration file than the node's.")] = None,
) -> Mapping[str, object]:
    """Check the configuration as the daemon does at its start, and report settings without effect."""
    import os

    from node.home.config import CONFIG_NAME
    from node.home.config_layers import find_unknown_variables, load_settings
    from node.home.home import no_node

    path = file or settings(context).home / CONFIG_NAME
    if not path.exists():
        if file is None:
            raise no_node(path.parent)
        raise ServiceError(
            "not_initialised", f"{path} is not there", "give a configuration file that is there"
        )
    _, found = load_settings(path, os.environ, ())
    notes = [
        f"{name} is set and is no key of the configuration" for name in find_unknown_variables(os.environ)
    ]
    overridden = [one.key for one in found if one.source == "environment"]
    return {"config": str(path), "notes": notes, "overridden": overridden}


@config.command("get")
@prints(print)
def get_config(context: typer.Context, key: KeyArgument) -> Outcome:
    """Print one setting as it holds for the next start."""
    from node.home.config_editing import find_key
    from node.home.home import open_home

    name = ".".join(find_key(key))
    found = next(one for one in open_home(settings(context).home).settings if one.key == name)
    return Outcome(_as_json(found), shown=display_safe(found.text))


def _print_change(shown: "tuple[Mapping[str, Any], ConfigChange, str]") -> None:
    answer, change, command = shown
    print_fields([(change.after.key, change.after.text), ("before", change.before.text)])
    if answer["restart"]:
        say(
            f"note: the daemon runs with the old value until it is started again: {command} down; {command} up"
        )
    if answer["overridden_by"]:
        say(f"note: without effect while the environment variable {answer['overridden_by']} is set")


@config.command("set", context_settings={"ignore_unknown_options": True})  # -3 is a value
@prints(_print_change)
def set_config(
    context: typer.Context,
    key: KeyArgument,
    value: Annotated[
        str,
        typer.Argument(help="A text as it is; else true, false, a number or a list as in TOML. - reads it."),
    ],
) -> Outcome:
    """Change one setting in the configuration file, whose comments stay. The daemon reads it when it starts.

    An unknown key, a wrong value and one with which the node could not start are refused, and change nothing.
    """
    from node.home.config import CONFIG_SIZE_MAX

    given = read_typed(CONFIG_SIZE_MAX).partition("\n")[0].rstrip("\r") if value == "-" else value
    return _change(context, key, given)


@config.command("unset")
@prints(_print_change)
def unset_config(context: typer.Context, key: KeyArgument) -> Outcome:
    """Set one setting back to its default in the configuration file, as `ravel config set` would."""
    from node.home.config_editing import default_text

    return _change(context, key, default_text(key))


def _change(context: typer.Context, key: str, given: str) -> Outcome:
    import os

    from node.home.config import CONFIG_NAME
    from node.home.config_editing import overriding_variable, set_key
    from node.home.home import no_node
    from ravel.home import command_for, is_locked

    home = settings(context).home
    path = home / CONFIG_NAME
    if not path.exists():
        raise no_node(home)
    change = set_key(path, key, given)
    answer = {
        "config": str(path),
        "key": change.after.key,
        "before": change.before.value,
        "value": change.after.value,
        "restart": is_locked(home) and change.is_change,
        "overridden_by": overriding_variable(change.after.key, os.environ) or None,
    }
    return Outcome(answer, shown=(answer, change, command_for(home)))
