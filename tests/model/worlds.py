"""Steps: a node takes what some others give, by topics that both know, then does one thing.

A state is, for each user, what it was given by links and the publications that it holds. The user "*" is a
relay: it keeps the publications of topics that nodes entrusted to it, and can open none.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model import hostile
from tests.model.authors import Node
from tests.model.commits import (
    ADMIN,
    ALL,
    MANAGE,
    NONE,
    READ,
    START,
    WRITE,
    Branch,
    Grant,
    Invite,
    Join,
    Quorum,
    Remove,
    Text,
    deciding,
    key_of,
    writers_topic,
)
from tests.model.epochs import counts
from tests.model.members import is_admitted, permission
from tests.model.views import PUBLICATIONS, Given, published, served, view

RELAY = "*"
Action = tuple[str | int, ...]


KNOWN = frozenset(
    [
        "pull",
        "tend",
        "leave",
        "offer",
        "withdraw",
        "use",
        "renew",
        "remove",
        "stop-remove",
        "grant",
        "write",
        "branch",
        "link-branch",
        "approve",
        "invite",
        "revoke",
        "quorum",
        "invited",
        "linked",
        "paired",
    ]
)


class Place(NamedTuple):
    """Secrets and publications of one node."""

    given: frozenset[Given]
    held: frozenset[int]


State = tuple[tuple[str, Place], ...]


class Step(NamedTuple):
    """One actor takes from others, then acts."""

    actor: str
    action: Action
    pulled: tuple[str, ...] = ()

    def __str__(self) -> str:
        pulled = "<" + "".join(self.pulled) if self.pulled else ""
        return f"{self.actor}{pulled} {' '.join(map(str, self.action))}"


class World(NamedTuple):
    """People, their possible actions, and the length to which all histories are tried."""

    name: str
    people: str
    actions: dict[str, tuple[Action, ...]]
    length: int
    evil: str = ""
    prelude: tuple[Step, ...] = ()
    settings: dict[str, int] = {}  # noqa: RUF012  (never changed)
    by_relay: bool = False

    def start(self) -> State:
        """Return the state before the first step, after the prelude."""
        words = {str(action[0]) for actions in self.actions.values() for action in actions}
        assert words <= KNOWN | hostile.ACTIONS.keys(), words
        state: State = tuple((user, first_place(user)) for user in self.people)
        if self.by_relay:
            state = (*state, (RELAY, Place(frozenset(), frozenset())))
        for step in self.prelude:
            state = self.step(state, step)
        return state

    def steps(self) -> list[Step]:
        """Return all steps of this world."""
        return [*self._steps()]

    def _steps(self) -> Iterator[Step]:
        for actor in self.people:
            active = {*self.actions} | {step.actor for step in self.prelude}
            others = tuple(user for user in self.people if user != actor and user in active)
            pulls: list[tuple[str, ...]] = [(), *((user,) for user in others)]
            if len(others) > 1:
                pulls.append(others)
            if self.by_relay:
                pulls = [(), (RELAY,)]
            for action in self.actions.get(actor, ()):
                for pulled in pulls:
                    if action != ("pull",) or pulled:
                        yield Step(actor, action, pulled)

    def step(self, state: State, step: Step) -> State:
        """Return the state after a step."""
        places = dict(state)
        for other in step.pulled:
            exchange(places, step.actor, other, self.evil)
        if step.action[0] in ("invited", "linked", "paired"):
            _invite(places, step)
        else:
            place = places[step.actor]
            if place.given or step.actor in self.evil:
                changed = step.actor in self.evil
                node = (hostile.Changed if changed else Node)(step.actor, place.given, place.held)
                act(node, step.action)
                places[step.actor] = Place(node.given, node.held)
        if RELAY in step.pulled:
            exchange(places, step.actor, RELAY, self.evil)
        return tuple((user, places[user]) for user, _ in state)


def first_place(user: str) -> Place:
    """Return what a member has at first: the founding epoch, with its writers' secret where it may write."""
    level = permission(START, user)
    if not level:
        return Place(frozenset(), frozenset())
    given = {Given("key", 0)} | ({Given("writers", 0)} if level >= WRITE and user != "C" else set())
    return Place(frozenset(given), frozenset().union(*(published(one) for one in START)))


# --- transport ---


def exchange(places: dict[str, Place], actor: str, other: str, evil: str) -> None:
    """Take what the other gives; with a relay also entrust it what is here."""
    if other == RELAY:
        mine, relay = places[actor], places[RELAY]
        seen = view(actor, mine.given, mine.held)
        entrusted = relay.given | {Given(f"{topic.kind}", topic.secret) for topic in seen.topics}
        given = _given_by(actor, mine, evil)
        stored = relay.held | {n for n in given if _is_entrusted(n, entrusted)}
        places[RELAY] = Place(entrusted, stored)
        places[actor] = Place(mine.given, receive(actor, mine, stored))
        return
    places[actor] = Place(
        places[actor].given, receive(actor, places[actor], _given_by(other, places[other], evil))
    )


def _is_entrusted(number: int, entrusted: frozenset[Given]) -> bool:
    topic = PUBLICATIONS[number].topic
    return Given(topic.kind, topic.secret) in entrusted


def _given_by(user: str, place: Place, evil: str) -> frozenset[int]:
    """Return what a node gives: all that it has, if it is changed."""
    return place.held if user in evil else served(view(user, place.given, place.held), place.held)


def receive(user: str, place: Place, offered: frozenset[int]) -> frozenset[int]:
    """Return what a node holds once it has taken what is offered on topics that it knows, and on those it learns thereby."""
    held = place.held
    while True:
        topics = view(user, place.given, held).topics
        more = {number for number in offered - held if PUBLICATIONS[number].topic in topics}
        if not more:
            return held
        held |= more


