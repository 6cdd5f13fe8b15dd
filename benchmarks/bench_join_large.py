"""Measure what a newcomer waits for before it reads the newest posts of a large repo, in seconds and bytes of a line.

python -m benchmarks.bench_join_large [root commits [posts [exclusions]]]

Two nodes in one process, on a line of 10 Mbit/s and 50 ms there and back. The line's time is virtual, so what both compute
is not in the seconds: `computing` is the processor time of both until all is here. The owner grants writing to one user
after another; those who are excluded go one by one, each with a new epoch. Measured with a link that names the newest
posts, and with one that does not (`plain`), until 100 posts are shown, and until all is here. `day`: from asking for the
posts of a day in the middle until they are shown, as soon as the root branch is here, while the past takes the line.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio
from msgspec import structs
from trio.abc import ReceiveStream, SendStream
from trio.testing import MockClock, memory_stream_pair

from benchmarks.common import figure, note, write_posts
from node.membership.vouching import make_voucher
from node.sync.connection import Connection
from node.timelines.timelines import Timelines
from node.wire.transport import accept, dial
from protocol.crypto.keys import AgreementSecret, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.content import Post
from protocol.formats.links import InvitationLink
from storage.commits.commits import load_timeline
from tests.support.nodes import Node

_RATE: Final = 1_250_000
"""Bytes a second of each direction."""
_DELAY: Final = 0.025
"""Seconds from end to end."""
_SHOWN: Final = 100
_PATIENCE: Final = 600.0
"""Virtual seconds after which a run is given up."""


class _Line:
    """One direction of a line, which counts its bytes."""

    def __init__(self) -> None:
        self.size = 0

    async def carry(self, source: ReceiveStream, sink: SendStream) -> None:
        """Pass bytes on as they fit."""
        send, receive = trio.open_memory_channel[tuple[float, bytes]](1 << 20)

        async def arrive() -> None:
            async for at, data in receive:
                await trio.sleep_until(at)
                await sink.send_all(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(arrive)
            free = trio.current_time()
            while data := await source.receive_some(1 << 16):
                self.size += len(data)
                free = max(free, trio.current_time()) + len(data) / _RATE
                await send.send((free + _DELAY, bytes(data)))


def _found(alice: Node, root_count: int, post_count: int, excluded: int) -> None:
    """Make the repo."""
    repo, branch = alice.create_repo()
    root = alice.replica.root_branch(repo)
    users = [key_pair(UserSeed(number.to_bytes(32, "big")))[0] for number in range(1, root_count + 1)]
    for user in users:
        alice.author.write(root, Grant(user, Permission.WRITE))
    for user in users[:excluded]:
        alice.author.write(root, Remove(user, None, ()))
        alice.author.write(branch, Post("after an exclusion"))  # which starts the epoch
    write_posts(alice.author, branch, post_count)


def _invite(alice: Node, *, vouches: bool) -> InvitationLink:
    link = alice.invite(alice.repo())
    if not vouches:
        return link
    author, repo, epoch = alice.author, alice.repo(), alice.epoch()
    voucher = make_voucher(alice.replica, author, repo, epoch, link.invitation, "Ann", alice.now())
    return structs.replace(link, voucher=voucher)


async def _join(alice: Node, bob: Node, link: InvitationLink) -> dict[str, tuple[float, int]]:
    """Return seconds and bytes until posts are shown, and until all of the branch is here."""
    began, found, down = trio.current_time(), dict[str, tuple[float, int]](), _Line()
    await bob.joiner.begin(link)
    (ours, their_line), (theirs, our_line) = memory_stream_pair(), memory_stream_pair()
    until = alice.replica.read_tables().branches[alice.branch().num].commit_count

    with alice.replica.database.read() as connection:
        (row,) = load_timeline(connection, alice.branch().num, until // 2, 1)
    middle = row.timestamp

    def look() -> None:
        for branch in bob.replica.read_tables().branches.values():
            shown = bob.hub.windows.find(branch.num) if branch.name == "main" else None
            now = trio.current_time() - began, down.size
            if branch.name == "main" and branch.commit_count == until:
                found["all"] = now
            if "all" in found or (shown is not None and len(shown.listed) >= min(_SHOWN, until)):
                found.setdefault("shown", now)

    async def talk(node: Node, other: Node, *, dials: bool) -> None:
        if dials:
            stream = await dial(ours, node.seed, other.key, AgreementSecret(b"d" * 32))
        else:
            stream = await accept(theirs, node.seed, AgreementSecret(b"a" * 32))
        await Connection(node.hub, stream, lambda _: dials).run()

    whole_root = alice.replica.read_tables().roots[link.repo].commit_count

    def count_root() -> int:
        root = bob.replica.read_tables().roots.get(link.repo)
        return 0 if root is None else root.commit_count

    async def go_to_day() -> None:
        """Ask for the posts of a day, once the newest posts and the root branch are here."""
        while "shown" not in found or count_root() < whole_root:
            await bob.hub.changes.wait(bob.hub.changes.count)
        asked, size, had = trio.current_time(), down.size, bob.branch().commit_count
        timelines = Timelines(bob.hub, lambda _: bob.branch())
        window = await timelines.window_by_time("", "", "", _SHOWN, middle)
        shown = len(window["arriving"]["items"]) if "arriving" in window else 0
        found["day"] = trio.current_time() - asked, down.size - size
        waiting = window["arriving"]["waiting"] if "arriving" in window else 0
        note(
            f"{waiting} wait; of the day {len(window['items'])} are here and {shown} shown; {had} of {until} were here"
        )

    with trio.move_on_after(_PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_Line().carry, their_line, our_line)
            nursery.start_soon(down.carry, our_line, their_line)
            for node, other, dials in ((bob, alice, True), (alice, bob, False)):
                nursery.start_soon(node.joiner.run)
                nursery.start_soon(partial(talk, node, other, dials=dials))
            nursery.start_soon(go_to_day)
            while "all" not in found:
                count = bob.hub.changes.count
                look()
                if "all" not in found:
                    await bob.hub.changes.wait(count)
            nursery.cancel_scope.cancel()
    return found


def main() -> None:
    """Print the figures."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    root_count, post_count, excluded = (
        int(sys.argv[place]) if len(sys.argv) > place else usual
        for place, usual in ((1, 1000), (2, 10_000), (3, 0))
    )
    with tempfile.TemporaryDirectory() as folder:
        alice = Node(Path(folder) / "alice", "alice")
        _found(alice, root_count, post_count, excluded)
        note(f"made {root_count} members, {excluded} exclusions, {post_count} posts")
        for kind in ("plain", "named"):
            bob = Node(Path(folder) / kind, kind)
            link = _invite(alice, vouches=kind == "named")
            began = time.process_time()
            found = trio.run(_join, alice, bob, link, clock=MockClock(autojump_threshold=0))
            bob.replica.close()
            of = {"root": root_count, "posts": post_count, "excluded": excluded}
            for what, (seconds, size) in sorted(found.items()):
                figure(f"join_large_{kind}_{what}", seconds, "s", **of)
                figure(f"join_large_{kind}_{what}_size", size / 1000, "KB", **of)
            figure(f"join_large_{kind}_computing", time.process_time() - began, "s", **of)
        alice.replica.close()


if __name__ == "__main__":
    main()
