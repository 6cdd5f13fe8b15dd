# ruff: noqa: E501
"""The rules about members alone: histories with their outcome, an algorithm without recursion, and random sets.

`+` grants, `-` removes (down to the named permission, else to none), `.` and `act` are any other commit; parents stand after
`<`. After `=` stand the members with their permissions, after `|` the operations that are refused. Founder is `ann`.
"""

import random
import time
from collections import Counter

from tests.model.commits import (
    ADMIN,
    ALL,
    MANAGE,
    OWNER,
    PAST,
    READ,
    RIGHTS,
    ROOT,
    WRITE,
    Body,
    Commit,
    Found,
    Grant,
    Invite,
    Join,
    Quorum,
    Remove,
    Text,
    number_of,
)
from tests.model.members import (
    END,
    Right,
    carried,
    demands,
    in_force,
    invitation_of,
    is_admitted,
    is_leave,
    is_senior,
    needed,
    place_of,
    world,
)
from tests.model.switches import use

Set = frozenset[int]
Acts = dict[int, frozenset[Right]]

HISTORIES = """
Two equals remove each other: ann + ben admin < 0; ann + cat admin < 0; ben - cat < 1 2; cat - ben < 1 2 = ann:5 ben:4 cat:4 | 3 4
The earlier member stays: ann + ben admin < 0; ann + cat admin < 1; ben - cat < 2; cat - ben < 2 = ann:5 ben:4 | 4
The higher permission stays: ann + ben admin < 0; ann + cat admin < 0; ann + ben owner < 1 2; ben - cat < 3; cat - ben < 1 2 = ann:5 ben:5 | 5
A circle of three equals: ann + ben admin < 0; ann + cat admin < 0; ann + dan admin < 0; ben - cat < 1 2 3; cat - dan < 1 2 3; dan - ben < 1 2 3 = ann:5 ben:4 cat:4 dan:4 | 4 5 6
A circle of three in order: ann + ben admin < 0; ann + cat admin < 1; ann + dan admin < 2; ben - cat < 3; cat - dan < 3; dan - ben < 3 = ann:5 ben:4 dan:4 | 6
A removal by a removed admin is void: ann + ben admin < 0; ann + cat write < 1; ben - cat < 2; ann - ben < 2 = ann:5 cat:2 | -
And counts again when that removal is void: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; cat - dan < 3; ben - cat < 3; ann - ben < 3 = ann:5 cat:4 | -
A senior stops a member who removes everyone: ann + ben admin < 0; ann + cat admin < 1; ann + dan admin < 2; dan - ben < 3; dan - cat < 4; ben - dan < 3 = ann:5 ben:4 cat:4 | 4 5
Grants concurrent with a removal stay: ann + ben admin < 0; ann + cat write < 1; ann - cat < 2; ben + dan write < 2 = ann:5 ben:4 dan:2 | -
A concurrent grant to the removed member does not: ann + ben admin < 0; ann + cat read < 1; ann - cat < 2; ben + cat write < 2 = ann:5 ben:4 | -
A concurrent grant by the removed member does not: ann + ben admin < 0; ben + cat read < 1; ann - ben < 1 = ann:5 | -
A grant that the remover had seen stays: ann + ben admin < 0; ben + cat read < 1; ann - ben < 2 = ann:5 cat:1 | -
A later grant counts: ann + ben write < 0; ann - ben < 1; ann + ben write < 2 = ann:5 ben:2 | -
A grant by another admin counts only with the removal in its past: ann + ben admin < 0; ann + cat admin < 1; ann - cat < 2; ben + cat read < 3 = ann:5 ben:4 cat:1 | -
An old fork does not bring back the removed member: ann + ben write < 0; ann - ben < 1; ann . < 1; ann . < 2 3 = ann:5 | -
What a demoted member did concurrently is void: ann + ben admin < 0; ann - ben write < 1; ben + cat write < 1 = ann:5 ben:2 | -
What a demoted member may still do is not void: ann + ben admin < 0; ann - ben manage < 1; ben . < 1 = ann:5 ben:3 | -
A chain of grants falls with its first: ann + ben admin < 0; ben + cat admin < 1; cat + dan admin < 2; ann - ben < 1 = ann:5 | -
A second grant holds the chain: ann + ben admin < 0; ben + cat admin < 1; ann + cat admin < 1; cat + dan admin < 2 3; ann - ben < 1 = ann:5 cat:4 dan:4 | -
A leave voids nothing: ann + ben admin < 0; ben + cat write < 1; ben - ben < 2 = ann:5 cat:2 | -
The founder may leave: ann + ben owner < 0; ann - ann < 1 = ben:5 | -
Two removals of one member act as one: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; ben - dan < 3; cat - dan < 3 = ann:5 ben:4 cat:4 | -
A backdated leave changes nothing for others: ann + ben admin < 0; ben + cat write < 1; ben + dan write < 2; ann - ben < 3; ben - ben < 1 = ann:5 cat:2 dan:2 | -
A backdated leave brings no one back: ann + ben admin < 0; ann + cat write < 1; ben - cat < 2; ann - ben < 3; ben - ben < 2 = ann:5 | -
A demoted senior does not void the exclusion that follows: ann + ben owner < 0; ann + cat admin < 1; ann - ben write < 2; cat - ben < 3; ben - cat < 2 = ann:5 cat:4 | -
Nor does it by its former permission: ann + cat admin < 0; ann + ben owner < 1; ann - ben admin < 2; cat - ben < 3; ben - cat < 2 = ann:5 cat:4 | -
A concurrent leave puts its author below: ann + ben admin < 0; ann + cat admin < 1; ben - ben < 2; ben - cat < 2; cat - ben < 2 = ann:5 | 5
Five in a partition: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; ann + eve write < 3; ann - eve < 4; ben - dan < 4; ben - cat < 6; cat - ben < 4; ann + dan write < 5 7 8 = ann:5 ben:4 | 8 9
An excluded senior removes its remover by backdating: ann + ben admin < 0; ann + cat admin < 1; cat - ben < 2; ben - cat < 2 = ann:5 ben:4 | 3
An excluded junior does: ann + ben admin < 0; ann + cat admin < 1; ben - cat < 2; cat - ben < 2 = ann:5 ben:4 | 4
An excluded equal does: ann + ben admin < 0; ann + cat admin < 0; ben - cat < 1 2; cat - ben < 1 2 = ann:5 ben:4 cat:4 | 3 4
An excluded admin admits another key by backdating: ann + ben admin < 0; ann - ben < 1; ben + eve admin < 1 = ann:5 | -
An excluded equal does so: ann + ben admin < 0; ann + cat admin < 0; ben - cat < 1 2; cat + eve admin < 1 2 = ann:5 ben:4 cat:4 eve:4 | 3
An accomplice removes and adds the excluded again, beside the exclusion: ann + eve admin < 0; ann + ben admin < 1; ann - ben < 2; eve - ben < 2; eve + ben admin < 4 = ann:5 eve:4 | -
A junior removes the remover: ann + ben admin < 0; ann + cat admin < 1; ann + dan admin < 2; ben - cat < 3; dan - ben < 3 = ann:5 ben:4 dan:4 | 5
The accomplice removes the remover instead: ann + cat admin < 0; ann + ben admin < 1; ben + eve admin < 2; cat - ben < 3; eve - cat < 3 = ann:5 cat:4 eve:4 | 5
An excluded admin revokes what others came by: ann + ben admin < 0; i: ann invite write < 1; dan join i < i; ann - ben < i; ben revoke i < i = ann:5 dan:2 | -
A joiner comes back by an old link, backdated: i: ann invite write < 0; j: dan join i < i; ann - dan < j; eve join i < i = ann:5 eve:2 | -
An admin backdates a grant to seem senior: ann + ben admin < 0; ann + cat admin < 1; ann + dan admin < 2; cat + eve admin < 2; eve - dan < 3 4; ann - cat < 3 = ann:5 ben:4 dan:4 | 5
A writer lengthens a fork to make later admins junior: ann + dan write < 0; dan . < 1; dan . < 2; dan . < 3; ann + ben admin < 4; ann + cat admin < 1; ben - cat < 5 6; cat - ben < 5 6 = ann:5 ben:4 cat:4 dan:2 | 7 8
A leaver's key is used after it left: ann + ben admin < 0; ann + cat admin < 1; ben - ben < 2; ben - cat < 2 = ann:5 | -
Two excluded admins testify for each other: ann + ben admin < 0; ann + cat admin < 1; ann - ben < 2; ann - cat < 3; cat + ben admin < 2; ben + cat admin < 2 = ann:5 | 5 6
A quorum removes a senior admin: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; q: ann quorum 2 cat dan < 3; a: cat approve ben < q; b: dan approve ben < q; r: cat - ben < a b; ben - cat < 3; ben - dan < 3 = ann:5 cat:4 dan:2 | -
One of its signers was excluded by the target beside it: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; q: ann quorum 2 cat dan < 3; a: cat approve ben < q; b: dan approve ben < q; ben - dan < 3; r: cat - ben < a b = ann:5 cat:4 dan:2 | -
One of its signers was excluded by the founder beside it: ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; q: ann quorum 2 cat dan < 3; a: cat approve ben < q; b: dan approve ben < q; ann - dan < 3; r: cat - ben < a b = ann:5 ben:4 cat:4 | -
The owner who named the quorum was excluded beside it: ann + ben owner < 0; ann + cat admin < 1; ann + dan admin < 2; q: ben quorum 1 dan < 3; a: dan approve cat < q; r: dan - cat < a; ann - ben < 3 = ann:5 cat:4 dan:4 | -
Two owners name quorums side by side: ann + ben owner < 0; ann + cat admin < 1; ann + dan admin < 2; ann + fay write < 3; q: ann quorum 1 cat < 4; p: ben quorum 1 dan < 4; a: cat approve fay < q p; r: cat - fay < a; b: dan approve fay < q p; s: cat - fay < a b = ann:5 ben:5 cat:4 dan:4 | r
A demoted owner uses its former permission: ann + cat admin < 0; ann + ben owner < 1; ann - ben admin < 2; cat - ben < 3; ben - cat < 2 = ann:5 cat:4 | -
A member raised beside its removal by an older admin: ann + cat admin < 0; ann + ben write < 1; cat - ben < 2; ann + ben admin < 2 = ann:5 cat:4 | -
A member raised to owner beside its removal: ann + cat admin < 0; ann + ben admin < 1; cat - ben < 2; ann + ben owner < 2 = ann:5 ben:5 cat:4 | -
An epoch that an excluded admin starts beside its exclusion: ann + ben admin < 0; ann - ben < 1; ben act admin < 1 = ann:5 | -
A chain of removals, of which every second counts: ann + ben admin < 0; ann + cat admin < 1; ann + dan admin < 2; ann + eve admin < 3; dan - eve < 4; cat - dan < 4; ben - cat < 4; ann - ben < 4 = ann:5 cat:4 eve:4 | -
A removal whose author was let in by an excluded admin, unseen: ann + ben admin < 0; ann + dan write < 1; ben + cat admin < 2; cat - dan < 3; ann - ben < 2 = ann:5 dan:2 | -
What the founder had seen of an excluded admin stands: ann + ben admin < 0; ann + cat admin < 1; ben - cat < 2; ann - ben < 3 = ann:5 | -
Unless it removes it from before that: ann + ben admin < 0; ann + cat admin < 1; ben - cat < 2; ann - ben < 2 = ann:5 cat:4 | -
A thief has the founder's key: ann + ben owner < 0; ann + cat admin < 1; ann - ben < 2; ann - cat < 2; ben - ann < 2 = ann:5 | 5
""".strip().splitlines()

