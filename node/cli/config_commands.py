"""CLI: config: show, check and change settings of the configuration file."""

from pathlib import Path
from typing import Annotated

import typer

from node.cli.completion import complete_keys
from node.cli.inputs import read_typed
from node.cli.shared import (
    JsonOption,
    SetOption,
    print_fields,
    print_json,
    print_table,
    say,
    settings,
)
from node.runtime.errors import ServiceError
from ravel.characters import display_safe

config = typer.Typer(no_args_is_help=True, help="Show, change and check settings.")

KeyArgument = Annotated[
    str, typer.Argument(help="SECTION.KEY, such as network.listen.", autocompletion=complete_keys)
]


@config.command("show")
def show_config(context: typer.Context, options: SetOption = None, as_json: JsonOption = False) -> None:
    """Print every setting with its source: default, file, environment or option."""
    from node.home.home import open_home

    home = open_home(settings(context).home, options or ())
    if as_json:
        rows = [
            {"key": one.key, "value": one.value, "source": one.source, "variable": one.variable}
            for one in home.settings
        ]
        print_json({"config": str(home.config_path), "settings": rows})
        return
    print(home.config_path)
    print_table(
        ("key", "value", "source", "variable"),
        ((one.key, one.text, one.source, one.variable) for one in home.settings),
    )


@config.command("check")
def check_config(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Another configuration file than the node's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the configuration as the daemon does at its start, and report settings without effect."""
    import os

    from node.home.config import CONFIG_NAME
    from node.home.config_layers import find_strangers, load_settings

    path = file or settings(context).home / CONFIG_NAME
    if not path.exists():
        raise ServiceError("not_initialised", f"{path} is not there", "make a node with: ravel up")
    _, found = load_settings(path, os.environ, ())
    notes = [f"{name} is set and is no key of the configuration" for name in find_strangers(os.environ)]
    overridden = [one.key for one in found if one.source == "environment"]
    if as_json:
        print_json({"config": str(path), "notes": notes, "overridden": overridden})
        return
    print(f"{path} is good")
    for key in overridden:
        print(f"overridden by the environment: {key}")
    for note in notes:
        print(f"note: {note}")


@config.command("get")
def get_config(context: typer.Context, key: KeyArgument, as_json: JsonOption = False) -> None:
    """Print one setting as it holds for the next start."""
    from node.home.config_editing import find_key
    from node.home.home import open_home

    name = ".".join(find_key(key))
    found = next(one for one in open_home(settings(context).home).settings if one.key == name)
    if as_json:
        print_json(
            {"key": found.key, "value": found.value, "source": found.source, "variable": found.variable}
        )
    else:
        print(display_safe(found.text))


@config.command("set")
def set_config(
    context: typer.Context,
    key: KeyArgument,
    value: Annotated[
        str,
        typer.Argument(help="A text as it is; else true, false, a number or a list as in TOML. - reads it."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Change one setting in the configuration file, whose comments stay. The daemon reads it when it starts.

    An unknown key, a wrong value and one with which the node could not start are refused, and change nothing.
    """
    import os

    from node.home.config import CONFIG_NAME, CONFIG_SIZE_MAX
    from node.home.config_editing import overriding_variable, set_key
    from ravel.home import command_for, is_locked

    home = settings(context).home
    path = home / CONFIG_NAME
    if not path.exists():
        raise ServiceError(
            "not_initialised", f"{path} is not there", f"make a node with: {command_for(home)} up"
        )
    given = read_typed(CONFIG_SIZE_MAX).partition("\n")[0].rstrip("\r") if value == "-" else value
    change = set_key(path, key, given)
    variable = overriding_variable(change.after.key, os.environ)
    is_running = is_locked(home)
    if as_json:
        print_json(
            {
                "config": str(path),
                "key": change.after.key,
                "before": change.before.value,
                "value": change.after.value,
                "restart": is_running and change.is_change,
                "overridden_by": variable or None,
            }
        )
        return
    print_fields([(change.after.key, change.after.text), ("before", change.before.text)])
    if is_running and change.is_change:
        command = command_for(home)
        say(
            f"note: the daemon runs with the old value until it is started again: {command} down; {command} up"
        )
    if variable:
        say(f"note: without effect while the environment variable {variable} is set")
