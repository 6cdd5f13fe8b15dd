"""`ravel fsck`: is everything that the store says true? Every hash, reference and verdict, computed anew and compared.

It reads one moment of the store, beside the daemon or without one, and changes nothing. It does not go through the API,
for the store is looked at hardest when no daemon can start on it, and a check of a million commits is no request. Every
commit passes both doors again: its blocks are opened, its signature is checked, its rights are judged in its own past.
Content of files that has not come to this node is no fault; what is here of it must be what its ids say.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, select

from node.erasing import ERASABLE_KINDS
from node.errors import ServiceError
from node.home import hold_content
from node.opening import Opened, open_batch
from node.replica import Tables, load_membership, load_tables
from node.said import SaidReader
from node.voiding import Review
from protocol.block import WrongKey
from protocol.body import Checkpoint, ErasedBody, body_kind, content_of
from protocol.codec import DecodeError
from protocol.commit import Commit, UnknownVersion
from protocol.content import Files
from protocol.object import MissingBlocks
from protocol.publication import decode_publication
from storage.checkpoints import load_checkpoint_ids
from storage.commits import load_facts, load_places
from storage.database import StorageError, read_store
from storage.difference import load_publications
from storage.id_keys import chunks, id_key, pack_ids
from storage.inspection import (
    Findings,
    count_unnamed_packs,
    inspect_erasures,
    inspect_packs,
    inspect_pages,
    inspect_references,
    inspect_relayed,
    inspect_rows,
)
from storage.reachability import mark_reached
from storage.recounting import (
    recount_forks,
    recount_graph,
    recount_order,
    recount_passed,
    recount_sketches,
    recount_sums,
)
from storage.repos import Branch
from storage.schema import authors, commits, file_removals, files, pending
from storage.secrecy import BadSecret, commit_place, file_place, secrecy_of
from storage.voids import load_judged
from verifier.ancestry import Place
from verifier.documents import find_false_squeezes
from verifier.facts import CommitFacts
from verifier.membership import Membership
from verifier.verify import Accepted, judge

_BATCH: Final = 200
_NO_BOUND: Final = 1 << 62
_UNREADABLE: Final = (
    StorageError,
    BadSecret,
    DecodeError,
    WrongKey,
    MissingBlocks,
    UnknownVersion,
    KeyError,
    IndexError,
    ValueError,
)
"""What reading rows may raise that are not what this Ravel wrote."""
_ROW = (
    select(
        commits.c.num,
        commits.c.commit_id,
        authors.c.user,
        commits.c.feed_sequence,
        commits.c.rank,
        commits.c.acks,
        commits.c.commit_key,
        commits.c.body_kind,
        commits.c.timestamp,
        commits.c.size,
        commits.c.is_void,
    )
    .join(authors, authors.c.num == commits.c.author_num)
    .order_by(commits.c.num)
)


def check_store(home: Path, store_key: bytes | None = None, url: str = "") -> Findings:
    """Everything that is wrong with the store in a node's folder. Raises ServiceError, StorageError."""
    findings = Findings()
    with hold_content(home, alone=False), read_store(home, store_key, url) as connection:
        inspect_pages(connection, findings)
        if findings.kinds:  # what the database itself cannot read is not to be read on
            return findings
        inspect_references(connection, findings)
        inspect_erasures(connection, findings)
        inspect_rows(connection, findings)
        inspect_packs(connection, home, findings)
        inspect_relayed(connection, findings)
        recount_graph(connection, findings)
        recount_sums(connection, findings)
        recount_forks(connection, findings)
        recount_sketches(connection, findings)
        recount_passed(connection, findings)
        recount_order(connection, findings)
        if not findings.kinds["reference"]:
            _judge_all(connection, findings)
            _check_squeezes(connection, findings)
            _check_waiting(connection, findings)
        try:
            reached = mark_reached(connection, home)
            findings.checked["files"] = reached.objects
            findings.checked["files_incomplete"] = reached.incomplete
        except StorageError as error:
            findings.add("file", "content", str(error))
        findings.checked["unnamed_packs"] = count_unnamed_packs(connection, home)
    return findings


def _judge_all(connection: Connection, findings: Findings) -> None:
    try:
        tables = load_tables(connection)
    except _UNREADABLE as error:
        findings.add("repo", "tables", f"cannot be read: {error!r}")
        return
    memberships: dict[int, Membership] = {}
    for repo in tables.repos.values():
        try:
            memberships[repo.num] = load_membership(connection, tables, repo.repo_id)
        except _UNREADABLE as error:
            findings.add("repo", repo.name, f"its membership cannot be computed: {error!r}")
    for branch in tables.on_topics.values():
        if branch.repo_num in memberships:
            _Judging(connection, tables, branch, memberships[branch.repo_num], findings).run()


