"""Checks of each history: the promise of the epoch rules, and that all is a function of the set.

After a history those who are present meet each other, directly and by a relay that has what honest nodes published, until
nothing changes. `find_fault` says in words what then breaks the promise, or None.
"""

from collections.abc import Iterable

from tests.model.authors import Node, latest
from tests.model.commits import (
    ADMIN,
    ALL,
    FOUNDERS,
    NOBODY,
    PAST,
    RIGHTS,
    SEEN,
    WRITE,
    Grant,
    Hand,
    Invite,
    Join,
    deciding,
    describe,
    followed_by,
    inits,
    key_of,
    writers_topic,
)
from tests.model.epochs import counts, is_exclusion, preferred
from tests.model.links import find_fault_of_followers
from tests.model.members import carried, counting_removals, is_leave, members, permission, users_of, world
from tests.model.soundness import find_alone, find_disturbed, find_unsound
from tests.model.switches import SETTINGS, memo
from tests.model.verdicts import is_waiting_for_key, is_waiting_for_pin
from tests.model.views import PUBLICATIONS, Given, Topic, View, published, served, topics_of, view
from tests.model.worlds import RELAY, Place, State

Links = dict[str, frozenset[Given]]
Held = frozenset[int]
ROUNDS_MAX = 12


def find_fault(state: State, evil: str, variants: str = "some") -> str | None:
    """Return how the promise is broken after this history, or None."""
    places = dict(state)
    links = tuple(
        (user, place.given if user in evil else _with_kept(user, place))
        for user, place in state
        if place.given and user != RELAY
    )
    held: Held = places[RELAY].held if RELAY in places else frozenset()
    for user, place in state:
        if user not in evil and user != RELAY and place.given:
            seen = view(user, place.given, place.held)
            held |= served(seen, place.held)
            fault = _find_fault_of_author(user, seen, place.held) or find_disturbed(seen.roots)
            if fault:
                return fault
    fault = _find_fault(links, held, evil, variants)
    if variants == "all" and not fault:
        fault = _find_fault_without_relay(state, evil)
    return fault


def _with_kept(user: str, place: Place) -> frozenset[Given]:
    """Return what a user was given, and the keys that it keeps of rejected commits, which nobody serves."""
    seen = view(user, place.given, place.held)
    again = view(user, place.given, served(seen, place.held))
    return place.given | {Given("kept", key) for key in seen.keys - again.keys}


def _find_fault_of_author(user: str, seen: View, held: Held) -> str | None:
    """An honest author's own commits are accepted at its own node."""
    for number in held:
        one = PUBLICATIONS[number].commit
        if ALL[one].author == user and one not in seen.accepted and not is_waiting_for_key(one, seen.keys):
            return f"author: {user}'s node does not accept {describe(one)}"
    return None


@memo
def _find_fault(
    links: tuple[tuple[str, frozenset[Given]], ...], held: Held, evil: str, variants: str
) -> str | None:
    given = dict(links)
    honest = tuple(sorted(user for user in given if user not in evil))
    if not honest:
        return None
    for present in crowds(honest, held, variants):
        for at_once in (False, True) if present == honest else (False,):
            now = dict(given)
            healed = heal(now, held, present, at_once)
            who = "".join(present) + (", at once" if at_once else "")
            if healed is None:
                return f"end: duties do not come to an end (present: {who})"
            fault = compare(now, healed, present, evil, present == honest)
            if fault:
                return f"{fault} (present: {who})"
            if present == honest:
                fault = find_leak(now, healed, evil) or (
                    None if at_once else _find_fault_of_newcomers(now, healed, present, evil)
                )
                if fault:
                    return f"{fault} (present: {who})"
    return None


def _find_fault_without_relay(state: State, evil: str) -> str | None:
    """Heal without a relay: of a node that is gone there is only what others took from it."""
    places = {user: place for user, place in state if place.given and user not in evil and user != RELAY}
    stores = {user: served(view(user, *place), place.held) for user, place in places.items()}
    for gone in places:
        present = tuple(sorted(user for user in places if user != gone))
        given = {user: _with_kept(user, place) for user, place in places.items() if user != gone}
        healed = heal(given, frozenset().union(*(stores[user] for user in present)), present)
        if healed is None:
            return f"end: duties do not come to an end (gone: {gone}, no relay)"
        fault = compare(given, healed, present, evil, is_published=False)
        if fault:
            return f"{fault} (gone: {gone}, no relay)"
    return None


