"""Knowledge of one node, from the publications that came to it: a function of the set, whatever the order of arrival.

A publication is a commit on a topic. An epoch has the topic T, whose seed follows from the epoch's key, and the writers'
topic W, which is known to who has the key and the init. A commit's *own* publication is on W if it says `by_writer`, else on
T; an init's *echo* is on T of the epoch that it starts (E6). All others are strays: V1 drops them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.commits import (
    ALL,
    NOBODY,
    ROOT,
    Hand,
    Init,
    Open,
    causes_of,
    key_of,
    writers_topic,
)
from tests.model.switches import at_reset, memo, on
from tests.model.verdicts import is_right, is_waiting_for_key, is_waiting_for_pin


class Topic(NamedTuple):
    """Topic T of the epochs with this key, or W of those that state this writers' secret."""

    kind: str
    secret: int


class Publication(NamedTuple):
    """A commit on a topic."""

    commit: int
    topic: Topic


class Given(NamedTuple):
    """Secret that a user got beside commits, by a link: a key, or a writers' secret. "kept": of a rejected commit."""

    kind: str
    secret: int


PUBLICATIONS: list[Publication] = []
_NUMBERS: dict[Publication, int] = {}


def number_of(commit: int, topic: Topic) -> int:
    """Return the number of a publication."""
    one = Publication(commit, topic)
    if one not in _NUMBERS:
        _NUMBERS[one] = len(PUBLICATIONS)
        PUBLICATIONS.append(one)
    return _NUMBERS[one]


@at_reset
def _forget() -> None:
    PUBLICATIONS.clear()
    _NUMBERS.clear()


def own_topic(one: int) -> Topic:
    """V1: the one topic of its epoch on which a commit is published."""
    commit = ALL[one]
    return Topic("W", writers_topic(commit.epoch)) if commit.by_writer else Topic("T", key_of(commit.epoch))


@memo
def topics_of(one: int) -> tuple[Topic, ...]:
    """Return the topics of which the commit's publications are not dropped: its own, and an init's echo (E6)."""
    echo = Topic("T", key_of(one))
    return (own_topic(one), echo) if ALL[one].kind == "init" and on("E6") else (own_topic(one),)


@memo
def published(one: int) -> frozenset[int]:
    """Return the publications that an honest author of a commit makes."""
    return frozenset(number_of(one, topic) for topic in topics_of(one))


@dataclass
class View:
    """The state of one node."""

    user: str
    accepted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()  # publications
    came_by: dict[int, Topic] = field(default_factory=dict)  # accepted commits, by the first topic
    keys: frozenset[int] = frozenset()
    secrets: frozenset[int] = frozenset()
    topics: frozenset[Topic] = frozenset()
    roots: frozenset[int] = frozenset()


class Reader:
    """Growing knowledge of one user: keys, secrets and topics, from commits that it can read."""

    def __init__(self, user: str, given: frozenset[Given]) -> None:
        self.user = user
        self.keys = {one.secret for one in given if one.kind in ("key", "kept")}
        self.secrets = {one.secret for one in given if one.kind == "writers"}
        self.topics = {Topic("T", key) for key in self.keys} | {Topic("W", secret) for secret in self.secrets}

    def learn(self, one: int) -> bool:
        """Take what a readable commit gives; return True if there may be more once other keys are here."""
        body = ALL[one].body
        if isinstance(body, Init):
            return self._learn_init(one, body)
        if isinstance(body, Open):
            self._add_keys(body.epochs - body.wrong)
        elif isinstance(body, Hand) and self.user in body.users and self.user not in body.wrong:
            self._add_keys({body.epoch})
        return False

    def _learn_init(self, one: int, body: Init) -> bool:
        key = key_of(one)
        if self.user in body.boxes and self.user not in body.wrong and key != NOBODY:
            self._add_keys({one})
        if key not in self.keys:
            return True
        self._add_keys(body.opens)
        return False

    def _add_keys(self, epochs: frozenset[int] | set[int]) -> None:
        for epoch in epochs:
            key = key_of(epoch)
            if key not in self.keys and key != NOBODY:
                self.keys.add(key)
                self.topics.add(Topic("T", key))

    def take_secrets(self, one: int) -> None:
        """Take the writers' secret that an accepted commit gives; follow the writers' topic of an epoch that it starts."""
        body = ALL[one].body
        if isinstance(body, Init):
            if (
                self.user in body.writers
                and self.user not in body.wrong_writers
                and writers_topic(one) != NOBODY
            ):
                self.secrets.add(writers_topic(one))
        elif isinstance(body, Hand) and self.user in body.writers and self.user not in body.wrong:
            self.secrets.add(writers_topic(body.epoch))
        is_writer = isinstance(body, Init) and self.user in body.writers
        if ALL[one].kind in ("found", "init") and (
            on("E1 key holders follow the writers' topic") or is_writer
        ):
            self.topics.add(Topic("W", writers_topic(one)))

    def can_read(self, publication: Publication) -> bool:
        """Return True if the topic is followed: a publication's commit key is sealed for those who can derive T."""
        if publication.topic not in self.topics:
            return False
        if publication.topic.kind == "W" and publication.topic in topics_of(publication.commit):
            return key_of(ALL[publication.commit].epoch) in self.keys
        return True


