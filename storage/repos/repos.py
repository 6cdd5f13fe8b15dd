"""Tables of repos, epochs and branches, with their secrets; `Branch` is a branch on one topic.

A branch has a topic for each epoch (and for each renewal inside one). A `Branch` value is the branch as it stands on one
topic, with the keys of that: many values may be one branch, of which the repo's writing epoch has the current one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, Select, bindparam, insert, select, update

from protocol import hashing, signing
from protocol.codec import decode
from protocol.ids import BranchId, CommitId, EpochId, RepoId, TopicKey, UserId, root_branch
from protocol.keys import BlockKey, ConvergenceSecret, ReadKey, ReadSecret, TopicSeed, WriteSecret
from protocol.limits.formats import LINK_SIZE_MAX
from protocol.links import BranchChannel
from storage.engine.bulk import insert_rows, select_rows
from storage.engine.column_encryption import (
    ColumnCipher,
    cipher_of,
    epoch_place,
    open_some,
    repo_place,
    seal_some,
    topic_place,
)
from storage.engine.database import Database, StorageError
from storage.engine.id_keys import chunks
from storage.repos.deletion import forget_repo
from storage.repos.row_changes import row_changes
from storage.schema.schema import branches, commits, epochs, repos, topics
from verifier.facts import BranchFacts

_KEYS_REMEMBERED_MAX = 8192
"""Branches on their topics whose derived keys are remembered: about 500 bytes each."""
_ALL_REPOS = select(repos).order_by(repos.c.num)
_ALL_EPOCHS = select(epochs).order_by(epochs.c.num)
_ALL_BRANCHES = (
    select(
        topics.c.num.label("topic_num"),
        topics.c.epoch_num,
        topics.c.generation,
        topics.c.topic,
        topics.c.channel,
        topics.c.commit_count.label("topic_commit_count"),
        branches,
    )
    .join(branches, branches.c.num == topics.c.branch_num)
    .order_by(topics.c.num)
)
_KEYS: BindParameter[list[int]] = bindparam("keys", expanding=True)
_SOME_REPOS = _ALL_REPOS.where(repos.c.num.in_(_KEYS))
_EPOCHS_OF_REPOS = _ALL_EPOCHS.where(epochs.c.repo_num.in_(_KEYS))
_BRANCHES_OF_REPOS = _ALL_BRANCHES.where(branches.c.repo_num.in_(_KEYS))
_SOME_BRANCHES = _ALL_BRANCHES.where(branches.c.num.in_(_KEYS))
_COUNTS = (
    select(topics.c.num, topics.c.commit_count, branches.c.commit_count, branches.c.void_count)
    .join(branches, branches.c.num == topics.c.branch_num)
    .where(branches.c.num.in_(_KEYS))
)


_TOPIC = topics.c.topic == bindparam("topic")
_ALONE_ON_TOPIC = (
    select(branches.c.repo_num)
    .join(topics, topics.c.branch_num == branches.c.num)
    .where(_TOPIC, topics.c.epoch_num.is_(None))
)
_HOLDER = (
    select(topics.c.num, topics.c.branch_num, repos.c.repo_id, branches.c.branch_id, epochs.c.write_secret)
    .join(branches, branches.c.num == topics.c.branch_num)
    .join(repos, repos.c.num == branches.c.repo_num)
    .outerjoin(epochs, epochs.c.num == topics.c.epoch_num)
    .where(_TOPIC)
)
_ON_TOPIC_IN = select(topics.c.num).where(_TOPIC, topics.c.epoch_num == bindparam("epoch"))
_SAME_TOPIC = select(topics.c.num).where(
    _TOPIC
    | (topics.c.epoch_num == bindparam("epoch"))
    & (topics.c.branch_num == bindparam("branch"))
    & (topics.c.generation == bindparam("generation"))
)
_IS_BRANCH = branches.c.branch_id == bindparam("branch_id")
_BRANCH_OF = select(branches.c.num).where(branches.c.repo_num == bindparam("repo"), _IS_BRANCH)
# By repo: no index leads from its id to a branch.
_ALONE_WITH = select(repos.c.num).where(
    repos.c.epoch_num == 0,
    repos.c.num != bindparam("repo"),
    select(branches.c.num).where(branches.c.repo_num == repos.c.num, _IS_BRANCH).exists(),
)
_BRANCH_COLUMNS = ("num", "repo_num", "branch_id", "name", "root_id", "commit_count", "changes_from")
_TOPIC_COLUMNS = ("num", "branch_num", "epoch_num", "generation", "topic", "commit_count")


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch, and secrets that somebody says are its own. They never show in its repr.

    Until the epoch's init is here, several may be said; `node.ingest.tables` tells which are right.
    """

    num: int
    repo_num: int
    epoch_id: EpochId
    author: UserId
    read_secret: ReadSecret = field(repr=False)
    write_secret: WriteSecret | None = field(repr=False)  # only where this node may write


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

    @property
    def has_members(self) -> bool:
        """Whether its root branch is followed, and not single branches by themselves."""
        return self.epoch_num != 0


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch on one of its topics, with everything that opens it there, derived from the epoch's secrets."""

    num: int
    repo_num: int
    topic_num: int
    epoch_num: int
    name: str
    generation: int
    topic: TopicKey
    topic_commit_count: int  # accepted ones that came by the topic
    commit_count: int  # of all topics
    void_count: int  # of these
    is_archived: bool
    facts: BranchFacts
    convergence_secret: ConvergenceSecret = field(repr=False)
    read_key: ReadKey = field(repr=False)
    topic_seed: TopicSeed | None = field(repr=False)

    @property
    def branch_id(self) -> BranchId:
        """The branch's id."""
        return self.facts.branch_id


