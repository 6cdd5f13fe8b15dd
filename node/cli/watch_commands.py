"""watch: a branch's timeline as it changes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from node.cli.branch_commands import BranchArgument
from node.cli.hooks import keep_cursor, parse_command, read_cursor, run_hook
from node.cli.people import author_of
from node.cli.posts import post_text
from node.cli.shared import JsonOption, client, iso_time, print_json
from node.runtime.errors import ServiceError
from ravel.characters import display_safe
from ravel.event_streams import StreamEvent

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
    command: Annotated[
        str,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Run this for each event, one after the other. It gets the event as JSON on its standard input, and "
            "RAVEL_BRANCH, RAVEL_EVENT, RAVEL_EDIT, RAVEL_COMMIT and RAVEL_CURSOR. No shell runs it.",
        ),
    ] = "",
    cursor_file: Annotated[
        Path | None,
        typer.Option(
            help="Keep the cursor in this file after each event, and resume from it. It goes before --from."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Follow a branch's timeline: what is inserted (+), moved (~) and removed (-), until it is interrupted.

    With --json one object a line: an edit with its cursor and its place (docs/reference/api.md), or a `reset`, after
    which all that was shown before is to be forgotten. `--from` with the last cursor goes on where one stopped.

    With --exec and --cursor-file each event reaches the command at least once, also over restarts: one whose command
    failed comes again.
    """
    words = parse_command(command) if command else []
    kept = read_cursor(cursor_file) if cursor_file is not None else None
    api = client(context)
    if kept is None and start is None:
        start = str(api.follow_edits(branch, limit=1)["last"])
    cursor = kept if kept is not None else "" if start == "start" else str(start)
    if kept is None and cursor_file is not None:
        keep_cursor(cursor_file, cursor)

    def tell(event: StreamEvent) -> None:
        nonlocal cursor
        told = {"event": event.name, **event.data}
        if words:
            run_hook(words, branch, told)
        elif as_json:
            print_json(told)
        else:
            print(_line(event.name, event.data), flush=True)
        cursor = event.cursor or cursor
        if cursor_file is not None:
            keep_cursor(cursor_file, cursor)

    try:
        # A command that takes its time has the stream cut. What it missed is in the store.
        with api.watch_edits(branch, since=cursor, reconnect=bool(words)) as events:
            for event in events:
                tell(event)
    except ServiceError as error:
        if error.code != "interrupted":
            raise
        resumed = f"--cursor-file {cursor_file}" if cursor_file is not None else f"--from {cursor or 'start'}"
        raise ServiceError(
            "interrupted", error.message, f"to go on from here: ravel watch {branch} {resumed}"
        ) from None


def _line(name: str, data: Mapping[str, Any]) -> str:
    if name == "reset":
        return "= from the start"
    item = data.get("item", {})
    shown = [_SIGNS[data["edit"]], data["commit"][:12]]
    if item:
        shown += [
            iso_time(item["time"]),
            author_of(item),
            post_text(item, _TEXT_WIDTH) or f"({item['kind']})",
        ]
    return display_safe(" ".join(shown))
