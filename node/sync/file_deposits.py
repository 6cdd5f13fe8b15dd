"""Deposits files of this node's repos with the relays that it uses: those that it has whole, and that a relay lacks.

One task for each connected relay. It asks first which files the relay keeps, topic by topic, and remembers that: what is
on no relay can be told while none is connected. Then it offers what is missing, and what is added later, on the topic of the
commit that added it, if this node can sign there. The relay fetches the blocks itself, so nothing is read ahead of it here.
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
import trio

from node.runtime.backoff import Backoff, store_backoff
from node.sync.block_requests import NotFetched
from node.sync.hub import Hub
from node.sync.relay_client import RelayClient
from protocol.formats.text import id_text
from protocol.ids import ShortId, TopicKey
from protocol.limits.peers import (
    DEPOSIT_LOOK_SECONDS,
    DEPOSIT_PAUSE_MAX_SECONDS,
    DEPOSIT_PAUSE_SECONDS,
    DEPOSIT_RELIST_ALL_SECONDS,
    DEPOSIT_RELIST_SECONDS,
    FILES_DEPOSITED_COUNT_MAX,
    FILES_LISTED_COUNT_MAX,
    FILES_PAUSED_MAX,
    RELAYED_FILES_REMEMBERED_MAX,
)
from protocol.session.deposits import short_file, sign_deposit
from storage.blobs.relayed_files import (
    OwnFile,
    find_relayed_on,
    last_file,
    load_own_files,
    measure_file,
    note_relayed,
    replace_relayed,
    topics_with_files,
)
from storage.engine.database import StorageError
from storage.repos.epochs import Topic

log = structlog.get_logger()

_OF_ONE_FILE: Final = ("bad_file", "file_too_large", "incomplete", "bad_topic_signature")
"""Reasons that say nothing of a relay's room for other files."""
_LOWEST: Final = ShortId(bytes(16))


@dataclass(slots=True)
class _Pause:
    """Until when something that was refused is not offered again, as trio counts."""

    until: float = -math.inf
    backoff: Backoff = field(
        default_factory=partial(Backoff, DEPOSIT_PAUSE_SECONDS, DEPOSIT_PAUSE_MAX_SECONDS)
    )

    def refuse(self) -> None:
        """Note a refusal."""
        self.until = trio.current_time() + self.backoff.fail()


@dataclass(slots=True)
class _State:
    """Progress of this node with one relay."""

    listed: set[TopicKey] = field(default_factory=set)
    refused: set[TopicKey] = field(default_factory=set)  # so that nothing of them is there
    unsure: set[TopicKey] = field(default_factory=set)  # of which others may deposit files
    paused: dict[TopicKey, _Pause] = field(default_factory=dict)  # which the relay has no room for
    paused_files: dict[int, _Pause] = field(
        default_factory=dict
    )  # refused for what they are, the latest last
    seen: int = 0  # number of the last file that was looked at
    began: float = 0.0  # when all were last looked at
    relisted: float = field(default_factory=trio.current_time)  # when the relay was last asked for all
    surveyed: int = 0  # number of the last file when the topics were listed that have any
    with_files: set[int] = field(default_factory=set)

    def is_paused(self, topic: Topic, file: OwnFile) -> bool:
        """Return True if the file, or any of its topic, was refused a while ago."""
        pauses = (self.paused.get(topic.topic), self.paused_files.get(file.num))
        return any(one is not None and one.until > trio.current_time() for one in pauses)

    def pause(self, topic: Topic, file: OwnFile, refusal: str) -> None:
        """Offer what was refused later: this file, or all of its topic where the relay has no room."""
        if refusal not in _OF_ONE_FILE:
            self.paused.setdefault(topic.topic, _Pause()).refuse()
            return
        found = self.paused_files.pop(file.num, _Pause())
        found.refuse()
        self.paused_files[file.num] = found
        if len(self.paused_files) > FILES_PAUSED_MAX:
            del self.paused_files[next(iter(self.paused_files))]