class BranchKeys(NamedTuple):
    """What an epoch's secrets give for one branch. `topic_seed` is None where only a writer could derive it."""

    convergence_secret: ConvergenceSecret
    read_key: ReadKey
    topic_seed: TopicSeed | None


@lru_cache(maxsize=_KEYS_REMEMBERED_MAX)
def branch_keys(
    repo_id: RepoId,
    read_secret: ReadSecret,
    write_secret: WriteSecret | None,
    branch_id: BranchId,
    generation: int,
) -> BranchKeys:
    """The keys of a branch in an epoch."""
    if branch_id == root_branch(repo_id):
        seed: TopicSeed | None = hashing.root_topic_seed(read_secret, repo_id)
    elif write_secret is None:
        seed = None
    else:
        seed = hashing.branch_topic_seed(write_secret, branch_id, generation)
    secret = hashing.branch_secret(read_secret, branch_id, generation)
    return BranchKeys(hashing.convergence_secret(read_secret), hashing.branch_read_key(secret), seed)


def add_repo(database: Database, connection: Connection, repo: Repo, epoch: Epoch) -> Repo:
    """Store a repo, an epoch of it and its root branch; gives it with its number.

    A repo that is here already gets the epoch, and the secrets and the invitation that it lacked.
    """
    cipher = cipher_of(connection)
    invitation = seal_some(cipher, repo_place("invitation", repo.repo_id), repo.invitation)
    found = connection.execute(select(repos).where(repos.c.repo_id == repo.repo_id)).first()
    if found and not found.epoch_num:  # single branches of it: the whole repo says better what they are
        forget_repo(connection, found.num)
        found = None
    if found:
        known = _repo(cipher, found)
        add_epoch(database, connection, known, epoch)
        if repo.invitation is not None:
            known = replace(known, invitation=repo.invitation)
            row_changes(connection).repos.add(known.num)
            connection.execute(update(repos).where(repos.c.num == known.num).values(invitation=invitation))
        return known
    stored = replace(
        repo,
        num=database.next_nums(connection, repos, 1)[0],
        epoch_num=database.next_nums(connection, epochs, 1)[0],
    )
    row_changes(connection).repos.add(stored.num)
    connection.execute(
        insert(repos).values(
            num=stored.num,
            repo_id=stored.repo_id,
            name=stored.name,
            init_id=stored.init_id,
            init_key=cipher.seal(repo_place("init_key", stored.repo_id), stored.init_key),
            epoch_num=stored.epoch_num,
            is_behind=stored.is_behind,
            invitation=invitation,
        )
    )
    add_branch(database, connection, stored.num, root_branch(stored.repo_id), "root", stored.init_id)
    first = replace(epoch, num=stored.epoch_num, repo_num=stored.num)
    if not _insert_epoch(database, connection, stored.repo_id, first):
        raise StorageError("another repo here has the secrets of this one")
    return stored


