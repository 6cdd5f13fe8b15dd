"""Forks and merges branches; a forked branch continues another from a commit.

The *state* of a branch is what it continues up to where it forked, and its own commits. Merging writes again, in the
target, what the source's state has and the target's has not, each with its origin (`body.Carried`); then one commit says
so and joins the heads. What was carried is recognised by its origin, so merging again, or the other way round, carries
only what is new. What commits mean to each other (conflicts) is for the document's rule.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import trio
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.feed_encoder import DraftGraph
from node.authoring.writing import create_branch, create_repo, write_commit, write_job
from node.content.lineage import lineage, load_state, whole_lineage
from node.content.opening import read_opened
from node.ingest.replica import Replica, load_blocks_of, open_stored_commit
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.timelines.commit_fields import author_fields, stored_fields
from node.timelines.post_views import find_gone, show_changes
from node.timelines.views import show_opened
from node.timelines.why import find_commit
from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference
from protocol.formats.body import (
    Body,
    BranchFork,
    BranchRoot,
    Carried,
    Checkpoint,
    ErasedBody,
    Merge,
    Tag,
    UnknownBody,
    UnreadableBody,
    content_of,
    kind_name,
)
from protocol.formats.commit import Commit
from protocol.formats.content import Compaction, Files
from protocol.formats.document_kinds import DOCUMENT_KINDS, TextUpdate
from protocol.formats.text import id_text
from protocol.ids import BranchId, CommitId
from protocol.limits.formats import ACK_COUNT_MAX, BODY_SIZE_MAX
from protocol.limits.users import MERGED_COUNT_MAX
from ravel.types.branches import BranchMerge, MergeResult
from ravel.types.commits import StateItem
from ravel.types.repos import RepoFork
from ravel.types.timelines import BranchState
from storage.commits.commits import TimelineRow, load_rows
from storage.commits.heads import load_heads
from storage.repos.repos import Branch, Repo
from verifier.names import MAIN

_LOADED_AT_ONCE = 500
_OF_ONE_BRANCH: tuple[type[Body], ...] = (BranchRoot, BranchFork, Merge, Checkpoint, Compaction)
_NOT_CARRIED = (
    *map(kind_name, _OF_ONE_BRANCH),
    *(kind_name(kind.snapshot) for kind in DOCUMENT_KINDS),
)
_CARRIED_OVERHEAD = 256  # bytes that the origin adds to a body, rounded up
_NO_ANCESTOR = "the branches have no common ancestor: neither continues what the other does"
_NO_ANCESTOR_HINT = "`ravel branch fork` and `ravel repo fork` make branches that can be merged back"


class Merging:
    """Service that forks, merges, moves and shows branches. Names are those that `find_branch` accepts."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._forking = trio.Lock()

    async def fork(self, branch_text: str, name: str, commit_text: str) -> Branch:
        """Add a branch that continues another from a commit (empty: from its heads)."""
        origin = self._find_branch(branch_text)
        fork = await self._hub.run_blocking(self._fork, origin, commit_text)
        repo = self._hub.replica.repos[origin.repo_num]
        return await create_branch(self._hub, self._author, repo, name, fork, is_unique=True)

    async def fork_repo(self, repo: Repo, name: str) -> RepoFork:
        """Make a repo of this user's own that continues another: its branches, each commit written again, and its main.

        Another call goes on with a fork of that name which was cut short, and waits for one that is at work.
        """
        async with self._forking:
            return await self._fork_repo(repo, name)

    async def _fork_repo(self, repo: Repo, name: str) -> RepoFork:
        run = self._hub.run_blocking
        sources = [
            one
            for one in self._hub.replica.branches_in(repo.num)
            if not one.facts.is_root_branch and not one.is_archived
        ]
        for source in sources:
            await read_opened(self._hub, source, partial(run, self._check_source, source))
        made, begun = await run(self._find_half, sources, name)
        if made is None:
            made = await create_repo(self._hub, self._author, name, is_unique=True)
        answer: RepoFork = {"repo": id_text(made.repo_id), "name": name, "branches": [], "files_left": []}
        for source in sources:
            target, is_merged = begun.get(source.num, (None, False))
            if target is None:
                target = await create_branch(self._hub, self._author, made, source.name)
            if is_merged:
                answer["branches"].append({"branch": id_text(target.branch_id), "carried": 0})
            else:
                made_of_it = await self._merge(source, target, begins_fork=True)
                answer["branches"].append({"branch": made_of_it["branch"], "carried": made_of_it["carried"]})
                answer["files_left"] += made_of_it["files_left"]
            if source.is_main and not self._hub.replica.branches[target.num].is_main:
                # Else offers from the fork's main would be to a branch that it does not continue.
                root = self._hub.replica.root_branch(made)
                pointed = Tag(MAIN, target.branch_id, target.facts.root_id)
                await write_commit(self._hub, self._author, root, pointed)
        return answer

    async def merge(self, source: str, branch: str) -> BranchMerge:
        """Carry over to `branch` what `source` has and it has not. Raises ServiceError."""
        origin, target = self._find_branch(source), self._find_branch(branch)
        merged = await self._merge(origin, target)
        return {**merged, "merged": id_text(origin.branch_id)}

    async def state(self, branch: str, limit: int, kind: str = "") -> BranchState:
        """Show the last `limit` commits of a branch's state, of one kind if given: what it continues, then its own."""
        return await show_opened(self._hub, partial(self._state, self._find_branch(branch), limit, kind))

    async def _merge(self, source: Branch, target: Branch, *, begins_fork: bool = False) -> MergeResult:
        """Merge, with contents that are not kept here and come when they are opened."""

        def run() -> Awaitable[MergeResult]:
            merge = MergePlan(self._hub.replica, source, target, begins_fork)  # a plan runs once
            return run_merge(self._hub, self._author, merge)

        return await read_opened(self._hub, source, run)

    def _check_source(self, source: Branch) -> None:
        """Check a branch before a fork is made: half of one looks whole. Raises ServiceError `too_large`, `incomplete`."""
        with self._hub.replica.database.read() as connection:
            state = load_state(self._hub.replica, connection, source)
            if len(state) > MERGED_COUNT_MAX:
                raise ServiceError(
                    "too_large",
                    f"the branch {source.name!r} has more than {MERGED_COUNT_MAX} commits",
                    "archive it to leave it out",
                )
            absent = [row for row in state if row.is_erased and row.body_kind not in _NOT_CARRIED]
            if absent and {row.num for row in absent} - find_gone(connection, self._hub.replica, state):
                raise _bodies_erased()

    def _find_half(
        self, sources: Sequence[Branch], name: str
    ) -> tuple[Repo | None, dict[int, tuple[Branch, bool]]]:
        """Find the fork of this name that a stop of the node cut short, and None where there is none.

        Returns:
            The repo; and by source what it has of that: a branch, and True if the source was merged there.
        """
        replica = self._hub.replica
        named = replica.tables.repos_with_name(name)
        if len(named) != 1 or not named[0].has_members:
            return None, {}
        persons = replica.persons(named[0].repo_id)  # devices may be members by themselves
        if len({persons.get(user, user) for user in (self._author.user, *replica.members(named[0]))}) > 1:
            return None, {}
        counted = replica.shown.count_in(replica.database, [named[0].num])[named[0].num]
        free = [one for one in counted if not one.facts.is_root_branch]
        begun = dict[int, tuple[Branch, bool]]()
        with replica.database.read() as connection:
            for source in sources:
                for target in [one for one in free if one.name == source.name]:
                    is_merged = source.branch_id in self._find_merged(connection, target)
                    if is_merged or target.commit_count == 1:
                        begun[source.num] = target, is_merged
                        free.remove(target)
                        break
        is_whole = len(begun) == len(sources) and all(
            is_merged and target.is_main >= source.is_main
            for source, (target, is_merged) in zip(sources, begun.values(), strict=True)
        )
        return (None, {}) if free or is_whole else (named[0], begun)

    def _find_merged(self, connection: Connection, target: Branch) -> set[BranchId]:
        """Find the branches that a branch states to have merged."""
        rows = load_state(self._hub.replica, connection, target, kinds=(kind_name(Merge),))
        blocks = load_blocks_of(connection, rows)
        opened = (open_stored_commit(self._hub.replica, row, blocks[row.num]) for row in rows)
        return {branch for _, body, _ in opened for branch in _merged(body)}

    def _fork(self, origin: Branch, commit_text: str) -> BranchFork:
        with self._hub.replica.database.read() as connection:
            if commit_text:
                found = find_commit(connection, commit_text, [origin])
                if found.state != "accepted":
                    raise ServiceError("bad_request", "that is no accepted commit of the branch")
                commits = [found.commit_id]
            else:
                commits = [raw for raw, _ in load_heads(connection, origin.num, ACK_COUNT_MAX)]
        return BranchFork(origin.branch_id, tuple(commits))

    def _state(self, branch: Branch, limit: int, kind: str) -> BranchState:
        replica = self._hub.replica
        with replica.database.read() as connection:
            rows = load_state(replica, connection, branch, kinds=[kind] if kind else ())
            shown = rows[-limit:]
            blocks = load_blocks_of(connection, shown)
            items: list[StateItem] = [
                {
                    "commit": id_text(row.commit_id),
                    "branch": id_text(replica.branches[row.branch_num].branch_id),
                    "rank": row.rank,
                    **author_fields(replica, branch, row.author),
                    "kind": row.body_kind,
                    "acks": [id_text(ack) for ack in row.acks],
                    **stored_fields(replica, row, blocks[row.num]),
                }
                for row in shown
            ]
            show_changes(connection, replica, list(zip(shown, items, strict=True)))
        return {"branch": id_text(branch.branch_id), "items": items, "total": len(rows)}