LEVELS = {"read": READ, "write": WRITE, "manage": MANAGE, "admin": ADMIN, "owner": OWNER}


def make(author: str, parents: list[int], kind: str, body: Body) -> int:
    """Return an operation; what `act` needs is told by its kind."""
    acks = frozenset(p for p in parents if not any(p in PAST[other] for other in parents))
    rank = 1 + max((ALL[a].rank for a in acks), default=-1)
    return number_of(Commit(kind, author, 0, False, ROOT, acks, frozenset(), rank, body))


def found(*founders: str) -> int:
    """Return a founding."""
    return make(founders[0], [], "found", Found(tuple((user, OWNER) for user in founders), founders))


def tell(text: str) -> tuple[Set, list[str]]:
    """Return the operations of a history that may be made, and the labels of those that are refused."""
    made, refused = {"0": found("ann")}, []
    for count, line in enumerate(text.split(";"), 1):
        said, _, parents = line.partition("<")
        label, _, said = said.rpartition(":")
        label = label.strip() or str(count)
        if not all(p in made for p in parents.split()):
            refused.append(label)
            continue
        one = _parse(said.split(), [made[p] for p in parents.split()], made)
        if is_admitted(one):
            made[label] = one
        else:
            refused.append(label)
    return frozenset(made.values()), refused