def crowds(honest: tuple[str, ...], held: Held, variants: str) -> list[tuple[str, ...]]:
    """Return who may be left: all; without each who wrote last; each alone; only those who are no admins."""
    found = [honest]
    if variants == "none":
        return found
    roots = frozenset(PUBLICATIONS[n].commit for n in held)
    found.append(tuple(u for u in honest if permission(deciding(roots), u) < ADMIN))
    if variants == "all":
        absent: Iterable[str] = honest
    else:
        absent = {ALL[one].author for one in roots.difference(*(PAST[one] for one in roots))}
    found += [tuple(u for u in honest if u != gone) for gone in sorted(absent) if gone in honest]
    found += [(user,) for user in honest]
    return [crowd for crowd in dict.fromkeys(found) if crowd]


def heal(given: Links, held: Held, present: tuple[str, ...], at_once: bool = False) -> Held | None:
    """Everybody present does its duties until nothing changes: one after the other, or all at once. None without an end."""
    for _ in range(ROUNDS_MAX):
        before = held
        made = held
        for user in present:
            node = Node(user, given[user], before if at_once else made)
            node.tend()
            given[user] = node.given
            made |= node.held | served(node.view, node.held)
        held = made
        if held == before:
            return held
    return None


def compare(
    given: Links,
    held: Held,
    present: tuple[str, ...],
    evil: str,
    is_deep: bool = False,
    is_published: bool = True,
) -> str | None:
    """Return what somebody lacks after all have met."""
    views = {user: view(user, given[user], held) for user in present}
    able = [user for user in present if _level(views[user], user) >= WRITE]
    if not able:
        return None  # nobody here hands anything over
    # Who sees most: a founder, or whoever accepted most. Others may see somebody as a member who is excluded in a fork that
    # they cannot open.
    best = max(
        able,
        key=lambda user: (user in FOUNDERS and bool(_level(views[user], user)), len(views[user].accepted)),
    )
    now = members(deciding(views[best].roots))
    here = [user for user in present if user in now and (best in FOUNDERS or _level(views[user], user))]
    here = [user for user in here if _is_reached(user, given, views[best])]
    able = [user for user in able if user in here]
    whole = frozenset().union(*(views[user].accepted for user in able))
    for user in here:
        lacking = whole - views[user].accepted
        if lacking:
            return f"follow: {user} lacks {describe(min(lacking))}"
        fault = _find_what_waits(user, given, held, views[user], evil) if is_published else None
        if fault:
            return fault
    if not is_deep:
        return None
    return (
        find_unsound(views[best].accepted, evil)
        or find_alone(best, given[best], held, views[best])
        or _find_other_sets(views, here)
        or _find_strangers_on_writers_topics(given, views, able, held, evil)
        or _find_unprovided_writers(views, here, evil)
        or find_fault_of_followers({user: views[user] for user in here})
    )


def _level(seen: View, user: str) -> int:
    return permission(deciding(seen.roots), user)


def _is_reached(user: str, given: Links, seen: View) -> bool:
    """Return False for who was granted a permission and follows by a link that is older than the latest epochs (E10)."""
    if any(ALL[one].author == user for one in seen.accepted):
        return True
    epochs = {e for e in inits(seen.roots) if Given("key", key_of(e)) in given[user]}
    if Given("key", 0) in given[user] and carried(0, user):
        return True
    others = {*inits(seen.roots)} - {preferred(seen.roots)}
    return bool(epochs & {*latest(others)[: SETTINGS.latest_max]})


def _find_what_waits(user: str, given: Links, held: Held, seen: View, evil: str) -> str | None:
    """Find a commit that an honest node accepted and a holder of its epoch's key did not (stronger than the promise).

    A hand-over is followed by holders of the epoch that is handed over; a branch's first commit also waits for its pin.
    """
    anywhere = frozenset().union(*(view(u, given[u], held).accepted for u in given if u not in evil))
    for one in sorted({PUBLICATIONS[n].commit for n in held} - seen.accepted):
        if (ALL[one].author in evil and one not in anywhere) or is_waiting_for_pin(one, seen.accepted):
            continue
        if key_of(followed_by(one)) in seen.keys:
            return f"follow: at {user} {describe(one)} waits"
    return None