class _Judging:
    """All commits that came by one topic. Also the rules' view of what is accepted."""

    def __init__(
        self,
        connection: Connection,
        tables: Tables,
        branch: Branch,
        membership: Membership,
        findings: Findings,
    ) -> None:
        self._connection = connection
        self._secrecy = secrecy_of(connection)
        self._branch = branch
        self._membership = membership
        self._findings = findings
        self._review = Review(connection, tables, branch.repo_num, membership)
        self._checkpoints = set(load_checkpoint_ids(connection, branch.num))
        self._facts: dict[bytes, CommitFacts] = {}
        # Of the batch, what is kept and what follows: files and removals by number, ids of void commits.
        self._files: dict[int, list[tuple[object, ...]]] = {}
        self._removals: dict[int, set[int]] = {}
        self._voids: set[bytes] = set()

    def run(self) -> None:
        """Judge them, a batch at a time."""
        of_topic = select(commits.c.num).where(commits.c.topic_num == self._branch.topic_num)
        nums = list(self._connection.execute(of_topic.order_by(commits.c.num)).scalars())
        for part in chunks(nums, _BATCH):
            opened = {one.signed.commit.commit_id: one for one in self._open(part)}
            self._facts = load_facts(self._connection, _named(opened.values()))
            self._load_kept(part, list(opened))
            for row in self._connection.execute(_ROW.where(commits.c.num.in_(part))):
                if row.commit_id in opened:
                    self._check(dict(row._mapping), opened[row.commit_id])

    def accepted(self, commit_id: bytes) -> CommitFacts | None:
        """Facts of an accepted commit (`CommitLookup`)."""
        return self._facts.get(commit_id)

    def ancestors(self, ids: Iterable[bytes]) -> Mapping[bytes, Place]:
        """Places of accepted commits (`CommitLookup`)."""
        return load_places(self._connection, ids)

    def is_acked(self, _commit_id: bytes) -> bool:
        """So that implied acks are looked for wherever there could be one (`CommitLookup`)."""
        return True

    def is_rejected(self, _commit_id: bytes) -> bool:
        """What is not accepted is told by that (`CommitLookup`)."""
        return False

    def _load_kept(self, nums: Sequence[int], ids: Sequence[bytes]) -> None:
        self._files, self._removals = {}, {}
        columns = (
            files.c.num,
            files.c.commit_num,
            files.c.object_id,
            files.c.object_key,
            files.c.name,
            files.c.size,
        )
        query = select(*columns).where(files.c.commit_num.in_(nums)).order_by(files.c.num)
        for num, commit_num, object_id, kept, *rest in self._connection.execute(query):
            key = self._secrecy.mask(file_place(num, object_id), kept)
            self._files.setdefault(commit_num, []).append((object_id, key, *rest))
        removals = select(file_removals.c.commit_num, file_removals.c.file_num)
        for num, file_num in self._connection.execute(removals.where(file_removals.c.commit_num.in_(nums))):
            self._removals.setdefault(num, set()).add(file_num)
        self._voids = set()
        facts = self._branch.facts
        if facts.has_members and not facts.is_root_branch and self._membership.now().counting:
            judged = load_judged(self._connection, self._branch.num, ids)
            self._voids = {
                one.commit_id for one in judged if self._review.find_void(self._branch, one) is not None
            }

    def _open(self, nums: Sequence[int]) -> list[Opened]:
        """Through door one; what is damaged is found one by one."""
        try:
            items = load_publications(self._connection, self._branch, nums, _NO_BOUND)
            batch = open_batch(self._branch, items, with_bare=True)
        except _UNREADABLE as error:
            if len(nums) == 1:
                self._findings.add("commit", self._name(nums[0]), f"cannot be read: {error!r}")
                return []
            return [one for num in nums for one in self._open([num])]
        if len(batch.opened) == len(nums):
            return batch.opened
        if len(nums) > 1:
            return [one for num in nums for one in self._open([num])]
        reasons = [
            *(item.code for item in batch.rejected),
            *batch.dropped,
            *(one.reason for one in batch.waiting),
        ]
        self._findings.add("commit", self._name(nums[0]), f"does not open: {', '.join(reasons)}")
        return []

    def _name(self, num: int) -> str:
        query = select(commits.c.commit_id).where(commits.c.num == num)
        return bytes(self._connection.execute(query).scalar_one()).hex()

    def _check(self, row: Mapping[str, Any], opened: Opened) -> None:
        commit, body = opened.signed.commit, opened.signed.body
        name = commit.commit_id.hex()
        verdict = judge(opened.signed, self._branch.facts, self, self._membership)
        if not isinstance(verdict, Accepted):
            self._findings.add("verdict", name, f"would not be accepted: {verdict}")
        wanted = {
            "user": commit.content.author,
            "feed_sequence": commit.content.feed_sequence,
            "acks": pack_ids(commit.acks),
            "commit_key": self._secrecy.mask(commit_place(commit.commit_id), commit.key),
            "timestamp": commit.content.timestamp,
        }
        if not isinstance(body, ErasedBody):
            wanted["body_kind"] = body_kind(body)
            wanted["size"] = sum(len(block.encoded) for block in opened.publication.blocks)
        elif body.tag:
            wanted["body_kind"] = body.tag
        elif row["body_kind"] not in ERASABLE_KINDS:
            self._findings.add("commit", name, f"its body was erased, and is a {row['body_kind']}")
        wrong = [column for column, value in wanted.items() if row[column] != value]
        if wrong:
            self._findings.add("commit", name, f"its row says otherwise than it does: {', '.join(wrong)}")
        if isinstance(body, Checkpoint) != (commit.commit_id in self._checkpoints):
            self._findings.add("commit", name, "is kept as a checkpoint and is none, or the other way round")
        if (commit.commit_id in self._voids) != row["is_void"]:
            self._findings.add(
                "void",
                name,
                f"is kept as {'' if row['is_void'] else 'not '}void, and the rules say otherwise",
            )
        self._check_files(row["num"], commit, opened)

    def _check_files(self, num: int, commit: Commit, opened: Opened) -> None:
        body = content_of(opened.signed.body)
        entries = body.added if isinstance(body, Files) else ()
        wanted = [
            (
                object_id,
                commit.content.keys.files[place],
                *((entries[place].name, entries[place].size) if entries else ("", None)),
            )
            for place, object_id in enumerate(commit.links.files)
        ]
        if self._files.get(num, []) != wanted:
            self._findings.add("file", commit.commit_id.hex(), "its files are not kept as it says")
        if self._removals.get(num, set()) != self._removed_by(commit):
            self._findings.add("file", commit.commit_id.hex(), "what it removes is not kept as it says")

    def _removed_by(self, commit: Commit) -> set[int]:
        """Files that a commit removes: of objects that it names, those that commits it depends on added."""
        if not commit.links.nfiles:
            return set()
        query = (
            select(files.c.num, commits.c.commit_id)
            .join(commits, commits.c.num == files.c.commit_num)
            .where(
                files.c.branch_num == self._branch.num,
                files.c.object_id.in_(commit.links.nfiles),
                commits.c.id_key.in_([id_key(dep) for dep in commit.links.deps]),
            )
        )
        return {num for num, adder in self._connection.execute(query) if adder in commit.links.deps}


