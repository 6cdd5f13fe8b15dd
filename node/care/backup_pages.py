"""Pages of a database in backups: those that changed since the last backup are written, and a list names all.

The list has an entry for each page of the database, in order: a keyed hash, the number of the file that has the page, and
its place there. A page that the last backup has at the same place or near it is not written again: SQLite keeps pages at
their places, and a copy of PostgreSQL's rows, which is made anew, moves them by as many as came before. The key is random:
members choose bytes of a page, and must find no two that are taken for one another.
"""

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Final

from blake3 import blake3

from protocol.limits.files import BACKUP_PAGES_COUNT_MAX
from storage.engine.folders import open_file, open_new

MAP_NAME: Final = "database.map"
PAGES_FILE: Final = re.compile(r"[1-9][0-9]{0,8}")
"""Names of files of pages."""
PAGE_SIZE: Final = 4096
"""Bytes of a page, as SQLite has them by default: others would only find less that is unchanged."""
HASH_SIZE: Final = 16
HASH_KEY_SIZE: Final = 32
_OPEN_MAX: Final = 64
"""Files of pages that are open at once: a process may have 256 in some places."""
_CHUNK_COUNT: Final = 256
"""Pages that are read at a time."""
_MOVED_MAX: Final = 65_536
"""Places by which a page may have moved and be found: the growth of a database of 25 GB by 1 %, and 20 MB of memory."""
_ENTRY: Final = Struct(f">{HASH_SIZE}sII")
MAP_ENTRY_SIZE: Final = _ENTRY.size
_PLACE: Final = Struct(f">{HASH_SIZE}xII")
Page = tuple[bytes, int, int]
"""Hash of a page, number of its file, and its place there, in pages."""


class BadPages(Exception):
    """Pages of a backup that are missing or altered, with what is wrong."""


@dataclass(frozen=True, slots=True)
class Last:
    """Pages of the last backup, and the files of them that the next one goes on with, with how many pages they have."""

    map: Path | None
    files: Mapping[int, int]


NONE: Final = Last(None, {})


