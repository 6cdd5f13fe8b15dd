"""Group commit: writes that arrive while another is being stored share the next transaction and its one fsync.

`Author.write_group` encodes the requests of a group one after the other, and each acks the one before it. If all acked the
same heads, a group would leave as many heads as it has commits. The next write would have to name them all, and the timeline
would order them by their ids instead of by when they came.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import Connection

from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.feed_encoder import FeedEncoder, OpenStore
from node.authoring.opening import PART_COUNT, Opener, Opening
from protocol.body import Body
from protocol.limits.users import WRITE_GROUP_COMMITS_MAX, WRITE_GROUP_SIZE_MAX
from storage.engine.database import Database
from storage.repos.epochs import Topic
from storage.repos.repos import Branch

Plan = Callable[[Connection], Sequence[Draft]]
"""Makes drafts of the store as it stands. It may run twice, and then the second run counts."""
AfterWrite = Callable[[Connection, Sequence[WrittenCommit]], None]
"""Runs in the transaction that stores the commits."""


def nothing_more(_connection: Connection, _written: Sequence[WrittenCommit]) -> None:
    """Nothing else belongs into the transaction."""


def as_draft(draft: Draft | Body) -> Draft:
    """A body alone goes on the branch's heads."""
    return draft if isinstance(draft, Draft) else Draft(draft)


def open_when_asked(database: Database, stack: ExitStack) -> OpenStore:
    """Begins to read the store when that is first asked for, until the stack is closed: most writes need not."""
    opened: list[Connection] = []

    def open_store() -> Connection:
        if not opened:
            opened.append(stack.enter_context(database.read()))
        return opened[0]

    return open_store


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Commits to be written in a branch, in the epoch that is written in: all of them or none."""

    branch: Branch
    drafts: Sequence[Draft] | Plan
    """Drafts, or a plan that makes them. A plan sees what earlier requests of the group write on the branch."""
    after: AfterWrite = nothing_more
    files_in: int | None = None
    """The number of the epoch for which files were encrypted, so that no other will do."""

    def make_drafts(self, open_store: OpenStore) -> Sequence[Draft]:
        """The drafts. Raises what the plan raises."""
        return self.drafts(open_store()) if callable(self.drafts) else self.drafts


@dataclass(slots=True)
class EncodedWrite:
    """A request that was encoded."""

    branch: Branch
    topic: Topic
    """On which it is written."""
    after: AfterWrite
    written: list[WrittenCommit] = field(default_factory=list)
    openings: list[Opening] = field(default_factory=list)
    """Of its first commits: they are being opened."""
    rest: list[bytes] = field(default_factory=list)
    """Publications after these."""

    def add(self, part: Sequence[WrittenCommit], opener: Opener) -> None:
        """Add commits, which follow those before. Where there are workers, they open a whole part meanwhile."""
        self.written += part
        encoded = [one.encoded for one in part]
        if opener.is_apart and len(part) == PART_COUNT:
            self.openings.append(opener.begin(self.topic, encoded))
        else:
            self.rest += encoded

    def drop(self) -> None:
        """It is not stored: what of it waits to be opened is not opened."""
        for opening in self.openings:
            opening.drop()

    def open_all(self, opener: Opener) -> list[Opening]:
        """What opens all of it, in order. Raises ServiceError."""
        return [*self.openings, *([opener.begin(self.topic, self.rest)] if self.rest else [])]


@dataclass(slots=True)
class WriteGroup:
    """What one transaction stores."""

    follows: int
    """Transactions that had been committed when it was begun."""
    encoded: list[EncodedWrite] = field(default_factory=list)
    deferred: list[int] = field(default_factory=list)
    """Places of requests with a plan that is to see what was encoded: they run in the transaction, when that is stored."""
    encoders: dict[int, FeedEncoder] = field(default_factory=dict)
    """By the branch's number."""
    taken: int = 0
    """Requests that were looked at, also those of which nothing came."""
    commit_count: int = 0
    size: int = 0
    """Bytes of what is encoded."""

    @property
    def is_full(self) -> bool:
        """Whether no further request joins."""
        return self.commit_count >= WRITE_GROUP_COMMITS_MAX or self.size >= WRITE_GROUP_SIZE_MAX

    def writes_on(self, branch: Branch) -> bool:
        """Whether anything was encoded for a branch."""
        return any(one.branch.num == branch.num for one in self.encoded)

    def add(self, encoded: EncodedWrite) -> None:
        """Count it, and keep it."""
        self.encoded.append(encoded)
        self.commit_count += len(encoded.written)
        self.size += sum(len(one.encoded) for one in encoded.written)

    def open_all(self, opener: Opener) -> list[tuple[Topic, Opening]]:
        """What opens the encoded commits of each branch, in order: small requests together. Raises ServiceError."""
        of_branches: dict[int, list[EncodedWrite]] = {}
        for one in self.encoded:
            of_branches.setdefault(one.branch.num, []).append(one)
        found: list[tuple[Topic, Opening]] = []
        for writes in of_branches.values():
            together = EncodedWrite(writes[0].branch, writes[0].topic, nothing_more)
            for one in writes:
                if one.openings:
                    found += [(one.topic, opening) for opening in together.open_all(opener)]
                    together = EncodedWrite(one.branch, one.topic, nothing_more, openings=[*one.openings])
                together.rest += one.rest
            found += [(together.topic, opening) for opening in together.open_all(opener)]
        return found

    def drop(self) -> None:
        """Nothing of it is stored."""
        for one in self.encoded:
            one.drop()

    def after(self, connection: Connection) -> None:
        """What belongs into the transaction beside the commits."""
        for one in self.encoded:
            one.after(connection, one.written)
