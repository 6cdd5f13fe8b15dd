"""Joins of told histories: whatever a newcomer is told first, by whom, and cut where, it ends as a full replica does.

A history is `tests.histories`'s, with malicious members. One node is given all of it. Relays hold what a liar chose: not
all of it, and what full replicas reject beside it. A newcomer joins by a link, which names newest posts or not. It meets
relays and the full node, some at once, each cut at any moment, has its node started anew, keeps contents of one branch
alone, writes on what it has, and reads bundles: cut ones, and ones that a liar has made. Whatever it shows of posts
whose past is not here, the full node has accepted, and not voided where nothing of the root branch is withheld. No liar is
trusted: nodes show what those say until the past is here. In the end it and a node that has read a bundle alone show the
timelines of the full node.

`python -m tests.simulation.joins --seed 1 --count 100`; a run is a function of its seed.
"""

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

import structlog
import trio
from msgspec import structs
from sqlalchemy import select
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.author import Author
from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.ingest.replica import Replica
from node.membership.joining import Joiner
from node.membership.vouching import make_voucher
from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.sync.kept_parts import keep_contents
from protocol.crypto.signing import check_claims, key_pair
from protocol.formats.body import Grant, Permission
from protocol.formats.bundle import BundleEncoder
from protocol.formats.links import InvitationLink
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, PeerId, UserId
from storage.commits.heads import load_heads
from storage.commits.void_marks import load_void_ids
from storage.relay.quotas import Visitor
from storage.relay.relay import load_kept_topics, open_topics, store_publications
from storage.repos.repos import Branch
from storage.schema.schema import commits
from storage.topics.publishing import load_publications
from tests.histories.plots import tell
from tests.histories.real_commits import Founded, found, make_commits, seed_of, user_of
from tests.histories.tales import BRANCHES, FOUNDING, Tale
from tests.promise.chance import fixed_chance
from tests.support.blocking import inline
from tests.support.builders import NOW_MS, give
from tests.support.ids import as_commit_id
from tests.support.nodes import Node, connected, until_equal
from tests.support.relays import PLENTY, open_relay
from tests.support.stores import share_compiled_statements, share_new_tables, use_memory_for_files
from tests.support.windows import forge
from verifier.membership import Membership
from verifier.windows import find_witnesses

_ALL: Final = 1 << 40
_CUT_TURNS_MAX: Final = 300
"""Turns of the scheduler after which a meeting is cut, at most: a whole one takes about as many."""
_LIAR: Final = "mallory"
"""Writer who is let in at the end of a history."""
_POSTS_MAX: Final = 20
"""Posts by an honest member after the history, at most: more than one window."""
_PATIENCE: Final = 3600.0
"""Virtual seconds in which all must be told."""
_TOLD_SECONDS: Final = 60.0
"""Seconds between two lines that say how far it is."""
_SMALL: Final = (
    ("node.sync.windows.WINDOW_BEHIND_MIN", 2),
    ("node.membership.vouching.WINDOW_BEHIND_MIN", 2),
    ("protocol.session.transfer.BATCH_COUNT_MAX", 2),
)
"""Bounds that short histories reach."""
_ASKED: Final = ("node.sync.windows.WINDOW_ASK_COUNT", "node.membership.vouching.WINDOW_ASK_COUNT")


class NobodyInvites(Exception):
    """No honest member may let anybody in at the end of a history."""


class _Member(Node):
    """A node of one of the history's members, on a store that has the founding."""

    def __init__(self, folder: Path, name: str, founded: Founded) -> None:
        shutil.copytree(founded.folder, folder)
        self._name = name
        super().__init__(folder, name)

    def open(self, now: int | None = None) -> None:
        """Open the store, which has no key."""
        self.user_seed = seed_of(self._name)
        self.set_clock(NOW_MS + 1_000_000)
        self.replica = Replica(self.folder)
        self.hub = Hub(self.replica, inline(), self.now)
        self.author = Author(self.replica, self.user_seed, self.now)
        self.joiner = Joiner(self.hub, self.author)