def is_dropped(publication: Publication) -> bool:
    """V1: the commit's epoch is not one of the topic's, or `by_writer` does not fit."""
    if publication.topic in topics_of(publication.commit):
        return False
    commit = ALL[publication.commit]
    fits_epoch = publication.topic.secret in (key_of(commit.epoch), writers_topic(commit.epoch))
    return on("V1 by_writer fits") if fits_epoch else on("V1 the epoch fits")


@memo
def view(user: str, given: frozenset[Given], held: frozenset[int]) -> View:
    """Return what a user makes of the publications that it holds."""
    reader = Reader(user, given)
    readable: dict[int, Topic] = {}
    accepted: set[int] = set()
    rejected: set[int] = set()
    learned: set[int] = set()
    dropped: set[int] = set()
    unread = sorted(held, key=lambda number: (PUBLICATIONS[number].commit, number))
    is_new = True
    while is_new:
        is_new = False
        left = []
        for number in unread:
            publication = PUBLICATIONS[number]
            if not reader.can_read(publication):
                left.append(number)
            elif is_dropped(publication):
                dropped.add(number)
            else:
                readable.setdefault(publication.commit, publication.topic)
                is_new = True
        unread = left
        for one in readable:
            if one not in learned and _gives_keys(one, accepted, rejected):
                before = len(reader.topics) + len(reader.keys) + len(reader.secrets)
                if not reader.learn(one):
                    learned.add(one)
                is_new |= before != len(reader.topics) + len(reader.keys) + len(reader.secrets)
            if one in accepted or one in rejected:
                continue
            verdict = judge(one, accepted, rejected, reader.keys)
            if verdict is True:
                accepted.add(one)
                reader.take_secrets(one)
                is_new = True
            elif verdict is False:
                rejected.add(one)
                is_new = True
    return View(
        user,
        frozenset(accepted),
        frozenset(rejected),
        frozenset(readable.keys() - accepted - rejected),
        frozenset(dropped),
        {one: readable[one] for one in accepted},
        frozenset(reader.keys),
        frozenset(reader.secrets),
        frozenset(reader.topics),
        frozenset(one for one in accepted if ALL[one].branch == ROOT),
    )


def _gives_keys(one: int, accepted: set[int], rejected: set[int]) -> bool:
    """E7: keys are taken from everything that opens, whatever becomes of it."""
    if not on("E7 keys of what is rejected") and (
        one in rejected or judge(one, accepted, rejected, set()) is False
    ):
        return False
    return one in accepted or on("E7 keys of what waits")


def judge(one: int, accepted: set[int], rejected: set[int], keys: set[int]) -> bool | None:
    """Return the verdict on a readable commit; None while it waits."""
    causes = causes_of(one)
    if not on("P2 words are no causes"):
        causes = causes | getattr(ALL[one].body, "words", frozenset())
    if not rejected.isdisjoint(causes):
        return False
    if not causes <= accepted:
        return None
    if is_waiting_for_key(one, keys) or is_waiting_for_pin(one, accepted):
        return None
    return is_right(one)


def served(seen: View, held: frozenset[int]) -> frozenset[int]:
    """Return the publications that an honest node gives: of what it accepted or keeps waiting, signed anew where it can."""
    kept = seen.accepted | seen.waiting
    given = {n for n in held if PUBLICATIONS[n].commit in kept and n not in seen.dropped}
    for one in seen.accepted:
        for topic in topics_of(one):
            if topic.secret in (seen.keys if topic.kind == "T" else seen.secrets):
                given.add(number_of(one, topic))
    return frozenset(given)
