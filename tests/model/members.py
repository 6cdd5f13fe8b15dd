"""Members by seniority: rules R1 to R6 and M of membership-rules.md as a function of a set, after `rules/members.py`.

`World(whole)` is what counts in one closed set of deciding commits; every other commit may be asked about too. The recursion
ends since each question leads to senior rights alone.
"""

from collections.abc import Callable

from tests.model.commits import (
    ADMIN,
    ALL,
    MANAGE,
    NONE,
    OWNER,
    PAST,
    READ,
    RIGHTS,
    WRITE,
    Body,
    Found,
    Grant,
    Invite,
    Join,
    Quorum,
    Remove,
)
from tests.model.switches import memo, on

Right = tuple[int, int]  # (credential, one of the permissions that it carries)
END = -9  # whatever is done after all operations of a set
# Kinds whose need depends on more than their body: filled by `epochs`.
NEEDS: dict[str, Callable[[int], int]] = {}

_NEEDED = {
    "found": NONE, "join": NONE, "approve": READ, "offer": READ, "withdraw": READ, "answer": ADMIN, "quorum": OWNER,
    "invite": ADMIN, "revoke": ADMIN, "remove": ADMIN, "add": MANAGE,
}  # fmt: skip


@memo
def needed(one: int) -> int:
    """Return the permission that a commit needs."""
    commit = ALL[one]
    if commit.kind in NEEDS:
        return NEEDS[commit.kind](one)
    if isinstance(commit.body, Grant):
        return max(ADMIN, commit.body.level) if on("M6 grant what is held") else ADMIN
    return _NEEDED.get(commit.kind, WRITE)


def is_leave(one: int) -> bool:
    """Return True for a removal by the removed member itself."""
    commit = ALL[one]
    return commit.kind == "remove" and isinstance(commit.body, Remove) and commit.body.user == commit.author


def carried(credential: int, user: str) -> int:
    """Return the permission that a commit gives to a member as a credential; 0 for none."""
    commit, body = ALL[credential], ALL[credential].body
    if isinstance(body, Grant):
        return body.level * (body.user == user)
    if commit.kind == "join":
        invited = ALL[invitation_of(body)].body
        return invited.level * (commit.author == user) if isinstance(invited, Invite) else NONE
    return dict(body.levels).get(user, NONE) if isinstance(body, Found) else NONE


def invitation_of(body: Body) -> int:
    """Return the invitation that a join or a revocation names."""
    assert isinstance(body, Join)
    return body.invitation


def is_senior(a: Right, b: Right) -> bool:
    """R1: a higher permission, or the same one by a credential in the past of the other's."""
    return a[1] > b[1] or (a[1] == b[1] and a[0] in PAST[b[0]])


