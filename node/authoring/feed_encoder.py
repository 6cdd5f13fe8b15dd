"""`FeedEncoder`: encodes drafts as the next commits of the user's feed in one branch, each after the one before it.

What it starts from is read from the store once. What it made is not stored yet, and the next draft follows it all the same.
`Encoders` keeps them from one group of writes to the next, so a write reads nothing where no other transaction came between.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from node.authoring.drafting import (
    AuthorKeys,
    CommitPosition,
    Draft,
    Target,
    WrittenCommit,
    encode_dated,
    make_publication,
)
from protocol.formats.commit import lipmaa
from protocol.ids import CommitId
from protocol.limits.formats import ACK_COUNT_MAX
from storage.commits.commits import load_places
from storage.commits.feeds import load_feed_ids, load_feed_tip
from storage.commits.heads import load_heads

_REMEMBERED_MAX: Final = 256
"""Places of a feed whose ids stay in memory between writes, at least half as many. One of 250 skip links leads further back
than 121 places, to what is read."""
_ENCODERS_MAX: Final = 64
"""Branches whose ends stay in memory, some 30 KB each at most."""

OpenStore = Callable[[], Connection]
"""Gives a connection to the store, in which all that the encoder follows stands, or was encoded by it."""


@dataclass(frozen=True, slots=True)
class _End:
    """End of the feed and of the branch, which the next commit follows."""

    sequence: int
    previous: CommitId | None
    heads: tuple[CommitId, ...]


class FeedEncoder:
    """Encodes for one user and one branch, in one epoch."""

    def __init__(
        self,
        connection: Connection,
        keys: AuthorKeys,
        clock_ms: Callable[[], int],
        target: Target,
        root_num: int | None,
    ) -> None:
        """Read where the feed ends. `root_num` is of the repo's root branch, where the branch itself is none."""
        self._keys = keys
        self._clock_ms = clock_ms
        self.target = target
        tip = load_feed_tip(connection, target.branch_num, keys.user)
        heads = load_heads(connection, target.branch_num, ACK_COUNT_MAX)
        self._ranks = dict(heads)
        self._end = _End(
            tip.sequence if tip else 0,
            tip.commit_id if tip else None,
            tuple(commit_id for commit_id, _ in heads),
        )
        self._has_all_heads = len(heads) < ACK_COUNT_MAX
        self._feed = {tip.sequence: tip.commit_id} if tip else {}  # ids by place
        seen = [] if root_num is None else load_heads(connection, root_num, ACK_COUNT_MAX)
        self._seen = tuple(commit_id for commit_id, _ in seen)

    @property
    def knows_all_heads(self) -> bool:
        """Return True if it has had all heads of the branch in view; else a new encoder reads the next ones."""
        return self._has_all_heads

    @property
    def has_begun(self) -> bool:
        """Return True if the branch's first commit is here, which all others follow."""
        return bool(self._end.heads)

    def follow(self, heads: tuple[CommitId, ...], open_store: OpenStore) -> None:
        """Let the next commit ack these commits instead of the branch's heads, as many as a commit may."""
        if set(heads) != set(self._end.heads):
            self._end = _End(self._end.sequence, self._end.previous, heads[:ACK_COUNT_MAX])
            self._rank_behind(self._end.heads, open_store)
            self._has_all_heads = False  # another encoder looks anew

    def encode(self, drafts: Sequence[Draft], open_store: OpenStore) -> list[WrittenCommit]:
        """Encode these drafts, in order. Raises ServiceError, and then the next commit follows none of them."""
        target, end = self.target, self._end
        heads, previous, sequence = end.heads, end.previous, end.sequence
        stored = self._load_skipped(len(drafts), open_store)
        new: dict[int, CommitId] = {}
        written: list[WrittenCommit] = []
        for draft in drafts:
            acks = heads
            if draft.acks is not None:
                acks = tuple(written[ack].commit_id if isinstance(ack, int) else ack for ack in draft.acks)
            deps = tuple(written[dep].commit_id if isinstance(dep, int) else dep for dep in draft.deps)
            sequence += 1
            skip = lipmaa(sequence)
            place = CommitPosition(
                target.epoch.epoch_id,
                sequence,
                previous,
                # Of a place that was lost here and has not come back: the link is a word, and must be there.
                None
                if skip == sequence - 1
                else new.get(skip) or stored.get(skip) or self._feed.get(skip, previous),
                self._seen,
                acks,
                self._rank_behind(acks, open_store),
            )
            if deps:
                draft = replace(draft, deps=deps)
            item = make_publication(target, encode_dated(self._keys, self._clock_ms, target, draft, place))
            previous = new[sequence] = item.commit_id
            self._ranks[item.commit_id] = item.rank
            heads = (*(head for head in heads if head not in acks), item.commit_id)[-ACK_COUNT_MAX:]
            self._has_all_heads &= len(heads) < ACK_COUNT_MAX
            written.append(item)
        self._end = _End(sequence, previous, heads)
        self._feed |= new
        return written

    def _rank_behind(self, acks: tuple[CommitId, ...], open_store: OpenStore) -> int:
        """Compute the rank of a commit that acks these: 0 of none, else one more than the highest of theirs."""
        absent = [ack for ack in acks if ack not in self._ranks]
        if absent:
            self._ranks.update((raw, place.rank) for raw, place in load_places(open_store(), absent).items())
        return 1 + max((self._ranks[ack] for ack in acks), default=-1)

    def forget_old(self) -> None:
        """Forget places of the feed that are far back. All that was encoded must be stored: it is read again from there."""
        self._ranks = {head: self._ranks[head] for head in self._end.heads}
        if len(self._feed) > _REMEMBERED_MAX:
            latest = sorted(self._feed)[-_REMEMBERED_MAX // 2 :]
            self._feed = {sequence: self._feed[sequence] for sequence in latest}

    def _load_skipped(self, count: int, open_store: OpenStore) -> dict[int, CommitId]:
        """Ids at the stored places of the feed that the next `count` commits link to."""
        end = self._end.sequence
        skips = {lipmaa(number) for number in range(end + 1, end + 1 + count)}
        stored = [skip for skip in skips if skip > 0 and skip <= end and skip not in self._feed]
        return load_feed_ids(open_store(), self.target.branch_num, self._keys.user, stored) if stored else {}


class Encoders:
    """Encoders of branches, by number, as they stand after a transaction; good until there is another.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: dict[int, FeedEncoder] = {}
        self._count = -1

    def take(self, commit_count: int) -> dict[int, FeedEncoder]:
        """Remove and return the encoders that are up to date with so many transactions."""
        kept, self._kept = self._kept, {}
        return kept if self._count == commit_count else {}

    def keep(self, encoders: Mapping[int, FeedEncoder], commit_count: int) -> None:
        """Keep encoders, which follow all that so many transactions have stored."""
        whole = [(num, one) for num, one in encoders.items() if one.knows_all_heads]
        self._kept = dict(whole[-_ENCODERS_MAX:])
        for encoder in self._kept.values():
            encoder.forget_old()
        self._count = commit_count


class DraftGraph:
    """Grows on top of the store's graph, draft by draft: drafts are named by their places in the batch."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._acks: list[frozenset[CommitId | int]] = []

    def add(self, parents: Sequence[CommitId | int]) -> tuple[CommitId | int, ...]:
        """Return what the next draft acks of its parents (commit ids, and places of earlier drafts; at least one).

        A parent that another one acks is left out (V10). Costs O(parents and what they ack).
        """
        acks = tuple(dict.fromkeys(parents))
        if len(acks) > 1:
            implied = {ack for one in self._acks_of(acks) for ack in one}
            acks = tuple(ack for ack in acks if ack not in implied)
        self._acks.append(frozenset(acks))
        return acks

    def _acks_of(self, parents: Iterable[CommitId | int]) -> Iterable[Iterable[CommitId | int]]:
        yield from (self._acks[one] for one in parents if isinstance(one, int))
        stored = [one for one in parents if not isinstance(one, int)]
        if stored:
            yield from (place.acks for place in load_places(self._connection, stored).values())
