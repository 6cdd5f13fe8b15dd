"""Snapshots of a membership: what was judged of its operations, so that a start need not judge them again.

A snapshot is a list of *parts*, each of the operations that were added after those of the part before. It is a function of
the operations and of the order in which they came here, and nothing in it changes later, so parts are only appended. It is
no wire format: a node reads only what it has itself written, and `SNAPSHOT_VERSION` tells what an older one has written.

What an operation was judged by is left out: proofs, keys, boxes. What rests on all of a part's past (`Settled`) is kept
where several acks meet, for it follows from one ack otherwise.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Generic, cast

import msgspec

from protocol.codec import Value, encode
from protocol.formats.body import AnyBody, Offer, Permission
from protocol.formats.commit import NO_EPOCH
from protocol.ids import CommitId, EpochId, RepoId, UserId
from protocol.limits.formats import BODY_SIZE_MAX
from verifier.membership import Added, Membership, without_text
from verifier.operations import NO_RIGHTS, Demands, EpochStart, Name, Operation, Operations, Right
from verifier.resolution import Settled
from verifier.user_sets import UserSet

SNAPSHOT_VERSION: Final = 7
"""To be raised whenever a rule, or a type below, says something else of the same commits: older parts are made anew."""
PART_COUNT_MAX: Final = 256
"""Operations in a part: some 40 KB."""
PART_SIZE_MAX: Final = 4 * 1024 * 1024
"""Bytes of a part beyond which it takes no more operations: any writer may put a body of half a megabyte into each."""
_PART_ENCODED_MAX: Final = PART_SIZE_MAX + 16 * BODY_SIZE_MAX
"""Bytes of a part that is read: with one body more, and the ids that its names stand for."""

_Overruled = dict[CommitId, frozenset[Right]]


class _Start(Value, frozen=True):
    """Statement of an init, stored as its differences from the init added before it."""

    came: tuple[int, ...]
    gone: tuple[int, ...]
    only_read: tuple[int, ...]
    gives: tuple[int, ...]


class _Settling(Value, frozen=True):
    """Settlement of removals after an operation that merges: `overruled` is a place in the part's list."""

    count: int
    overruled: int


class _Kept(Value, frozen=True):
    """An operation. Users and epochs are places in the part's lists of them, acks are numbers of operations."""

    commit_id: CommitId
    acks: tuple[int, ...]
    author: int
    publisher: int | None
    epoch: int | None
    body: AnyBody
    needs: Permission | None
    timestamp: int
    renews: bool
    by_writer: bool
    is_noted: bool
    demands: tuple[Demands, ...]
    acts: tuple[Right, ...]
    asks_as: str | None
    start: _Start | None
    settling: _Settling | None


class _Part(Value, frozen=True):
    version: int
    repo: RepoId
    first: int
    users: tuple[UserId, ...]
    epochs: tuple[EpochId, ...]
    operations: tuple[_Kept, ...]
    settled: tuple[_Overruled, ...]
    """What is overruled after operations that merge, each once: many merges say the same."""
    overruled: _Overruled | None
    """Of all operations up to the part's last; None where more were here when it was made."""


_decoder: Final = msgspec.msgpack.Decoder(_Part)


class OtherSnapshot(Exception):
    """A part is of another version, of another repo, does not follow the part before, or is none."""


class _Places(Generic[Name]):
    """Places of the users, or of the epochs, that a part names."""

    def __init__(self) -> None:
        self._found: dict[Name, int] = {}

    def of(self, name: Name) -> int:
        return self._found.setdefault(name, len(self._found))

    def of_all(self, names: Iterable[Name]) -> tuple[int, ...]:
        return tuple(map(self.of, names))

    def names(self) -> tuple[Name, ...]:
        return tuple(self._found)


class _Named:
    """Users and epochs that a part names."""

    def __init__(self) -> None:
        self.users = _Places[UserId]()
        self.epochs = _Places[EpochId]()
        self.settled: list[_Overruled] = []
        self.size = 0
        """Bytes of what is settled: it may be much where many removals are overruled."""
        self._settled_places: dict[frozenset[tuple[CommitId, frozenset[Right]]], int] = {}

    def place_settled(self, settled: Settled) -> _Settling:
        """Find the place of what is overruled."""
        key = frozenset(settled.overruled.items())
        place = self._settled_places.get(key)
        if place is None:
            place = self._settled_places[key] = len(self.settled)
            self.settled.append(dict(settled.overruled))
            self.size += len(encode(self.settled[-1]))
        return _Settling(settled.count, place)