class World:
    """Rights and counting commits in one closed set of deciding commits."""

    def __init__(self, whole: frozenset[int]) -> None:
        self.whole = whole
        self.removals = [one for one in whole if ALL[one].kind == "remove"]
        self.revocations = [one for one in whole if ALL[one].kind == "revoke"]
        self._known: dict[tuple[int, Right, Right | None, str], bool] = {}
        self._counting: dict[tuple[int, Right | None], bool] = {}
        self._levels: dict[str, int] = {}
        self._asked: list[tuple[tuple[int, int], int, int]] = []

    def counts(self, one: int, below: Right | None = None) -> bool:
        """R2. `below` (R6): as far as removals and revocations say that act by rights senior to it."""
        asked = (one, below)
        if asked not in self._counting:
            self._counting[asked] = self._counts(one, below)
        return self._counting[asked]

    def _counts(self, one: int, below: Right | None) -> bool:
        commit = ALL[one]
        if commit.kind == "found" or is_leave(one):
            return True
        if commit.kind == "join":
            invitation = invitation_of(commit.body)
            return self.counts(invitation, below) and not any(
                invitation_of(ALL[v].body) == invitation
                and are_beside(v, one)
                and any(self.holds(v, acting) for acting in self.rights(v) if _is_asked(acting, below))
                for v in self.revocations
            )
        return any(self.holds(one, right, below) for right in self.rights(one))

    def rights(self, one: int, user: str = "") -> list[Right]:
        """Return rights that would suffice for a commit, or all of a user after the whole set."""
        past, needs = (self.whole, READ) if one == END else (RIGHTS[one], needed(one))
        user = user if one == END else ALL[one].author
        found = [(c, level) for c in past for level in range(max(READ, needs), carried(c, user) + 1)]
        if one != END and ALL[one].kind == "remove":
            found += [(q, OWNER) for q in in_force(past)]
        return found

    def holds(self, one: int, right: Right, below: Right | None = None, user: str = "") -> bool:
        """R3: a right is held while its credential counts and no removal takes it from `one`."""
        asked = (one, right, below, user)
        if asked not in self._known:
            self._enter(one, right, below)
            by = user or ALL[one].author
            is_own = ALL[right[0]].kind != "quorum"
            self._known[asked] = (
                self.counts(right[0], below)
                and not (is_own and any(self.takes(r, right, one, by, below) for r in self.removals))
                and (one == END or self._is_approved(one, right))
            )
            self._asked.pop()
        return self._known[asked]

    def _enter(self, one: int, right: Right, below: Right | None) -> None:
        """Hold the recursion to its proof: each question is smaller than the one that asks it."""
        size = len(self.whole) if one == END else len(PAST[one])
        measure = (place_of(right), 1, 0) if below is None else (place_of(below), 0, size)
        if self._asked and measure >= self._asked[-1]:
            raise RecursionError("a question that is not smaller")
        self._asked.append(measure)

    def takes(self, removal: int, right: Right, one: int, user: str, below: Right | None) -> bool:
        """R4, R5: whether a removal takes a right from `one`."""
        body, (credential, level) = ALL[removal].body, right
        assert isinstance(body, Remove)
        if body.user != user or body.level >= level or one == removal:
            return False
        if removal in PAST[credential]:
            return False
        if one != END and (one in PAST[removal] or one in body.names):
            return False
        if ALL[removal].author == user:
            return one == END or removal in PAST[one]
        return any(
            _is_asked(acting, below) and is_senior(acting, right) and self.holds(removal, acting)
            for acting in self.rights(removal)
        )

    def _is_approved(self, one: int, right: Right) -> bool:
        """R6: whether enough approvals of a removal count, as far as what is senior to the right says."""
        return all(
            len({ALL[a].author for a in given if self.counts(a, right)}) >= threshold
            for threshold, given in demands(one)
        )

    def level(self, user: str) -> int:
        """Return the permission that a member holds after all."""
        if user not in self._levels:
            rights = sorted(self.rights(END, user), key=lambda right: -right[1])
            self._levels[user] = next((r[1] for r in rights if self.holds(END, r, None, user)), NONE)
        return self._levels[user]

    def members(self) -> dict[str, int]:
        """Return everybody who holds a permission, with the highest."""
        return {user: level for user in users_of(self.whole) if (level := self.level(user))}


def place_of(right: Right) -> tuple[int, int]:
    """Return a numbering in which seniors stand first. No rule looks at it."""
    return -right[1], len(PAST[right[0]])


def are_beside(one: int, other: int) -> bool:
    """Return True if neither is in the other's past."""
    return one not in PAST[other] and other not in PAST[one]


def _is_asked(acting: Right, below: Right | None) -> bool:
    return below is None or is_senior(acting, below)


@memo
def world(whole: frozenset[int]) -> World:
    """Return the world of a set of deciding commits, remembered."""
    return World(whole)


@memo
def users_of(whole: frozenset[int]) -> tuple[str, ...]:
    """Return everybody who is or was named by a credential."""
    found: set[str] = set()
    for one in whole:
        body = ALL[one].body
        if isinstance(body, Found):
            found |= {user for user, _ in body.levels}
        elif isinstance(body, Grant):
            found.add(body.user)
        elif ALL[one].kind == "join":
            found.add(ALL[one].author)
    return tuple(sorted(found))


@memo
def in_force(past: frozenset[int]) -> tuple[int, ...]:
    """Q1: quorums that count in a past and that no counting quorum follows."""
    named = [q for q in past if ALL[q].kind == "quorum" and world(past).counts(q)]
    return tuple(q for q in named if not any(q in PAST[other] for other in named))