def _find_other_sets(views: dict[str, View], here: list[str]) -> str | None:
    """The set of each topic is the same at all who know it."""
    sets: dict[Topic, tuple[str, frozenset[int]]] = {}
    for user in here:
        seen = views[user]
        for topic in seen.topics:
            found = frozenset(
                one
                for one, by in seen.came_by.items()
                if topic in (topics_of(one) if by in topics_of(one) else (by,))
            )
            other, known = sets.setdefault(topic, (user, found))
            if known != found:
                return f"level: {other} and {user} differ on {topic.kind}{topic.secret}"
    return None


def _find_strangers_on_writers_topics(
    given: Links, views: dict[str, View], able: list[str], held: Held, evil: str
) -> str | None:
    """Find a commit that honest nodes sign on a writers' topic though its author lacks the secret."""
    helped = frozenset().union(*(view(user, given[user], held).secrets for user in evil if user in given))
    for user in able:
        seen = views[user]
        for number in served(seen, held):
            one, topic = PUBLICATIONS[number]
            author = ALL[one].author
            if (
                topic.kind == "W"
                and topic.secret in seen.secrets
                and author in given
                and topic in topics_of(one)
            ):
                secrets = helped if author in evil else view(author, given[author], held).secrets
                if topic.secret not in secrets:
                    return f"relay: {describe(one)} is on the writers' topic"
    return None


def _find_unprovided_writers(views: dict[str, View], here: list[str], evil: str) -> str | None:
    """Find a writer without the writers' secret of the epoch in use, if anybody has it and no changed node sealed it."""
    for user in here:
        seen = views[user]
        at = preferred(seen.roots)
        if at is None or _level(seen, user) < WRITE or ALL[at].author in evil:
            continue
        secret = writers_topic(at)
        if (
            secret == NOBODY
            or secret in seen.secrets
            or any(_is_by_changed(one, at, evil) for one in seen.roots)
        ):
            continue
        for other in here:
            if secret in views[other].secrets and _level(views[other], other) >= WRITE:
                return f"writers: {user} lacks the writers' secret that {other} has"
    return None


def _is_by_changed(one: int, at: int, evil: str) -> bool:
    return isinstance(ALL[one].body, Hand) and ALL[one].body[0] == at and ALL[one].author in evil


# --- newcomers ---


def _find_fault_of_newcomers(given: Links, held: Held, present: tuple[str, ...], evil: str) -> str | None:
    for inviter in present:
        fault = _join_last(given, held, present, inviter, evil)
        if fault:
            return f"newcomer: {fault} (by {inviter})"
    seen = max((view(user, given[user], held) for user in present), key=lambda seen: len(seen.accepted))
    for one in sorted(seen.roots):
        if ALL[one].kind == "invite" and ALL[one].author not in evil and counts(one, seen.roots):
            revoked = any(ALL[v].kind == "revoke" and ALL[v].body == Join(one) for v in seen.roots)
            fault = None if revoked else _join_by(given, held, present, one, evil)
            if fault:
                return f"newcomer: {fault} (by the link of {describe(one)})"
    return None


def _join_last(given: Links, held: Held, present: tuple[str, ...], inviter: str, evil: str) -> str | None:
    node = Node(inviter, given[inviter], held)
    if not node.may(ADMIN):
        return None
    at = node.prepare()
    if at is None:
        return None
    invitation = node.write("invite", at, Invite(WRITE))
    return _join_by({**given, inviter: node.given}, node.held, present, invitation, evil)


