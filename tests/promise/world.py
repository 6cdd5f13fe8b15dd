"""The state of a history while it is played: people, links, what was written and known, and what went wrong.

What is right is decided by what the generator knows: who wrote which words, and which root branch commits the author's node
had accepted then. Views are noted at each change of a root branch.
"""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import trio

from protocol.formats.body import Permission
from protocol.formats.content import Post
from protocol.formats.links import InvitationLink
from protocol.ids import BranchId, CommitId, EpochId, Signature, TopicKey, UserId
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch
from tests.promise.draw import RELAY, History
from tests.promise.meetings import hand_over, meet
from tests.promise.people import Person
from tests.promise.steps import Step
from tests.promise.theft import Theft


@dataclass(frozen=True, slots=True)
class View:
    """What a node knew of the root branch at a moment: its first so many commits there, and who was a member by them."""

    count: int
    members: dict[UserId, Permission]


@dataclass(slots=True)
class Written:
    """Words that an honest member wrote."""

    author: str
    commit_id: CommitId
    branch_id: BranchId
    epoch_id: EpochId
    text: str
    view: View


@dataclass(slots=True)
class Leak:
    """A forged commit that gives the key of an epoch, whoever can open it."""

    commit_id: CommitId
    epoch_id: EpochId


@dataclass(frozen=True, slots=True)
class Signed:
    """An honest friend's signature, in the text that carries it: that a key is a device of who named it in a commit."""

    user: UserId
    friends: CommitId
    friend: UserId
    permission: Permission
    signature: Signature
    text: str


class Broken(Exception):
    """The promise does not hold: the name of the check, and what was found."""

    def __init__(self, check: str, detail: str) -> None:
        super().__init__(f"{check}: {detail}")
        self.check, self.detail = check, detail


class _Watch:
    """Notes what a person's node knows whenever its root branch grows. A listener of its hub."""

    def __init__(self, person: Person, views: list[View]) -> None:
        self._person, self._views = person, views

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """The hub's word."""
        self.topics_changed()

    def topics_changed(self) -> None:
        """The hub's word."""
        if self._person.has_repo:
            self.note()

    def missed(self) -> None:
        """The hub's word."""
        raise AssertionError("a listener of tests failed")

    def note(self) -> View:
        """Note what the node knows now, if that is more than before."""
        replica, repo = self._person.replica, self._person.repo()
        with replica.membership_lock:
            count = len(replica.membership(repo.repo_id).operations)
        if not self._views or self._views[-1].count != count:
            self._views.append(View(count, replica.members(repo) if count else {}))
        return self._views[-1]


