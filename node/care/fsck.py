"""`ravel fsck`: recomputes every hash, reference and verdict in the store, and reports differences.

It reads one moment of the store, beside the daemon or without one, and changes nothing. It does not go through the API,
for the store is looked at hardest when no daemon can start on it, and a check of a million commits is no request. Every
commit is parsed and validated again: its blocks are opened, its signature is checked, its rights are judged in its own past.
Content of files that has not come to this node is no fault; what is here of it must be what its ids say.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from node.care.text_check import check_texts
from node.content.document_indexes import is_index_wrong
from node.content.document_operations import DocumentOperationReader, find_depths, find_documents
from node.content.erasing import ERASABLE_KINDS
from node.content.search_words import RULES, index_keys
from node.home.home import hold_content
from node.ingest.publication_parsing import Opened
from node.ingest.replica import is_snapshot_wrong, load_blocks_of, load_membership, open_stored
from node.ingest.stored_commits import (
    UNREADABLE,
    open_kept,
    wanted_columns,
    wanted_files,
    wanted_second_place,
)
from node.ingest.tables import Tables, load_tables
from node.ingest.void_recheck import VoidRecheck
from node.runtime.errors import ServiceError
from protocol.crypto.keys import EpochKey, StoreKey
from protocol.formats.body import ErasedBody, UnknownBody, kind_name, tag_of
from protocol.formats.commit import Commit
from protocol.formats.content import Post
from protocol.formats.declared_kind import declared_kind
from protocol.formats.document_kinds import ValuesKind
from protocol.formats.epochs import open_topic
from protocol.ids import BlockId, CommitId, EpochId, Mark, TopicKey, root_branch
from storage.blobs.files import find_unawaited_adders
from storage.blobs.reachability import mark_reached
from storage.check.check_derived import (
    check_forks,
    check_graph,
    check_order,
    check_passed,
    check_sketches,
    check_sums,
    find_wrong_pending,
    inspect_search,
)
from storage.check.check_integrity import (
    CheckFindings,
    count_unnamed_packs,
    inspect_damaged,
    inspect_erasures,
    inspect_losses,
    inspect_packs,
    inspect_pages,
    inspect_references,
    inspect_rows,
)
from storage.check.check_relay import inspect_relayed
from storage.check.kept_rows import (
    KeptFile,
    count_kept_pending,
    find_indexed,
    find_removed_files,
    load_commit_id,
    load_kept_files,
    load_kept_removals,
    load_kept_rows,
    load_nums_on,
    load_second_places,
)
from storage.commits.checkpoints import load_checkpoint_ids
from storage.commits.commits import load_facts, load_numbered
from storage.commits.damaged import find_damaged, find_damaged_in
from storage.commits.document_index_rows import load_all_indexes
from storage.commits.document_making import is_document_wrong
from storage.commits.search_index import find_in_parts, find_parts, load_state
from storage.engine.column_encryption import cipher_of
from storage.engine.database import StorageError, read_store
from storage.engine.id_keys import chunks
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo
from verifier.documents import find_false_snapshots
from verifier.epoch_commits import epoch_statement
from verifier.facts import CommitFacts
from verifier.membership import Membership
from verifier.verify import Accepted, find_causes, find_checkpoint, judge

_BATCH: Final = 200
_SEARCHED_MAX: Final = 1000
"""Commits of which the words are looked for in the search index: half a second."""


def check_store(home: Path, store_key: StoreKey | None = None, url: str = "") -> CheckFindings:
    """Find everything that is wrong with the store in a node's folder. Raises ServiceError, StorageError."""
    with hold_content(home, alone=False), read_store(home, store_key, url) as connection:
        return check_all(connection, home)


