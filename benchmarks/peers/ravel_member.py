"""A member that is a daemon of Ravel, asked over its API as an app asks it."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.memory import children_of, processor_seconds_of_daemon
from benchmarks.peers.members import FIRST
from node.runtime.errors import ServiceError
from tests.e2e.cluster import Peer

_POLL_SECONDS: Final = 0.005
_WAITED_SECONDS: Final = 600.0


class RavelMember:
    """A daemon with a home of its own, started when it is made."""

    def __init__(self, folder: Path) -> None:
        """Make the folder, and start the daemon."""
        self.folder = folder
        self._peer = Peer(folder, introduces=False)
        self._peer.start()
        self._repo = ""
        self._branch = ""
        self._other = ("", "")

    def found(self) -> dict[str, str]:
        """Return a link by which writers come, and where the daemon listens."""
        client = self._peer.client
        self._repo = str(client.create_repo("shared")["repo"])
        link = client.create_invitation(self._repo, permission="write", expires_seconds=86_400, uses=2)[
            "invitation"
        ]
        return {"link": link, "at": self._peer.listen, "node": str(client.show_status()["node"])}

    def join(self, ticket: dict[str, str]) -> None:
        """Join by the link; who has left connects again."""
        client = self._peer.client
        if self._repo:
            client.unban_peer(ticket["node"])
            client.add_peer(ticket["at"], ticket["node"])
            return
        self._other = (ticket["at"], ticket["node"])
        self._repo = str(client.join_repo(ticket["link"])["repo"])

    def look(self, ticket: dict[str, str]) -> None:
        """Join, and read what comes before the past is whole."""
        self.join(ticket)
        self._wait(lambda: self._readable() >= FIRST)

    def name(self) -> None:
        """Return nothing: the link lets its holder write."""

    def admit(self, _name: None) -> None:
        """Do nothing: the link lets its holder write."""

    def write(self, texts: Sequence[str]) -> None:
        """Write posts by one request, each on the one before it."""
        self._find_branch()
        self._peer.client.write_posts(self._branch, list(texts))

    def until(self, count: int) -> None:
        """Poll for the count, as a client does. The branch begins with a commit that is no post."""
        self._wait(lambda: self._count() > count)

    def newest(self, count: int) -> int:
        """Read the end of the timeline."""
        self._find_branch()
        return len(self._peer.client.show_timeline(self._branch, limit=count)["items"])

    def leave(self) -> None:
        """Block the other node, which ends the connection."""
        self._peer.client.ban_peer(self._other[1])

    def processes(self) -> Iterable[int]:
        """Return the daemon's, and those that it has started."""
        return [self._peer.pid, *children_of(self._peer.pid)]

    def processor(self) -> float:
        """Return what the daemon used, and those that it has started."""
        return processor_seconds_of_daemon(self._peer.pid)

    def close(self) -> None:
        """Stop the daemon as a person does, so that the log of its database is in the database."""
        with suppress(AssertionError):  # it was stopped
            self._peer.stop()
        self._peer.close()

    def _wait(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _WAITED_SECONDS
        while not holds():
            assert time.monotonic() < deadline, "not all entries came in time"
            time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for

    def _count(self) -> int:
        with suppress(ServiceError):
            return sum(one["commits"] for one in self._peer.client.list_branches(self._repo)["branches"])
        return 0

    def _readable(self) -> int:
        with suppress(ServiceError, IndexError):
            self._find_branch()
            window = self._peer.client.show_timeline(self._branch, limit=FIRST)
            return len(window["items"]) + len(window.get("arriving", {"items": []})["items"])
        return 0

    def _find_branch(self) -> None:
        if not self._branch:
            self._branch = str(self._peer.client.list_branches(self._repo)["branches"][0]["branch"])