def _parse(words: list[str], on: list[int], made: dict[str, int]) -> int:
    author, verb, *rest = words
    name = next((word for word in rest if word not in LEVELS and not word.isdigit()), "")
    level = next((LEVELS[word] for word in rest if word in LEVELS), 0)
    kinds: dict[str, tuple[str, Body]] = {
        "+": ("grant", Grant(name, level)),
        "-": ("remove", Remove(name, level)),
        ".": ("note", Text()),
        "act": ("answer", Text()),
        "invite": ("invite", Invite(level)),
        "approve": ("approve", Remove(name, level)),
    }
    if verb in ("join", "revoke"):
        return make(author, on, verb, Join(made.get(rest[0], 0)))
    if verb == "quorum":
        return make(author, on, verb, Quorum(int(rest[0]), tuple(rest[1:])))
    return make(author, on, *kinds[verb])


def run_histories() -> list[str]:
    """Return the histories that end in another way than they should."""
    wrong = []
    for line in HISTORIES:
        title, _, rest = line.partition(": ")
        steps, _, outcome = rest.rpartition(" = ")
        expected, _, refusals = outcome.partition(" | ")
        try:
            whole, refused = tell(steps)
            members = world(whole).members()
        except RecursionError:
            wrong.append(f"{title}: no end")
            continue
        now = " ".join(f"{user}:{level}" for user, level in members.items())
        if (now, " ".join(refused) or "-") != (expected, refusals):
            wrong.append(f"{title}: {now} | {' '.join(refused) or '-'}")
    return wrong