def add_epoch(database: Database, connection: Connection, repo: Repo, epoch: Epoch) -> int | None:
    """Store an epoch of a repo with these secrets, and its root branch's topic.

    Gives the number when they, or the write secret, were not here before; nothing where the topic is another epoch's.
    """
    here = replace(epoch, repo_num=repo.num)
    read_secret, write_secret = _sealed_secrets(connection, here)
    found = connection.execute(
        select(epochs).where(
            epochs.c.repo_num == repo.num,
            epochs.c.epoch_id == epoch.epoch_id,
            epochs.c.read_secret == read_secret,
        )
    ).first()
    if found is None:
        num = database.next_nums(connection, epochs, 1)[0]
        fresh = replace(here, num=num)
        return num if _insert_epoch(database, connection, repo.repo_id, fresh) else None
    if found.write_secret is not None or epoch.write_secret is None:
        return None
    row_changes(connection).repos.add(repo.num)
    connection.execute(update(epochs).where(epochs.c.num == found.num).values(write_secret=write_secret))
    return int(found.num)


def _sealed_secrets(connection: Connection, epoch: Epoch) -> tuple[bytes, bytes | None]:
    """An epoch's secrets as they are kept."""
    cipher, row = cipher_of(connection), (epoch.repo_num, epoch.epoch_id)
    read_secret = cipher.seal(epoch_place("read_secret", *row), epoch.read_secret)
    return read_secret, seal_some(cipher, epoch_place("write_secret", *row), epoch.write_secret)


def _insert_epoch(database: Database, connection: Connection, repo_id: RepoId, epoch: Epoch) -> bool:
    topic = signing.public_key(hashing.root_topic_seed(epoch.read_secret, repo_id))
    if not _claim_topic(connection, topic):
        return False
    row_changes(connection).repos.add(epoch.repo_num)
    read_secret, write_secret = _sealed_secrets(connection, epoch)
    connection.execute(
        insert(epochs).values(
            num=epoch.num,
            repo_num=epoch.repo_num,
            epoch_id=epoch.epoch_id,
            author=epoch.author,
            read_secret=read_secret,
            write_secret=write_secret,
        )
    )
    return add_topic(database, connection, epoch, root_branch(repo_id), 0, topic)


def _displace_alone(connection: Connection, topic: TopicKey) -> None:
    """Forget what is followed by itself on a topic that members state."""
    found = select_rows(connection, _ALONE_ON_TOPIC, topic=topic).first()
    if found is not None:
        forget_repo(connection, found[0])


def _claim_topic(connection: Connection, topic: TopicKey) -> bool:
    """Take a topic that follows from secrets of ours away from who merely stated it; whether nobody else derives it.

    What came by it there is kept, under a name that nobody publishes on.
    """
    _displace_alone(connection, topic)
    row = select_rows(connection, _HOLDER, topic=topic).first()
    if row is None:
        return True
    num, branch_num, repo_id, branch_id, write_secret = row
    if branch_id == repo_id or write_secret is not None:
        return False
    row_changes(connection).branches.add(branch_num)
    connection.execute(update(topics).where(topics.c.num == num).values(topic=hashing.epoch_mark(topic)))
    return True


