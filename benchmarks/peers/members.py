"""A member of what several share, in processes of its own: what each system can do, and the ones that run in Node.js."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from benchmarks.memory import processor_seconds

HERE: Final = Path(__file__).parent
FIRST: Final = 10
"""Entries that a newcomer first wants to read."""


Json: TypeAlias = Any
"""Tickets and names, which each system makes in a form of its own, and which only that system reads."""


class Member(Protocol):
    """One member: its folder, and what it can be asked for. Each call returns when it is done."""

    folder: Path

    def found(self) -> Json:
        """Begin what is shared, and listen. Return the ticket with which others come."""

    def join(self, ticket: Json) -> None:
        """Connect to who founded; all is fetched from now on."""

    def look(self, ticket: Json) -> None:
        """Join as a newcomer who wants the first entries at once, and return when they can be read."""

    def name(self) -> Json:
        """Return what the founder is told of this member."""

    def admit(self, name: Json) -> None:
        """Let another member write too."""

    def write(self, texts: Sequence[str]) -> None:
        """Write an entry for each text."""

    def until(self, count: int) -> None:
        """Wait until so many entries are here and can be read."""

    def newest(self, count: int) -> int:
        """Read the newest entries; return how many there were."""

    def leave(self) -> None:
        """End the connection, so that neither side has what the other writes."""

    def processes(self) -> Iterable[int]:
        """Return the numbers of its processes, none if none stays."""

    def processor(self) -> float:
        """Return the processor seconds that it has used."""

    def close(self) -> None:
        """Write what is still in memory alone, and end. No process is left."""


class NodeMember:
    """A member that `peer.js` runs in Node.js."""

    def __init__(self, system: str, folder: Path) -> None:
        """`system` names a file beside this one."""
        self.folder = folder
        folder.mkdir(parents=True)
        command = ["node", str(HERE / "peer.js"), system, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, what: str, value: object = None) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what, "with": value}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.folder.name} ended when asked to {what}")
        return json.loads(line)["answer"]

    def found(self) -> Json:
        """Found."""
        return self._ask("found")

    def join(self, ticket: Json) -> None:
        """Join."""
        self._ask("join", ticket)

    def look(self, ticket: Json) -> None:
        """Join and read."""
        self._ask("look", {"ticket": ticket, "count": FIRST})

    def name(self) -> Json:
        """Return the name."""
        return self._ask("name")

    def admit(self, name: Json) -> None:
        """Admit."""
        self._ask("admit", name)

    def write(self, texts: Sequence[str]) -> None:
        """Write."""
        self._ask("write", list(texts))

    def until(self, count: int) -> None:
        """Wait."""
        self._ask("until", count)

    def newest(self, count: int) -> int:
        """Read."""
        return int(self._ask("newest", count))

    def leave(self) -> None:
        """Leave."""
        self._ask("leave")

    def processes(self) -> Iterable[int]:
        """Return the one process."""
        return [self._process.pid]

    def processor(self) -> float:
        """Return what it used."""
        return processor_seconds([self._process.pid])

    def close(self) -> None:
        """End in order."""
        if self._process.poll() is None:
            try:
                self._ask("close")
            finally:
                self._process.kill()
                self._process.wait()
