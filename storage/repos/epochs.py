"""Tables of epochs and topics, with what opens them: `Epoch` is an epoch with its key, `Topic` what travels together.

An epoch has two topics: its own, which follows from its key, and the writers' topic, which its init states. Several epochs
may name one topic: a key may be used twice, and an init may state what it likes. A topic is one row all the same.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, bindparam, insert, select, update

from protocol.codec import decode
from protocol.crypto import hashing, signing
from protocol.crypto.epoch_boxes import epoch_mark
from protocol.crypto.keys import ConvergenceSecret, EpochKey, ReadKey, TopicSeed, WritersSecret
from protocol.formats.links import BranchChannel
from protocol.ids import BranchId, EpochId, Mark, RepoId, TopicKey, UserId
from protocol.limits.formats import LINK_SIZE_MAX
from storage.engine.bulk import insert_rows, select_rows
from storage.engine.column_encryption import (
    cipher_of,
    epoch_place,
    open_optional,
    seal_optional,
    topic_place,
)
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.repos.deletion import forget_repo
from storage.repos.row_changes import row_changes
from storage.schema.schema import branches, epochs, repos, topics
from verifier.facts import TopicFacts

_KEYS_REMEMBERED_MAX: Final = 8192
"""Epochs, or branches in them, whose derived keys are remembered: about 500 bytes each."""


class EpochKeys(NamedTuple):
    """Keys and ids that follow from an epoch's key in a repo."""

    read_key: ReadKey
    convergence_secret: ConvergenceSecret
    topic_seed: TopicSeed
    topic: TopicKey
    mark: Mark


@lru_cache(maxsize=_KEYS_REMEMBERED_MAX)
def epoch_keys(repo_id: RepoId, key: EpochKey) -> EpochKeys:
    """Derive what follows from an epoch's key."""
    seed = hashing.epoch_topic_seed(key, repo_id)
    return EpochKeys(
        hashing.epoch_read_key(key),
        hashing.convergence_secret(key),
        seed,
        signing.public_key(seed),
        epoch_mark(key, repo_id),
    )


@lru_cache(maxsize=_KEYS_REMEMBERED_MAX)
def _public_key(seed: TopicSeed) -> TopicKey:
    return signing.public_key(seed)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch and its key. Secrets never show in its repr.

    Until the epoch's init is here, several keys may be said to be its own: `claimed_by` is who says so.
    """

    num: int
    repo_num: int
    repo_id: RepoId
    epoch_id: EpochId
    key: EpochKey = field(repr=False)
    writers_secret: WritersSecret | None = field(default=None, repr=False)
    writers_topic: TopicKey | None = None
    """Topic that the epoch's init states; None while that is not here."""
    claimed_by: UserId | None = None

    @property
    def keys(self) -> EpochKeys:
        """Return all that follows from the key."""
        return epoch_keys(self.repo_id, self.key)

    @property
    def convergence_secret(self) -> ConvergenceSecret:
        """The secret that block keys of the epoch are derived with."""
        return self.keys.convergence_secret

    @property
    def topic(self) -> TopicKey:
        """The epoch's own topic."""
        return self.keys.topic

    @property
    def writers_seed(self) -> TopicSeed | None:
        """The seed of the writers' topic, where this node holds a writers' secret that gives the stated topic."""
        if self.writers_secret is None or self.writers_topic is None:
            return None
        seed = hashing.writers_topic_seed(self.writers_secret, self.repo_id, self.keys.mark)
        return seed if _public_key(seed) == self.writers_topic else None

    def seed_of(self, topic: TopicKey) -> TopicSeed | None:
        """Return the seed of one of the epoch's two topics, or None if this node cannot publish there."""
        return self.keys.topic_seed if topic == self.topic else self.writers_seed


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that this node opens.

    It is the own topic of some epochs, and the writers' topic of others. A *link topic* carries one branch of one epoch; to
    who follows that branch alone, a link has given the `channel`.
    """

    num: int
    topic: TopicKey
    repo_num: int
    epochs: tuple[Epoch, ...] = ()
    writers_of: tuple[Epoch, ...] = ()
    branch_num: int | None = None
    branch_id: BranchId | None = None
    channel: BranchChannel | None = field(default=None, repr=False)

    @property
    def is_link(self) -> bool:
        """Return True if it carries one branch alone."""
        return self.branch_num is not None

    @property
    def is_view(self) -> bool:
        """Return True if what it carries stands on an epoch's topics here, too: of one branch alone."""
        return self.is_link and self.channel is None

    @property
    def is_of_all(self) -> bool:
        """Return True if it is an epoch's own topic, where all who hold the epoch publish."""
        return bool(self.epochs) and not self.is_link

    @property
    def repo_nums(self) -> set[int]:
        """Numbers of its repos: an init may state the topic of another repo as its writers' topic."""
        return {self.repo_num, *(one.repo_num for one in (*self.epochs, *self.writers_of))}

    @property
    def facts(self) -> TopicFacts:
        """Return the facts that the verifier's rules look at."""
        if self.channel is not None:
            return TopicFacts(frozenset((self.channel.epoch,)), branch_id=self.branch_id)
        return TopicFacts(
            frozenset(one.epoch_id for one in self.epochs),
            frozenset(one.epoch_id for one in self.writers_of),
            self.branch_id,
        )

    @property
    def seed(self) -> TopicSeed | None:
        """Return the topic's seed, or None if this node cannot publish on it."""
        if self.branch_id is not None:
            secrets = [one.writers_secret for one in self.epochs if one.writers_secret is not None]
            return hashing.link_topic_seed(secrets[0], self.branch_id) if secrets else None
        for epoch in (*self.epochs, *self.writers_of):
            if (seed := epoch.seed_of(self.topic)) is not None:
                return seed
        return None


