"""Relay service: stores and forwards publications of others' topics without opening them.

It can open none of it. What it checks is what it can: that a publication is one, that its blocks are what their ids say,
and that the topic's key signed it.
"""

import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog
import trio
from sqlalchemy import Connection

from node.ingest.batch_order import Previous
from node.relay.refusals import COMMITS, TOPIC, Refusals
from node.runtime.blocking import RunBlocking
from node.runtime.scheduling import NOBODY, FairLock, Ledger, WorkBill
from node.runtime.user_requests import GivingWay
from protocol.codec import DecodeError
from protocol.crypto.keys import AccountToken
from protocol.crypto.signing import CheckClaims, Claim
from protocol.formats.block import Block
from protocol.formats.publication import Publication, decode_publication
from protocol.ids import BlockId, ObjectId, PeerId, ShortId, TopicKey
from protocol.limits.peers import (
    FETCH_TIMEOUT_SECONDS,
    FILES_DEPOSITED_COUNT_MAX,
    FILES_LISTED_COUNT_MAX,
    SIGNATURE_SECONDS,
)
from protocol.session.deposits import claim_of
from protocol.session.messages import FileDeposit
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.relay.accounts import (
    AccountRow,
    JoinedAccount,
    has_link,
    join_account,
    list_accounts,
    load_accounts,
)
from storage.relay.damaged_files import drop_damaged_block
from storage.relay.files import (
    BegunFile,
    DamagedKeptBlock,
    KeptBlocks,
    begin_file,
    drop_file,
    find_kept_blocks,
    finish_file,
    is_kept_whole,
    keep_blocks,
    list_whole,
    load_deposits,
)
from storage.relay.quotas import Account, RelayQuotas, Room, Visitor, refuse_topics
from storage.relay.relay import (
    KeptTopic,
    StoreResult,
    allow_peer,
    deny_peer,
    find_kept_topics,
    load_allowed,
    load_kept_topics,
    open_topics,
    pin_topic,
    store_publications,
    unpin_topic,
)
from storage.relay.usage import Usage, load_growth, load_usage

log = structlog.get_logger()
T = TypeVar("T")

_OPENED_AT_ONCE_MAX: Final = 256
"""Topics of one transaction: some 10 ms, after which others may write. A connection may entrust TOPIC_COUNT_MAX at once."""
_FULL_PLACES_MAX: Final = 1024
"""Peers and subnets that are remembered to have no room, so that they are refused without a write transaction."""
INCOMPLETE: Final = "incomplete"
"""A file lacks blocks: what came of it stays, for its next deposit."""
_TOPIC_FORGOTTEN: Final = "topic_forgotten"
_BAD_SIGNATURE: Final = "bad_topic_signature"


@dataclass(slots=True)
class RelayResult:
    """Result of a batch: new numbers, faults of its publications, and the quota that it met ("": none).

    `has_forgotten`: other topics were, to make room. `completed` counts bodies of bare ones that came; `has_bare`: there are
    new bare ones.
    """

    nums: tuple[int, ...] = ()
    dropped: Counter[str] = field(default_factory=Counter)
    refused: str = ""
    has_forgotten: bool = False
    completed: int = 0
    has_bare: bool = False


@dataclass(frozen=True, slots=True)
class DepositResult:
    """Result of topics that a peer entrusted: those that are kept, and why the others are not."""

    kept: tuple[KeptTopic, ...]
    refused: tuple[TopicKey, ...] = ()
    reason: str = ""
    has_lost: bool = False  # others were forgotten for them, with what was published on them