def check_all(connection: Connection, home: Path) -> CheckFindings:
    """Find everything that is wrong in an open transaction; `home` has the packs. Raises StorageError."""
    findings = CheckFindings()
    inspect_losses(home, findings)
    inspect_pages(connection, findings)
    if findings.kinds["database"]:  # what the database itself cannot read is not to be read on
        return findings
    inspect_references(connection, findings)
    inspect_damaged(connection, findings)
    inspect_erasures(connection, findings)
    inspect_rows(connection, findings)
    inspect_packs(connection, home, findings)
    inspect_relayed(connection, findings)
    check_graph(connection, findings)
    check_sums(connection, findings)
    check_forks(connection, findings)
    check_sketches(connection, _load_topics(connection), findings)
    check_passed(connection, findings)
    check_order(connection, findings)
    if not findings.kinds["reference"]:
        _judge_all(connection, findings)
        _check_documents(connection, findings)
        _check_indexes(connection, findings)
        _check_pending(connection, findings)
        inspect_search(connection, findings)
        _check_search(connection, findings)
        _check_texts(connection, findings)
    try:
        reached = mark_reached(connection, home)
        findings.checked["files"] = reached.objects
        findings.checked["files_incomplete"] = reached.incomplete
    except StorageError as error:
        findings.add("file", "content", str(error))
    findings.checked["unnamed_packs"] = count_unnamed_packs(connection, home)
    return findings


def _load_topics(connection: Connection) -> Mapping[TopicKey, Topic]:
    """Return the topics that can be opened; none where the tables cannot be read, which is named by itself."""
    try:
        return load_tables(connection).by_topic
    except UNREADABLE:
        return {}


def _judge_all(connection: Connection, findings: CheckFindings) -> None:
    try:
        tables = load_tables(connection)
    except UNREADABLE as error:
        findings.add("repo", "tables", f"cannot be read: {error!r}")
        return
    memberships: dict[int, Membership] = {}
    for repo in tables.repos.values():
        try:
            memberships[repo.num] = load_membership(connection, tables, repo.repo_id)
        except UNREADABLE as error:
            root = next(
                (one for one in tables.branches.values() if one.branch_id == root_branch(repo.repo_id)), None
            )
            if root is not None and find_damaged_in(connection, root.num) is not None:
                continue  # named before
            findings.add("repo", repo.name, f"its membership cannot be computed: {error!r}")
            continue
        _check_epochs(tables, repo, memberships[repo.num], findings)
        findings.checked["memberships"] += 1
        if is_snapshot_wrong(connection, tables, repo.repo_id):
            findings.add("membership", repo.name, "its snapshot says otherwise than its commits do")
    for topic in tables.topics.values():
        judging: dict[int, _Judging] = {}
        for branch_num, nums in load_nums_on(connection, topic.num):
            branch = tables.branches[branch_num]
            if branch.repo_num not in memberships:
                continue
            if branch_num not in judging:
                membership = memberships[branch.repo_num]
                judging[branch_num] = _Judging(connection, tables, topic, branch, membership, findings)
            judging[branch_num].run(nums)


def _check_epochs(tables: Tables, repo: Repo, membership: Membership, findings: CheckFindings) -> None:
    """Check that the stored writers' topics are those that the epochs' inits state."""
    for started in membership.operations.epochs:
        states = epoch_statement(started)
        for epoch in tables.epochs_in(repo.num):
            is_it = epoch.epoch_id == started.started_epoch and epoch.keys.mark == states.mark
            if is_it and epoch.writers_topic != open_topic(epoch.key, repo.repo_id, states):
                name = epoch.epoch_id.hex()
                findings.add(
                    "repo", repo.name, f"another writers' topic than the init states of epoch {name}"
                )