class _Run:
    """One history and all who meet in it."""

    def __init__(self, seed: int, founded: Founded, folder: Path, done: Counter[str]) -> None:
        self.rng = Random(f"joins {seed}")
        self.folder = folder
        self.done = done
        self.tale: Tale = tell(seed)
        made = make_commits(founded, self.tale)
        self.items = [made.items[step.number] for step in self.tale.steps[len(FOUNDING) :]]
        self.liars = {user_of(name) for name in self.tale.malicious}
        self.full = self._open_full(founded)
        self.forged = [one for _ in range(self.rng.randint(0, 3)) for one in self._forge(founded)]

    def _forge(self, founded: Founded) -> list[bytes]:
        """Posts of a liar on a fault that it may hide: on what nobody has, or on its own post of a false rank."""
        name, target = self.rng.choice((*sorted(self.tale.malicious), _LIAR)), self.rng.choice(BRANCHES)
        branch, root = self.full.branch(target), tuple(self.full.heads(self.full.branch("root")))
        with self.full.replica.database.read() as connection:
            ((head, highest), *_) = load_heads(connection, branch.num, 1)
        acks: tuple[CommitId, ...]
        if self.rng.random() < 0.5:
            acks = (as_commit_id(self.rng.randbytes(32)),)
            rank = self.rng.choice((1, highest + 1, 2**50))
        else:
            acks, rank = (head,), highest + self.rng.choice((2, 3, 2**40))
        made: list[bytes] = []
        for _ in range(self.rng.randint(2, 6)):
            author = key_pair(seed_of(name))
            one = forge(founded.target(target), author, founded.repo.init_id, rank, acks, root)
            made.append(one.encoded)
            acks, rank = (one.commit_id,), one.blocks[0].rank + 1
        return made[self.rng.choice((0, 1)) :]

    def _open_full(self, founded: Founded) -> Node:
        """The node that is given everything: of an honest member who may let others in."""
        names = sorted({step.author for step in self.tale.steps} - self.tale.malicious)
        for name in names:
            node = _Member(self.folder / f"full {name}", name, founded)
            give(node.replica, self.items)
            try:
                self.link = node.invite(
                    node.repo(), self.rng.choice((Permission.READ, Permission.WRITE, Permission.WRITE))
                )
                node.author.write(node.branch("root"), Grant(user_of(_LIAR), Permission.WRITE))
            except ServiceError:
                node.replica.close()
                continue
            for _ in range(self.rng.choice((0, 1, 4, _POSTS_MAX))):
                node.write(node.branch(self.rng.choice(BRANCHES)), "more")
            return node
        raise NobodyInvites

    def vouched(self) -> InvitationLink:
        """The link, in most runs with the newest posts of a branch."""
        full = self.full
        if self.rng.random() < 0.3:
            return self.link
        voucher = make_voucher(
            full.replica, full.author, full.repo(), full.epoch(), self.link.invitation, "Ann", full.now()
        )
        self.done["links that name posts"] += voucher is not None
        return structs.replace(self.link, voucher=voucher)

    def publications(self) -> list[bytes]:
        """All that the full node can send, causes first."""
        found: list[bytes] = []
        with self.full.replica.database.read() as connection:
            rows = connection.execute(
                select(commits.c.num, commits.c.commit_id, commits.c.topic_num).order_by(commits.c.num)
            ).all()
            for topic in sorted(self.full.replica.topics.values(), key=lambda one: one.num):
                inits = {bytes(one.epoch_id) for one in topic.epochs}
                nums = [num for num, raw, of in rows if of == topic.num or bytes(raw) in inits]
                found += load_publications(connection, topic, nums, _ALL)
        return found

    def chosen(self) -> list[bytes]:
        """What a liar holds or sends: some of everything, in its own order, with what is rejected elsewhere."""
        share = self.rng.choice((0.3, 0.7, 0.9, 1.0))
        everything = dict.fromkeys((*self.publications(), *self.items, *self.forged))
        items = [one for one in everything if self.rng.random() < share]
        if self.rng.random() < 0.5:
            self.rng.shuffle(items)
        return items

    def fill(self, relay: Node) -> None:
        """Have a relay hold what a liar chose."""
        visitor = Visitor(PeerId(b"v" * 32), is_known=True)
        items = [(decode_publication(one), one) for one in self.chosen()]
        database = relay.replica.database
        with database.write() as connection:
            open_topics(database, connection, sorted({one.topic for one, _ in items}), visitor, PLENTY, 1)
            for topic, kept in load_kept_topics(connection).items():
                of_topic = [
                    one for one in items if topic in (kept.num, kept.topic) and one[0].topic == kept.topic
                ]
                store_publications(database, connection, kept.num, visitor, of_topic, PLENTY, 2)
        relay.hub.relay = RelayService(database, PLENTY, inline(), lambda: 0, check_claims)

    async def bundle(self) -> bytes:
        """A bundle: the full node's, whole or cut, or one that a liar has made."""
        chance = self.rng.random()
        if chance < 0.4:
            encoder, items = BundleEncoder(), self.chosen()
            parts = [encoder.start(None)]
            for topic, of_topic in groupby(items, lambda one: decode_publication(one).topic):
                parts.append(encoder.encode_batch(topic, tuple(of_topic)))
            return b"".join([*parts, encoder.encode_end(len(items), 0, ())])
        whole = await bundle_of(self.full)
        return whole if chance < 0.6 else whole[: self.rng.randrange(len(whole))]

    def may_be_shown(self) -> tuple[set[CommitId], set[CommitId]]:
        """What the full node has accepted, and what of it is void."""
        replica, void = self.full.replica, set[CommitId]()
        with replica.database.read() as connection:
            accepted = set(connection.execute(select(commits.c.commit_id)).scalars())
            for branch in replica.branches.values():
                void |= set(load_void_ids(connection, branch.num))
        return accepted, void


