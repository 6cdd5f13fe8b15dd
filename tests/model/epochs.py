"""The words of the epoch rules (E), each a function of a set of accepted root branch commits."""

from collections.abc import Iterable

from tests.model.commits import (
    ADMIN,
    ALL,
    PAST,
    SEEN,
    WRITE,
    Found,
    Grant,
    Hand,
    Init,
    Invite,
    Open,
    Remove,
    deciding,
    identity,
    inits,
)
from tests.model.members import (
    NEEDS,
    are_beside,
    counting_removals,
    invitation_of,
    is_leave,
    members,
    permission,
    world,
)
from tests.model.switches import SETTINGS, memo, on

Roots = frozenset[int]
Holders = dict[int, frozenset[str]]


def counts(one: int, roots: Roots) -> bool:
    """Return True if a commit counts in this set."""
    return world(deciding(roots)).counts(one)


@memo
def tips(roots: Roots) -> tuple[int, ...]:
    """Return the epochs that count and that no epoch that counts follows."""
    here = [e for e in inits(roots) if counts(e, roots) or not on("tips count")]
    return tuple(e for e in here if not any(e in PAST[other] for other in here))


def given_by_init(epoch: int) -> frozenset[int]:
    """Return the epochs whose keys an init gives under its own key."""
    body = ALL[epoch].body
    return body.opens if isinstance(body, Init) else frozenset()


@memo
def opened(epoch: int, roots: Roots) -> frozenset[int]:
    """Opens: itself, what its init gives, what an opening published in it gives, and all that these open."""
    found, ahead = {epoch}, [epoch]
    openings = [one for one in roots if ALL[one].kind == "open"]
    if not on("opens: whether it counts does not matter"):
        openings = [one for one in openings if counts(one, roots)]
    while ahead:
        at = ahead.pop()
        new: set[int] = set()
        if at in roots or at == epoch:
            new |= given_by_init(at) if on("opens: what inits give") else set()
        for one in openings:
            body = ALL[one].body
            if isinstance(body, Open) and (ALL[one].epoch == at or not on("opens: published in it")):
                new |= body.epochs
        new -= found
        found |= new
        ahead += new if on("opens: what these open") else ()
    return frozenset(found)


@memo
def may_hold(roots: Roots) -> Holders:
    """By epoch, who may have its key. It keeps people out, so it errs to the large side."""
    found: dict[int, set[str]] = {e: set() for e in inits(roots)}

    def add(epoch: int, users: Iterable[str], clause: str) -> None:
        if on(clause) and epoch in found:
            found[epoch] |= {*users}

    for one in roots:
        commit, body = ALL[one], ALL[one].body
        if one in found:
            add(one, [commit.author], "may hold: author of the init")
        if isinstance(body, Init):
            add(one, body.boxes, "may hold: boxes")
        elif isinstance(body, Found):
            add(one, body.holders, "")
        elif isinstance(body, Hand):
            add(body.epoch, body.users, "may hold: hand-overs")
        elif isinstance(body, Grant):
            add(commit.epoch, [body.user], "may hold: granted in it")
        if commit.kind != "found":
            add(commit.epoch, [commit.author], "may hold: authors")
    if on("may hold: by opening"):
        _close(found, roots)
    return {e: frozenset(users) for e, users in found.items()}


def _close(found: dict[int, set[str]], roots: Roots) -> None:
    """Extend: who holds an epoch holds what it opens."""
    for epoch, users in list(found.items()):
        for other in opened(epoch, roots):
            if other in found:
                found[other] |= users


@memo
def surely_hold(roots: Roots) -> Holders:
    """By epoch, who has its key. It finds who lacks it, so it errs to the small side."""
    found: dict[int, set[str]] = {e: set() for e in inits(roots)}
    for one in roots:
        commit = ALL[one]
        if isinstance(commit.body, Found):
            found[one] |= {*commit.body.holders}
        if one in found and on("surely holds: author of the init"):
            found[one].add(commit.author)
        if one and commit.epoch in found and on("surely holds: authors"):
            found[commit.epoch].add(commit.author)
    if SETTINGS.presumes:
        _presume(found, roots)
    size = -1
    while size != sum(map(len, found.values())):
        size = sum(map(len, found.values()))
        for one in roots:
            body, there = ALL[one].body, found.get(ALL[one].epoch, set())
            if not on("surely holds: in an epoch that is held"):
                there = {*members(deciding(roots))}
            if isinstance(body, Init) and on("surely holds: boxes"):
                found[one] |= there.intersection(body.boxes)
            elif isinstance(body, Hand) and body.epoch in found and on("surely holds: hand-overs"):
                found[body.epoch] |= there.intersection(body.users)
        if on("surely holds: by opening"):
            _close(found, roots)
    return {e: frozenset(users) for e, users in found.items()}


def _presume(found: dict[int, set[str]], roots: Roots) -> None:
    """Add who was handed an epoch in each of the latest of its init's past: a link of any other opens one of these."""
    handed: dict[tuple[int, str], set[int]] = {}
    for one in roots:
        body = ALL[one].body
        if isinstance(body, Hand) and body.epoch in found:
            for user in body.users:
                handed.setdefault((body.epoch, user), set()).add(ALL[one].epoch)
    for (epoch, user), places in handed.items():
        before = sorted(inits(SEEN[epoch]), key=lambda one: (ALL[one].rank, identity(one)))
        if before and places.issuperset(before[-SETTINGS.latest_max :]):
            found[epoch].add(user)