class FileDepositor:
    """Deposits with every relay that is connected and keeps files."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._served: set[RelayClient] = set()

    async def run(self) -> None:
        """Deposit for as long as the node runs."""
        async with trio.open_nursery() as nursery:
            while True:
                for port in self._hub.relay_clients:
                    if port.keeps_files and port not in self._served:
                        self._served.add(port)
                        nursery.start_soon(self._serve, port)
                await trio.sleep(DEPOSIT_LOOK_SECONDS)  # peers come without a change that is told

    async def _serve(self, port: RelayClient) -> None:
        state, backoff = _State(), store_backoff()
        try:
            while port.keeps_files:
                pause = DEPOSIT_LOOK_SECONDS
                try:
                    await self._look(port, state)
                    backoff.reset()
                except StorageError as error:
                    log.error("storage failed", error=str(error))
                    pause = backoff.fail()
                await trio.sleep(pause)
        except NotFetched:
            pass  # it has left
        finally:
            self._served.discard(port)
            self._forget_refusals(port)

    async def _look(self, port: RelayClient, state: _State) -> None:
        """List what is new to this node of the relay, and deposit what is new to the relay."""
        last = await self._hub.run_blocking(self._last)
        if last > state.surveyed:
            state.surveyed, state.with_files = last, await self._hub.run_blocking(self._topics)
        now = trio.current_time()
        by_topic = self._hub.replica.by_topic
        topics = {name: one for name, one in by_topic.items() if one.num in state.with_files}
        for name in port.refused():
            if name in topics and name not in state.refused:
                state.refused.add(name)
                await self._hub.write(self._note_all, port, topics[name], set())
        if now - state.relisted >= DEPOSIT_RELIST_ALL_SECONDS:
            state.relisted = now
            state.listed.clear()
        if now - state.began >= DEPOSIT_RELIST_SECONDS:
            state.listed -= state.unsure
            state.unsure.clear()
        fresh = [topics[name] for name in port.entrusted() if name in topics and name not in state.listed]
        for topic in fresh:
            await self._list(port, topic)
            state.listed.add(topic.topic)
        is_due = now - state.began >= DEPOSIT_PAUSE_SECONDS
        if fresh or is_due:
            state.seen, state.began = 0, now
            self._forget_refusals(port)  # all are offered again
        if last > state.seen:
            await self._deposit_all(port, state)

    def _forget_refusals(self, port: RelayClient) -> None:
        refusals = self._hub.file_refusals
        self._hub.file_refusals = {one: why for one, why in refusals.items() if one[0] != port.peer}

    async def _list(self, port: RelayClient, topic: Topic) -> None:
        kept: set[ShortId] = set()
        after = _LOWEST
        while len(kept) < RELAYED_FILES_REMEMBERED_MAX:
            listed = await port.ask_list(topic.topic, after)
            kept.update(listed)
            if len(listed) < FILES_LISTED_COUNT_MAX or listed[-1] <= after:
                break
            after = listed[-1]
        await self._hub.write(self._note_all, port, topic, kept)

    async def _deposit_all(self, port: RelayClient, state: _State) -> None:
        async with trio.open_nursery() as nursery:
            places = trio.CapacityLimiter(FILES_DEPOSITED_COUNT_MAX)
            is_lost = False

            async def deposit(topic: Topic, file: OwnFile) -> None:
                nonlocal is_lost
                try:
                    await self._deposit(port, state, topic, file)
                except NotFetched:
                    is_lost = True
                except StorageError as error:  # a damaged file: the others are not
                    log.error("storage failed", error=str(error))
                finally:
                    places.release_on_behalf_of(file)

            while not is_lost and (files := await self._hub.run_blocking(self._next, port, state.seen)):
                for file, is_relayed in files:
                    state.seen = file.num
                    topic = self._hub.replica.topics.get(file.topic_num)
                    if is_relayed or topic is None or topic.topic not in state.listed:
                        continue
                    if topic.seed is None or state.is_paused(topic, file):
                        state.unsure.add(topic.topic)
                        continue
                    await places.acquire_on_behalf_of(file)
                    nursery.start_soon(deposit, topic, file)
        if is_lost:
            raise NotFetched

    async def _deposit(self, port: RelayClient, state: _State, topic: Topic, file: OwnFile) -> None:
        assert topic.seed is not None, "looked at before"
        size = await self._hub.run_blocking(self._measure, file)
        if size is None:
            state.unsure.add(topic.topic)  # not whole here
            return
        refusal = await port.offer(topic.topic, sign_deposit(topic.seed, file.object_id, size))
        if not refusal:
            state.paused.pop(topic.topic, None)
            state.paused_files.pop(file.num, None)
            await self._hub.write(self._note, port, topic, file)
            return
        self._hub.file_refusals[port.peer, topic.repo_num] = refusal
        state.pause(topic, file, refusal)
        log.warning("a relay does not keep a file", relay=id_text(port.peer), reason=refusal)

    # --- in threads ---

    def _last(self) -> int:
        with self._hub.replica.database.read() as connection:
            return last_file(connection)

    def _topics(self) -> set[int]:
        with self._hub.replica.database.read() as connection:
            return topics_with_files(connection)

    def _next(self, port: RelayClient, after: int) -> list[tuple[OwnFile, bool]]:
        with self._hub.replica.database.read() as connection:
            files = load_own_files(connection, after, FILES_DEPOSITED_COUNT_MAX)
            relayed = find_relayed_on(connection, port.peer, files)
            return [(one, one.num in relayed) for one in files]

    def _measure(self, file: OwnFile) -> int | None:
        replica = self._hub.replica
        with replica.database.read() as connection:
            return measure_file(connection, replica.database.folder, replica.packs, file.object_id)

    def _note_all(self, port: RelayClient, topic: Topic, kept: set[ShortId]) -> None:
        with self._hub.replica.database.write() as connection:
            replace_relayed(connection, port.peer, topic.num, kept)
        self._hub.replica.shown.restate([topic.repo_num])

    def _note(self, port: RelayClient, topic: Topic, file: OwnFile) -> None:
        with self._hub.replica.database.write() as connection:
            note_relayed(connection, port.peer, topic.num, [short_file(file.object_id)])
        self._hub.replica.shown.restate([topic.repo_num])
