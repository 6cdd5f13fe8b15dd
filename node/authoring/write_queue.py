"""`WriteQueue`: group commit. Writes that arrive while another is being stored share the next transaction and its one fsync.

Requests of a group are encoded one after the other, and each acks the one before it. If all acked the same heads, a group
would leave as many heads as it has commits. The next write would have to name them all, and the timeline would order them
by their ids instead of by when they came.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import Connection

from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.feed_encoder import Encoders, FeedEncoder, OpenStore
from node.authoring.feed_writer import FeedWriter
from node.authoring.opening import OwnOpener
from node.authoring.preparing import Preparation
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch
from node.ingest.recent_commits import RecentCommits
from node.runtime.errors import ServiceError
from protocol.formats.body import Body
from protocol.ids import TopicKey
from protocol.limits.users import WRITE_GROUP_COMMITS_MAX, WRITE_GROUP_SIZE_MAX
from storage.engine.database import Database, StorageError
from storage.repos.epochs import Topic
from storage.repos.repos import Branch

Plan = Callable[[Connection], Sequence[Draft]]
"""Makes drafts of the store as it stands. It may run twice, and then the second run counts.

One that must write rows first raises PlanMustWrite where it may only read, and runs again in the transaction.
"""
AfterWrite = Callable[[Connection, Sequence[WrittenCommit]], None]
"""Runs in the transaction that stores the commits."""
Outcome = list[WrittenCommit] | Exception
"""Commits that a request wrote, or the error that prevented it."""


class PlanMustWrite(Exception):  # a state, which the queue ends
    """A plan must write rows before it can make drafts, and its connection only reads."""


def nothing_more(_connection: Connection, _written: Sequence[WrittenCommit]) -> None:
    """Do nothing: the transaction stores commits alone."""


def as_draft(draft: Draft | Body) -> Draft:
    """Return the draft; of a body alone, one that goes on the branch's heads."""
    return draft if isinstance(draft, Draft) else Draft(draft)


def open_when_asked(database: Database, stack: ExitStack) -> OpenStore:
    """Return a function that begins to read the store at its first call, until the stack is closed: most writes need not."""
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
    files_epoch: int | None = None
    """The number of the epoch for which files were encrypted, so that no other will do."""

    def make_drafts(self, open_store: OpenStore) -> Sequence[Draft]:
        """Return the drafts. Raises what the plan raises."""
        return self.drafts(open_store()) if callable(self.drafts) else self.drafts


@dataclass(slots=True)
class EncodedWrite:
    """Request that was encoded."""

    branch: Branch
    topic: Topic
    after: AfterWrite
    written: list[WrittenCommit]
    bodies: list[Body]
    """Body of each."""


@dataclass(slots=True)
class WriteGroup:
    """Requests that one transaction stores."""

    follows: int
    """Count of the transactions that had been committed when it was begun."""
    encoded: list[EncodedWrite] = field(default_factory=list)
    deferred: list[int] = field(default_factory=list)
    """Places of requests that run in the transaction: with a plan that writes rows, or is to see what was encoded; and
    those behind one on its branch, for requests of one client are written in their order."""
    deferred_on: set[int] = field(default_factory=set)
    """Numbers of their branches."""
    encoders: dict[int, FeedEncoder] = field(default_factory=dict)
    """By the branch's number."""
    taken: int = 0
    """Count of the requests that were looked at, also those that failed or wrote nothing."""
    commit_count: int = 0
    size: int = 0
    """Bytes of what is encoded."""

    @property
    def is_full(self) -> bool:
        """Return True if no further request may join."""
        return self.commit_count >= WRITE_GROUP_COMMITS_MAX or self.size >= WRITE_GROUP_SIZE_MAX

    def writes_on(self, branch: Branch) -> bool:
        """Return True if anything was encoded for a branch."""
        return any(one.branch.num == branch.num for one in self.encoded)

    def defer(self, place: int, branch: Branch) -> None:
        """Run a request in the transaction."""
        self.deferred.append(place)
        self.deferred_on.add(branch.num)

    def add(self, encoded: EncodedWrite) -> None:
        """Add an encoded request."""
        self.encoded.append(encoded)
        self.commit_count += len(encoded.written)
        self.size += sum(len(one.encoded) for one in encoded.written)

    def open_all(self, opener: OwnOpener) -> list[tuple[Topic, OpenedBatch]]:
        """Open the encoded commits of each branch and topic, in order. Raises ServiceError.

        A branch has two topics where a peer's commits began an epoch while the group was encoded.
        """
        of_topics: dict[tuple[int, TopicKey], list[EncodedWrite]] = {}
        for one in self.encoded:
            of_topics.setdefault((one.branch.num, one.topic.topic), []).append(one)
        return [
            (writes[0].topic, opener.open(writes[0].topic, [made for one in writes for made in one.written]))
            for writes in of_topics.values()
        ]

    def note_recent(self, recent: RecentCommits) -> None:
        """Cache the stored commits, which are often asked for soon."""
        for one in self.encoded:
            for written, body in zip(one.written, one.bodies, strict=True):
                if written.made is not None:
                    recent.note(written.made.signed.commit, body)

    def after(self, connection: Connection) -> None:
        """Do in the transaction what requests ask for beside the commits."""
        for one in self.encoded:
            one.after(connection, one.written)