@memo
def may_write_in(roots: Roots) -> Holders:
    """By epoch, who may have its writers' secret."""
    found: dict[int, set[str]] = {e: set() for e in inits(roots)}
    for one in roots:
        commit, body = ALL[one], ALL[one].body
        if one in found and on("may hold the writers' secret: author of the init"):
            found[one].add(commit.author)
        if isinstance(body, Found):
            found[one] |= {*writers_of(body.holders)}
        elif isinstance(body, Init) and on("may hold the writers' secret: boxes"):
            found[one] |= {*body.writers}
        elif (
            isinstance(body, Hand) and body.epoch in found and on("may hold the writers' secret: hand-overs")
        ):
            found[body.epoch] |= {*body.writers}
        elif _is_writers_join(one) and commit.epoch in found and on("may hold the writers' secret: joins"):
            found[commit.epoch].add(commit.author)
    return {e: frozenset(users) for e, users in found.items()}


@memo
def surely_write_in(roots: Roots) -> Holders:
    """By epoch, who has its writers' secret."""
    sure = surely_hold(roots)
    found: dict[int, set[str]] = {e: set() for e in inits(roots)}
    for one in roots:
        commit, body = ALL[one], ALL[one].body
        there = sure.get(commit.epoch, frozenset())
        if not on("surely holds the writers' secret: in an epoch that is held"):
            there = members(deciding(roots))
        if one in found and on("surely holds the writers' secret: author of the init"):
            found[one].add(commit.author)
        if commit.by_writer and commit.epoch in found and on("surely holds the writers' secret: by a writer"):
            found[commit.epoch].add(commit.author)
        if isinstance(body, Found):
            found[one] |= {*writers_of(body.holders)}
        elif isinstance(body, Init) and on("surely holds the writers' secret: boxes"):
            found[one] |= there.intersection(body.writers)
        elif (
            isinstance(body, Hand)
            and body.epoch in found
            and on("surely holds the writers' secret: hand-overs")
        ):
            found[body.epoch] |= there.intersection(body.writers)
        elif (
            not on("surely holds the writers' secret: joins do not tell")
            and _is_writers_join(one)
            and commit.epoch in found
        ):
            found[commit.epoch].add(commit.author)
    return {e: frozenset(users) for e, users in found.items()}


def writers_of(users: Iterable[str]) -> list[str]:
    """Return those of the first members who may write."""
    return [user for user in users if permission(frozenset({0, 1}), user) >= WRITE]


def _is_writers_join(one: int) -> bool:
    """Return True for a join by an invitation to write."""
    if ALL[one].kind != "join":
        return False
    invited = ALL[invitation_of(ALL[one].body)].body
    return isinstance(invited, Invite) and invited.level >= WRITE


def is_exclusion(removal: int) -> bool:
    """Return True for a removal by another member that leaves less than write."""
    body = ALL[removal].body
    return (
        isinstance(body, Remove)
        and body.level < WRITE
        and (not is_leave(removal) or not on("clean: by another"))
    )


@memo
def clean(roots: Roots) -> tuple[int, ...]:
    """E8: the tips that are closed to whoever is excluded."""
    ops, able = deciding(roots), list(tips(roots))
    if not on("E8 never due"):
        return tuple(able)
    if on("clean: removals"):
        cuts = [r for r in counting_removals(ops) if is_exclusion(r)]
        able = [e for e in able if all(r in PAST[e] for r in cuts)]
    if on("clean: revocations"):
        cuts = [v for v in ops if ALL[v].kind == "revoke" and counts(v, roots) and _voids_a_join(v, ops)]
        able = [e for e in able if all(v in PAST[e] for v in cuts)]
    now = members(ops)
    if on("clean: all who may hold it are members"):
        holders = may_hold(roots)
        able = [e for e in able if holders[e] <= now]
    if on("clean: all who may hold its writers' secret may write"):
        writers = may_write_in(roots)
        able = [e for e in able if all(permission(ops, user) >= WRITE for user in writers[e])]
    return tuple(able)


def _voids_a_join(revocation: int, ops: Roots) -> bool:
    invitation = invitation_of(ALL[revocation].body)
    return any(
        ALL[j].kind == "join" and invitation_of(ALL[j].body) == invitation and are_beside(revocation, j)
        for j in ops
    )


def size_of(epoch: int) -> int:
    """Return for how many members an epoch was made; 0 for the founding one."""
    body = ALL[epoch].body
    return len(body.boxes) if isinstance(body, Init) else 0


@memo
def preferred(roots: Roots, user: str = "") -> int | None:
    """Return the epoch to write in; None while one is due. (Who asks matters to a weakened rule alone.)"""
    able = clean(roots)
    if user and able and not on("E8 one order for all"):
        return able[ord(user) % len(able)]
    return min(
        able, key=lambda e: (size_of(e) if on("E8 the fewest members") else 0, identity(e)), default=None
    )


def is_due(roots: Roots) -> bool:
    """Return True if no tip is clean."""
    return not clean(roots)


def boxes_after(roots: Roots) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return whom an init after this past has boxes for, and writers' boxes: of too many members the first by id."""
    ops = deciding(roots)
    users = sorted(members(ops))[: SETTINGS.boxes_max]
    return tuple(users), tuple(user for user in users if permission(ops, user) >= WRITE)


def _needed_by_init(one: int) -> int:
    """E9: admin; write if an epoch is due after the init's own past."""
    if not on("E9 admin, where none is due"):
        return WRITE
    return WRITE if on("E9 writers") and is_due(SEEN[one]) else ADMIN


NEEDS["init"] = _needed_by_init
