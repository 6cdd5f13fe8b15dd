"""`ravel watch --exec`: runs a command for each event, and remembers in a file how far it came.

A command gets the event as JSON on its standard input, and the parts that scripts ask for first as environment variables. An
event counts as done once its command has ended with 0: it is given again where the command failed or was killed.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from node.home.private_files import replace_file
from node.runtime.errors import ServiceError

CURSOR_SIZE_MAX: Final = 4096
"""Bytes of a cursor file: a cursor has some 100."""


def parse_command(text: str) -> list[str]:
    """The words of a command line, quoted as in a shell; no shell runs it. Raises ServiceError `bad_request`."""
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
    """The cursor that a file has; None where there is none. Raises ServiceError `bad_input`."""
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
