"""Files of the disk on their way to a branch: found in folders, read, and sent some hundred by one request.

Memory holds the names of one folder at a time, and of content what one request has not sent yet: some megabytes.
"""

import os
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.progress import Progress, show_progress
from node.contract.files import find_path_fault
from node.runtime.errors import ERROR_KINDS, EXIT_OK, ServiceError
from protocol.limits.formats import ACK_COUNT_MAX, MIB
from protocol.limits.users import FILE_BATCH_COUNT_MAX, SKIPPED_SHOWN_MAX
from ravel.files import encode_head
from ravel.types.files import AddedFile, AddedFiles

if TYPE_CHECKING:  # `ravel --help` must be quick
    from ravel import Client

FilesOption = Annotated[
    list[Path] | None,
    typer.Option("--file", help="A file of the post, or a folder of some; may be repeated."),
]
_SMALL_SIZE: Final = 4 * MIB
"""Bytes of a file up to which it is read whole and shares a request with others. A larger file has its own request:
a fault on the way then costs no other file."""
_REQUEST_SIZE: Final = 64 * MIB
"""Bytes of files after which a request ends: what a cut costs, and about a second of work."""
_UNSTATED_SIZE_MAX: Final = _REQUEST_SIZE
"""Bytes of a file that states none, as those of /proc and of some network drives do: it is read whole to learn its size."""
_PIECE_SIZE: Final = MIB
_AGAIN: Final = "run the command again: what is there is passed over"
_RENAME: Final = "rename it, or give another name: --name NAME"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A plain file of the disk."""

    path: str
    name: str
    """In the branch."""
    size: int
    """As it was found."""
    is_named: bool
    """True if the user named it, by what may be a link."""


@dataclass(slots=True)
class Skipped:
    """Paths that were found and are not added."""

    count: int = 0
    unnamed_count: int = 0
    """Count of those whose name no branch can take."""
    first: list[dict[str, str]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command that went well otherwise: a script may delete what it believes added."""
        return ERROR_KINDS["bad_request"].exit_code if self.unnamed_count else EXIT_OK

    def add(self, path: str, reason: str) -> None:
        """Count one more: `link`, `hidden`, `special` (a device, a socket, a pipe) or `name` (it cannot be called so)."""
        self.count += 1
        self.unnamed_count += reason == "name"
        if len(self.first) < SKIPPED_SHOWN_MAX:
            shown = os.fsencode(path).decode("utf-8", "replace")  # names on disk need not be UTF-8
            self.first.append({"path": shown, "reason": reason})


@dataclass(slots=True)
class Upload:
    """Progress of an upload."""

    count: int = 0
    """Files that are durable."""
    new_count: int = 0
    size: int = 0
    """Bytes of them."""
    last: AddedFile | None = None


def name_paths(paths: Sequence[Path], name: str = "") -> list[tuple[str, str]]:
    """Pair each path with the name that its files begin with in the branch. `name`: that of the only one.

    Raises ServiceError `bad_request` where a path has no name, or two have the same.
    """
    if name and len(paths) > 1:
        raise ServiceError("bad_request", "--name names one path", "leave it out")
    named: dict[str, str] = {}
    for path in paths:
        own = name or (path.name if path.name not in ("", "..") else Path(os.path.realpath(path)).name)
        if not own:
            raise ServiceError("bad_request", f"{path} has no name", "give one: --name NAME")
        if own in named:
            raise ServiceError(
                "bad_request", f"{named[own]} and {path} would both be {own!r}", "add one of them with --name"
            )
        named[own] = str(path)
    return [(path, own) for own, path in named.items()]


