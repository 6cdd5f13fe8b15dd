"""Tables of repos and branches. What opens them stands in `epochs`.

A link may give a single branch, whose repo then has no members or epochs here (`add_branch_alone`). What it says of the repo
is its maker's word: whatever follows from a repo's own secrets displaces it, and nothing that came by it is held against a
commit.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, Select, bindparam, func, insert, select, update

from protocol.codec import encode
from protocol.crypto.keys import BlockKey
from protocol.formats.links import BranchCapability
from protocol.ids import BranchId, CommitId, RepoId, first_commit, root_branch
from storage.engine.bulk import insert_rows, select_rows
from storage.engine.column_encryption import (
    ColumnCipher,
    cipher_of,
    open_optional,
    repo_place,
    seal_optional,
    topic_place,
)
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.repos.deletion import forget_repo
from storage.repos.epochs import Epoch, add_epoch
from storage.repos.row_changes import row_changes
from storage.schema.schema import branches, commits, repos, topics
from verifier.facts import BranchFacts

_ALL_REPOS = select(repos).order_by(repos.c.num)
_ALL_BRANCHES = select(branches).order_by(branches.c.num)
_KEYS: BindParameter[list[int]] = bindparam("keys", expanding=True)
_SOME_REPOS = _ALL_REPOS.where(repos.c.num.in_(_KEYS))
_BRANCHES_OF_REPOS = _ALL_BRANCHES.where(branches.c.repo_num.in_(_KEYS))
_SOME_BRANCHES = _ALL_BRANCHES.where(branches.c.num.in_(_KEYS))
_COUNTS = select(branches.c.num, branches.c.commit_count, branches.c.void_count).where(
    branches.c.num.in_(_KEYS)
)
_TOPIC_COUNTS = select(topics.c.num, topics.c.commit_count).where(topics.c.num.in_(_KEYS))
_IS_BRANCH = branches.c.branch_id == bindparam("branch_id")
_BRANCH_OF = select(branches.c.num).where(branches.c.repo_num == bindparam("repo"), _IS_BRANCH)
# By repo: no index leads from its id to a branch.
_ALONE_WITH = select(repos.c.num).where(
    repos.c.epoch_num == 0,
    repos.c.num != bindparam("repo"),
    select(branches.c.num).where(branches.c.repo_num == repos.c.num, _IS_BRANCH).exists(),
)
_BRANCH_COLUMNS = (
    "num",
    "repo_num",
    "branch_id",
    "name",
    "root_id",
    "commit_count",
    "changes_from",
    "is_kept",
)
DAY_MS: Final = 24 * 60 * 60 * 1000
_KEEPS_ALL = select(repos.c.keeps_all).where(repos.c.num == bindparam("repo"))


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo that this node can open, and the number of the epoch that it writes in."""

    num: int
    repo_id: RepoId
    name: str
    init_id: CommitId
    init_key: BlockKey = field(repr=False)
    epoch_num: int  # 0 where single branches are followed by themselves
    is_behind: bool  # members have gone on to an epoch whose secrets are not here
    invitation: bytes | None = field(repr=False)
    keeps_all: bool = True  # a branch that is added is kept
    chosen_days: int = 0  # of posts those of so many days are kept, as this user has chosen; 0: of any age
    bound_days: int = 0  # the same, as the bound on the store's size has it
    keeps_files: bool = False  # contents of files come before they are opened

    @property
    def has_members(self) -> bool:
        """Return True if its root branch is followed, and not only single branches."""
        return self.epoch_num != 0

    @property
    def kept_days(self) -> int:
        """The days of which posts are kept; 0: of any age."""
        return min(filter(None, (self.chosen_days, self.bound_days)), default=0)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a repo, with counts of its commits."""

    num: int
    repo_num: int
    name: str
    commit_count: int
    void_count: int  # of these
    is_archived: bool
    is_main: bool
    facts: BranchFacts
    is_kept: bool = True
    """Its erasable bodies are kept here, and not only fetched when they are opened."""

    @property
    def branch_id(self) -> BranchId:
        """The branch's id."""
        return self.facts.branch_id


