"""watch: a branch's timeline as it changes, printed, or given event by event to a command.

A command (`--exec`) gets the event as JSON on its standard input, and the parts that scripts ask for first as environment
variables. An event counts as done once its command has ended with 0: it is given again where the command failed or was
killed. A cursor file remembers how far that came.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from node.cli.answers import JsonOption, print_json
from node.cli.branch_commands import BranchArgument
from node.cli.shared import client
from node.cli.wording import author_of, post_text
from node.home.private_files import replace_file
from node.runtime.errors import ServiceError
from node.runtime.wording import date_text
from ravel.characters import display_safe
from ravel.event_streams import StreamEvent

CURSOR_SIZE_MAX: Final = 4096
"""Bytes of a cursor file: a cursor has some 100."""
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

    With --json one object a line: an edit with its cursor and its place (docs/apps/http-api.md), or a `reset`, after
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
            date_text(item["time"]),
            author_of(item),
            post_text(item, _TEXT_WIDTH) or f"({item['kind']})",
        ]
    return display_safe(" ".join(shown))


def parse_command(text: str) -> list[str]:
    """Split a command line that is quoted as in a shell; no shell runs it. Raises ServiceError `bad_request`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ServiceError(
            "bad_request", f"--exec: {error}", "quote it as for a shell: 'COMMAND ARGUMENT'"
        ) from None
    if not words:
        raise ServiceError(
            "bad_request", "--exec is empty", "give the command to run: --exec 'COMMAND ARGUMENT'"
        )
    return words


def run_hook(command: list[str], branch: str, event: Mapping[str, Any]) -> None:
    """Run the command for one event, and wait until it ends. Raises ServiceError `interrupted` where it fails."""
    told = {
        "RAVEL_BRANCH": branch,
        "RAVEL_EVENT": str(event["event"]),
        "RAVEL_EDIT": str(event.get("edit", "")),
        "RAVEL_COMMIT": str(event.get("commit", "")),
        "RAVEL_CURSOR": str(event.get("cursor", "")),
    }
    try:
        ended = subprocess.run(  # the user's own command
            command, input=json.dumps(event).encode(), env={**os.environ, **told}, check=False
        )
    except OSError as error:
        raise ServiceError("interrupted", f"--exec: {command[0]}: {error.strerror or error}") from None
    if ended.returncode:
        said = (
            f"was ended by signal {-ended.returncode}"
            if ended.returncode < 0
            else f"ended with {ended.returncode}"
        )
        raise ServiceError("interrupted", f"--exec: {command[0]} {said} at {_name(event)}")


def _name(event: Mapping[str, Any]) -> str:
    return f"commit {event['commit'][:12]}" if event.get("commit") else f"the event {event['event']}"


def read_cursor(path: Path) -> str | None:
    """Return the cursor that a file has; None where there is none. Raises ServiceError `bad_input`."""
    if (
        path.exists() and not path.is_file()
    ):  # a cursor would replace a device, and wait for what reads a pipe
        raise ServiceError("bad_input", f"{path} is no file", "give another --cursor-file")
    try:
        with path.open("rb") as file:
            content = file.read(CURSOR_SIZE_MAX + 1)
        text = content.decode().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceError("bad_input", f"{path}: {error}", "give another --cursor-file") from None
    if len(content) > CURSOR_SIZE_MAX:
        raise ServiceError(
            "bad_input", f"{path} is no cursor file: it is too long", "give another --cursor-file"
        )
    return text or None


def keep_cursor(path: Path, cursor: str) -> None:
    """Write a cursor, through a link too, so that a crash leaves the old one or this. Raises ServiceError `bad_input`."""
    try:
        replace_file(Path(os.path.realpath(path)), f"{cursor}\n".encode())
    except OSError as error:
        raise ServiceError("bad_input", f"{path}: {error.strerror}", "give another --cursor-file") from None
