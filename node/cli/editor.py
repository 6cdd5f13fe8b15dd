"""Lets a person change a text in the editor of this computer: a file that nobody else can read, and a program that ends."""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from node.cli.foreground import run_in_front
from node.runtime.errors import EXIT_STOPPED, ServiceError
from ravel.characters import display_safe

_VARIABLES: Final = ("VISUAL", "EDITOR")
"""Environment variables that name the editor, the one that counts first."""
_KNOWN: Final = ("nano", "micro", "vim", "vi", "emacs")
"""Editors of terminals, the easiest first: advice names one that is installed."""
_UNPLAIN: Final = re.compile(r"[^\w-]+")
_NAME_MAX: Final = 60
_SIZE_MAX: Final = 64 << 20
"""Bytes of a file that are read: no text has more."""


def find_editor() -> list[str]:
    """Return the words that start the editor. Raises ServiceError `bad_request` where none is chosen, or it is not there."""
    name = next((one for one in _VARIABLES if os.environ.get(one, "").strip()), "")
    if not name:
        raise ServiceError(
            "bad_request", "no editor is chosen: neither VISUAL nor EDITOR is set", _advise("EDITOR")
        )
    value = os.environ[name]
    try:
        words = shlex.split(value)
    except ValueError:
        words = []
    if not words:
        raise ServiceError(
            "bad_request", f"{name} is no command that a shell understands: {value}", _advise(name)
        )
    if shutil.which(words[0]) is None:
        raise ServiceError("bad_request", f"the editor of {name} is not there: {words[0]}", _advise(name))
    return words


def _advise(variable: str) -> str:
    found = next((one for one in _KNOWN if shutil.which(one)), "")
    choose = f"export {variable}={found or _KNOWN[0]}"
    return f"choose one: {choose}" if found else f"install one, and choose it: {choose}"


@contextmanager
def edited(editor: Sequence[str], name: str, text: str) -> Iterator[str]:
    """Provide the text that a person made of another in an editor. The file is deleted once the block has ended well,
    else an error says where it is.

    An editor may put a line's end behind the last line, which is taken away again. Raises ServiceError.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="ravel-"))  # for this user alone
        path = folder / f"{_UNPLAIN.sub('-', name)[:_NAME_MAX]}.txt"
        path.write_bytes(text.encode())
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"no file can be made for the editor: {error}", "free some space, or set TMPDIR"
        ) from None
    try:
        _run([*editor, str(path)])
        yield _read(path, keeps_end=text.endswith("\n"))
    except ServiceError as error:
        raise _kept(error, path) from None
    except KeyboardInterrupt:
        raise _kept(ServiceError("interrupted", "the command was stopped"), path) from None
    shutil.rmtree(folder, ignore_errors=True)


def _kept(error: ServiceError, path: Path) -> ServiceError:
    """Return an error that also says where the file is, if it is there."""
    if not path.exists():
        with suppress(OSError):  # an editor may have left others there
            path.parent.rmdir()
        return error
    where = f"what you wrote is in {display_safe(str(path))}"
    return ServiceError(error.code, f"{error.message}; {where}", error.advice)


def _run(command: Sequence[str]) -> None:
    """Wait until the editor ends. Raises ServiceError where it fails."""
    try:
        code = run_in_front(command)
    except OSError as error:
        raise ServiceError(
            "bad_request", f"the editor cannot be started: {error}", _advise(_VARIABLES[0])
        ) from None
    if code:
        is_stopped = code < 0 or code == EXIT_STOPPED  # as the system, and as a shell has it
        said = "the editor was stopped" if is_stopped else f"the editor failed with {code}"
        raise ServiceError("interrupted", said, "nothing was written")


def _read(path: Path, *, keeps_end: bool) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_SIZE_MAX + 1)
        text = content.decode()
    except FileNotFoundError:
        raise ServiceError("bad_input", "the editor removed the file", "nothing was written") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceError(
            "bad_input", f"the edited file cannot be read as UTF-8: {error}", "nothing was written"
        ) from None
    if len(content) > _SIZE_MAX:
        raise ServiceError("too_large", "the edited file is too large for a text", "nothing was written")
    return text if keeps_end else text.removesuffix("\n")