# --- the algorithm: removals from the most senior right down, without recursion between them ---


class Judge:
    """`acts` has the rights that each removal and revocation is held by, so far."""

    def __init__(self, whole: Set) -> None:
        self.whole, self.acts = whole, Acts()
        asked = [(place_of(right), one, right) for one in whole if _takes(one) for right in self.rights(one)]
        for _, one, right in sorted(asked):
            if self.holds(one, right):
                self.acts[one] = self.acts.get(one, frozenset()) | {right}

    def counts(self, one: int, below: Right | None = None) -> bool:
        """R2."""
        commit = ALL[one]
        if commit.kind == "found" or is_leave(one):
            return True
        if commit.kind == "join":
            invitation = invitation_of(commit.body)
            beside = [
                v for v in self.acts if ALL[v].kind == "revoke" and invitation_of(ALL[v].body) == invitation
            ]
            beside = [v for v in beside if v not in PAST[one] and one not in PAST[v]]
            return self.counts(invitation, below) and not any(
                _is_asked(a, below) for v in beside for a in self.acts[v]
            )
        return any(self.holds(one, right, below) for right in self.rights(one))

    def rights(self, one: int) -> list[Right]:
        """Return the rights that would suffice."""
        past, needs, user = RIGHTS[one], max(READ, needed(one)), ALL[one].author
        rights = [(c, level) for c in past for level in range(needs, carried(c, user) + 1)]
        return rights + [(q, OWNER) for q in in_force(past) if ALL[one].kind == "remove"]

    def holds(self, one: int, right: Right, below: Right | None = None, user: str = "") -> bool:
        """R3 to R6."""
        credential, level = right
        user = user or ALL[one].author
        if not self.counts(credential, below):
            return False
        for r in self.whole if ALL[credential].kind != "quorum" else ():
            body = ALL[r].body
            if (
                ALL[r].kind != "remove"
                or not isinstance(body, Remove)
                or body.user != user
                or body.level >= level
            ):
                continue
            if r in PAST[credential] or r == one or (one != END and one in PAST[r]):
                continue
            if ALL[r].author == user:
                if one == END or r in PAST[one]:
                    return False
            elif any(is_senior(a, right) and _is_asked(a, below) for a in self.acts.get(r, ())):
                return False
        return one == END or all(
            len({ALL[a].author for a in given if self.counts(a, right)}) >= threshold
            for threshold, given in demands(one)
        )

    def level(self, user: str) -> int:
        """Return what a member holds after all."""
        rights = [(c, level) for c in self.whole for level in range(READ, carried(c, user) + 1)]
        return max((r[1] for r in rights if self.holds(END, r, None, user)), default=0)