@dataclass(slots=True)
class _Pulled:
    """A file that peers bring: one does, and the others wait."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    count: int = 0


class RelayService:
    """The topics that this node keeps for others."""

    def __init__(
        self,
        database: Database,
        quotas: RelayQuotas,
        run_blocking: RunBlocking,
        clock_ms: Callable[[], int],
        check: CheckClaims,
        cpu_clock: Callable[[], float] = time.thread_time,
        giving_way: GivingWay | None = None,
    ) -> None:
        """Read what is kept. Peers that are `giving_way` let requests of the operator go first. Raises StorageError."""
        self._database = database
        self.quotas = quotas
        self._run_blocking = run_blocking
        self._clock_ms = clock_ms
        self._check = check
        self._cpu_clock = cpu_clock
        self._storing = FairLock(1, giving_way)
        self._pulled: dict[tuple[int, ObjectId], _Pulled] = {}  # files that are being brought
        self._losses: Counter[int] = Counter()  # by files' numbers: damaged blocks that were taken out
        self._own = Ledger(lambda: 0.0).of_peer(NOBODY)  # what the operator asks for
        self._forgotten: deque[set[TopicKey]] = deque()  # filled by worker threads, emptied by trio's
        self._has_lost = False  # publications were forgotten since the last refresh
        # Peers and subnets that had no room when they last asked, the latest last.
        self._full: dict[PeerId | str, None] = {}
        self.topics: dict[TopicKey, KeptTopic] = {}
        self.allowed: frozenset[PeerId] = frozenset()
        """Peers that the operator has named as known."""
        self.accounts: Mapping[PeerId, Account] = {}
        """Accounts by their nodes."""
        self.is_dialed: Callable[[PeerId], bool] = lambda _: False
        """True if this node keeps a connection to a peer of its own accord, so that its operator knows it."""
        self.is_partner: Callable[[PeerId], bool] = lambda _: False
        """True if a peer is another relay with which this one keeps the same topics."""
        self.files_kept: Counter[TopicKey] = Counter()
        """By topic: files that have become whole since the start."""
        self.files_kept_count = 0
        """The same of all topics."""
        self.refusals = Refusals(clock_ms)
        """What was refused, to whom and why."""
        self.blocks_damaged = 0
        """Blocks of files that were found damaged when a peer wanted them, since the start."""
        self._refresh()

    def visitor(self, peer: PeerId, subnet: str) -> Visitor:
        """Return a peer as quotas see it; `subnet` is where it comes from."""
        account = self.accounts.get(peer)
        is_known = account is not None or peer in self.allowed or self.is_dialed(peer)
        return Visitor(peer, "" if is_known else subnet, is_known, self.is_partner(peer), account)

    async def open(
        self, topics: Sequence[TopicKey], visitor: Visitor, bill: WorkBill | None = None
    ) -> DepositResult:
        """Keep those of these topics that quotas allow, a slice at a time, at the cost of `bill`. Raises
        StorageError."""
        bill = bill or WorkBill(self._own)
        reason, has_lost = "", False
        has_kept = any(topic in self.topics for topic in topics)
        for part in chunks(topics, _OPENED_AT_ONCE_MAX):
            async with self._storing.held(bill, len(part)):
                (room, opened), seconds = await self._run_blocking(
                    self._timed, self._keep_open, part, visitor
                )
                bill.charge(seconds)
                self.topics |= opened  # a copy of all of them would cost more than a deposit
            reason, has_lost = reason or room.refused, has_lost or room.has_lost
            has_kept = has_kept or any(topic in self.topics for topic in part)
            if room.refused and not has_kept:
                break  # and none of the others has room
        kept = tuple(self.topics[topic] for topic in topics if topic in self.topics)
        refused = tuple(topic for topic in topics if topic not in self.topics)
        reason = reason or "relay_full"
        if refused:
            self.refusals.count(TOPIC, visitor.kind, reason, len(refused))
        return DepositResult(kept, refused, reason, has_lost)

    async def ingest(
        self,
        topic: KeptTopic,
        items: Sequence[bytes],
        previous: Previous,
        visitor: Visitor,
        bill: WorkBill,
    ) -> RelayResult:
        """Check publications and keep them, after `previous`, a slice at a time; `bill` says who pays.

        Raises StorageError.
        """
        relayed = RelayResult()
        read, seconds = await self._run_blocking(self._timed, _read, topic.topic, items, relayed.dropped)
        bill.charge(seconds + len(read) * SIGNATURE_SECONDS)
        holds = await self._run_blocking(self._check, [_claim(publication) for publication, _ in read])
        new = [one for one, is_good in zip(read, holds, strict=True) if is_good]
        if len(new) < len(read):
            relayed.dropped[_BAD_SIGNATURE] += len(read) - len(new)
        await previous.wait()
        done = 0
        while done < len(new) and not relayed.refused:
            part = new[done : done + bill.account.storing.count]
            async with self._storing.held(bill, len(new) - done):
                stored, seconds = await self._run_blocking(self._timed, self._keep, topic, visitor, part)
                bill.charge(seconds)
            bill.account.storing.note(len(part), seconds)
            done += len(part)
            relayed.nums += stored.nums
            relayed.refused = stored.refused
            relayed.has_forgotten |= stored.has_forgotten
            relayed.completed += stored.completed
            relayed.has_bare |= stored.has_bare
        for reason, times in relayed.dropped.items():
            self.refusals.count(COMMITS, visitor.kind, reason, times)
        if relayed.refused:
            self.refusals.count(COMMITS, visitor.kind, relayed.refused)
        return relayed

    async def check_deposits(
        self, topic: TopicKey, deposits: Sequence[FileDeposit], bill: WorkBill
    ) -> Sequence[bool]:
        """Return for each deposit True if the topic's key signed it."""
        bill.charge(len(deposits) * SIGNATURE_SECONDS)
        return await self._run_blocking(self._check, [claim_of(topic, one) for one in deposits])

    @asynccontextmanager
    async def keeping(self, topic: KeptTopic, file: ObjectId) -> AsyncIterator[None]:
        """Be the only one that brings a file: what one peer brings another need not.

        Where another one takes long, bring it beside: a peer that answers slowly must not keep others from depositing.
        """
        name = (topic.num, file)
        pulled = self._pulled.setdefault(name, _Pulled())
        pulled.count += 1
        has_lock = False
        try:
            with trio.move_on_after(FETCH_TIMEOUT_SECONDS):
                await pulled.lock.acquire()
                has_lock = True
            yield
        finally:
            if has_lock:
                pulled.lock.release()
            pulled.count -= 1
            if not pulled.count:
                del self._pulled[name]

    def list_files(self, topic: KeptTopic, after: ShortId) -> tuple[ShortId, ...]:
        """Files that are here whole, above an id, some of them. Blocks. Raises StorageError."""
        with self._database.read() as connection:
            return list_whole(connection, topic.num, after, FILES_LISTED_COUNT_MAX)

    def has_file(self, topic: KeptTopic, file: ObjectId) -> bool:
        """Return True if a file is here whole. Blocks. Raises StorageError."""
        with self._database.read() as connection:
            return is_kept_whole(connection, topic.num, file)

    async def begin_file(
        self, topic: KeptTopic, deposit: FileDeposit, visitor: Visitor, bill: WorkBill
    ) -> BegunFile:
        """Keep a file from now on, if there is room. Raises StorageError."""

        def begin() -> BegunFile:
            with self._database.write(is_patient=True) as connection:
                return begin_file(connection, topic.num, deposit, visitor, self.quotas, self._clock_ms())

        return await self._storing_for(bill, begin)

    def find_blocks(self, ids: Sequence[BlockId]) -> set[BlockId]:
        """Return the given blocks that are held. Runs in a thread. Raises StorageError."""
        with self._database.read() as connection:
            return find_kept_blocks(connection, ids)

    async def drop_damaged(self, damage: DamagedKeptBlock) -> None:
        """Take out a block of a file that is damaged: members that have it deposit it again. Raises StorageError.

        The operator's own work: a peer that wants it is not at fault.
        """

        def drop() -> int:
            with self._database.write() as connection:
                lacking = drop_damaged_block(connection, damage.block_id, self._clock_ms())
                self._losses.update(lacking)  # before another transaction can finish one of them
                return len(lacking)

        files = await self._storing_for(WorkBill(self._own), drop)
        self.blocks_damaged += files > 0
        log.error("a block of kept files is damaged", block=damage.block_id.hex(), files=files)

    def losses_of(self, file_num: int) -> int:
        """Return how often a file has lost a block since the start; 0 of one that has no number yet."""
        return self._losses[file_num]

    async def keep_blocks(
        self,
        topic: KeptTopic,
        deposit: FileDeposit,
        file_num: int,
        ids: Sequence[BlockId],
        came: Sequence[Block],
        visitor: Visitor,
        bill: WorkBill,
    ) -> KeptBlocks:
        """Add blocks to a file: new ones by content, stored ones by id. Raises StorageError, DamagedKeptBlock."""

        def keep() -> KeptBlocks:
            with self._database.write(is_patient=True) as connection:
                where = (self._database, connection, topic.num, deposit, file_num)
                kept = keep_blocks(*where, ids, came, visitor, self.quotas, self._clock_ms())
            if kept.has_forgotten:  # of all topics: at the cost of the peer for which some were forgotten
                self._refresh(has_lost=True)
            return kept

        return await self._storing_for(bill, keep)

    async def load_deposits(self, topic: KeptTopic, after: ObjectId | None) -> list[FileDeposit]:
        """Files that are here whole, above an id, as they were deposited; some of them. Raises StorageError."""
        most = FILES_DEPOSITED_COUNT_MAX
        return await self._look(lambda connection: load_deposits(connection, topic.num, after, most))

    async def _look(self, look: Callable[[Connection], T]) -> T:
        def work() -> T:
            with self._database.read() as connection:
                return look(connection)

        return await self._run_blocking(work)

    async def finish_file(self, topic: KeptTopic, file_num: int, losses: int, bill: WorkBill) -> str:
        """Say that a file is whole, if it lost no block since it had `losses`; why not ("": it is). Raises StorageError."""

        def finish() -> str:
            with self._database.write(is_patient=True) as connection:
                # Others are served its blocks meanwhile, and one that was damaged may be taken out after it was passed. Said
                # to be whole without it, the file would be listed, and no member would bring the block again.
                if self.losses_of(file_num) != losses:
                    return INCOMPLETE
                return "" if finish_file(connection, file_num) else _TOPIC_FORGOTTEN

        refusal = await self._storing_for(bill, finish)
        self.files_kept[topic.topic] += not refusal
        self.files_kept_count += not refusal
        return refusal

    async def drop_file(self, file_num: int, bill: WorkBill) -> None:
        """Drop a file whose blocks form no tree. Raises StorageError."""

        def drop() -> None:
            with self._database.write(is_patient=True) as connection:
                drop_file(connection, file_num)

        await self._storing_for(bill, drop)

    async def _storing_for(self, bill: WorkBill, work: Callable[[], T]) -> T:
        async with self._storing.held(bill):
            timed: tuple[T, float] = await self._run_blocking(self._timed, work)
            bill.charge(timed[1])
        return timed[0]

    def _timed(self, work: Callable[..., T], *args: Any) -> tuple[T, float]:  # noqa: ANN401  # whatever it takes
        """Run `work`; return its result and the processor seconds that it took."""
        began = self._cpu_clock()
        return work(*args), self._cpu_clock() - began

    async def pin(self, topic: TopicKey, *, is_pinned: bool) -> None:
        """Say of a topic whether it may be forgotten to make room. Raises StorageError."""

        def change(connection: Connection) -> None:
            if is_pinned:
                room = pin_topic(self._database, connection, topic, self.quotas, self._clock_ms())
                self._has_lost |= room.has_lost
            else:
                unpin_topic(connection, topic)

        await self.change(change)

    async def allow(self, peer: PeerId, *, is_allowed: bool) -> None:
        """Say of a peer whether it is known. Raises StorageError."""
        change = allow_peer if is_allowed else deny_peer
        await self.change(lambda connection: change(connection, peer))

    async def list_accounts(self) -> list[AccountRow]:
        """List all accounts, by name. Raises StorageError."""
        return await self._look(lambda connection: list_accounts(connection, self._clock_ms() // 1000))

    async def load_usage(
        self, partners: Collection[PeerId], dialed: Collection[PeerId]
    ) -> tuple[Mapping[str, Usage], int]:
        """Return what peers have brought, by their kind, and bytes that come in a day. Raises StorageError."""
        return await self._look(
            lambda connection: (
                load_usage(connection, partners, dialed),
                load_growth(connection, self._clock_ms()),
            )
        )

    async def join_account(self, token: AccountToken, peer: PeerId, bill: WorkBill) -> JoinedAccount:
        """Give a peer the account of a link, once. Raises StorageError."""

        def join() -> JoinedAccount:
            with self._database.read() as connection:
                if not has_link(connection, token):  # guessing costs no write, which others would wait for
                    return JoinedAccount("unknown_link")
            with self._database.write(is_patient=True) as connection:
                joined = join_account(connection, token, peer, self._clock_ms() // 1000)
                accounts = load_accounts(connection)
            if not joined.refusal:
                self.accounts = accounts
            return joined

        return await self._storing_for(bill, join)

    async def change(self, change: Callable[[Connection], T]) -> T:
        """Run a change of the operator: what is kept, or for whom. Raises StorageError, and the errors of `change`."""

        def work() -> T:
            try:
                with self._database.write() as connection:
                    return change(connection)
            finally:  # in this thread: the operator's browser may leave, and a second call would be cancelled
                self._refresh()

        async with self._storing.held(WorkBill(self._own)):
            return await self._run_blocking(work)

    async def list_all(self) -> list[KeptTopic]:
        """List all topics that are kept, as they stand now, the latest touched first. Raises StorageError."""
        async with self._storing.held(WorkBill(self._own)):
            await self._run_blocking(self._refresh)
        return list(self.topics.values())

    def _keep_open(
        self, topics: Sequence[TopicKey], visitor: Visitor
    ) -> tuple[Room, dict[TopicKey, KeptTopic]]:
        """Keep what has room. Return that room, and the topics as they are kept now."""
        known = [topic for topic in topics if topic in self.topics]
        place = visitor.subnet or visitor.peer
        if not known and place in self._full:
            with self._database.read() as connection:  # strangers without room ask again and again
                refusal = refuse_topics(connection, visitor, self.quotas)
            if refusal:
                self._note_full(place)
                return Room(0, refusal), {}
            del self._full[place]
        with self._database.write(is_patient=True) as connection:
            room, new = open_topics(
                self._database, connection, topics, visitor, self.quotas, self._clock_ms()
            )
        if room.refused:
            self._note_full(place)
        if room.has_forgotten:
            self._refresh(has_lost=room.has_lost)
            return room, {}
        found = {one.topic: one for one in new}
        if known:
            with self._database.read() as connection:
                found |= find_kept_topics(connection, known)
        return room, found

    def _note_full(self, place: PeerId | str) -> None:
        self._full.pop(place, None)
        self._full[place] = None
        if len(self._full) > _FULL_PLACES_MAX:
            del self._full[next(iter(self._full))]

    def _keep(
        self, topic: KeptTopic, visitor: Visitor, new: Sequence[tuple[Publication, bytes]]
    ) -> StoreResult:
        with self._database.write(is_patient=True) as connection:
            stored = store_publications(
                self._database, connection, topic.num, visitor, new, self.quotas, self._clock_ms()
            )
        if stored.has_forgotten:
            self._refresh(has_lost=True)
        return stored

    def take_forgotten(self) -> set[TopicKey]:
        """Topics that were forgotten since the last call, also those that have been opened again since.

        Topics that were empty are not among them: nothing was agreed about these, and full relays forget many. Of those that
        an operation forgot before it failed, the next call tells.
        """
        forgotten: set[TopicKey] = set()
        while self._forgotten:
            forgotten |= self._forgotten.popleft()
        return forgotten

    def _refresh(self, *, has_lost: bool = False) -> None:
        """Read what is kept now. `has_lost`: publications were forgotten, and `take_forgotten` will be called for them."""
        self._has_lost |= has_lost
        with self._database.read() as connection:
            topics = load_kept_topics(connection)
            if self._has_lost:
                was = self.topics.items()
                self._forgotten.append(
                    {one for one, old in was if one not in topics or topics[one].num != old.num}
                )
                self._has_lost = False
            self.topics = topics
            self.allowed = frozenset(load_allowed(connection))
            self.accounts = load_accounts(connection)


def _read(topic: TopicKey, items: Sequence[bytes], dropped: Counter[str]) -> list[tuple[Publication, bytes]]:
    found: list[tuple[Publication, bytes]] = []
    for encoded in items:
        try:
            publication = decode_publication(encoded)
        except DecodeError as error:
            dropped[f"bad_publication:{error.reason}"] += 1
            continue
        if publication.topic != topic:
            dropped["other_topic"] += 1
            continue
        found.append((publication, encoded))
    return found


def _claim(publication: Publication) -> Claim:
    return Claim(publication.topic, publication.digest, publication.signature)
