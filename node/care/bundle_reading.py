"""Reads bundles: gives each batch to the same intake as what peers bring, and says what is left.

Nothing in a bundle is believed but what its publications prove. Its digest at the end says that the file is whole, no more;
so a batch counts as soon as it is stored, and a bundle that is cut or damaged leaves what came before.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Final

import trio

from node.ingest.batch_order import BatchOrder, Previous
from node.membership.joining import Joiner
from node.runtime.errors import ServiceError
from node.runtime.wording import counted, date_text
from node.sync.hub import Hub
from node.sync.session_queries import topic_set
from protocol.codec import DecodeError
from protocol.formats.bundle import BundleBatch, BundleDecoder, BundleEnd, BundleHead, BundleRecord
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, TopicKey
from protocol.limits.files import BUNDLE_PASSED_OVER_MAX
from ravel.types.bundles import BundleReading
from storage.repos.epochs import Topic
from storage.topics.carrying import find_accepted_up_to
from storage.topics.topic_sets import NUMBER_MAX, find_whole

_UNDER_WAY_MAX: Final = 2
"""Batches that are read or stored at a time: one is read by a worker while the one before is on its way to the disk."""
_AGAIN: Final = "read it again when you have it whole: what is here is passed over"


async def read_bundle(hub: Hub, joiner: Joiner, chunks: AsyncGenerator[bytes]) -> BundleReading:
    """Take what a bundle carries of this node's repos. Costs O(bundle), and memory for three batches.

    Raises ServiceError `bad_input`, `interrupted`, `not_found`, `incomplete`, and StorageError; what came before stays.
    """
    reading, decoder = _Reading(hub, joiner), BundleDecoder()
    async with aclosing(chunks), trio.open_nursery() as nursery:
        try:
            async for some in chunks:
                for record in decoder.feed(some):
                    await reading.take(record, nursery)
            decoder.finish()
        except Exception as error:  # raised below: what is under way is stored first, and counted
            reading.failure = reading.failure or error
    await reading.take_up_keys()
    if reading.failure is not None:
        if isinstance(reading.failure, DecodeError):
            raise _explain(reading.failure, decoder.size, reading.taken) from None
        raise reading.failure
    return await reading.answer()


class _Reading:
    """State of reading one bundle."""

    def __init__(self, hub: Hub, joiner: Joiner) -> None:
        self._hub = hub
        self._joiner = joiner
        self._turns = BatchOrder()
        self._slots = trio.Semaphore(_UNDER_WAY_MAX)
        self._changed: set[int] = set()  # repos of which there may be new keys
        self._repos: set[int] = set()
        self._passed_over: set[CommitId] = set()
        self._passed_more = 0
        self._since: int | None = None
        self._end = BundleEnd(0, 0, ())
        self.failure: Exception | None = None
        self.taken = self._already = self._refused = 0

    async def take(self, record: BundleRecord, nursery: trio.Nursery) -> None:
        """Take one record; return when the next may be read. Raises what a batch before it failed with."""
        if self.failure is not None:
            raise self.failure
        match record:
            case BundleHead(since):
                self._since = since
            case BundleEnd():
                self._end = record
            case BundleBatch(name, items):
                topic = await self._find(name)
                if topic is None:
                    await self._hub.run_blocking(self._pass_over, items)
                    return
                self._repos.add(topic.repo_num)
                await self._slots.acquire()
                previous, done = self._turns.next(topic.repo_num, is_own=topic.is_of_all)
                nursery.start_soon(self._ingest, topic, items, previous, done)

    async def _find(self, name: TopicKey) -> Topic | None:
        """Find a topic; if it is unknown, first take keys from what came before."""
        found = self._hub.replica.by_topic.get(name)
        if found is None and (self._changed or self._is_under_way()):
            for _ in range(_UNDER_WAY_MAX):
                await self._slots.acquire()
            for _ in range(_UNDER_WAY_MAX):
                self._slots.release()
            await self.take_up_keys()
            found = self._hub.replica.by_topic.get(name)
        return found

    def _is_under_way(self) -> bool:
        return self._slots.value < _UNDER_WAY_MAX

    async def take_up_keys(self) -> None:
        """Take up keys of repos whose root branches have grown."""
        while self._changed:
            repo = self._hub.replica.repos.get(self._changed.pop())
            if repo is not None and repo.has_members:
                await self._joiner.keep_up(repo)

    def _pass_over(self, items: Sequence[bytes]) -> None:
        """Note what this node cannot open, to tell at the end how much of it is not here by then."""
        for item in items:
            if len(self._passed_over) >= BUNDLE_PASSED_OVER_MAX:
                self._passed_more += 1
                continue
            try:
                self._passed_over.add(decode_publication(item).commit_id)
            except DecodeError:
                self._refused += 1

    async def _ingest(
        self, topic: Topic, items: Sequence[bytes], previous: Previous, done: trio.Event
    ) -> None:
        try:
            if await self._hub.run_blocking(self._has_all, topic, items):
                await previous.wait()
                self._already += len(items)
                return
            ingested = await self._hub.intake.ingest(topic, items, previous, None)
            self.taken += ingested.count_useful()
            self._already += ingested.already
            full = ingested.dropped.pop("pending_full", 0)
            self._refused += len(ingested.rejected) + ingested.dropped.total()
            if ingested.is_about_repos:
                self._changed.add(topic.repo_num)
            if full:
                raise ServiceError(
                    "incomplete",
                    f"too much of the bundle waits for commits that are not here: {counted(full, 'commit')} found no room",
                    "read first what came before it: an earlier bundle, or one without --since; then read it again",
                )
        except Exception as error:  # handed to who reads on: it must not end what else is under way
            self.failure = self.failure or error
        finally:
            done.set()
            self._slots.release()

    def _has_all(self, topic: Topic, items: Sequence[bytes]) -> bool:
        """Return True if all of a batch is here whole, as where a reading that was cut is begun again.

        The first of a batch tells most often, so that what is new costs one look.
        """
        if self._hub.replica.has_damaged:
            return False  # a bundle mends what a peer would
        return self._are_here(topic, items[:1]) and self._are_here(topic, items[1:])

    def _are_here(self, topic: Topic, items: Sequence[bytes]) -> bool:
        try:
            ids = {decode_publication(one).commit_id for one in items}
        except DecodeError:
            return False
        with self._hub.replica.database.read() as connection:
            return len(find_whole(connection, topic_set(topic, of_publications=False), [*ids])) == len(ids)

    async def answer(self) -> BundleReading:
        """Return the result of the whole bundle. Raises ServiceError `not_found` if it has nothing of this node's repos."""
        replica = self._hub.replica
        unopened = await self._hub.run_blocking(self._count_missing, self._passed_over) + self._passed_more
        if unopened and not self._repos:
            raise _of_none(self._since)
        missing = await self._hub.run_blocking(self._count_missing, self._end.stands_on)
        return {
            "commits": self._end.count,
            "taken": self.taken,
            "already": self._already,
            "refused": self._refused,
            "waiting": sum(map(replica.waiting_in, self._repos)),
            "unopened": unopened,
            "missing": missing,
            "left_out": self._end.left_out,
            "since": None if self._since is None else self._since // 1000,
        }

    def _count_missing(self, ids: Collection[CommitId]) -> int:
        with self._hub.replica.database.read() as connection:
            return len(ids) - len(find_accepted_up_to(connection, ids, NUMBER_MAX))


def _of_none(since: int | None) -> ServiceError:
    advice = "join the repo first, by a link of a member: `ravel repo join LINK`; then read the bundle again"
    if since is not None:
        advice += f". If it is joined, read first what came before {date_text(since / 1000)}"
    return ServiceError("not_found", "the bundle holds nothing that this node can open", advice)


def _explain(error: DecodeError, size: int, taken: int) -> ServiceError:
    """Return what to say of bytes that are no whole bundle."""
    stays = f"; {counted(taken, 'commit')} of it came to be here" if taken else ""
    match error.reason:
        case "not_a_bundle":
            return ServiceError(
                "bad_input", "the file is no bundle", "give a file that `ravel bundle write` has written"
            )
        case "unknown_version":
            return ServiceError(
                "bad_input",
                f"a newer Ravel wrote the bundle: {error.detail}",
                "read it with that version, or have it written by this one",
            )
        case "cut":
            return ServiceError("interrupted", f"the bundle is cut: {error.detail}{stays}", _AGAIN)
    return ServiceError(
        "bad_input", f"the bundle is damaged at byte {size}: {error.detail or error.reason}{stays}", _AGAIN
    )