def _takes(one: int) -> bool:
    return ALL[one].kind == "revoke" or (ALL[one].kind == "remove" and not is_leave(one))


def _is_asked(acting: Right, below: Right | None) -> bool:
    return below is None or is_senior(acting, below)


# --- what must hold of one set ---


def find_fault(whole: Set) -> str | None:
    """Return what does not hold of a set of operations that may be made."""
    here, judge = world(whole), Judge(whole)
    for one in whole:
        if here.counts(one) != judge.counts(one):
            return "the definition and the algorithm differ on what counts"
        if not world(RIGHTS[one] | ({one} if ALL[one].kind not in ("note", "answer") else set())).counts(one):
            return "what may be made does not count by its own past"
    members = here.members()
    if any(judge.level(user) != level for user, level in members.items()):
        return "the definition and the algorithm differ on members"
    leavers = {ALL[one].author for one in whole if is_leave(one)}
    for one in whole:
        body = ALL[one].body
        if isinstance(body, Found) and any(
            members.get(u) != OWNER for u, _ in body.levels if u not in leavers
        ):
            return "a founder is out"
        if all(other == one or other in PAST[one] or one in PAST[other] for other in whole):
            until = frozenset(PAST[one] | {one}) & whole
            if any(world(until).counts(x) != here.counts(x) for x in until):
                return "what everything follows is judged again"
    return _find_weak_removal(whole)


def _find_weak_removal(whole: Set) -> str | None:
    """Find an unseen act of an excluded member that counts, though the remover is senior to all its rights."""
    here = world(whole)
    for r in whole:
        body = ALL[r].body
        if not _takes(r) or not isinstance(body, Remove) or body.level:
            continue
        acting = [right for right in here.rights(r) if here.holds(r, right)]
        own = [c for c in whole if carried(c, body.user) and r not in PAST[c]]
        after = {c for c in whole if carried(c, body.user) and r in PAST[c]}
        if not all(any(is_senior(a, (c, carried(c, body.user))) for a in acting) for c in own):
            continue
        for one in whole:
            is_late = ALL[one].author == body.user and one not in PAST[r] and not after & PAST[one]
            is_own = (
                not is_leave(one)
                and ALL[one].kind != "join"
                and not any(ALL[c].kind == "quorum" for c, _ in here.rights(one))
            )
            if is_late and is_own and here.counts(one):
                return "what an excluded member did unseen counts"
        if here.level(body.user) and not after:
            return "an excluded member is in"
    return None