async def bundle_of(node: Node) -> bytes:
    """A bundle of all that a node has of its one repo."""
    chosen = list(node.replica.branches.values())
    return b"".join([one async for one in write_bundle(node.replica, node.repo(), chosen, None, inline())])


async def _read(node: Node, content: bytes) -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        yield content

    try:
        await read_bundle(node.hub, node.joiner, chunks())
    except ServiceError as error:
        if error.code not in ("bad_input", "interrupted", "not_found", "incomplete"):
            raise


@asynccontextmanager
async def _watched(run: _Run, node: Node) -> AsyncIterator[None]:
    """Check all that a newcomer shows whose past is not here, whenever anything has changed."""
    accepted, void = run.may_be_shown()
    root = _ids_in(run.full, run.full.branch("root"))

    async def look() -> None:
        while True:
            count = node.hub.changes.count
            for branch in node.replica.read_tables().branches.values():
                shown = node.hub.windows.find(branch.num)
                if shown is not None:
                    listed = {one.commit_id for one in shown.listed}
                    run.done["posts shown before their past"] += len(listed)
                    run.done["posts that waited"] += shown.waiting
                    assert listed <= accepted, "it shows what a full replica rejects"
                    if not root - _ids_in(node, node.branch("root")):  # else removals may be withheld
                        assert not listed & void, "it shows what is void"
            await node.hub.changes.wait(count)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        yield
        nursery.cancel_scope.cancel()


def _ids_in(node: Node, branch: Branch) -> set[CommitId]:
    with node.replica.database.read() as connection:
        query = select(commits.c.commit_id).where(commits.c.branch_num == branch.num)
        return set(connection.execute(query).scalars())


async def _meet(run: _Run, node: Node, others: Sequence[Node]) -> None:
    """Meet some at once, and be cut at any moment, or when all is said."""
    async with AsyncExitStack() as stack:
        for other in others:
            await stack.enter_async_context(connected(node, other))
        if run.rng.random() < 0.2:
            await trio.sleep(30)
        else:
            for _ in range(run.rng.randrange(_CUT_TURNS_MAX)):
                await trio.lowlevel.checkpoint()


async def _take_part(run: _Run, newcomer: Node, relays: Sequence[Node]) -> None:
    rng = run.rng
    everyone = [run.full, *relays]
    for _ in range(rng.randint(1, 7)):
        act = rng.choice(("meet", "meet", "meet", "several", "bundle", "bundle", "restart", "keep", "write"))
        run.done[act] += 1
        async with _watched(run, newcomer):
            if act == "meet":
                await _meet(run, newcomer, [rng.choice(everyone)])
            elif act == "several":
                await _meet(run, newcomer, rng.sample(everyone, 2))
            elif act == "bundle":
                await _read(newcomer, await run.bundle())
            elif act == "write":
                _write(run, newcomer)
        if act == "restart":
            newcomer.replica.close()
            newcomer.open()
        elif act == "keep":
            repo, kept = newcomer.repo(), [one.num for one in newcomer.replica.branches.values()]
            keep_contents(newcomer.replica, repo, set(rng.sample(kept, min(1, len(kept)))))