def add_repo(database: Database, connection: Connection, repo: Repo, epoch: Epoch) -> Repo:
    """Store a repo, an epoch of it and its root branch; return it with its number. Costs O(1).

    A repo that is stored already gets the epoch, and secrets and an invitation that it lacked.
    """
    cipher = cipher_of(connection)
    invitation = seal_optional(cipher, repo_place("invitation", repo.repo_id), repo.invitation)
    found = connection.execute(select(repos).where(repos.c.repo_id == repo.repo_id)).first()
    if found and not found.epoch_num:  # single branches of it: the whole repo says better what they are
        forget_repo(connection, found.num)
        found = None
    if found:
        known = _repo(cipher, found)
        add_epoch(database, connection, replace(epoch, repo_num=known.num, repo_id=known.repo_id))
        if repo.invitation is not None:
            known = replace(known, invitation=repo.invitation)
            row_changes(connection).repo_rows.add(known.num)
            connection.execute(update(repos).where(repos.c.num == known.num).values(invitation=invitation))
        return known
    (num,) = database.next_nums(connection, repos, 1)
    row_changes(connection).repos.add(num)
    # The bound is alike for all: of a new one, posts that would leave at once do not come.
    bound_days = connection.execute(select(func.coalesce(func.max(repos.c.bound_days), 0))).scalar_one()
    connection.execute(
        insert(repos).values(
            num=num,
            repo_id=repo.repo_id,
            name=repo.name,
            init_id=repo.init_id,
            init_key=cipher.seal(repo_place("init_key", repo.repo_id), repo.init_key),
            epoch_num=0,
            is_behind=repo.is_behind,
            invitation=invitation,
            bound_days=bound_days,
        )
    )
    add_branch(database, connection, num, root_branch(repo.repo_id), "root", repo.init_id)
    epoch_num = add_epoch(database, connection, replace(epoch, repo_num=num, repo_id=repo.repo_id))
    assert epoch_num is not None, "the repo is new"
    connection.execute(update(repos).where(repos.c.num == num).values(epoch_num=epoch_num))
    return replace(repo, num=num, epoch_num=epoch_num, bound_days=bound_days)


def add_branch(
    database: Database,
    connection: Connection,
    repo_num: int,
    branch_id: BranchId,
    name: str,
    root_id: CommitId,
) -> None:
    """Store a branch unless it is stored already. Costs O(1)."""
    for num in select_rows(connection, _ALONE_WITH, repo=repo_num, branch_id=branch_id).scalars():
        forget_repo(connection, num)
    if select_rows(connection, _BRANCH_OF, repo=repo_num, branch_id=branch_id).first() is not None:
        return
    num = database.next_nums(connection, branches, 1)[0]
    row_changes(connection).branches.add(num)
    changes_from = database.next_nums(connection, commits, 0).start - 1
    is_kept = select_rows(connection, _KEEPS_ALL, repo=repo_num).scalars()[0]
    row = (num, repo_num, branch_id, name, root_id, 0, changes_from, is_kept)
    insert_rows(connection, branches, _BRANCH_COLUMNS, [row])


def load_repos(connection: Connection, nums: Collection[int] | None = None) -> list[Repo]:
    """Load the repos with these numbers, or all; oldest first. Costs O(those)."""
    cipher = cipher_of(connection)
    return [_repo(cipher, row) for row in _rows(connection, _ALL_REPOS, _SOME_REPOS, nums)]


def load_branches(
    connection: Connection,
    by_num: Mapping[int, Repo],
    repo_nums: Collection[int] | None = None,
    branch_nums: Collection[int] = (),
) -> list[Branch]:
    """Load the branches of these repos (or of all) and these branches, of repos as this transaction sees them."""
    rows = [
        *_rows(connection, _ALL_BRANCHES, _BRANCHES_OF_REPOS, repo_nums),
        *_rows(connection, _ALL_BRANCHES, _SOME_BRANCHES, branch_nums),
    ]
    found = {row.num: row for row in rows}
    return [_branch(row, by_num[row.repo_num]) for _, row in sorted(found.items())]


class Counts(NamedTuple):
    """Counts of a branch's commits, and of those that are void."""

    commits: int
    void: int


def load_counts(connection: Connection, branch_nums: Collection[int]) -> dict[int, Counts]:
    """Load the counts of these branches, by number."""
    return {num: Counts(*counts) for num, *counts in _rows(connection, _COUNTS, _COUNTS, branch_nums)}


def load_topic_counts(connection: Connection, topic_nums: Collection[int]) -> dict[int, int]:
    """Load how many commits stand on these topics, by number."""
    rows = _rows(connection, _TOPIC_COUNTS, _TOPIC_COUNTS, topic_nums)
    return {row[0]: row[1] for row in rows}


def _rows(
    connection: Connection,
    whole: Select[*tuple[Any, ...]],
    some: Select[*tuple[Any, ...]],
    keys: Collection[int] | None,
) -> Iterable[Row[*tuple[Any, ...]]]:
    """Load the rows of these keys, or all, in the order of their numbers."""
    if keys is None:
        return connection.execute(whole).all()
    return [row for part in chunks(sorted(keys)) for row in connection.execute(some, {"keys": part})]


def _repo(cipher: ColumnCipher, row: Row[tuple[object, ...]]) -> Repo:
    kept = Repo(**row._mapping)
    return replace(
        kept,
        init_key=BlockKey(cipher.open(repo_place("init_key", kept.repo_id), kept.init_key)),
        invitation=open_optional(cipher, repo_place("invitation", kept.repo_id), kept.invitation),
    )


def _branch(row: Row[tuple[object, ...]], repo: Repo) -> Branch:
    return Branch(
        num=row.num,
        repo_num=repo.num,
        name=row.name,
        commit_count=row.commit_count,
        void_count=row.void_count,
        is_archived=row.is_archived,
        is_main=row.is_main,
        facts=BranchFacts(
            repo.repo_id, repo.init_id, row.branch_id, row.root_id, has_members=repo.has_members
        ),
        is_kept=row.is_kept,
    )