# --- actions ---


def _invite(places: dict[str, Place], step: Step) -> None:
    """Give a link: `invited` to join at once, `linked` to join or read later; `paired` gives all secrets to a device.

    The third word is the permission, 0 for none.
    """
    what, inviter = step.action[0], str(step.action[1])
    level = NONE if what == "paired" else int(step.action[2]) if len(step.action) > 2 else WRITE
    if places[step.actor].given or inviter not in places:
        return
    node = Node(inviter, *places[inviter])
    if not places[inviter].given or not node.may(ADMIN if level else READ):
        return
    at = node.prepare() if node.may(WRITE) else None
    if at is None or key_of(at) not in node.view.keys:
        return
    invitation = node.write("invite", at, Invite(level)) if level else None
    places[inviter] = Place(node.given, node.held)
    given = {Given("key", key_of(at))}
    if (level >= WRITE or what == "paired") and node.signs_in(at):
        given |= {Given("writers", writers_topic(at))}
    place = Place(frozenset(given), places[step.actor].held)
    if what == "invited":
        place = Place(place.given, receive(step.actor, place, served(node.view, node.held)))
        newcomer = Node(step.actor, *place)
        if invitation is not None:
            join(newcomer, invitation)
        place = Place(newcomer.given, newcomer.held)
    places[step.actor] = place


def join(node: Node, invitation: int) -> None:
    """Join in the epoch of the link, if that may be by what is known."""
    now = node.view
    if (
        invitation in now.accepted
        and counts(invitation, now.roots)
        and not permission(deciding(now.roots), node.user)
    ):
        epoch = ALL[invitation].epoch
        found = node.write("join", epoch, Join(invitation), acks=frozenset({invitation}))
        if not is_admitted(found):
            raise AssertionError("an honest join is refused")


def act(node: Node, action: Action) -> None:
    """Do one thing; nothing where the node may not."""
    what, *of = action
    if what == "pull":
        return
    if what == "tend":
        node.tend()
    elif isinstance(node, hostile.Changed) and what in hostile.ACTIONS:
        hostile.act(node, tuple(str(word) for word in action))
    elif what == "leave":
        if permission(deciding(node.view.roots), node.user):
            node.write_without_opening("remove", Remove(node.user, int(of[0]) if of else 0))
    elif what in ("offer", "withdraw", "withdraw"):
        if node.may(READ) and node.branches():
            node.write_without_opening(str(what), Branch(node.branches()[-1]))
    elif what == "use":
        _use_link(node)
    elif what == "renew":
        if node.may(ADMIN) and node.prepare() is not None:
            node.start()
    else:
        _write(node, str(what), of)


def _use_link(node: Node) -> None:
    now = node.view
    known = [one for one in sorted(now.accepted) if ALL[one].kind == "invite" and counts(one, now.roots)]
    there = [one for one in known if Given("key", key_of(ALL[one].epoch)) in node.given]
    if there and not any(ALL[one].kind == "join" and ALL[one].author == node.user for one in now.accepted):
        join(node, there[-1])


def _write(node: Node, what: str, of: list[str | int]) -> None:
    """Write one commit in the epoch in use, after what is due."""
    if what in ("remove", "stop-remove") and not _may_remove(node, str(of[0]), int(of[1])):
        return
    if what == "grant" and permission(deciding(node.view.roots), str(of[0])) >= int(of[1]):
        return
    at = node.prepare()
    if at is None:
        return
    branches = node.branches()
    if what == "write":
        if branches:
            node.write("post", at, Text(), branch=branches[int(of[0]) if of else -1])
        else:
            node.write("note", at, Text())
    elif what == "branch" and node.may(MANAGE):
        if not any(ALL[one].author == node.user for one in branches):
            node.add_branch(at)
    elif what == "link-branch" and branches:
        node.write("link", at, Branch(branches[-1]))
    elif what == "approve":
        _admitted(node, "approve", at, Remove(str(of[0]), int(of[1])))
    elif node.may(ADMIN):
        _write_as_admin(node, what, of, at)


def _write_as_admin(node: Node, what: str, of: list[str | int], at: int) -> None:
    if what in ("remove", "stop-remove"):
        body = Remove(str(of[0]), int(of[1]), _ends(node, str(of[0])))
        if _admitted(node, "remove", at, body) and body.level < WRITE and what == "remove":
            node.prepare()  # an exclusion and its epoch are one command; `stop-remove` is cut between the two
    elif what == "invite":
        node.write("invite", at, Invite(WRITE))
    elif what == "grant":
        _admitted(node, "grant", at, Grant(str(of[0]), int(of[1])))
    elif what == "revoke":
        known = [
            one
            for one in sorted(node.view.roots)
            if ALL[one].kind == "invite" and counts(one, node.view.roots)
        ]
        if known and _admitted(node, "revoke", at, Join(known[-1])):
            node.prepare()
    elif what == "quorum":
        _admitted(node, "quorum", at, Quorum(int(of[0]), tuple(str(of[1]))))


def _ends(node: Node, user: str) -> frozenset[int]:
    """Return the removed member's content commits that are known: the removal lets them stand."""
    now = node.view
    return frozenset(one for one in now.accepted - now.roots if ALL[one].author == user)


def _may_remove(node: Node, user: str, level: int) -> bool:
    now = deciding(node.view.roots)
    return node.may(ADMIN) and permission(now, user) > level and user != node.user


def _admitted(node: Node, kind: str, at: int, body: Remove | Grant | Join | Quorum) -> bool:
    """Write a commit unless its author's own past refuses it."""
    before = node.held
    one = node.write(kind, at, body)
    if not is_admitted(one):
        node.held = before
    return is_admitted(one)