def encode_parts(membership: Membership, repo_id: RepoId, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of all operations from number `first` on, each with that of its first. Costs O(what is encoded)."""
    fresh = membership.operations.since(first)
    while fresh:
        named, kept, size = _Named(), list[msgspec.Raw](), 0
        for operation in fresh[:PART_COUNT_MAX]:
            kept.append(msgspec.Raw(encode(_keep(membership, operation, named))))
            size += len(kept[-1])
            if size + named.size > PART_SIZE_MAX:
                break
        del fresh[: len(kept)]
        overruled = None if fresh else dict(membership.now().settled.overruled)
        users, epochs, settled = named.users.names(), named.epochs.names(), tuple(named.settled)
        operations = cast("tuple[_Kept, ...]", tuple(kept))  # encoded once, to be weighed
        part = _Part(SNAPSHOT_VERSION, repo_id, first, users, epochs, operations, settled, overruled)
        yield first, encode(part)
        first += len(kept)


def _keep(membership: Membership, one: Operation, named: _Named) -> _Kept:
    operations = membership.operations
    acks = tuple(operations[ack].num for ack in operations.previous(one.commit_id))
    added = membership.describe_added(one)
    return _Kept(
        one.commit_id,
        acks,
        named.users.of(one.author),
        None if one.publisher is None else named.users.of(one.publisher),
        None if one.epoch == NO_EPOCH else named.epochs.of(one.epoch),
        added.said or one.body,
        one.needs,
        one.timestamp,
        one.renews,
        one.by_writer,
        added.is_noted,
        one.demands,
        tuple(sorted(one.acts)),
        one.asks_as,
        None if one.start is None else _keep_start(operations, one, one.start, named),
        named.place_settled(added.settled) if len(acks) > 1 else None,
    )


def _keep_start(operations: Operations, one: Operation, start: EpochStart, named: _Named) -> _Start:
    earlier = next(other for other in reversed(operations.epochs) if other.num < one.num)
    before, now, users = _members_of(earlier), start.members.bits, operations.numbers.users
    return _Start(
        named.users.of_all(users(now & ~before)),
        named.users.of_all(users(before & ~now)),
        named.users.of_all(users(now & ~start.writers.bits)),
        named.epochs.of_all(start.gives),
    )


def _members_of(init: Operation) -> int:
    return 0 if init.start is None else init.start.members.bits


def restore(membership: Membership, repo_id: RepoId, encoded: bytes) -> None:
    """Add the operations of a part to a membership that has those of the parts before. Costs O(operations), without checks.

    Raises OtherSnapshot, and then the membership is of no use any more.
    """
    if len(encoded) > _PART_ENCODED_MAX:
        raise OtherSnapshot(f"{len(encoded)} bytes")
    try:
        part = _decoder.decode(encoded)
        if (part.version, part.repo, part.first) != (SNAPSHOT_VERSION, repo_id, len(membership.operations)):
            raise OtherSnapshot("of another version, or another place")
        _Restoring(membership, part).run()
    except (msgspec.DecodeError, ValueError, RecursionError, LookupError, AssertionError) as error:
        raise OtherSnapshot(str(error)[:200]) from None


class _Restoring:
    """Takes up one part."""

    def __init__(self, membership: Membership, part: _Part) -> None:
        self._membership = membership
        self._operations = membership.operations
        self._part = part
        self._users = [self._operations.shared(user) for user in part.users]
        self._epochs = [self._operations.shared(epoch) for epoch in part.epochs]

    def run(self) -> None:
        for one in self._part.operations:
            acks = tuple(self._operations.numbered(num).commit_id for num in one.acks)
            operation = self._restore(one)
            settled = self._settle(operation, one, acks)
            self._membership.restore(Added(operation, settled, one.body, is_noted=one.is_noted), acks)
        if self._part.overruled is not None:
            self._membership.settle_restored(self._part.overruled)

    def _settle(self, operation: Operation, one: _Kept, acks: tuple[CommitId, ...]) -> Settled:
        if one.settling is not None:
            return Settled(one.settling.count, self._part.settled[one.settling.overruled])
        before = self._membership.settled_after(acks[0]) if acks else Settled()
        return Settled(before.count + 1, before.overruled) if operation.is_contestable else before

    def _restore(self, one: _Kept) -> Operation:
        body = one.body
        return Operation(
            one.commit_id,
            self._users[one.author],
            without_text(body) if isinstance(body, Offer) else body,
            one.needs,
            NO_EPOCH if one.epoch is None else self._epochs[one.epoch],
            one.demands,
            frozenset(one.acts) if one.acts else NO_RIGHTS,
            one.timestamp,
            asks_as=one.asks_as,
            renews=one.renews,
            by_writer=one.by_writer,
            start=None if one.start is None else self._restore_start(one.start),
            publisher=None if one.publisher is None else self._users[one.publisher],
        )

    def _restore_start(self, start: _Start) -> EpochStart:
        numbers = self._operations.numbers
        members = _members_of(self._operations.epochs[-1])
        members = members & ~self._bits(start.gone) | self._bits(start.came)
        writers = members & ~self._bits(start.only_read)
        gives = tuple(self._epochs[place] for place in start.gives)
        return EpochStart(UserSet(numbers, members), UserSet(numbers, writers), gives)

    def _bits(self, places: tuple[int, ...]) -> int:
        return self._operations.numbers.bits(self._users[place] for place in places)
