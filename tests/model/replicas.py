"""A node as an algorithm: publications come one at a time, in any order, and what may wait is bounded.

`views.view` is the definition. A `Replica` without bounds must come to the same, in whatever order publications come; with
bounds it must come to the same after enough comparisons, and say meanwhile that something waits.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.model.commits import (
    ADMIN,
    ALL,
    NOBODY,
    ROOT,
    WRITE,
    Hand,
    Init,
    Open,
    causes_of,
    deciding,
    inits,
    key_of,
    writers_topic,
)
from tests.model.members import permission
from tests.model.verdicts import is_right, is_waiting_for_key, is_waiting_for_pin
from tests.model.views import PUBLICATIONS, Given, Publication, Topic, is_dropped


@dataclass(frozen=True)
class Bounds:
    """Bounds on what a replica keeps and follows; each flag left out weakens it."""

    waiting_max: int = 10**9  # commits of a topic; half of them of one author
    claims_max: int = 10**9  # topics of claimed keys that are followed at a time
    has_author_share: bool = True
    has_turns: bool = True  # claims take turns; else the first ones stay
    has_classes: bool = True  # admins first, then who may write, then the writers' topic, then others
    has_keys_of_dropped: bool = True  # keys are taken also of what finds no room
    has_false_beside: bool = True  # of each author one claim for an epoch; else the first claim alone


@dataclass(frozen=True)
class Standing:
    """Statement of a node about itself."""

    waiting: int
    dropped: int
    claims: int

    @property
    def is_level(self) -> bool:
        """Return True if nothing that came is without a verdict."""
        return not self.waiting and not self.dropped


@dataclass(frozen=True)
class Claim:
    """A key that a commit gives for an epoch whose init was not accepted."""

    epoch: int
    key: int
    author: str
    is_by_writer: bool


class Replica:
    """One user's node."""

    def __init__(
        self, user: str, given: frozenset[Given], bounds: Bounds | None = None, link: int | None = None
    ) -> None:
        self.user, self.bounds, self.link = user, bounds or Bounds(), link
        self.keys = {one.secret for one in given if one.kind == "key"}
        self.secrets = {one.secret for one in given if one.kind == "writers"}
        self.accepted: set[int] = set()
        self.rejected: set[int] = set()
        self.waiting: dict[int, Topic] = {}
        self.claims: dict[tuple[int, str], Claim] = {}
        self.lacking: dict[int, set[int]] = {}  # by cause, what waits for it
        self.came: set[int] = set()
        self.dropped: set[int] = set()
        self.turn = 0
        self.tried = 0
        self._given = frozenset(self.keys)

    # --- keys ---

    def proven(self) -> set[int]:
        """Return keys that were given, or that open accepted epochs."""
        return {key_of(e) for e in inits(frozenset(self.accepted)) if key_of(e) in self.keys} | self._given

    def followed(self) -> set[Topic]:
        """Return the topics of proven keys and, in turns, of claimed ones."""
        proven = self.proven()
        keys = proven | {claim.key for claim in self._chosen(proven)}
        topics = {Topic("T", key) for key in keys}
        here = inits(frozenset(self.accepted))
        return topics | {Topic("W", writers_topic(e)) for e in here} | {Topic("W", s) for s in self.secrets}

    def _chosen(self, proven: set[int]) -> list[Claim]:
        here = frozenset(self.accepted)
        open_ = [c for c in self.claims.values() if c.key not in proven and c.epoch not in self.accepted]
        # A waiting init states its mark: a claim that does not fit it is false.
        seen = {*inits(here | frozenset(self.waiting))}
        open_ = [c for c in open_ if c.epoch not in seen or key_of(c.epoch) == c.key]
        if not self.bounds.has_turns:
            return open_[: self.bounds.claims_max]
        queues: dict[int, dict[str, list[Claim]]] = {}
        for claim in open_:
            queues.setdefault(self._class_of(claim), {}).setdefault(claim.author, []).append(claim)
        chosen: list[Claim] = []
        done: set[int] = set()
        for number in sorted(
            queues, key=lambda n: (sum(map(len, queues[n].values())), n)
        ):  # what a class leaves, others use
            left = sum(1 for n in queues if n not in done)
            room = max(1, (self.bounds.claims_max - len(chosen)) // left)
            done.add(number)
            rounds = itertools.zip_longest(*queues[number].values())  # authors take turns
            ahead = [claim for claims in rounds for claim in claims if claim is not None]
            start = self.turn * room % len(ahead) if len(ahead) > room else 0
            chosen += (ahead[start:] + ahead[:start])[:room]
        return chosen

    def _class_of(self, claim: Claim) -> int:
        if not self.bounds.has_classes:
            return 0
        level = permission(
            deciding(frozenset(o for o in self.accepted if ALL[o].branch == ROOT)), claim.author
        )
        return 0 if level >= ADMIN else 1 if level >= WRITE else 2 if claim.is_by_writer else 3

    def _learn(self, one: int) -> None:
        commit, body = ALL[one], ALL[one].body
        if isinstance(body, Init):
            if self.user in body.boxes and self.user not in body.wrong and key_of(one) != NOBODY:
                self._claim(one, key_of(one), one)
            if key_of(one) in self.keys:
                for epoch in body.opens:
                    self._claim(epoch, key_of(epoch), one)
        elif isinstance(body, Open):
            for epoch in body.epochs:
                self._claim(
                    epoch, _false(epoch, commit.author) if epoch in body.wrong else key_of(epoch), one
                )
        elif isinstance(body, Hand) and self.user in body.users and self.user not in body.wrong:
            self._claim(body.epoch, key_of(body.epoch), one)

    def _claim(self, epoch: int, key: int, by: int) -> None:
        place = (epoch, ALL[by].author if self.bounds.has_false_beside else "")
        if key != NOBODY and place not in self.claims:
            self.claims[place] = Claim(epoch, key, ALL[by].author, ALL[by].by_writer)
        if key != NOBODY and key >= 0:
            self.keys.add(key)

    # --- publications ---

    def take(self, number: int) -> None:
        """Take one publication of a followed topic."""
        publication = PUBLICATIONS[number]
        one = publication.commit
        if is_dropped(publication) or one in self.accepted or one in self.rejected or one in self.waiting:
            return
        if not self.can_open(publication):
            return  # it is sent again at the next comparison
        self.came.add(one)
        if self._is_ready(one) or self._has_room(publication):
            self.dropped.discard(one)
            self._learn(one)
            self.waiting[one] = publication.topic
            for cause in causes_of(one) - self.accepted:
                self.lacking.setdefault(cause, set()).add(one)
            self._settle([one])
        else:
            self.dropped.add(one)
            if self.bounds.has_keys_of_dropped:
                self._learn(one)

    def can_open(self, publication: Publication) -> bool:
        """Return False for a commit of another epoch that states this writers' topic, too, and whose key is not here yet."""
        return publication.topic.kind != "W" or key_of(ALL[publication.commit].epoch) in self.keys

    def _is_ready(self, one: int) -> bool:
        return causes_of(one) <= self.accepted

    def _has_room(self, publication: Publication) -> bool:
        there = [one for one, topic in self.waiting.items() if topic == publication.topic]
        author = ALL[publication.commit].author
        own = sum(ALL[one].author == author for one in there)
        half = max(1, self.bounds.waiting_max // 2)
        return len(there) < self.bounds.waiting_max and (own < half or not self.bounds.has_author_share)

    def _settle(self, ahead: list[int]) -> None:
        """Judge what waits, then what waited for that."""
        while ahead:
            one = ahead.pop()
            verdict = self._judge(one) if one in self.waiting else None
            if verdict is None:
                continue
            del self.waiting[one]
            (self.accepted if verdict else self.rejected).add(one)
            ahead += self.lacking.pop(one, ())
            if verdict and isinstance(ALL[one].body, Init | Open | Hand):
                for other in [*self.accepted, *self.waiting, *self.rejected]:
                    self._learn(other)
            if verdict and (ALL[one].kind in ("add", "init", "open", "hand")):
                ahead += [
                    other for other in self.waiting if ALL[other].kind in ("first", "init", "open", "hand")
                ]

    def _judge(self, one: int) -> bool | None:
        causes = causes_of(one)
        if not self.rejected.isdisjoint(causes):
            return False
        if (
            not causes <= self.accepted
            or is_waiting_for_key(one, self.keys)
            or is_waiting_for_pin(one, self.accepted)
        ):
            return None
        return is_right(one)

    def standing(self) -> Standing:
        """Return what the node says of itself."""
        return Standing(len(self.waiting), len(self.dropped), len(self._chosen(self.proven())))

    def compare(self, source: Iterable[int], chance: random.Random, order: str = "random") -> Counter[str]:
        """Compare with a source once, on all topics that are followed now; take all that lacks here."""
        topics = self.followed()
        self.tried = max(self.tried, len(self._chosen(self.proven())))
        self.dropped.clear()
        lacking = [
            n
            for n in source
            if PUBLICATIONS[n].topic in topics and PUBLICATIONS[n].commit not in self.accepted
        ]
        chance.shuffle(lacking)
        if order == "causal":
            lacking.sort(key=lambda n: PUBLICATIONS[n].commit)
        elif order == "worst":
            lacking.sort(key=lambda n: -PUBLICATIONS[n].commit)
        for number in lacking:
            self.take(number)
        for one in [*self.waiting, *self.rejected]:  # keys may be here now
            self._learn(one)
        self._settle([*self.waiting])
        self.turn += 1
        return Counter(sent=len(lacking), dropped=len(self.dropped))


def _false(epoch: int, author: str) -> int:
    """Return the name of a key that somebody made up."""
    return -1000 - 1000 * epoch - sum(map(ord, author))


def come_one_by_one(
    user: str, given: frozenset[Given], held: frozenset[int], chance: random.Random
) -> Replica:
    """Return a replica to which all came in a random order, by the topics that it knew at each time."""
    replica = Replica(user, given)
    ahead = sorted(held)
    is_new = True
    while is_new:
        is_new = False
        chance.shuffle(ahead)
        for number in [*ahead]:
            if PUBLICATIONS[number].topic in replica.followed() and replica.can_open(PUBLICATIONS[number]):
                ahead.remove(number)
                replica.take(number)
                is_new = True
        for one in [*replica.waiting, *replica.rejected]:
            replica._learn(one)
        replica._settle([*replica.waiting])
    return replica