def name_branch(
    connection: Connection, branch_num: int, name: str, *, is_archived: bool, is_main: bool
) -> None:
    """Show a branch under another name, as archived, or as the repo's main branch."""
    row_changes(connection).branches.add(branch_num)
    connection.execute(
        update(branches)
        .where(branches.c.num == branch_num)
        .values(name=name, is_archived=is_archived, is_main=is_main)
    )


def set_writing_epoch(connection: Connection, repo_num: int, epoch_num: int, *, is_behind: bool) -> None:
    """Write in this epoch from now on."""
    row_changes(connection).repo_rows.add(repo_num)
    connection.execute(
        update(repos).where(repos.c.num == repo_num).values(epoch_num=epoch_num, is_behind=is_behind)
    )


def posts_from(days: int, now_ms: int) -> int:
    """Return the time (unix ms) at which the last `days` days began; 0 where `days` is 0, which stands for any age."""
    return max(1, now_ms - days * DAY_MS) if days else 0


def keep_branches(
    connection: Connection, repo_num: int, kept: Collection[int] | None, days: int, *, keeps_files: bool
) -> None:
    """Keep the bodies of these branches of a repo alone, or of all, also of those to come; posts for some days (0: all).

    `keeps_files`: contents of files come before they are opened. Costs O(its branches).
    """
    row_changes(connection).repos.add(repo_num)
    said = {"keeps_all": kept is None, "chosen_days": days, "keeps_files": keeps_files}
    connection.execute(update(repos).where(repos.c.num == repo_num).values(said))
    of_repo = branches.c.repo_num == repo_num
    connection.execute(update(branches).where(of_repo).values(is_kept=kept is None))
    for part in chunks(sorted(kept or ())):
        connection.execute(update(branches).where(of_repo, branches.c.num.in_(part)).values(is_kept=True))


def bound_posts(connection: Connection, repo_num: int, days: int) -> None:
    """Keep posts of a repo for some days at most (0: for any time), since the store's size is bounded."""
    row_changes(connection).repos.add(repo_num)
    connection.execute(update(repos).where(repos.c.num == repo_num).values(bound_days=days))


def rename_repo(connection: Connection, repo_num: int, name: str) -> None:
    """Give a repo the name that its init commit says."""
    row_changes(connection).repo_rows.add(repo_num)
    connection.execute(update(repos).where(repos.c.num == repo_num).values(name=name))


def finish_join(connection: Connection, repo_num: int) -> None:
    """Forget the invitation of a repo whose join was accepted."""
    row_changes(connection).repo_rows.add(repo_num)
    connection.execute(update(repos).where(repos.c.num == repo_num).values(invitation=None))


def add_branch_alone(
    database: Database, connection: Connection, capability: BranchCapability, repo_name: str = ""
) -> bool:
    """Follow a branch by itself, on the topics that a capability opens. Its repo is stored without members or epochs.

    The repo is called `repo_name` in parentheses, since its members call it otherwise; without one, as the branch. Nothing
    is stored where the branch or its repo is here already as something else. Gives whether any topic is new.
    """
    cipher = cipher_of(connection)
    known = connection.execute(
        select(repos.c.num, repos.c.epoch_num, repos.c.init_id).where(repos.c.repo_id == capability.repo)
    ).first()
    elsewhere = (
        select(repos.c.num)
        .join(branches, branches.c.repo_num == repos.c.num)
        .where(branches.c.branch_id == capability.branch, repos.c.repo_id != capability.repo)
    )
    if (
        capability.branch == root_branch(capability.repo)
        or (known is not None and (known.epoch_num or known.init_id != capability.init))
        or connection.execute(elsewhere).first() is not None
    ):
        return False
    num = None if known is None else known.num
    if num is None:
        num = database.next_nums(connection, repos, 1)[0]
        connection.execute(
            insert(repos).values(
                num=num,
                repo_id=capability.repo,
                name=f"({repo_name or capability.name})",
                init_id=capability.init,
                init_key=cipher.seal(repo_place("init_key", capability.repo), bytes(32)),  # nobody said it
                epoch_num=0,
                is_behind=False,
            )
        )
    branch_id = capability.branch
    add_branch(database, connection, num, branch_id, capability.name, first_commit(branch_id))
    branch_num = connection.execute(
        select(branches.c.num).where(branches.c.repo_num == num, branches.c.branch_id == branch_id)
    ).scalar_one()
    row_changes(connection).repos.add(num)
    is_new = False
    for channel in capability.channels:
        if connection.execute(select(topics.c.num).where(topics.c.topic == channel.topic)).first() is None:
            is_new = True
            connection.execute(
                insert(topics).values(
                    num=database.next_nums(connection, topics, 1)[0],
                    branch_num=branch_num,
                    topic=channel.topic,
                    commit_count=0,
                    channel=cipher.seal(topic_place(channel.topic), encode(channel)),
                )
            )
    return is_new