@dataclass
class World:
    """All of one history."""

    history: History
    folder: Path
    nursery: trio.Nursery
    people: dict[str, Person] = field(default_factory=dict)
    links: list[tuple[str, InvitationLink]] = field(default_factory=list)
    """Links that were made, each with who made it."""
    branches: list[BranchId] = field(default_factory=list)
    offers: list[CommitId] = field(default_factory=list)
    lent: list[tuple[str, str]] = field(default_factory=list)
    """Authors and users of device grants."""
    named: list[tuple[str, str]] = field(default_factory=list)
    """Members, and whom they named as friends."""
    signed: list[Signed] = field(default_factory=list)
    """What friends have signed."""
    written: list[Written] = field(default_factory=list)
    views: dict[str, list[View]] = field(default_factory=dict)
    given: dict[str, set[EpochId]] = field(default_factory=dict)
    """Epochs whose keys somebody was given by links."""
    thefts: list[Theft] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)
    forged: dict[CommitId, str] = field(default_factory=dict)
    """Commits that adversaries have forged, and what each is."""
    forges: dict[str, object] = field(default_factory=dict)
    """By adversary: what it forges with (`forging.Forge`)."""
    forged_epochs: dict[str, list[Epoch]] = field(default_factory=dict)
    """By adversary: epochs that it forged, whether anybody accepts them or not."""
    taken: dict[tuple[str, str], dict[int, tuple[int, tuple[EpochId, ...]]]] = field(default_factory=dict)
    """By adversary and taker: which of its forged publications were given, and of which epochs the topic was then."""
    steps: list[Step] = field(default_factory=list)
    """Those that were taken."""
    log: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What nodes logged as errors."""
    done: dict[str, int] = field(default_factory=dict)
    """How often each act was done, and not passed over."""
    watches: dict[str, _Watch] = field(default_factory=dict)
    rng: Random = field(init=False)
    """Draws what healing does."""

    def __post_init__(self) -> None:
        """Let healing follow from the seed alone."""
        self.rng = Random(f"healing {self.history.seed}")

    def add_person(self, name: str) -> Person:
        """Make a node, which does not follow the repo yet."""
        person = Person(self.folder / name, name, self.history.seed)
        self.people[name] = person
        self.views[name] = []
        self.watch(person)
        return person

    def watch(self, person: Person) -> None:
        """Note what the node knows from now on."""
        watch = self.watches[person.name] = _Watch(person, self.views[person.name])
        person.hub.add(watch)

    def view_of(self, person: Person) -> View:
        """What a node knows now."""
        return self.watches[person.name].note()

    def is_honest(self, name: str) -> bool:
        """Whether a person keeps the rules."""
        return name not in self.history.hostile

    def honest(self) -> list[Person]:
        """Honest people who follow the repo."""
        return [
            one
            for name, one in self.people.items()
            if self.is_honest(name) and name != RELAY and one.has_repo
        ]

    def members(self) -> list[Person]:
        """Honest members, as the honest node sees it that knows most."""
        held = self.best_view()
        return [one for one in self.honest() if one.user in held]

    def best_view(self) -> dict[UserId, Permission]:
        """Who is a member by the honest node that knows most of the root branch."""
        best = max((self.view_of(one) for one in self.honest()), key=lambda view: view.count)
        return best.members

    def states(self) -> dict[str, int | None]:
        """What everybody holds by the own node; 0: no member; None: the node is stopped."""
        found: dict[str, int | None] = {}
        for name in self.history.names:
            person = self.people[name]
            if not person.is_running:
                found[name] = None
            else:
                found[name] = self.view_of(person).members.get(person.user, 0) if person.has_repo else 0
        return found

    def levels_at(self, name: str) -> dict[str, int]:
        """What everybody holds by somebody's node."""
        person = self.people[name]
        held = self.view_of(person).members if person.has_repo else {}
        return {other: int(held.get(self.people[other].user, 0)) for other in self.history.names}

    async def meet(self, one: Person, other: Person, seconds: float) -> None:
        """Let two meet, as people of this history do; relays know sessions alone."""
        if self.history.has_sessions or RELAY in (one.name, other.name):
            await meet(one, other, seconds)
        else:
            await hand_over(one, other, seconds)

    def name_of(self, user: UserId) -> str:
        """The name of a person."""
        return next((name for name, one in self.people.items() if one.user == user), user.hex()[:8])

    def write(self, person: Person, branch: Branch) -> Written:
        """Have a person write words that nobody else writes. Raises ServiceError."""
        text = f"{person.name} {len(self.written)} of {self.history.seed}"
        made, ingested = person.author.write(branch, Post(text))
        person.hub.announce(ingested)
        epoch = person.epoch().epoch_id
        words = Written(person.name, made.commit_id, branch.branch_id, epoch, text, self.view_of(person))
        if self.is_honest(person.name):
            self.written.append(words)
        return words

    def keys_of(self, person: Person) -> list[Epoch]:
        """Epochs with the keys that a person has, by the node or as an adversary."""
        return [*person.replica.tables.epochs.values(), *self.forged_epochs.get(person.name, ())]

    def give_link(self, person: Person, epoch: EpochId) -> None:
        """Note that a person has a link with the key of an epoch."""
        self.given.setdefault(person.name, set()).add(epoch)

    def close(self) -> None:
        """Close all stores."""
        for person in self.people.values():
            person.replica.close()