_KEYS: BindParameter[list[int]] = bindparam("keys", expanding=True)
_EPOCH_COLUMNS = (
    epochs.c.num,
    epochs.c.repo_num,
    repos.c.repo_id,
    epochs.c.epoch_id,
    epochs.c.key,
    epochs.c.writers_secret,
    topics.c.topic.label("writers_topic"),
    epochs.c.claimed_by,
)
_EPOCHS = (
    select(*_EPOCH_COLUMNS)
    .join(repos, repos.c.num == epochs.c.repo_num)
    .outerjoin(topics, topics.c.num == epochs.c.writers_topic_num)
    .order_by(epochs.c.num)
)
_EPOCHS_OF_REPOS = _EPOCHS.where(epochs.c.repo_num.in_(_KEYS))
_SOME_EPOCHS = _EPOCHS.where(epochs.c.num.in_(_KEYS))
_PLACES = select(epochs.c.num, epochs.c.topic_num, epochs.c.writers_topic_num)
_PLACES_ON = _PLACES.where(epochs.c.topic_num.in_(_KEYS) | epochs.c.writers_topic_num.in_(_KEYS))
_NUMS_OF_REPOS = select(epochs.c.topic_num, epochs.c.writers_topic_num).where(epochs.c.repo_num.in_(_KEYS))
_TOPICS = (
    select(topics, branches.c.branch_id, branches.c.repo_num)
    .outerjoin(branches, branches.c.num == topics.c.branch_num)
    .order_by(topics.c.num)
)
_SOME_TOPICS = _TOPICS.where(topics.c.num.in_(_KEYS))
_LINKS_OF_REPOS = (
    select(topics.c.num)
    .join(branches, branches.c.num == topics.c.branch_num)
    .where(branches.c.repo_num.in_(_KEYS))
)
_TOPIC = topics.c.topic == bindparam("topic")
_FIND_TOPIC = (
    select(topics.c.num, topics.c.channel, branches.c.repo_num)
    .outerjoin(branches, branches.c.num == topics.c.branch_num)
    .where(_TOPIC)
)
_TOPIC_COLUMNS = ("num", "topic", "commit_count", "branch_num", "epoch_num")


def load_epochs(
    connection: Connection, repo_nums: Collection[int] | None = None, nums: Collection[int] = ()
) -> list[Epoch]:
    """Load the epochs of these repos (or of all) and these epochs, in the order in which they came to this node.

    Costs O(those).
    """
    cipher = cipher_of(connection)
    rows: Iterable[Row[Any, Any, Any, Any, Any, Any, Any, Any]]
    if repo_nums is None:
        rows = connection.execute(_EPOCHS).all()
    else:
        chosen = ((_EPOCHS_OF_REPOS, repo_nums), (_SOME_EPOCHS, nums))
        read = {
            row.num: row
            for statement, keys in chosen
            for part in chunks(sorted(keys))
            for row in connection.execute(statement, {"keys": part})
        }
        rows = [row for _, row in sorted(read.items())]
    found = []
    for row in rows:
        kept = Epoch(**row._mapping)
        place = (kept.repo_num, kept.epoch_id)
        secret = open_optional(cipher, epoch_place("writers_secret", *place), kept.writers_secret)
        found.append(
            replace(
                kept,
                key=EpochKey(cipher.open(epoch_place("key", *place), kept.key)),
                writers_secret=None if secret is None else WritersSecret(secret),
            )
        )
    return found


def find_topics(connection: Connection, repo_nums: Collection[int]) -> set[int]:
    """Find the numbers of the topics of these repos. Costs O(these)."""
    keys = [{"keys": part} for part in chunks(sorted(repo_nums))]
    nums = {num for part in keys for row in connection.execute(_NUMS_OF_REPOS, part) for num in row if num}
    return nums | {row[0] for part in keys for row in connection.execute(_LINKS_OF_REPOS, part)}