class _Judging:
    """Judge of all commits of one branch on one topic. Also the rules' view of accepted commits, and of keys."""

    def __init__(
        self,
        connection: Connection,
        tables: Tables,
        topic: Topic,
        branch: Branch,
        membership: Membership,
        findings: CheckFindings,
    ) -> None:
        self._connection = connection
        self._cipher = cipher_of(connection)
        self._tables = tables
        self._topic = topic
        self._branch = branch
        self._membership = membership
        self._findings = findings
        self._review = VoidRecheck(connection, tables, branch.repo_num, membership)
        self._checkpoints = set(load_checkpoint_ids(connection, branch.num))
        self._facts: dict[CommitId, CommitFacts] = {}
        # Of the batch, what is kept and what follows: files and removals by number, which of the commits are void.
        self._files: Mapping[int, list[tuple[int, KeptFile]]] = {}
        self._removals: Mapping[int, set[int]] = {}
        self._second_places: Mapping[int, set[int]] = {}
        self._voids: Mapping[CommitId, bool] = {}

    def run(self, nums: Sequence[int]) -> None:
        """Judge a batch of the branch's commits."""
        opened = dict(self._open(nums))
        self._facts = load_facts(self._connection, _named(opened.values()))
        self._load_kept(nums, [one.signed.commit.commit_id for one in opened.values()])
        for row in load_kept_rows(self._connection, nums):
            if row["num"] in opened:
                self._check(row, opened[row["num"]])

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        """Return the facts of an accepted commit (`CommitLookup`)."""
        return self._facts.get(commit_id)

    def is_rejected(self, _commit_id: CommitId) -> bool:
        """Return False: the checks do not ask for refused commits (`CommitLookup`)."""
        return False

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        """Return the key of an epoch that gives this mark (`CommitLookup`)."""
        return self._tables.find_key(self._branch.repo_num, epoch, mark)

    def _load_kept(self, nums: Sequence[int], ids: Sequence[CommitId]) -> None:
        self._files = load_kept_files(self._connection, nums)
        self._removals = load_kept_removals(self._connection, nums)
        self._second_places = load_second_places(self._connection, nums)
        self._voids = self._review.find_voids(self._branch, ids)

    def _open(self, nums: Sequence[int]) -> Iterator[tuple[int, Opened]]:
        for num, found in open_kept(self._connection, self._topic, nums):
            if not isinstance(found, str):
                yield num, found
            elif not find_damaged(
                self._connection, [CommitId(BlockId(bytes.fromhex(self._name(num))))]
            ):  # those are named before
                self._findings.add("commit", self._name(num), found)

    def _name(self, num: int) -> str:
        return load_commit_id(self._connection, num).hex()

    def _check(self, row: Mapping[str, Any], opened: Opened) -> None:
        commit, body = opened.signed.commit, opened.signed.body
        name = commit.commit_id.hex()
        verdict = judge(opened.signed, self._topic.facts, self._branch.facts, self, self._membership)
        if not isinstance(verdict, Accepted):
            self._findings.add("verdict", name, f"would not be accepted: {verdict}")
        is_root_branch = self._branch.facts.is_root_branch
        wanted = wanted_columns(self._cipher, self._tables, self._topic, self._branch, opened)
        if isinstance(body, ErasedBody) and row["body_kind"] not in ERASABLE_KINDS:
            self._findings.add("commit", name, f"its body was erased, and is a {row['body_kind']}")
        kind = declared_kind(commit, is_root_branch=is_root_branch)
        if kind is None and not isinstance(body, UnknownBody):
            kind = type(body)
        if kind is not None and row["body_kind"] == f"unknown:{tag_of(kind)}":
            wanted["body_kind"] = row["body_kind"]  # nor did that know the kind; nothing rests on its name
        wrong = [column for column, value in wanted.items() if row[column] != value]
        if wrong:
            self._findings.add("commit", name, f"its row says otherwise than it does: {', '.join(wrong)}")
        second = wanted_second_place(self._tables, self._topic, self._branch, opened)
        if self._second_places.get(row["num"], set()) != second:
            self._findings.add("commit", name, "the topics on which it stands beside its own are others")
        is_checkpoint = find_checkpoint(body, self._branch.facts) is not None
        if is_checkpoint != (commit.commit_id in self._checkpoints):
            self._findings.add("commit", name, "is kept as a checkpoint and is none, or the other way round")
        if self._voids.get(commit.commit_id, row["is_void"]) != row["is_void"]:
            self._findings.add(
                "void",
                name,
                f"is kept as {'' if row['is_void'] else 'not '}void, and the rules say otherwise",
            )
        self._check_files(row["num"], commit, opened)

    def _check_files(self, num: int, commit: Commit, opened: Opened) -> None:
        if [file for _, file in self._files.get(num, [])] != wanted_files(opened):
            self._findings.add("file", commit.commit_id.hex(), "its files are not kept as it says")
        if self._removals.get(num, set()) != find_removed_files(self._connection, self._branch.num, commit):
            self._findings.add("file", commit.commit_id.hex(), "what it removes is not kept as it says")
        if find_unawaited_adders(self._connection, num, commit):
            self._findings.add("file", commit.commit_id.hex(), "not all are awaited whose files it removes")


