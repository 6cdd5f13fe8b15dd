"""Checks of one set of accepted commits, said independently of the rules that make them hold."""

from collections.abc import Iterator

from tests.model.authors import heads
from tests.model.commits import (
    ADMIN,
    ALL,
    PAST,
    RIGHTS,
    ROOT,
    SEEN,
    WRITE,
    Found,
    Grant,
    Hand,
    Init,
    Invite,
    Open,
    Remove,
    causes_of,
    deciding,
    describe,
    followed_by,
    inits,
    key_of,
    writers_topic,
)
from tests.model.epochs import is_due, opened
from tests.model.members import carried, invitation_of, is_leave, permission, world
from tests.model.switches import memo
from tests.model.views import PUBLICATIONS, Given, View, published, view


@memo
def find_unsound(accepted: frozenset[int], evil: str) -> str | None:
    """Return what is wrong with a set of accepted commits, or None."""
    for one in sorted(accepted):
        for fault in _faults_of(one, accepted):
            return f"{fault}: {describe(one)}"
        if ALL[one].author not in evil:
            wasted = _find_wasted(one)
            if wasted:
                return f"waste: {wasted} had what {describe(one)} gives"
    return _find_who_came_back(accepted)


def _faults_of(one: int, accepted: frozenset[int]) -> Iterator[str]:
    commit, body = ALL[one], ALL[one].body
    if commit.rank != (1 + max((ALL[a].rank for a in commit.acks), default=-1)):
        yield "order: a rank that is no path's length"
    if not commit.is_marked:
        yield "mark: a relay takes it for another branch's"
    if not (causes_of(one) <= accepted):
        yield "causes: accepted before them"
    if any(ALL[a].branch != commit.branch for a in commit.acks):
        yield "branch: it follows another branch"
    if commit.branch != ROOT and not _is_added(commit.branch, accepted):
        yield "branch: nobody added it"
    own = RIGHTS[one] | deciding(frozenset({one}))
    if not world(own).counts(one):
        yield "rights: it does not count by its own past"
    if isinstance(body, Remove) and commit.kind == "remove" and permission(own, body.user) > body.level:
        yield "rights: a removal that takes nothing"
    if isinstance(body, Grant | Invite) and permission(RIGHTS[one], commit.author) < max(ADMIN, body.level):
        yield "rights: more is given than the author holds"
    if isinstance(body, Init) and permission(RIGHTS[one], commit.author) < ADMIN and not is_due(SEEN[one]):
        yield "rights: an epoch started by a writer while none is due"
    if one:
        roots = frozenset(o for o in PAST[one] | {one} if ALL[o].branch == ROOT)
        if not set(inits(roots)) <= opened(followed_by(one), roots):
            yield "closed: its epoch does not open all that it follows"


def _is_added(first: int, accepted: frozenset[int]) -> bool:
    return any(ALL[one].kind == "add" and ALL[one].body[0] == first for one in accepted)


def _find_wasted(one: int) -> str | None:
    """A hand-over or an opening gives nothing that its own past shows to be there."""
    body = ALL[one].body
    if isinstance(body, Open) and body.epochs:
        seen = view("", frozenset({Given("key", key_of(ALL[one].epoch))}), _publications(one))
        return "the epoch" if all(key_of(e) in seen.keys for e in body.epochs) else None
    if isinstance(body, Hand):
        for user in body.users:
            seen = view(user, _told(user, one), _publications(one))
            has_key = key_of(body.epoch) in seen.keys and body.epoch in {*seen.accepted, *seen.waiting}
            if has_key and (user not in body.writers or body.epoch in seen.secrets):
                return user
    return None


def _publications(one: int) -> frozenset[int]:
    return frozenset().union(*(published(c) for c in SEEN[one]))


def _told(user: str, one: int) -> frozenset[Given]:
    """Return what the commit's past tells that a user was given by links."""
    founding = ALL[0].body
    assert isinstance(founding, Found)
    given = set()
    for c in SEEN[one]:
        commit = ALL[c]
        if commit.author == user and c:
            given |= {Given("key", key_of(commit.epoch))}
            given |= {Given("writers", writers_topic(commit.epoch))} if commit.by_writer else set()
        if commit.author == user and commit.kind in ("init", "found"):
            given |= {Given("key", key_of(c)), Given("writers", writers_topic(c))}
    if user in founding.holders:
        given |= {Given("key", 0)} | (
            {Given("writers", 0)} if permission(frozenset({0, 1}), user) >= WRITE else set()
        )
    return frozenset(given)


def _find_who_came_back(accepted: frozenset[int]) -> str | None:
    """Find an excluded member who is back though nobody who knew of the exclusion let it in."""
    ops = deciding(accepted)
    for r in ops:
        body = ALL[r].body
        if (
            not isinstance(body, Remove)
            or ALL[r].kind != "remove"
            or is_leave(r)
            or body.level
            or not world(ops).counts(r)
        ):
            continue
        if not permission(ops, body.user) or permission(RIGHTS[r] | {r}, body.user):
            continue
        after = [c for c in ops if carried(c, body.user) and r in PAST[c] and world(ops).counts(c)]
        acts = [invitation_of(ALL[c].body) if ALL[c].kind == "join" else c for c in after]
        senior = all(not carried(c, body.user) or c in PAST[r] for c in ops if c not in after)
        if senior and not any(r in PAST[act] for act in acts):
            return f"back: {body.user} is a member again, unasked"
    return None


@memo
def find_disturbed(roots: frozenset[int]) -> str | None:
    """Find an epoch that is due because somebody who is out left again."""
    for one in heads(roots):
        rest = roots - {one}
        if (
            is_leave(one)
            and not permission(deciding(rest), ALL[one].author)
            and is_due(roots)
            and not is_due(rest)
        ):
            return f"calm: {describe(one)} makes an epoch due"
    return None


def find_alone(user: str, given: frozenset[Given], held: frozenset[int], seen: View) -> str | None:
    """A branch and the root branch alone give the same verdicts."""
    for branch in {ALL[one].branch for one in seen.accepted} - {ROOT}:
        part = frozenset(n for n in held if ALL[PUBLICATIONS[n].commit].branch in (ROOT, branch))
        here = view(user, given, part)
        for one in seen.accepted - here.accepted:
            if ALL[one].branch in (ROOT, branch):
                return f"alone: without other branches {user} lacks {describe(one)}"
    return None