def add_branch(
    database: Database,
    connection: Connection,
    repo_num: int,
    branch_id: BranchId,
    name: str,
    root_id: CommitId,
) -> None:
    """Store a branch; one that is there already stays as it is."""
    for num in select_rows(connection, _ALONE_WITH, repo=repo_num, branch_id=branch_id).scalars():
        forget_repo(connection, num)
    if select_rows(connection, _BRANCH_OF, repo=repo_num, branch_id=branch_id).first() is not None:
        return
    num = database.next_nums(connection, branches, 1)[0]
    row_changes(connection).branches.add(num)
    changes_from = database.next_nums(connection, commits, 0).start - 1
    row = (num, repo_num, branch_id, name, root_id, 0, changes_from)
    insert_rows(connection, branches, _BRANCH_COLUMNS, [row])


def add_topic(
    database: Database,
    connection: Connection,
    epoch: Epoch,
    branch_id: BranchId,
    generation: int,
    topic: TopicKey,
) -> bool:
    """Follow a branch's topic of an epoch from now on; whether that is new.

    The branch must be here. A topic that is there already stays as it is, and nobody takes over one that is followed.
    """
    found = select_rows(connection, _BRANCH_OF, repo=epoch.repo_num, branch_id=branch_id).first()
    _displace_alone(connection, topic)
    if found is None:
        return False
    (branch_num,) = found
    same = select_rows(
        connection, _SAME_TOPIC, epoch=epoch.num, branch=branch_num, generation=generation, topic=topic
    )
    if same.first() is not None:
        return False
    row_changes(connection).branches.add(branch_num)
    (num,) = database.next_nums(connection, topics, 1)
    insert_rows(connection, topics, _TOPIC_COLUMNS, [(num, branch_num, epoch.num, generation, topic, 0)])
    return True


def follow_topic(
    database: Database,
    connection: Connection,
    repo_id: RepoId,
    epoch: Epoch,
    branch_id: BranchId,
    topic: TopicKey,
    *,
    generation: int = 0,
) -> None:
    """Follow a branch's topic as somebody states it, unless this node can tell that it is another (writers can)."""
    seed = branch_keys(repo_id, epoch.read_secret, epoch.write_secret, branch_id, generation).topic_seed
    if seed is None or (signing.public_key(seed) == topic and _claim_or_ours(connection, epoch, topic)):
        add_topic(database, connection, epoch, branch_id, generation, topic)


def _claim_or_ours(connection: Connection, epoch: Epoch, topic: TopicKey) -> bool:
    is_ours = select_rows(connection, _ON_TOPIC_IN, topic=topic, epoch=epoch.num).first() is not None
    return is_ours or _claim_topic(connection, topic)


def load_repos(connection: Connection, nums: Collection[int] | None = None) -> list[Repo]:
    """Repos with these numbers, or all; oldest first."""
    cipher = cipher_of(connection)
    return [_repo(cipher, row) for row in _rows(connection, _ALL_REPOS, _SOME_REPOS, nums)]


def load_epochs(connection: Connection, repo_nums: Collection[int] | None = None) -> list[Epoch]:
    """Epochs of these repos, or of all, in the order in which they came to this node."""
    cipher = cipher_of(connection)
    return [_epoch(cipher, row) for row in _rows(connection, _ALL_EPOCHS, _EPOCHS_OF_REPOS, repo_nums)]


def load_branches(connection: Connection) -> list[Branch]:
    """All branches of all repos on all their topics, in the order in which the topics came, with their keys derived."""
    by_num = {repo.num: repo for repo in load_repos(connection)}
    opened = {epoch.num: epoch for epoch in load_epochs(connection)}
    return make_branches(connection, by_num, opened)