@memo
def demands(one: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Q2, Q3: what the quorums in force in a removal's past ask of it: (threshold, approvals that counted there)."""
    past, body = RIGHTS[one], ALL[one].body
    if ALL[one].kind != "remove" or not isinstance(body, Remove) or is_leave(one) or not in_force(past):
        return ()
    spent = [r for r in past if _takes_from(r, body.user) and not is_leave(r)]
    given = [
        a
        for a in past
        if ALL[a].kind == "approve"
        and ALL[a].body == Remove(body.user, body.level)
        and not any(a in PAST[r] for r in spent)
        and world(past).counts(a)
    ]
    found = []
    for q in in_force(past):
        named = ALL[q].body
        assert isinstance(named, Quorum)
        found.append((named.threshold, tuple(a for a in given if ALL[a].author in named.signers)))
    return tuple(found)


def _takes_from(one: int, user: str) -> bool:
    body = ALL[one].body
    return ALL[one].kind == "remove" and isinstance(body, Remove) and body.user == user


@memo
def permission(deciding: frozenset[int], user: str) -> int:
    """Return what a user may after these deciding commits."""
    return world(deciding).level(user)


@memo
def members(deciding: frozenset[int]) -> frozenset[str]:
    """Return the members after these deciding commits."""
    return frozenset(world(deciding).members())


@memo
def is_admitted(one: int) -> bool:
    """M3 to M8, M12 to M14: whether a commit may be made, by its own past alone (M9 to M11: `verdicts`)."""
    commit, body, past = ALL[one], ALL[one].body, RIGHTS[one]
    if commit.kind == "found":
        return one == 0
    before = world(past)
    mine = before.level(commit.author)
    if commit.kind == "remove":
        assert isinstance(body, Remove)
        return _may_remove(one, body, mine)
    if commit.kind == "join":
        return _may_join(one)
    if mine < needed(one):
        return False
    if isinstance(body, Grant):
        return before.level(body.user) < body.level
    if isinstance(body, Invite):
        return body.level <= WRITE or not on("M3 at most write")
    if commit.kind == "revoke":
        return invitation_of(body) in past
    if isinstance(body, Quorum):
        return 0 < body.threshold <= len(body.signers) and all(before.level(user) for user in body.signers)
    if commit.kind == "approve":
        return any(commit.author in getattr(ALL[q].body, "signers", ()) for q in in_force(past))
    return True


def _may_remove(one: int, body: Remove, mine: int) -> bool:
    """M7, M13: something is taken away; all that is to be taken is junior to a right by which the removal is held."""
    before, author = world(RIGHTS[one]), ALL[one].author
    theirs = before.level(body.user)
    if body.level >= theirs or body.user == author:
        return body.level < theirs
    here = world(RIGHTS[one] | {one})
    acting = [right for right in here.rights(one) if here.holds(one, right)]
    taken = [
        r
        for r in before.rights(END, body.user)
        if r[1] > body.level and before.holds(END, r, None, body.user)
    ]
    if not on("M7 seniority"):
        return mine >= ADMIN and mine >= theirs
    return mine >= WRITE and bool(acting) and all(any(is_senior(a, right) for a in acting) for right in taken)


def _may_join(one: int) -> bool:
    """M4: an invitation in its own past that counts and is not revoked there; a later one for who was removed."""
    past, author = RIGHTS[one], ALL[one].author
    invitation = invitation_of(ALL[one].body)
    if invitation not in past or not world(past).counts(invitation):
        return False
    is_revoked = any(
        ALL[v].kind == "revoke" and invitation_of(ALL[v].body) == invitation and world(past).counts(v)
        for v in past
    )
    removals = [r for r in past if _takes_from(r, author) and world(past).counts(r)]
    return not is_revoked and (
        not on("M4 a later invitation") or all(r in PAST[invitation] for r in removals)
    )


def counting_removals(deciding: frozenset[int]) -> list[int]:
    """Return the removals that count in a set."""
    return [one for one in deciding if ALL[one].kind == "remove" and world(deciding).counts(one)]