def _named(opened: Iterable[Opened]) -> set[CommitId]:
    """Return the causes of some commits."""
    return {cause for one in opened for cause in find_causes(one.signed.commit)}


def _check_documents(connection: Connection, findings: CheckFindings) -> None:
    """Compare documents' rows with their commits, and snapshots with their pasts in branches without voids."""
    try:
        tables = load_tables(connection)
    except UNREADABLE:  # named before
        return
    for branch in tables.branches.values():
        if branch.facts.is_root_branch:
            continue
        # What is damaged is named, what is too much or not here is no fault; what a snapshot of a text says is proven
        # where it is read.
        documents: list[tuple[ValuesKind, str]] = []
        with suppress(ServiceError, *UNREADABLE):
            documents = find_documents(tables, connection, branch)
        reader = DocumentOperationReader(tables)
        for kind, name in documents:
            try:
                said = [(num, one) for num, one, _ in reader.read_numbered(connection, branch, kind, name)]
                depth = find_depths(tables, connection, branch)[branch.num]
                is_wrong = is_document_wrong(connection, branch.num, kind.name, name, depth, said)
            except (ServiceError, *UNREADABLE):
                continue
            findings.checked["documents"] += bool(said)
            if is_wrong:
                shown = f"{branch.name}: {kind.name} {name}".rstrip()
                findings.add("document", shown, "its rows say otherwise than its commits do")
            if branch.void_count:  # what became void since may make an honest snapshot look false
                continue
            findings.checked["snapshots"] += sum(one.bit > 0 for _, one in said)
            for one in find_false_snapshots([one for _, one in said]):
                findings.add(
                    "snapshot", one.name.hex(), f"says otherwise what the {kind.name} held in its past"
                )


def _check_indexes(connection: Connection, findings: CheckFindings) -> None:
    """Compare declared indexes of documents with these. Costs O(what the documents hold)."""
    try:
        tables = load_tables(connection)
    except UNREADABLE:  # named before
        return
    reader = DocumentOperationReader(tables)
    for index in load_all_indexes(connection):
        is_wrong = index.branch_num not in tables.branches
        with suppress(ServiceError, *UNREADABLE):
            is_wrong = is_wrong or is_index_wrong(tables, connection, reader, index)
        findings.checked["document indexes"] += 1
        if is_wrong:
            findings.add(
                "document index", f"{index.prefix} {index.fields}".lstrip(), "differs from the documents"
            )


def _check_pending(connection: Connection, findings: CheckFindings) -> None:
    """Check that each pending commit is stored as its bytes say, and is not accepted already."""
    findings.checked["waiting"] += count_kept_pending(connection)
    for _, commit_id, fault in find_wrong_pending(connection):
        findings.add("waiting", commit_id.hex(), fault)


def _check_search(connection: Connection, findings: CheckFindings) -> None:
    """Check that the search index has the words of posts: of all posts of a small store, of a sample of a large one."""
    state = load_state(connection)
    if state is None or state.rules != RULES:
        return
    try:
        tables = load_tables(connection)
    except UNREADABLE:  # named before
        return
    step = state.upto // _SEARCHED_MAX + 1
    for nums in chunks(range(1, state.upto + 1, step), _BATCH):
        rows = load_numbered(connection, find_indexed(connection, nums, kind_name(Post)))
        for row in rows:
            try:
                encoded = load_blocks_of(connection, [row])[row.num]
                _, body = open_stored(tables, row, encoded)
            except UNREADABLE:  # the same
                continue
            keys = index_keys([body.text]) if isinstance(body, Post) else []
            findings.checked["searched"] += 1
            if keys and not any(
                row.num in found
                for found in find_in_parts(
                    connection, state.key, find_parts(connection, row.branch_num, [row.num]), keys[:1]
                )
            ):
                findings.add("search", row.commit_id.hex(), "the index does not have its words")


def _check_texts(connection: Connection, findings: CheckFindings) -> None:
    try:
        tables = load_tables(connection)
    except UNREADABLE:  # named before
        return
    try:
        check_texts(connection, tables, findings)
    except UNREADABLE as error:
        if not findings.problems:  # else a commit that was named before
            findings.add("text", "a text", str(error))