def make_branches(
    connection: Connection,
    by_num: Mapping[int, Repo],
    opened: Mapping[int, Epoch],
    repo_nums: Collection[int] | None = None,
    branch_nums: Collection[int] = (),
) -> list[Branch]:
    """The same of these repos (or of all) and of these branches, of repos and epochs as this transaction sees them."""
    cipher = cipher_of(connection)
    rows = [
        *_rows(connection, _ALL_BRANCHES, _BRANCHES_OF_REPOS, repo_nums),
        *_rows(connection, _ALL_BRANCHES, _SOME_BRANCHES, branch_nums),
    ]
    found = {row.topic_num: row for row in rows}
    return [
        _branch(cipher, row, by_num[row.repo_num], opened.get(row.epoch_num))
        for _, row in sorted(found.items())
    ]


class Counts(NamedTuple):
    """How many commits a topic and its branch have."""

    of_topic: int
    of_branch: int
    void: int


def load_counts(connection: Connection, branch_nums: Collection[int]) -> dict[int, Counts]:
    """Counts by the numbers of these branches' topics."""
    return {num: Counts(*counts) for num, *counts in _rows(connection, _COUNTS, _COUNTS, branch_nums)}


def _rows(
    connection: Connection,
    whole: Select[*tuple[Any, ...]],
    some: Select[*tuple[Any, ...]],
    keys: Collection[int] | None,
) -> Iterable[Row[*tuple[Any, ...]]]:
    """Rows of these keys, or all, in the order of their numbers."""
    if keys is None:
        return connection.execute(whole).all()
    return [row for part in chunks(sorted(keys)) for row in connection.execute(some, {"keys": part})]


def _repo(cipher: ColumnCipher, row: Row[tuple[object, ...]]) -> Repo:
    kept = Repo(**row._mapping)
    return replace(
        kept,
        init_key=BlockKey(cipher.open(repo_place("init_key", kept.repo_id), kept.init_key)),
        invitation=open_some(cipher, repo_place("invitation", kept.repo_id), kept.invitation),
    )


def _epoch(cipher: ColumnCipher, row: Row[tuple[object, ...]]) -> Epoch:
    kept = Epoch(**row._mapping)
    place = (kept.repo_num, kept.epoch_id)
    write_secret = open_some(cipher, epoch_place("write_secret", *place), kept.write_secret)
    return replace(
        kept,
        read_secret=ReadSecret(cipher.open(epoch_place("read_secret", *place), kept.read_secret)),
        write_secret=None if write_secret is None else WriteSecret(write_secret),
    )


def _branch(cipher: ColumnCipher, row: Row[tuple[object, ...]], repo: Repo, epoch: Epoch | None) -> Branch:
    if epoch is None:
        opened = cipher.open(topic_place(row.topic), row.channel)
        channel = decode(BranchChannel, opened, size_max=LINK_SIZE_MAX)
        epoch_id, epoch_num = channel.epoch, 0
        read_key = hashing.branch_read_key(channel.branch_secret)
        keys = BranchKeys(channel.convergence_secret, read_key, None)
    else:
        epoch_id, epoch_num = epoch.epoch_id, epoch.num
        keys = branch_keys(repo.repo_id, epoch.read_secret, epoch.write_secret, row.branch_id, row.generation)
    return Branch(
        num=row.num,
        repo_num=repo.num,
        topic_num=row.topic_num,
        epoch_num=epoch_num,
        name=row.name,
        generation=row.generation,
        topic=row.topic,
        topic_commit_count=row.topic_commit_count,
        commit_count=row.commit_count,
        void_count=row.void_count,
        is_archived=row.is_archived,
        facts=BranchFacts(
            repo.repo_id, repo.init_id, row.branch_id, row.root_id, epoch_id, has_members=epoch is not None
        ),
        convergence_secret=keys.convergence_secret,
        read_key=keys.read_key,
        topic_seed=keys.topic_seed,
    )
