"""backup, restore: care of a node's data, without its daemon or beside it."""

import time
from pathlib import Path
from typing import Annotated

import typer

from node.cli.shared import JsonOption, iso_time, print_fields, print_json, settings


def backup(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="A folder that is not there yet.")],
    as_json: JsonOption = False,
) -> None:
    """Write a backup of the node (store, keys, configuration), while its daemon runs or not.

    Whoever has the backup has the keys in it. It appears under its name when it is whole.
    """
    from node.backup import create_backup

    made = create_backup(settings(context).home, out, int(time.time()))
    print_json(made.as_json()) if as_json else print_fields(made.as_json().items())


def restore(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder that `ravel backup` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Make a node of a backup in --home, which must not be there or be empty. Every file is checked first.

    It is the same node and the same user: never run it beside the one that the backup was made of.
    """
    from node.backup import restore_backup

    home = settings(context).home
    made = restore_backup(source, home)
    if as_json:
        print_json(made.as_json())
        return
    print_fields(made.as_json().items())
    print(f"\nThis is the node as it was at {iso_time(made.created_at)} (UTC), with its keys.")
    print(
        "Let it meet its peers before you write: a place of your feed that was used since would be used twice."
    )
    print(f"Start it with:  ravel --home {home} run")