# --- random sets ---

USERS = ("ben", "cat", "dan", "eve")
QUORUMS = (
    "ann + ben admin < 0; ann + cat admin < 1; ann + dan write < 2; q: ann quorum 1 cat dan < 3; a: dan approve ben < q; r: cat - ben < a",
    "ann + ben owner < 0; ann + cat admin < 1; ann + dan admin < 2; q: ben quorum 2 cat dan < 3; a: cat approve dan < q; b: dan approve cat < q",
    "ann + ben owner < 0; ann + cat admin < 1; ann + dan admin < 2; q: ann quorum 1 cat < 3; p: ben quorum 1 dan < 3;"
    "a: cat approve dan < q p; b: dan approve cat < q p",
)


def draw(chance: random.Random) -> Set:
    """Return a random set with forks, of 6 to 14 operations."""
    founders = chance.choice((("ann",), ("ann", "abe")))
    first = found(*founders)
    whole = [first]
    if chance.random() < 0.3:
        founders, whole = ("ann",), sorted(tell(chance.choice(QUORUMS))[0])
    for user in USERS[: chance.randint(1, 4)] if len(whole) == 1 else ():
        parents = whole if chance.random() < 0.7 else [first]
        _add(
            whole,
            make("ann", parents, "grant", Grant(user, chance.choice((WRITE, ADMIN, ADMIN, ADMIN, OWNER)))),
        )
    size = chance.randint(6, 14) + 4 * (len(whole) > 6)
    for _ in range(6 * size):
        if len(whole) < size:
            parents = (
                whole
                if chance.random() < 0.25
                else chance.sample(whole, min(len(whole), chance.randint(1, 3)))
            )
            _add(whole, _draw_one(chance, whole, parents, [*founders, *USERS]))
    return frozenset(whole)


def _add(whole: list[int], one: int) -> None:
    if one not in whole and is_admitted(one):
        whole.append(one)


def _draw_one(chance: random.Random, whole: list[int], parents: list[int], users: list[str]) -> int:
    author, user, kind = chance.choice(users), chance.choice(users), chance.random()
    invitations = [one for one in whole if ALL[one].kind == "invite"]
    if kind < 0.42:
        return make(author, parents, "remove", Remove(user, chance.choice((0, 0, 0, READ, WRITE, ADMIN))))
    if kind < 0.72:
        return make(author, parents, "grant", Grant(user, chance.choice((WRITE, ADMIN, ADMIN, OWNER))))
    if kind < 0.86 and invitations:
        return make(
            author, parents, chance.choice(("join", "join", "revoke")), Join(chance.choice(invitations))
        )
    if kind < 0.86:
        return make(author, parents, "invite", Invite(WRITE))
    if kind < 0.9:
        signers = tuple(chance.sample(users, chance.randint(1, 3)))
        return make(author, parents, "quorum", Quorum(chance.randint(1, len(signers)), signers))
    if kind < 0.97:
        return make(author, parents, "approve", Remove(user, 0))
    return make(author, parents, chance.choice(("note", "answer")), Text())


def run_random(seconds: float, seed: int, mutant: str = "", count: int = 0) -> tuple[Counter[str], int]:
    """Return the faults found in random sets, and how many sets were drawn until the first, or at all."""
    faults: Counter[str] = Counter()
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until and not faults and (not count or number < count):
        if number % 500 == 0:
            use(mutant)
        chance = random.Random(f"{seed} {number}")
        number += 1
        try:
            fault = find_fault(draw(chance))
        except RecursionError:
            fault = "no end"
        if fault:
            faults[fault] += 1
    return faults, number