def _join_by(given: Links, held: Held, present: tuple[str, ...], invitation: int, evil: str) -> str | None:
    """Let Z join by a link with the key and the writers' secret of the epoch in which it was written."""
    from tests.model.worlds import join

    epoch, invited = ALL[invitation].epoch, ALL[invitation].body
    link = {Given("key", key_of(epoch))}
    if isinstance(invited, Invite) and invited.level >= WRITE:
        link |= {Given("writers", writers_topic(epoch))}
    newcomer = Node("Z", frozenset(link), held)
    if invitation not in newcomer.view.accepted:
        return "Z cannot read its invitation"
    join(newcomer, invitation)
    everybody = {**given, "Z": newcomer.given}
    healed = heal(everybody, newcomer.held, (*present, "Z"))
    if healed is None:
        return "end: duties do not come to an end"
    return compare(everybody, healed, (*present, "Z"), evil)


# --- secrets ---


def find_leak(given: Links, held: Held, evil: str) -> str | None:
    """Return what is open to who was no member any more for its author, or may be signed by who was no writer any more.

    Keys that a changed member gives away by hand-overs, openings and rejected inits do not count: no rule prevents it.
    """
    given = {user: frozenset(one for one in found if one.kind != "kept") for user, found in given.items()}
    anywhere = frozenset().union(*(view(u, given[u], held).accepted for u in given if u not in evil))
    held = frozenset(n for n in held if not _gives_away(PUBLICATIONS[n].commit, evil, anywhere))
    for number in sorted(held):
        one = PUBLICATIONS[number].commit
        if ALL[one].kind not in ("post", "note") or ALL[one].author in evil:
            continue
        ops = RIGHTS[one]
        for user in users_of(ops):
            if user not in given or user == ALL[one].author:
                continue
            level = permission(ops, user)
            if level >= WRITE or any(is_leave(r) and ALL[r].author == user for r in counting_removals(ops)):
                continue  # who left by itself may be handed what it had a right to
            knows = view(user, given[user], held)
            epoch = ALL[one].epoch
            if not level and key_of(epoch) in knows.keys and not _is_excused(user, given, held, one, "key"):
                return f"secret: {user}, no member for {ALL[one].author} any more, opens {describe(one)}"
            secret = writers_topic(epoch)
            if (
                secret in knows.secrets
                and ALL[epoch].author not in evil
                and not _is_excused(user, given, held, one, "writers")
            ):
                return f"signs: {user}, no writer for {ALL[one].author} any more, can sign beside {describe(one)}"
    return None


def _gives_away(one: int, evil: str, accepted: frozenset[int]) -> bool:
    is_lost = ALL[one].kind in ("hand", "open") or (ALL[one].kind == "init" and one not in accepted)
    return is_lost and ALL[one].author in evil


def _is_excused(user: str, given: Links, held: Held, one: int, kind: str) -> bool:
    """Return True if the author could not know: somebody took the user for a member, knew of all that excluded it, and gave.

    What the author could know: what its commit's past gives to the user, from links that commits tell of.
    """
    known = frozenset().union(*(published(c) for c in SEEN[one]))
    told = {ALL[c].epoch for c in SEEN[one] if ALL[c].author == user or (_grants(c, user) and kind == "key")}
    told |= {0} if carried(0, user) else set()
    links = frozenset(g for g in given[user] if g.secret in {key_of(e) for e in told})
    seen = view(user, links, known)
    epoch = ALL[one].epoch
    if (
        Given(kind, key_of(epoch) if kind == "key" else writers_topic(epoch)) in given[user]
        and epoch not in told
    ):
        return True  # whoever has a link may read, and no commit tells
    if (key_of(epoch) in seen.keys) if kind == "key" else (writers_topic(epoch) in seen.secrets):
        return False
    needs = 1 if kind == "key" else WRITE
    ops = RIGHTS[one]
    cuts = {r for r in counting_removals(ops) if is_exclusion(r) and _names(r, user)}
    cuts |= {v for v in ops if ALL[v].kind == "revoke" and world(ops).counts(v)}
    for c in {PUBLICATIONS[n].commit for n in held}:
        if (
            ALL[c].kind in ("init", "open", "hand", "grant", "invite")
            and cuts <= PAST[c]
            and permission(RIGHTS[c], user) >= needs
        ):
            return True
    return False


def _names(removal: int, user: str) -> bool:
    return getattr(ALL[removal].body, "user", "") == user


def _grants(one: int, user: str) -> bool:
    body = ALL[one].body
    return isinstance(body, Grant) and body.user == user