def load_topics(
    connection: Connection, opened: Mapping[int, Epoch], nums: Collection[int] | None = None
) -> list[Topic]:
    """Load these topics, or all, in the order in which they came; `opened` are all epochs by number.

    Costs O(these topics).
    """
    if nums is None:
        places, rows = connection.execute(_PLACES).all(), connection.execute(_TOPICS).all()
    else:
        parts = [{"keys": part} for part in chunks(sorted(nums))]
        places = [row for part in parts for row in connection.execute(_PLACES_ON, part)]
        rows = [row for part in parts for row in connection.execute(_SOME_TOPICS, part)]
    own: dict[int, list[Epoch]] = {}
    writers: dict[int, list[Epoch]] = {}
    for num, topic_num, writers_num in sorted(set(map(tuple, places))):
        own.setdefault(topic_num, []).append(opened[num])
        if writers_num is not None:
            writers.setdefault(writers_num, []).append(opened[num])
    cipher = cipher_of(connection)
    found = []
    for row in rows:
        epochs_of, writers_of = tuple(own.get(row.num, ())), tuple(writers.get(row.num, ()))
        if row.epoch_num is not None:
            epochs_of = (opened[row.epoch_num],)
        users = (*epochs_of, *writers_of)
        if row.repo_num is None and not users:
            continue  # its epochs are forgotten
        channel = None
        if row.channel is not None:
            opened_link = cipher.open(topic_place(row.topic), row.channel)
            channel = decode(BranchChannel, opened_link, size_max=LINK_SIZE_MAX)
        found.append(
            Topic(
                row.num,
                row.topic,
                users[0].repo_num if row.repo_num is None else row.repo_num,
                epochs_of,
                writers_of,
                row.branch_num,
                row.branch_id,
                channel,
            )
        )
    return found


def add_epoch(database: Database, connection: Connection, epoch: Epoch) -> int | None:
    """Store an epoch of a repo with this key, and its topic.

    Return its number where the key, or the writers' secret, was not here before.
    """
    row_num = epoch.repo_num
    found = connection.execute(
        select(epochs).where(
            epochs.c.repo_num == row_num,
            epochs.c.epoch_id == epoch.epoch_id,
            epochs.c.key == _sealed_key(connection, epoch),
        )
    ).first()
    if found is None:
        return _insert_epoch(database, connection, epoch)
    changes: dict[str, object] = {}
    if found.writers_secret is None and epoch.writers_secret is not None:
        changes["writers_secret"] = _sealed_secret(connection, epoch)
    if found.claimed_by is not None and epoch.claimed_by is None:
        changes["claimed_by"] = None
    if not changes:
        return None
    row_changes(connection).note_epoch(row_num, found.num)
    connection.execute(update(epochs).where(epochs.c.num == found.num).values(changes))
    return int(found.num)


def _insert_epoch(database: Database, connection: Connection, epoch: Epoch) -> int:
    (num,) = database.next_nums(connection, epochs, 1)
    row_changes(connection).note_epoch(epoch.repo_num, num)
    writers = None
    if epoch.writers_topic is not None:
        writers = claim_topic(database, connection, epoch.writers_topic)
    connection.execute(
        insert(epochs).values(
            num=num,
            repo_num=epoch.repo_num,
            epoch_id=epoch.epoch_id,
            key=_sealed_key(connection, epoch),
            writers_secret=_sealed_secret(connection, epoch),
            topic_num=claim_topic(database, connection, epoch.topic),
            writers_topic_num=writers,
            claimed_by=epoch.claimed_by,
        )
    )
    return num


def state_writers_topic(database: Database, connection: Connection, epoch: Epoch, topic: TopicKey) -> None:
    """Record the writers' topic that an epoch's init states. This also marks the epoch's key as right."""
    row_changes(connection).note_epoch(epoch.repo_num, epoch.num)
    num = claim_topic(database, connection, topic)
    values = {"writers_topic_num": num, "claimed_by": None}
    connection.execute(update(epochs).where(epochs.c.num == epoch.num).values(values))


def claim_topic(
    database: Database,
    connection: Connection,
    topic: TopicKey,
    branch_num: int | None = None,
    epoch_num: int | None = None,
) -> int:
    """Return the number of a topic, which is stored if it was not; for a link topic with its branch and epoch.

    What was followed by itself on it, as a link said, is forgotten: the repo's own secrets say better what it is.
    """
    found = select_rows(connection, _FIND_TOPIC, topic=topic).first()
    if found is not None:
        num, channel, repo_num = found
        if channel is None:
            if branch_num is not None and repo_num is None:  # an init stated it before the link was made
                values = {"branch_num": branch_num, "epoch_num": epoch_num}
                connection.execute(update(topics).where(topics.c.num == num).values(values))
            row_changes(connection).topics.add(num)
            return int(num)
        forget_repo(connection, repo_num)
    (num,) = database.next_nums(connection, topics, 1)
    row_changes(connection).topics.add(num)
    insert_rows(connection, topics, _TOPIC_COLUMNS, [(num, topic, 0, branch_num, epoch_num)])
    return num


def _sealed_key(connection: Connection, epoch: Epoch) -> bytes:
    return cipher_of(connection).seal(epoch_place("key", epoch.repo_num, epoch.epoch_id), epoch.key)


def _sealed_secret(connection: Connection, epoch: Epoch) -> bytes | None:
    place = epoch_place("writers_secret", epoch.repo_num, epoch.epoch_id)
    return seal_optional(cipher_of(connection), place, epoch.writers_secret)