def _named(opened: Iterable[Opened]) -> set[bytes]:
    """Commits that some commits name."""
    named: set[bytes] = set()
    for one in opened:
        commit = one.signed.commit
        named.update(commit.acks, commit.links.deps, commit.links.ndeps)
        named.update(link for link in (commit.content.feed_previous, commit.links.lipmaa) if link is not None)
        for place in commit.content.tangles:
            named.update(place.previous)
    return named


def _check_squeezes(connection: Connection, findings: Findings) -> None:
    """Compare squeezes with what their pasts come to, in branches where nothing is void."""
    try:
        tables = load_tables(connection)
    except _UNREADABLE:  # named before
        return
    for branch in tables.branches.values():
        if branch.facts.is_root_branch or branch.void_count:
            continue
        for document in ("set", "dict"):
            try:
                said = [one for one, _ in SaidReader(tables).read(connection, branch, document)]
            except (
                ServiceError,
                *_UNREADABLE,
            ):  # what is damaged is named, what is too much or not here is no fault
                continue
            findings.checked["squeezes"] += sum(one.bit > 0 for one in said)
            for one in find_false_squeezes(said):
                findings.add(
                    "squeeze", one.name.hex(), f"says otherwise what the {document} held in its past"
                )


def _check_waiting(connection: Connection, findings: Findings) -> None:
    """See that what waits is what it is kept as, and is not accepted already."""
    for commit_id, publication in connection.execute(select(pending.c.commit_id, pending.c.publication)):
        findings.checked["waiting"] += 1
        try:
            found = decode_publication(publication).blocks[0].block_id
        except DecodeError as error:
            findings.add("waiting", commit_id.hex(), str(error))
            continue
        if found != commit_id:
            findings.add("waiting", commit_id.hex(), f"is the publication of {found.hex()}")
        elif load_facts(connection, [commit_id]):
            findings.add("waiting", commit_id.hex(), "is accepted already")