class WriteQueue:
    """Writer of groups of requests, for one user."""

    def __init__(self, writer: FeedWriter, preparation: Preparation) -> None:
        self._writer = writer
        self._database = writer.replica.database
        self._preparation = preparation
        self._encoders = Encoders()

    def write_group(
        self, requests: Sequence[WriteRequest], *, tries_again: bool = True
    ) -> tuple[list[Outcome], IngestResult]:
        """Write several requests, each whole or not at all, in few transactions; returns the outcome of each.

        Requests on one branch follow one another: each acks the one before it. Where the rules refuse one, or it fails at
        the end, the group is written again one by one, and only that one fails. An epoch that the rules ask for comes first.
        A request that is refused alone is prepared again, once, if it `tries_again` and is outdated
        (`Preparation.is_outdated`).
        """
        outcomes: list[Outcome] = [[] for _ in requests]
        stored = IngestResult()
        with self._writer.lock:
            began_at = self._database.commit_count
            waiting = self._prepare(requests, outcomes, stored)
            while waiting:
                try:
                    group = self._encode_group(requests, waiting, outcomes)
                except StorageError as error:  # the caller still learns what was stored before
                    for place in waiting:
                        outcomes[place] = error
                    break
                tried, waiting = waiting[: group.taken], waiting[group.taken :]
                if not group.encoded and not group.deferred:
                    continue
                try:
                    stored.add(self._store(requests, group, outcomes))
                    waiting = [*group.deferred, *waiting]
                except Exception as error:  # one request may raise any type, and must not fail the others
                    left = [place for place in tried if not isinstance(outcomes[place], Exception)]
                    is_outdated = tries_again and self._preparation.is_outdated(error, began_at)
                    if len(left) == 1 and not is_outdated:
                        outcomes[left[0]] = error
                        continue
                    for place in left:
                        [outcomes[place]], ingested = self.write_group(
                            [requests[place]], tries_again=len(left) > 1
                        )
                        stored.add(ingested)
        return outcomes, stored

    def _prepare(
        self, requests: Sequence[WriteRequest], outcomes: list[Outcome], stored: IngestResult
    ) -> list[int]:
        """Prepare each branch once; returns the places of the requests that can be written."""
        faults: dict[int, Exception | None] = {}
        for branch in {request.branch.num: request.branch for request in requests}.values():
            faults[branch.num] = None
            try:
                self._preparation.prepare_branch(branch, stored)
            except (ServiceError, StorageError) as error:
                faults[branch.num] = error
        waiting = []
        for place, request in enumerate(requests):
            if (fault := faults[request.branch.num]) is None:
                waiting.append(place)
            else:
                outcomes[place] = fault
        return waiting

    def _encode_group(
        self, requests: Sequence[WriteRequest], waiting: Sequence[int], outcomes: list[Outcome]
    ) -> WriteGroup:
        """Encode the first of the waiting requests, as many as one transaction may hold."""
        group = WriteGroup(follows=self._database.commit_count)
        group.encoders = self._encoders.take(group.follows)
        # Closed before the transaction: a snapshot older than one keeps SQLite from using its log anew.
        with ExitStack() as stack:
            open_store = open_when_asked(self._database, stack)
            for place in waiting:
                if group.is_full:
                    break
                group.taken += 1
                request = requests[place]
                is_behind = request.branch.num in group.deferred_on
                if is_behind or (callable(request.drafts) and group.writes_on(request.branch)):
                    group.defer(place, request.branch)
                    continue
                outcomes[place] = self._encode(open_store, request, group)
                if isinstance(outcomes[place], PlanMustWrite):
                    group.defer(place, request.branch)
                    outcomes[place] = []
        return group

    def _encode(self, open_store: OpenStore, request: WriteRequest, group: WriteGroup) -> Outcome:
        """Encode one request into a group; returns the commits that it will have written, or its error."""
        try:
            branch, epoch = request.branch, self._writer.choose_epoch(request.branch)
            if request.files_epoch not in (None, epoch.num):
                raise ServiceError(
                    "interrupted", "the repo got new secrets while the file was coming in", "add it again"
                )
            self._writer.replica.own_feeds.check(branch.facts.repo_id)
            encoder = group.encoders.get(branch.num)
            if encoder is None or encoder.target.epoch != epoch:
                encoder = group.encoders[branch.num] = self._writer.make_encoder(open_store(), branch, epoch)
            topic = self._writer.replica.by_topic[encoder.target.topic]
            drafts = request.make_drafts(open_store)
            written = encoder.encode(drafts, open_store)
        except Exception as error:  # a plan may raise anything, and must fail its own request alone
            return self._database.to_storage_error(error)
        if written:
            bodies = [draft.body for draft in drafts]
            group.add(EncodedWrite(branch, topic, request.after, written, bodies))
        return written

    def _store(
        self, requests: Sequence[WriteRequest], group: WriteGroup, outcomes: list[Outcome]
    ) -> IngestResult:
        """Judge and store a group in one transaction. Deferred requests are encoded in it too."""
        opener = self._writer.opener
        batches = group.open_all(opener)  # others may write meanwhile

        def make_batches(connection: Connection) -> Iterator[tuple[Topic, OpenedBatch]]:
            yield from batches
            while group.deferred and not group.is_full:
                place = group.deferred.pop(0)
                group.encoders.clear()  # what they knew has been stored, and more
                before = len(group.encoded)
                outcomes[place] = self._encode(lambda: connection, requests[place], group)
                for one in group.encoded[before:]:
                    yield one.topic, opener.open(one.topic, one.written)

        has_deferred = bool(group.deferred)
        ingested = self._writer.store(make_batches, after=group.after)
        group.note_recent(self._writer.replica.recent_commits)
        # Only where this was the one transaction since. What encoders have seen of a root branch is older than its new end.
        is_next = self._database.commit_count == group.follows + 1
        if is_next and not has_deferred and not any(one.branch.facts.is_root_branch for one in group.encoded):
            self._encoders.keep(group.encoders, group.follows + 1)
        return ingested
