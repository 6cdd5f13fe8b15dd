"""watch: a branch's timeline as it changes."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from node.cli.branch_commands import BranchArgument
from node.cli.people import author_of
from node.cli.shared import JsonOption, client, display_safe, first_line, iso_time, print_json
from node.runtime.errors import ServiceError

_SIGNS = {"insert": "+", "move": "~", "remove": "-"}
_TEXT_WIDTH = 80


def watch(
    context: typer.Context,
    branch: BranchArgument,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="The cursor to resume from; 'start' shows everything. By default only new commits are shown.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Follow a branch's timeline: what is inserted (+), moved (~) and removed (-), until it is interrupted.

    With --json one object a line: an edit with its cursor and its place (docs/reference/api.md), or a `reset`, after
    which all that was shown before is to be forgotten. `--from` with the last cursor goes on where one stopped.
    """
    api = client(context)
    if start is None:
        start = str(api.edits(branch, limit=1)["last"])
    cursor = "" if start == "start" else start
    try:
        with api.watch(branch, cursor) as events:
            for event in events:
                cursor = event.cursor or cursor
                if as_json:
                    print_json({"event": event.name, **event.data})
                else:
                    print(_line(event.name, event.data), flush=True)
    except ServiceError as error:
        if error.code != "interrupted":
            raise
        step = f"ravel watch {branch} --from {cursor or 'start'}"
        raise ServiceError("interrupted", error.message, f"to go on from here: {step}") from None


def _line(name: str, data: Mapping[str, Any]) -> str:
    if name == "reset":
        return "= from the start"
    item = data.get("item", {})
    shown = [_SIGNS[data["edit"]], data["commit"][:12]]
    if item:
        shown += [
            iso_time(item["time"]),
            author_of(item),
            first_line(item["text"], _TEXT_WIDTH) or f"({item['kind']})",
        ]
    return display_safe(" ".join(shown))