def attach_files(api: "Client", branch: str, paths: Sequence[Path]) -> list[str]:
    """Add the files of one post to its branch, each by a commit; return these commits. Raises ServiceError.

    All are looked at before the first is sent. What is durable when a later one fails stays in the branch.
    """
    skipped = Skipped()
    found = [*find_files(name_paths(paths), skipped)]
    if skipped.first:
        raise ServiceError("bad_request", f"{skipped.first[0]['path']} is no plain file", "name plain files")
    if len(found) > ACK_COUNT_MAX:
        raise ServiceError(
            "bad_request", f"a post names {ACK_COUNT_MAX} files at most", "ravel file add takes a folder"
        )
    commits: list[str] = []
    with show_progress("read", "byte", sum(one.size for one in found)) as progress:
        sent = 0
        for one in found:
            with closing(_OpenFile(one)) as file:
                commits.append(api.add_file(branch, file.pieces(), name=file.name)["commit"])
                sent += file.size
            progress(sent)
    return commits


def find_files(
    named: Sequence[tuple[str, str]], skipped: Skipped, *, with_hidden: bool = False
) -> Iterator[FoundFile]:
    """Yield the files at these paths and in these folders, by name. Links in folders are not followed.

    Raises ServiceError: `bad_input` for a file that cannot be read, `bad_request` for a name that no branch takes.
    """
    for path, name in named:
        with _readable(path):
            mode = os.stat(path)
        if stat.S_ISDIR(mode.st_mode):
            yield from _find_in(path, name, skipped, with_hidden=with_hidden)
        elif stat.S_ISREG(mode.st_mode):
            if fault := find_path_fault(name):
                raise ServiceError("bad_request", f"{path} cannot be added as {name!r}: {fault}", _RENAME)
            yield FoundFile(path, name, mode.st_size, is_named=True)
        else:
            skipped.add(path, "special")


def _find_in(top: str, top_name: str, skipped: Skipped, *, with_hidden: bool) -> Iterator[FoundFile]:
    ahead = [(top, top_name, _entries(top))]  # a stack: folders may lie deeper than functions may call
    while ahead:
        folder, folder_name, entries = ahead[-1]
        entry = next(entries, None)
        if entry is None:
            ahead.pop()
            continue
        path, name = os.path.join(folder, entry), f"{folder_name}/{entry}"
        if entry.startswith(".") and not with_hidden:
            skipped.add(path, "hidden")
            continue
        with _readable(path):
            mode = os.lstat(path)
        if stat.S_ISDIR(mode.st_mode):
            ahead.append((path, name, _entries(path)))
        elif stat.S_ISREG(mode.st_mode):
            if find_path_fault(name):
                skipped.add(path, "name")  # one such file does not stop the rest of the folder
            else:
                yield FoundFile(path, name, mode.st_size, is_named=False)
        else:
            skipped.add(path, "link" if stat.S_ISLNK(mode.st_mode) else "special")


def _entries(folder: str) -> Iterator[str]:
    with _readable(folder):
        return iter(sorted(os.listdir(folder)))


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raise what goes wrong with a path of the disk as an error for people."""
    try:
        yield
    except OSError as error:
        raise ServiceError(
            "bad_input", f"{path} cannot be read: {error.strerror}", "look at the path and its permissions"
        ) from None


class _OpenFile:
    """A file that is read. What is sent of it is what it was at one moment, or nothing."""

    def __init__(self, found: FoundFile) -> None:
        """Open it; a small one is read whole. Raises ServiceError `bad_input`."""
        self._path = found.path
        self.name = found.name
        # Another program may put a link or a pipe in its place: the one is not followed, the other not waited for.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if found.is_named else os.O_NOFOLLOW)
        with _readable(self._path):
            self._handle = os.open(self._path, flags)
        try:
            with _readable(self._path):
                self._state = os.fstat(self._handle)
            if not stat.S_ISREG(self._state.st_mode):
                raise self._changed()
            whole = None if self._state.st_size > _SMALL_SIZE else b"".join(self._read())
            self.size = self._state.st_size if whole is None else len(whole)
            self.is_large = self.size > _SMALL_SIZE
            self._pieces = self._read() if whole is None else iter([whole])
        except BaseException:  # an interrupt too: the file is closed
            self.close()
            raise
        if whole is not None:
            self.close()

    def pieces(self) -> Iterator[bytes]:
        """Return the content, once. Raises ServiceError `bad_input` before the last piece where the file has changed."""
        return self._pieces

    def close(self) -> None:
        """Read no more."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _read(self) -> Iterator[bytes]:
        stated, size = self._state.st_size, 0
        while piece := self._next_piece(min(max(stated - size, 1), _PIECE_SIZE) if stated else _PIECE_SIZE):
            size += len(piece)
            if size > (stated or _UNSTATED_SIZE_MAX):
                break
            yield piece
        if size != stated and (stated or size > _UNSTATED_SIZE_MAX):
            raise ServiceError(
                "bad_input",
                f"{self._path} states a size of {stated} bytes, and has {'more' if size > stated else size}",
                f"pipe it: cat {shlex.quote(self._path)} | ravel file add BRANCH - --name NAME",
            )

    def _next_piece(self, size: int) -> bytes:
        """Read on. Raises ServiceError `bad_input` if the file has changed since it was opened."""
        with _readable(self._path):
            piece = os.read(self._handle, size)
            now = os.fstat(self._handle)
        if (now.st_size, now.st_mtime_ns) != (self._state.st_size, self._state.st_mtime_ns):
            raise self._changed()
        return piece

    def _changed(self) -> ServiceError:
        return ServiceError("bad_input", f"{self._path} changed while it was read")