@dataclass
class MergePlan:
    """One merge, planned as the store stands when it is written.

    Of a branch of another repo nothing is believed but that its authors wrote it. With `begins_fork` the target is a new
    branch of a fork of the repo. Its merge is also written where nothing can be carried: it says what the fork continues.
    """

    replica: Replica
    source: Branch
    target: Branch
    begins_fork: bool = False
    carried: int = 0
    left: int = 0  # commits that would be too large with their origin, or whose bodies cannot be read
    files_left: list[str] = field(default_factory=list)  # names of files that were encrypted in another epoch
    _drafts: list[Draft] = field(default_factory=list)
    # What stands in the target for each of the source's commits: commits, and places among the drafts.
    _became: dict[CommitId, tuple[CommitId | int, ...]] = field(default_factory=dict)
    _left: set[CommitId] = field(default_factory=set)

    def plan(self, connection: Connection) -> Sequence[Draft]:
        """Plan the commits to write: carried ones, and one that states the merge; none if nothing is new."""
        if not self._is_foreign:
            self._check_ancestor(connection)
        for one in (self.source, self.target):
            # Else what is not here would be carried as if it were new.
            whole_lineage(self.replica, connection, one)
        there: dict[CommitId, TimelineRow] = {}
        merged_here: set[BranchId] = set()
        merged_there: set[BranchId] = set()
        for row, _, body, _ in self._read(connection, load_state(self.replica, connection, self.target)):
            there[row.commit_id] = there[_origin(row.commit_id, body)] = row
            merged_here |= _merged(body)
        is_related = self.begins_fork or not self._is_foreign
        graph = DraftGraph(connection)
        heads: dict[CommitId | int, None] = dict.fromkeys(
            raw for raw, _ in load_heads(connection, self.target.num, ACK_COUNT_MAX)
        )
        state = load_state(self.replica, connection, self.source)
        gone = find_gone(connection, self.replica, state)
        for row, commit, body, encoded in self._read(connection, state):
            parents = self._parents(connection, row, body)
            known = there.get(_origin(row.commit_id, body)) or there.get(row.commit_id)
            is_related |= known is not None
            merged_there |= _merged(body)
            is_left_out = known is not None or row.num in gone
            draft = None if is_left_out else self._draft(row, commit, body, encoded)
            if known is not None:
                is_own = known.branch_num == self.target.num
                self._became[row.commit_id] = (known.commit_id if is_own else self._root,)
            elif draft is None:
                self._became[row.commit_id] = tuple(parents)
            else:
                acks = graph.add(parents)[:ACK_COUNT_MAX]
                place = len(self._drafts)
                self._became[row.commit_id] = (place,)
                self._drafts.append(replace(draft, acks=acks, timestamp=row.timestamp))
                for ack in acks:
                    heads.pop(ack, None)
                heads[place] = None
                if place == MERGED_COUNT_MAX:
                    raise ServiceError("too_large", f"a merge carries at most {MERGED_COUNT_MAX} commits")
        is_related = (
            is_related
            or self._continues(connection, merged_here, self.source)
            or self._continues(connection, merged_there, self.target)
        )
        if not is_related:
            raise ServiceError("bad_request", _NO_ANCESTOR, _NO_ANCESTOR_HINT)
        self.carried = len(self._drafts)
        ends = tuple(raw for raw, _ in load_heads(connection, self.source.num, ACK_COUNT_MAX))
        if not ends or not (self._drafts or self.begins_fork):
            return []
        return [*self._drafts, Draft(Merge(self.source.branch_id, ends), tuple(heads)[-ACK_COUNT_MAX:])]

    @property
    def carried_bodies(self) -> Iterator[tuple[str, Carried]]:
        """Commits that `plan` carries, in its order, with the name of the document that each is of."""
        return ((one.document, one.body) for one in self._drafts if isinstance(one.body, Carried))

    @property
    def _root(self) -> CommitId:
        return self.target.facts.root_id

    @property
    def _is_foreign(self) -> bool:
        return self.source.repo_num != self.target.repo_num

    def _continues(self, connection: Connection, merged: set[BranchId], branch: Branch) -> bool:
        """Return True if a branch of another repo that merged these shares an ancestor with `branch`, or continues it.

        A fork of a repo begins with such a merge. It is all that relates the two where nothing was carried to the fork.
        """
        return any(
            self._have_ancestor(connection, one, branch)
            for one in self.replica.branches_in(branch.repo_num)
            if one.branch_id in merged
        )

    def _have_ancestor(self, connection: Connection, one: Branch, other: Branch) -> bool:
        """Return True if two branches of a repo continue the same branch, or one of them the other."""
        ours, theirs = (
            {branch.num for branch, _ in lineage(self.replica, connection, each)} for each in (one, other)
        )
        return not ours.isdisjoint(theirs)

    def _parents(
        self, connection: Connection, row: TimelineRow, body: Body | UnknownBody
    ) -> list[CommitId | int]:
        """Return the target's commits that a copied commit follows. The first of a fork follows what it continues."""
        follows = body.commits if isinstance(body, BranchFork) else row.acks
        found = dict.fromkeys(one for ack in follows for one in self._replacements(connection, ack))
        if len(found) > 1:
            found.pop(self._root, None)  # all others follow it
        return list(found)[-ACK_COUNT_MAX:] or [self._root]

    def _replacements(self, connection: Connection, commit_id: CommitId) -> tuple[CommitId | int, ...]:
        """Return the target's commits in place of this commit. A void commit has those of the commits it acks."""
        ahead = [commit_id]
        while ahead:
            one = ahead[-1]
            if one in self._became:
                ahead.pop()
                continue
            row = load_rows(connection, [one]).get(one)
            acks = row.acks if row is not None and row.is_void else ()
            missing = [ack for ack in acks if ack not in self._became]
            if missing:
                ahead += missing
                continue
            stands = dict.fromkeys(stand for ack in acks for stand in self._became[ack])
            self._became[one] = tuple(stands)[-ACK_COUNT_MAX:] or (self._root,)
            ahead.pop()
        return self._became[commit_id]

    def _check_ancestor(self, connection: Connection) -> None:
        if not self._have_ancestor(connection, self.source, self.target):
            raise ServiceError("bad_request", _NO_ANCESTOR, _NO_ANCESTOR_HINT)

    def _read(
        self, connection: Connection, rows: list[TimelineRow]
    ) -> Iterator[tuple[TimelineRow, Commit, Body | UnknownBody, bytes]]:
        """Rows, commits, and bodies with their encodings."""
        for start in range(0, len(rows), _LOADED_AT_ONCE):
            part = rows[start : start + _LOADED_AT_ONCE]
            blocks = load_blocks_of(connection, part)
            for row in part:
                yield row, *open_stored_commit(self.replica, row, blocks[row.num])

    def _draft(
        self, row: TimelineRow, commit: Commit, body: Body | UnknownBody, encoded: bytes
    ) -> Draft | None:
        """Draft the carried form of a commit; None if only its own branch needs it, or for a file that cannot be carried."""
        if row.body_kind in _NOT_CARRIED:
            return None
        if isinstance(body, ErasedBody):
            raise _bodies_erased()
        if isinstance(body, UnreadableBody):  # nor could what it is be said again
            self._left.add(row.commit_id)
            self.left += 1
            return None
        carried = body if isinstance(body, Carried) else None
        # Anyone who offers this may say that anybody wrote it. But client ids of a text are computed from who said them
        # first, and in which branch: else its words would be nobody's.
        if carried is not None and self._is_foreign and not isinstance(content_of(carried), TextUpdate):
            encoded, carried = carried.body, None
        if carried is None:
            branch_id = self.replica.branches[row.branch_num].branch_id
            carried = Carried(branch_id, row.commit_id, row.author, row.timestamp, encoded)
            if len(encoded) > BODY_SIZE_MAX - _CARRIED_OVERHEAD:
                self.left += 1
                return None
        body = carried
        links, keys = commit.links, commit.content.file_keys
        if not links.files and not links.nfiles:
            return Draft(body, document=row.document)
        deps = [self._became.get(dep, ()) for dep in links.deps]
        target_repo = self.replica.repos[self.target.repo_num]
        is_same_epoch = commit.content.epoch == self.replica.writing_epoch(target_repo).epoch_id
        if (
            not is_same_epoch
            or not all(keys)
            or any(len(dep) != 1 for dep in deps)
            or not self._left.isdisjoint(links.deps)
        ):
            self._left.add(row.commit_id)
            content = content_of(body)
            self.files_left += [entry.name for entry in content.added] if isinstance(content, Files) else []
            return None
        files = tuple(
            Reference(raw, BlockKey(key)) for raw, key in zip(links.files, keys, strict=True) if key
        )
        return Draft(
            body,
            deps=tuple(dep[0] for dep in deps),
            files=files,
            removed_files=links.nfiles,
            document=row.document,
        )


async def run_merge(hub: Hub, author: Author, merge: MergePlan) -> MergeResult:
    """Write what a merge plans. Raises ServiceError."""
    # Alone: a group whose other request fails is written again one by one, and a plan may run once.
    written = await write_job(
        hub, lambda stored: author.write_many(merge.target, merge.plan, stored=stored)[0]
    )
    return {
        "branch": id_text(merge.target.branch_id),
        "commit": id_text(written[-1].commit_id) if written else None,
        "carried": merge.carried,
        "left": merge.left,
        "files_left": merge.files_left,
    }


def _bodies_erased() -> ServiceError:
    return ServiceError(
        "incomplete",
        "bodies are erased here that the other branch has not got",
        "merge on a node that still has them",
    )


def _merged(body: Body | UnknownBody) -> set[BranchId]:
    return {body.branch} if isinstance(body, Merge) else set()


def _origin(commit_id: CommitId, body: Body | UnknownBody) -> CommitId:
    """Return the original commit: itself, or the one that it carries. What is carried is never erased."""
    return body.commit if isinstance(body, Carried) else commit_id