def _write(run: _Run, newcomer: Node) -> None:
    """Write on what is here, where this user may by then."""
    branches = [one for one in newcomer.replica.branches.values() if not one.facts.is_root_branch]
    try:
        newcomer.write(run.rng.choice(branches), "a newcomer's") if branches else None
        run.done["written"] += bool(branches)
    except ServiceError:
        run.done["not written"] += 1


async def _end(run: _Run, node: Node) -> None:
    """Meet the full node until both show the same, in every branch."""
    async with _watched(run, node), connected(node, run.full):
        with trio.fail_after(_PATIENCE):
            for name in ("root", *BRANCHES):
                await until_equal(node, run.full, name)
            await wait_all_tasks_blocked()


def _check_equal(run: _Run, node: Node) -> None:
    for name in ("root", *BRANCHES):
        assert node.digest(node.branch(name)) == run.full.digest(run.full.branch(name)), f"{name} differs"
        shown = node.hub.windows.find(node.branch(name).num)
        assert shown is None or not shown.listed, "what is here is shown in its place alone"


async def _play(run: _Run) -> None:
    with ExitStack() as stack:
        stack.callback(run.full.replica.close)
        relays = [stack.enter_context(open_relay(run.folder / f"relay {number}")) for number in range(2)]
        for relay in relays:
            run.fill(relay)
        newcomer = Node(run.folder / "newcomer", "newcomer")
        stack.callback(lambda: newcomer.replica.close())
        await newcomer.joiner.begin(run.vouched())
        await _take_part(run, newcomer, relays)
        await _end(run, newcomer)
        _check_equal(run, newcomer)
        await _check_by_bundle(run)


async def _check_by_bundle(run: _Run) -> None:
    """Have a node read nothing but a bundle of the full node."""
    reader = Node(run.folder / "reader", "reader")
    try:
        await reader.joiner.follow(run.full.capability())
        await _read(reader, await bundle_of(run.full))
        _check_equal(run, reader)
    finally:
        reader.replica.close()


@contextmanager
def founded_once() -> Iterator[Founded]:
    """The founding of all histories."""
    with tempfile.TemporaryDirectory() as folder:
        yield found(Path(folder) / "founded")


def run(seed: int, founded: Founded) -> Counter[str]:
    """Play one join, and count what was done. Raises AssertionError, or NobodyInvites."""
    done = Counter[str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(fixed_chance(seed))
        asked = Random(seed).choice((3, 8, 200))
        for name, bound in (*_SMALL, *((name, asked) for name in _ASKED)):  # so that few commits reach them
            stack.enter_context(patch(name, bound))
        stack.enter_context(_honest_witnesses(tell(seed)))
        trio.run(_play, _Run(seed, founded, folder, done), clock=MockClock(autojump_threshold=0))
    return done


@contextmanager
def _honest_witnesses(tale: Tale) -> Iterator[None]:
    """Nodes trust no liar: else they show what that one says until its past is here (P4)."""
    liars = {user_of(name) for name in tale.malicious}

    def find(membership: Membership, own: Collection[UserId]) -> frozenset[UserId]:
        return find_witnesses(membership, own) - liars

    with patch("node.ingest.kept_windows.find_witnesses", find):
        yield


def main() -> int:
    """Play seeds; 1 when one fails, which is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=1, help="how many")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    use_memory_for_files()
    share_compiled_statements()
    share_new_tables()
    done, began = Counter[str](), time.monotonic()
    told_at = began

    def tell_so_far(seed: int) -> None:
        rate = done["joins"] / max(time.monotonic() - began, 0.001)
        told = ", ".join(f"{what} {number}" for what, number in sorted(done.items()))
        print(f"up to seed {seed} all hold ({rate:.2f} joins a second): {told}", flush=True)

    with founded_once() as founded:
        for seed in range(options.seed, options.seed + options.count):
            try:
                done += run(seed, founded) + Counter(joins=1)
            except NobodyInvites:
                done["without a link"] += 1
            except BaseException as error:  # also an interruption: the seed is told, and it is raised
                print(f"seed {seed} fails: {error!r}", file=sys.stderr)
                raise
            if time.monotonic() - told_at >= _TOLD_SECONDS:
                told_at = time.monotonic()
                tell_so_far(seed)
    tell_so_far(options.seed + options.count - 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