class Uploader:
    """Sends files, some hundred by one request, each of which adds all of its files or none."""

    def __init__(
        self, send: Callable[[Iterator[bytes]], AddedFiles], found: Iterator[FoundFile], progress: Progress
    ) -> None:
        """Prepare to send: `send` makes a request with a body, `progress` notes the bytes of content that went into it."""
        self._send = send
        self._found = found
        self._progress = progress
        self._next: _OpenFile | None = None
        self._fault: ServiceError | None = None
        self._sent_size = 0
        self._in_request = 0
        self.upload = Upload()

    def run(self) -> Upload:
        """Send them all. Raises ServiceError, whose message says which files are durable."""
        try:
            self._advance()
            while self._next is not None:
                self._note(self._send(self._body()))
            if self._fault is not None:
                raise self._fault
        except ServiceError as error:
            raise self._with_progress(error) from None
        except KeyboardInterrupt:
            raise self._with_progress(ServiceError("interrupted", "the command was stopped")) from None
        finally:
            if self._next is not None:
                self._next.close()
        return self.upload

    def _advance(self) -> None:
        """Open the next file. A fault ends the request that is on its way, and what is in it is added."""
        self._next = None
        try:
            found = next(self._found, None)
            if found is not None:
                self._next = _OpenFile(found)
        except ServiceError as error:
            self._fault = error

    def _body(self) -> Iterator[bytes]:
        waiting, size = bytearray(), 0
        while (file := self._next) is not None and self._joins(file, size):
            self._in_request += 1
            waiting += encode_head(file.name, file.size)
            for piece in file.pieces():
                waiting += piece
                self._sent_size += len(piece)
                if len(waiting) >= _PIECE_SIZE:
                    yield bytes(waiting)
                    waiting.clear()
                    self._progress(self._sent_size)
            size += file.size
            file.close()
            self._advance()
        yield bytes(waiting)
        self._progress(self._sent_size)

    def _joins(self, file: _OpenFile, size: int) -> bool:
        """Return True if a file fits into the request that has so many bytes of others."""
        if not self._in_request:
            return True
        fits = self._in_request < FILE_BATCH_COUNT_MAX and size + file.size <= _REQUEST_SIZE
        return fits and not file.is_large

    def _note(self, answer: AddedFiles) -> None:
        self._in_request = 0
        for file in answer["files"]:
            self.upload.count += 1
            self.upload.new_count += file["is_new"]
            self.upload.size += file["size"] or 0
            self.upload.last = file

    def _with_progress(self, error: ServiceError) -> ServiceError:
        """Return an error that also says what is durable."""
        last = self.upload.last
        how_far = "no file was added"
        if last is not None:
            how_far = f"durable files: {self.upload.count}, the last is {last['name']!r}"
        message = f"{error}; {how_far}"
        if self._in_request and error.code in ("not_running", "interrupted"):
            message += f"; the {self._in_request} after it were added all or not at all"
        return ServiceError(error.code, message, error.advice or _AGAIN)