def usable_files(folder: Path, pages: Mapping[int, int]) -> dict[int, int]:
    """Return those of the last backup's files of pages that the next may name, with how many they have.

    Pages of others are written again.

    A file of which less than half is used is not among them, so that all take at most twice what is needed.
    """
    sizes: dict[int, int] = {}
    for number, used in pages.items():
        with suppress(FileNotFoundError):
            found = (folder / str(number)).lstat()
            size = found.st_size // PAGE_SIZE
            if stat.S_ISREG(found.st_mode) and used <= size <= 2 * used:
                sizes[number] = size
    if len(sizes) >= BACKUP_PAGES_COUNT_MAX:
        largest = sorted(sizes, key=lambda one: sizes[one])[-BACKUP_PAGES_COUNT_MAX // 2 :]
        return {number: sizes[number] for number in largest}
    return sizes


def write_pages(
    source: int, draft: Path, number: int, key: bytes, last: Last, progress: Callable[[int], object]
) -> dict[int, int]:
    """Write the list of a database's pages into a draft, and those that are new into its file `number`, durably.

    Return how many pages are in which file. Costs O(database) in reading and hashing. Raises OSError.
    """
    used = {one: bytearray(size) for one, size in last.files.items()}
    with ExitStack() as stack:
        listed = stack.enter_context(os.fdopen(open_new(draft / MAP_NAME), "wb"))
        new = stack.enter_context(os.fdopen(open_new(draft / "pages"), "wb"))
        known, near, added = _known_pages(last), _Window(2 * _MOVED_MAX + 1), _Window(_MOVED_MAX)
        for one in islice(known, _MOVED_MAX):
            near.add(one)
        place = done = 0
        while chunk := os.pread(source, _CHUNK_COUNT * PAGE_SIZE, done):
            entries = bytearray()
            for start in range(0, len(chunk), PAGE_SIZE):
                page = chunk[start : start + PAGE_SIZE]
                hashed = _hash(page, key)
                for one in islice(known, 1):
                    near.add(one)
                found = near.find(hashed) or added.find(hashed)  # empty tables have the same page
                if found is None:
                    new.write(page)
                    found = number, place
                    added.add((hashed, *found))
                    place += 1
                elif found[0] != number:
                    used[found[0]][found[1]] = 1
                entries += _ENTRY.pack(hashed, *found)
            listed.write(entries)
            done += len(chunk)
            progress(done)
        for file in (listed, new):
            file.flush()
            os.fsync(file.fileno())
    counts = {one: sum(marks) for one, marks in used.items()} | {number: place}
    return {one: count for one, count in counts.items() if count}


class _Window:
    """The last so many pages that were added, by their hashes."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._pages: deque[Page] = deque()
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, page: Page) -> None:
        """Add a page. The first one goes where there are too many."""
        self._pages.append(page)
        self._places[page[0]] = page[1:]
        if len(self._pages) > self._count_max:
            left, *place = self._pages.popleft()
            if self._places.get(left) == tuple(place):
                del self._places[left]

    def find(self, hashed: bytes) -> tuple[int, int] | None:
        """Return the file and the place of the page that has a hash."""
        return self._places.get(hashed)


def _known_pages(last: Last) -> Iterator[Page]:
    """Yield the pages of the last backup in order, with an empty entry for each that the next backup may not name."""
    for page in read_map(last.map) if last.map is not None else ():
        yield page if page[2] < last.files.get(page[1], 0) else (b"", 0, 0)


def read_pages(folder: Path, listed: Path, key: bytes, target: int) -> int:
    """Put a database together from the pages that a list names; return its bytes. Costs O(database).

    Raises OSError, BadPages.
    """
    size = 0
    with PageReader(folder) as reader:
        for pages in _runs(read_map(listed)):
            content = reader.read(pages, key)
            rest = memoryview(content)
            while rest:  # a disk that fills up writes a part
                rest = rest[os.write(target, rest) :]
            size += len(content)
    return size


class PageReader:
    """Reads pages from a folder of files of them. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, BufferedReader] = {}  # by number, what was read last stands last
        self._checked: dict[tuple[bytes, int], bytearray] = {}

    def __enter__(self) -> "PageReader":
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def read(self, pages: list[Page], key: bytes) -> bytes:
        """Read and check adjacent pages of one file. Raises OSError, BadPages."""
        _, number, place = pages[0]
        content = os.pread(self._open(number), len(pages) * PAGE_SIZE, place * PAGE_SIZE)
        found = [_hash(content[at : at + PAGE_SIZE], key) for at in range(0, len(content), PAGE_SIZE)]
        if found != [page[0] for page in pages]:
            raise BadPages(f"pages/{number} is not what it was when the backup was made")
        return content

    def check(self, listed: Path, key: bytes) -> None:
        """Check all pages of a list, each page once however many lists name it. Raises OSError, BadPages.

        Remembers HASH_SIZE bytes for each page of files that are at most twice what is needed of them, as ours are.
        """
        remembered_max = 2 * (listed.stat().st_size // _ENTRY.size)
        for pages in _runs(read_map(listed)):
            _, number, place = pages[0]
            known = self._checked.setdefault((key, number), bytearray())
            wanted = b"".join(page[0] for page in pages)
            start, end = place * HASH_SIZE, (place + len(pages)) * HASH_SIZE
            if known[start:end] != wanted:
                self.read(pages, key)
                if place + len(pages) > remembered_max:  # a file with holes could have us fill the memory
                    continue
                known.extend(bytes(max(0, end - len(known))))
                known[start:end] = wanted

    def _open(self, number: int) -> int:
        file = self._files.pop(number, None)
        if file is None:
            if len(self._files) >= _OPEN_MAX:
                self._files.pop(next(iter(self._files))).close()
            try:
                file = open_file(self._folder / str(number), os.O_NOFOLLOW)
            except FileNotFoundError:
                raise BadPages(f"pages/{number} is not there") from None
            except OSError as error:
                raise BadPages(f"pages/{number} cannot be read: {error}") from None
        self._files[number] = file
        return file.fileno()


def erase_unnamed(folder: Path, maps: Mapping[Path, str]) -> None:
    """Overwrite pages that none of these lists names with zeros: of removed backups nothing is left to be read.

    Nothing is changed where a list has not the hash that is given for it. Links are not followed: they may lead to files of
    somebody else. A file with a further name stays as it is: `cp -al` makes such copies of a folder.
    Costs O(pages in all lists). Raises OSError.
    """
    named = {
        path.name: bytearray(-(-found.st_size // PAGE_SIZE))
        for path in folder.iterdir()
        if PAGES_FILE.fullmatch(path.name)
        and stat.S_ISREG((found := path.lstat()).st_mode)
        and found.st_nlink <= 1
    }
    for path, wanted in maps.items():
        hasher = blake3()
        with open_file(path, os.O_NOFOLLOW) as file:
            while chunk := file.read(_CHUNK_COUNT * _ENTRY.size):
                hasher.update(chunk)
                for number, place in _PLACE.iter_unpack(chunk[: len(chunk) // _PLACE.size * _PLACE.size]):
                    marks = named.get(str(number))
                    if marks is not None and place < len(marks):
                        marks[place] = 1
        if hasher.hexdigest() != wanted:
            return
    for name, marks in named.items():
        place = marks.find(0)
        if place < 0:
            continue
        with open(
            os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b", buffering=0
        ) as file:
            while place >= 0:
                if any(os.pread(file.fileno(), PAGE_SIZE, place * PAGE_SIZE)):
                    os.pwrite(file.fileno(), bytes(PAGE_SIZE), place * PAGE_SIZE)
                place = marks.find(0, place + 1)
            os.fsync(file.fileno())


def read_map(path: Path) -> Iterator[Page]:
    """Yield the entries of a list. Raises OSError, BadPages."""
    with open_file(path, os.O_NOFOLLOW) as file:
        while chunk := file.read(_CHUNK_COUNT * _ENTRY.size):
            if len(chunk) % _ENTRY.size:
                raise BadPages(f"{MAP_NAME} ends within an entry")
            yield from _ENTRY.iter_unpack(chunk)


def _runs(pages: Iterator[Page]) -> Iterator[list[Page]]:
    """Group pages that are adjacent in one file, up to the size of one read."""
    run: list[Page] = []
    for page in pages:
        if run and (len(run) == _CHUNK_COUNT or page[1:] != (run[-1][1], run[-1][2] + 1)):
            yield run
            run = []
        run.append(page)
    if run:
        yield run


def _hash(page: bytes, key: bytes) -> bytes:
    return blake3(page, key=key).digest(length=HASH_SIZE)
