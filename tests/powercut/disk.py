"""A disk as strict POSIX has it: what may be left of a folder when the power goes, given what was done to it and synced.

The content of a file is certain as of its last sync; of what was written later any sectors may be there. A name (made,
moved or removed) is certain once its folder was synced; of later changes of names any may have happened, each by itself.
So a file that was synced is still lost with its name, and a folder whose own name was not synced is lost with all in it.
A rename inside of one folder happens or does not; between two folders it is two changes.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Union

from blake3 import blake3

from tests.powercut.recording import Event

SECTOR_SIZES: Final = (512, 4096)
_REBUILT: Final = "-shm"
"""SQLite's index of its log, in shared memory: it is made anew by who opens the database first."""


@dataclass(slots=True)
class File:
    """Content as of the last sync, and what was done to it since: (offset, data), or (length, None) for a truncation."""

    mode: int
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """All of it is certain."""
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def left(self, choice: "Choice") -> bytes:
        """The content of which a choice says what of it was kept."""
        content = bytearray(self.durable)
        for change in self.pending:
            for part in choice.parts(change):
                _apply(content, part)
        return bytes(content)


@dataclass(slots=True)
class Folder:
    """Names as of the last sync, as they are, and the changes between: what each sets names to (None: nothing)."""

    durable: dict[str, "Node"] = field(default_factory=dict)
    live: dict[str, "Node"] = field(default_factory=dict)
    pending: list[dict[str, Union["Node", None]]] = field(default_factory=list)

    def change(self, names: Mapping[str, Union["Node", None]]) -> None:
        """Change names together or not at all."""
        _rename(self.live, names)
        self.pending.append(dict(names))

    def sync(self) -> None:
        """All names are certain."""
        self.durable = dict(self.live)
        self.pending.clear()

    def left(self, choice: "Choice") -> dict[str, "Node"]:
        """The names of which a choice says which changes happened."""
        names = dict(self.durable)
        for change in self.pending:
            if choice.keeps_name():
                _rename(names, change)
        return names


Node = File | Folder


