"""People of one repo, each with a store of its own and without a network: they hear each other when a test says so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from node.authoring.author import Author
from node.authoring.drafting import AuthorKeys, CommitPosition, Draft, aim, encode_draft, make_publication
from node.ingest.acceptance import release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from node.membership.epoch_duties import EpochDuties
from node.membership.epoch_keys import KeyTaker
from node.membership.prekeys import PrekeyKeeper
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.block import Block
from protocol.formats.body import Body, Grant, Permission, Remove
from protocol.formats.epochs import EpochHand
from protocol.ids import CommitId, EpochId, UserId
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch, Repo, add_repo
from storage.topics.difference import REPLICA, plan_sending
from storage.topics.publishing import load_publications
from storage.topics.topic_sets import TopicSet, load_set
from tests.support.batches import accept_whole
from tests.support.builders import NOW_MS, STORE_KEY
from tests.support.ids import as_commit_id
from tests.support.stores import KeptFolder
from verifier.operations import Operation
from verifier.resolution import Resolution

ABSENT = as_commit_id(b"a commit that never comes".ljust(32, b"."))


class Person:
    """A user and a node."""

    def __init__(self, folder: Path, name: str, kept: KeptFolder | None = None, now: int = NOW_MS) -> None:
        """Open the store, which goes on from a kept one if there is one."""
        folder.mkdir(parents=True)
        if kept is not None:
            kept.write_to(folder)
        self.replica = Replica(folder, STORE_KEY)
        self.clock = clock = count(now)
        self.seed = UserSeed(name.encode().ljust(32, b"-"))
        self.author = Author(self.replica, self.seed, lambda: next(clock))
        self.keys = KeyTaker(self.replica, self.author)
        self.duties = EpochDuties(self.replica, self.author)
        self.prekeys = PrekeyKeeper(self.replica, self.author)

    @property
    def user(self) -> UserId:
        """The user's id."""
        return self.author.user

    @property
    def repo(self) -> Repo:
        """The one repo."""
        (repo,) = self.replica.repos.values()
        return repo

    @property
    def root(self) -> Branch:
        """Return its root branch."""
        return self.replica.root_branch(self.repo)

    @property
    def epoch(self) -> Epoch:
        """The epoch in which this user writes."""
        return self.replica.writing_epoch(self.repo)

    @property
    def now(self) -> Resolution:
        """Return what holds of all that is here."""
        return self.replica.membership(self.repo.repo_id).now()

    @property
    def heads(self) -> tuple[CommitId, ...]:
        """Heads of the root branch."""
        return self.now.heads

    @property
    def epochs(self) -> list[Operation]:
        """Return what started the epochs that are known here."""
        return self.replica.membership(self.repo.repo_id).operations.epochs

    @property
    def hands(self) -> list[tuple[Operation, EpochHand]]:
        """Return what hands epochs over."""
        operations = self.replica.membership(self.repo.repo_id).operations
        return [
            (one, one.body)
            for epoch in operations.epochs
            for one in operations.hands_of(epoch.started_epoch)
            if isinstance(one.body, EpochHand)
        ]

    def found(self) -> "Person":
        """Create the repo."""
        self.author.founding.create_repo("repo", "main")
        return self

    def follow(self, other: "Person", *, epoch: Epoch | None = None, with_secret: bool = True) -> "Person":
        """Follow the repo by what a link gives: an epoch, for writers with its writers' secret; hear nothing yet."""
        self.follow_too(other, epoch or other.epoch, with_secret=with_secret)
        return self

    def follow_too(self, other: "Person", epoch: Epoch | None = None, *, with_secret: bool = False) -> Repo:
        """Follow another's repo, which need not be the only one here; return it."""
        given = epoch or other.epoch
        stored = replace(
            given, writers_topic=None, writers_secret=given.writers_secret if with_secret else None
        )
        with self.replica.change() as change:
            repo = add_repo(
                self.replica.database, change.connection, replace(other.repo, epoch_num=0), stored
            )
        self.keys.keep(repo, [replace(stored, repo_num=repo.num)])
        return repo

    def grant(self, *others: "Person", permission: Permission = Permission.WRITE) -> None:
        """Give others a permission."""
        for other in others:
            self.author.write(self.root, Grant(other.user, permission))

    def remove(self, other: "Person", keeps: Permission | None = None) -> CommitId:
        """Exclude somebody, and start no epoch yet."""
        return self.author.write(self.root, Remove(other.user, keeps, ()))[0].commit_id

    def hear(self, *others: "Person") -> None:
        """Take in all that others have and this node follows, and the keys in it, until nothing is new."""
        before = None
        while before != (before := (self.heads, [*self.replica.topics], self.replica.tables.commit_count)):
            for other in others:
                for topic in [*self.replica.topics.values()]:
                    self.hear_on(other, topic.topic)
            self.take()

    def hear_on(self, other: "Person", topic: bytes) -> None:
        """Take in what another has on one topic and is not here: neither accepted nor waiting."""
        theirs = next((one for one in other.replica.topics.values() if one.topic == topic), None)
        if theirs is None:
            return
        own = next(one for one in self.replica.topics.values() if one.topic == topic)
        with self.replica.database.read() as connection:
            held = set(load_set(connection, TopicSet(REPLICA, own.num, own.topic))[1])
        with other.replica.database.read() as connection:
            all_of_theirs = zip(
                *load_set(connection, TopicSet(REPLICA, theirs.num, theirs.topic)), strict=True
            )
            lacking = {num for num, one in all_of_theirs if one not in held}
            if not lacking:
                return
            nums = [num for num in plan_sending(connection, theirs.num, ()).nums if num in lacking]
            items = load_publications(connection, theirs, nums, 1 << 30)
        self.receive(*items, topic=topic)

    def receive(self, *items: bytes, topic: bytes | None = None) -> IngestResult:
        """Take publications in that came on a topic: on the epoch's own where nothing else is said."""
        name = topic or self.epoch.topic
        target = next(one for one in self.replica.topics.values() if one.topic == name)
        return accept_whole(self.replica, target, open_batch(target, items), NOW_MS)

    def take(self, now: float = 0.0) -> bool:
        """Take up keys and what waited for them; whether any was new."""
        has_taken = False
        while self.keys.take(self.repo, now):
            has_taken = True
            while release_more(self.replica, NOW_MS).is_unfinished:
                pass
        return has_taken

    def act(self, now: float) -> float | None:
        """Perform duties at a time; return in how many seconds more follow, once none is left now."""
        while (wait := self.duties.perform(self.repo, now, IngestResult())) == 0.0:
            pass
        return wait

    def says(
        self,
        body: Body,
        *acks: CommitId,
        seed: UserSeed | None = None,
        epoch: Epoch | None = None,
        blocks: tuple[Block, ...] = (),
        rank: int = 1,
        by_writer: bool = False,
    ) -> tuple[CommitId, bytes]:
        """Make a root branch commit that this node does not take in; returns its id and publication on the epoch's topic.

        That is the writers' topic if the commit is `by_writer`. It waits for ever, unless the acks say otherwise. `seed` is
        of another author who holds the epoch.
        """
        published_in = epoch or self.epoch
        target = replace(aim(self.root.facts, self.root.num, published_in), by_writer=by_writer)
        position = CommitPosition(published_in.epoch_id, 1, acks=acks or (ABSENT,), rank=rank)
        keys = key_pair(self.seed if seed is None else seed)
        draft = Draft(body, further_blocks=blocks)
        written = make_publication(target, encode_draft(AuthorKeys(*keys), NOW_MS, target, draft, position))
        return written.commit_id, written.encoded

    def holds(self, epoch: EpochId) -> bool:
        """Return True if an epoch was accepted here, and so its key is."""
        return epoch in self.replica.tables.held_epochs(self.repo.num)

    def claims(self, epoch: EpochId) -> list[Epoch]:
        """Keys that are kept for an epoch."""
        return [one for one in self.replica.tables.epochs_in(self.repo.num) if one.epoch_id == epoch]


Begin = Callable[[list[Person]], object]
_BEGUN: dict[Begin, list[tuple[KeptFolder, int]]] = {}
"""What people's stores and clocks have come to, by what they did: that takes longer than most tests."""


@contextmanager
def open_people(folder: Path, *names: str, begin: Begin | None = None) -> Iterator[list[Person]]:
    """People with stores in folders of their own, closed at the end, opened after they have done what `begin` does."""
    if begin is not None and begin not in _BEGUN:
        with open_people(folder / "begun", *names) as people:
            begin(people)
        _BEGUN[begin] = [
            (KeptFolder(folder / "begun" / name), next(one.clock))
            for name, one in zip(names, people, strict=True)
        ]
    begun = _BEGUN[begin] if begin is not None else [(None, NOW_MS)] * len(names)
    people = [Person(folder / name, name, *kept) for name, kept in zip(names, begun, strict=True)]
    try:
        yield people
    finally:
        for one in people:
            one.replica.close()