class Choice:
    """What is left of all that was not synced: nothing, everything, or what a source of chance says."""

    def __init__(
        self, names: float, content: float, chance: random.Random | None = None, sector: int = 0
    ) -> None:
        """The chances of a change of names and of a sector of a write; without a sector's size of a whole write."""
        self._names = names
        self._content = content
        self._chance = chance or random.Random(0)
        self._sector = sector

    def keeps_name(self) -> bool:
        """Whether the next change of names happened."""
        return self._keeps(self._names)

    def parts(self, change: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
        """What of a write or truncation reached the disk."""
        offset, data = change
        if data is None or not self._sector or self._content in (0.0, 1.0):
            if self._keeps(self._content):
                yield change
            return
        start = 0
        while start < len(data):
            end = min(len(data), (offset + start) // self._sector * self._sector + self._sector - offset)
            if self._keeps(self._content):
                yield offset + start, data[start:end]
            start = end

    def _keeps(self, likely: float) -> bool:
        return likely == 1.0 or (likely > 0.0 and self._chance.random() < likely)


LOST: Final = Choice(0.0, 0.0)
KEPT: Final = Choice(1.0, 1.0)


def random_choice(chance: random.Random) -> Choice:
    """Some of it: names and content are kept with chances of their own, now and then all or nothing of either."""
    names, content = (chance.choice((0.0, 0.2, 0.5, 0.8, 1.0)) for _ in range(2))
    return Choice(names, content, chance, chance.choice((0, *SECTOR_SIZES)))


@dataclass(frozen=True, slots=True)
class State:
    """A folder after a cut: files by their paths, with their modes, and all folders in it."""

    files: Mapping[str, tuple[int, bytes]]
    folders: tuple[str, ...]

    def digest(self, under: str = "") -> bytes:
        """The same for equal states of a folder in it, whatever was done before."""
        hasher = blake3()
        for path in sorted(path for path in self.folders if _is_under(path, under)):
            hasher.update(b"/" + path.encode() + b"\0")
        for path, (mode, content) in sorted(self.files.items()):
            if _is_under(path, under):
                hasher.update(b"%d %d " % (mode, len(content)) + path.encode() + b"\0" + content)
        return hasher.digest()

    def part(self, under: str) -> "State":
        """The same of one folder in it, by paths from there."""
        cut = len(under) + 1
        return State(
            {path[cut:]: found for path, found in self.files.items() if path.startswith(f"{under}/")},
            tuple(path[cut:] for path in self.folders if path.startswith(f"{under}/")),
        )


class Disk:
    """A folder that was empty, and what was done to it so far."""

    def __init__(self) -> None:
        self._root = Folder()
        self._files: dict[int, File] = {}
        self.lies = False
        """A sync is said to be done, and is not: a cache that a power cut empties stands before the disk."""

    def apply(self, event: Event) -> None:
        """One more operation. One on a file that was not made here is passed over: a process's output, say."""
        acts: dict[str, Callable[[Event], None]] = {
            "C": self._create,
            "W": self._write,
            "T": self._truncate,
            "S": self._sync,
            "D": self._sync_folder,
            "R": self._move,
            "L": self._link,
            "U": self._remove,
            "M": self._make_folder,
            "X": self._remove,
            "O": self._lose_power,
            "P": lambda _: None,
        }
        acts[event.op](event)

    def state(self, choice: Choice) -> State:
        """What is left if the power goes now."""
        files: dict[str, tuple[int, bytes]] = {}
        folders: list[str] = []
        contents: dict[int, bytes] = {}  # a file of two names has one content

        def walk(folder: Folder, at: str) -> None:
            for name, node in sorted(folder.left(choice).items()):
                if isinstance(node, Folder):
                    folders.append(at + name)
                    walk(node, f"{at}{name}/")
                elif not name.endswith(_REBUILT):
                    content = contents.get(id(node))
                    if content is None:
                        content = contents[id(node)] = node.left(choice)
                    files[at + name] = (node.mode, content)

        walk(self._root, "")
        return State(files, tuple(folders))

    def cut(self, seed: int) -> State:
        """What an outage of this seed leaves."""
        return self.state(random_choice(random.Random(seed)))

    def unsynced(self) -> list[str]:
        """What is not certain now, in words: names of folders, and content of files."""
        said: list[str] = []

        def walk(folder: Folder, at: str) -> None:
            for change in folder.pending:
                names = ", ".join(f"{'-' if node is None else '+'}{name}" for name, node in change.items())
                said.append(f"names of {at or '/'}: {names}")
            for name, node in sorted(folder.live.items()):
                if isinstance(node, Folder):
                    walk(node, f"{at}{name}/")
                elif node.pending and not name.endswith(_REBUILT):
                    said.append(f"content of {at}{name}: {len(node.pending)} writes")

        walk(self._root, "")
        return said

    def _at(self, path: str) -> tuple[Folder, str]:
        folder = self._root
        *parents, name = path.split("/")
        for parent in parents:
            found = folder.live[parent]
            assert isinstance(found, Folder), path
            folder = found
        return folder, name

    def _create(self, event: Event) -> None:
        folder, name = self._at(event.path)
        self._files[event.inode] = File(event.mode)
        folder.change({name: self._files[event.inode]})

    def _write(self, event: Event) -> None:
        if (found := self._files.get(event.inode)) is not None:
            found.pending.append((event.offset, event.data))

    def _truncate(self, event: Event) -> None:
        if (found := self._files.get(event.inode)) is not None:
            found.pending.append((event.offset, None))

    def _sync(self, event: Event) -> None:
        if (found := self._files.get(event.inode)) is not None and not self.lies:
            found.sync()

    def _sync_folder(self, event: Event) -> None:
        folder = self._root
        if event.path:
            parent, name = self._at(event.path)
            found = parent.live[name]
            assert isinstance(found, Folder), event.path
            folder = found
        if not self.lies:
            folder.sync()

    def _move(self, event: Event) -> None:
        (source, old), (target, new) = self._at(event.path), self._at(event.other)
        node = source.live[old]
        if source is target:
            source.change({old: None, new: node})
        else:
            source.change({old: None})
            target.change({new: node})

    def _link(self, event: Event) -> None:
        (source, old), (target, new) = self._at(event.path), self._at(event.other)
        target.change({new: source.live[old]})

    def _remove(self, event: Event) -> None:
        folder, name = self._at(event.path)
        if name in folder.live:  # else it was made by a process that is not recorded
            folder.change({name: None})

    def _make_folder(self, event: Event) -> None:
        folder, name = self._at(event.path)
        folder.change({name: Folder()})

    def _lose_power(self, event: Event) -> None:
        """What was left is all that there is, and all of it certain, but for files that were not laid out again."""
        said = event.said
        state = self.cut(said["seed"])
        self._root, self._files = Folder(), {}
        for path in sorted(state.folders):
            folder, name = self._at(path)
            folder.live[name] = folder.durable[name] = Folder()
        for path, inode in said["inodes"].items():
            mode, content = state.files[path]
            folder, name = self._at(path)
            found = File(mode, bytearray(content))
            folder.live[name] = folder.durable[name] = self._files[inode] = found


def _rename(names: dict[str, Node], change: Mapping[str, Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, data = change
    end = offset if data is None else offset + len(data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset:end] = data


def _is_under(path: str, under: str) -> bool:
    return not under or path == under or path.startswith(f"{under}/")
