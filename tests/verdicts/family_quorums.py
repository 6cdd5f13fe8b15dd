"""Named histories of quorums, approvals and checkpoints: M13, M14, Q1 to Q3, R6 and N4."""

from .cases import add, case
from .family_bodies import ID

PEOPLE = (("ben", "admin"), ("cat", "admin"), ("dan", "write"), ("eve", "read"))


def prepared(s, removals=True, threshold=2, signers=("cat", "dan", "eve")):
    """People, a branch and a quorum."""
    for user, level in PEOPLE:
        s.grant("ann", user, level)
    s.b = s.branch("ann")
    s.base = s.heads()
    s.q = s.quorum("ann", threshold, signers, removals)


# M13


def naming(s, signers, threshold, right):
    """A quorum that may be named, or not."""
    for user, level in PEOPLE:
        s.grant("ann", user, level)
    body = ["quorum1", signers(s), threshold, True]
    s.commit("ann", body, expect="accepted" if right else "bad_quorum")


NAMED = {
    "of one": (lambda s: [s.id("eve")], 1, True),
    "of all": (lambda s: sorted(map(s.id, ("ann", "ben", "cat", "dan", "eve"))), 5, True),
    "out of order": (lambda s: sorted(map(s.id, ("ben", "cat")))[::-1], 1, False),
    "with a signer twice": (lambda s: [s.id("ben"), s.id("ben")], 1, False),
    "with a stranger": (lambda s: sorted(map(s.id, ("ben", "fay"))), 1, False),
    "whose threshold is too high": (lambda s: sorted(map(s.id, ("ben", "cat"))), 3, False),
    "whose threshold is 64": (lambda s: sorted(map(s.id, ("ben", "cat"))), 64, False),
}
for title, (signers, threshold, right) in NAMED.items():
    add(f"a quorum {title}", ["M13"], naming, signers=signers, threshold=threshold, right=right)


@case("a quorum with a signer who was excluded", "M13")
def _(s):
    prepared(s)
    s.propose("ann", "dan")
    s.approve("cat", s.heads()[0])
    s.approve("eve", s.ledger.commits[s.heads()[0]].body.proposal)
    s.remove("ann", "dan")
    s.quorum("ann", 1, ["dan", "eve"], expect="bad_quorum")


# Removals under a quorum.


@case("a removal without a proposal", "M13", "Q1")
def _(s):
    prepared(s)
    s.remove("ann", "ben", expect="needs_quorum")
    s.remove("cat", "eve", expect="needs_quorum")
    s.remove("dan", "ben", expect="needs_quorum")
    s.remove("eve", "ben", expect="needs_quorum|not_permitted")
    s.remove("fay", "ben", expect="unknown_author|needs_quorum")
    s.remove("ben", "ben")


@case("a removal with enough approvals", "M13", "Q2")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("cat", p)
    s.remove("dan", "ben", expect="needs_quorum")
    s.approve("cat", p)
    s.remove("dan", "ben", expect="needs_quorum")
    s.approve("eve", p)
    s.remove("dan", "ben", "read", expect="needs_quorum")
    s.remove("dan", "cat", expect="needs_quorum")
    s.remove("eve", "ben", expect="not_permitted")
    s.remove("dan", "ben")
    s.remove("dan", "ben", expect="nothing_to_remove")


@case("a demotion with enough approvals", "M13", "Q2")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben", "write")
    s.approve("cat", p)
    s.approve("eve", p)
    s.remove("dan", "ben", expect="needs_quorum")
    s.remove("dan", "ben", "manage", expect="needs_quorum")
    s.remove("dan", "ben", "write")


@case("a quorum does not remove a founder", "M7", "M13")
def _(s):
    prepared(s)
    p = s.propose("dan", "ann")
    s.approve("cat", p)
    s.approve("eve", p)
    s.remove("dan", "ann", expect="not_permitted")
    s.remove("cat", "ann", "read", expect="not_permitted|needs_quorum")


@case("a quorum removes an owner who came after it, and none who came before", "M7", "R1")
def _(s):
    s.grant("ann", "fay", "owner")
    prepared(s, threshold=1)
    s.grant("ann", "gus", "owner")
    for user, expect in (("fay", "not_permitted"), ("gus", "accepted")):
        p = s.propose("dan", user)
        s.approve("eve", p)
        s.remove("dan", user, expect=expect)


@case("an owner removes with the quorum's approval who it could remove alone", "M13", "R6")
def _(s):
    prepared(s, threshold=1)
    p = s.propose("ben", "cat")
    s.approve("eve", p)
    s.remove("ann", "cat")


@case("a quorum that does not cover removals", "M13", "Q1")
def _(s):
    prepared(s, removals=False)
    s.remove("dan", "ben", expect="not_permitted")
    s.remove("ben", "cat")
    p = s.propose("dan", "ben")
    s.approve("eve", p)
    s.remove("dan", "ben", expect="not_permitted")


@case("a removal whose past leaves the quorum out", "M13")
def _(s):
    prepared(s)
    s.remove("ben", "cat", acks=s.base)
    s.remove("cat", "ben", acks=s.base, expect="not_permitted")


@case("a later quorum replaces an earlier one", "Q1")
def _(s):
    prepared(s)
    s.quorum("ann", 1, ["eve"])
    p = s.propose("dan", "ben")
    s.approve("cat", p, expect="not_permitted")
    s.approve("eve", p)
    s.remove("dan", "ben")
    s.quorum("ann", 1, ["eve"], removals=False)
    s.remove("dan", "cat", expect="not_permitted")
    s.remove("ann", "cat")


@case("a later quorum that does not count replaces nothing", "Q1", "R2")
def _(s):
    s.grant("ann", "own", "owner")
    prepared(s, threshold=1)
    p = s.propose("dan", "own")
    a = s.approve("eve", p)
    r = s.quorum("own", 1, ["dan"], removals=False, acks=[s.q])
    x = s.remove("ann", "own", acks=[a])
    s.remove("ann", "ben", acks=[r, x], expect="needs_quorum")
    s.remove("ann", "cat", acks=[r])


@case("quorums beside each other", "Q1")
def _(s):
    s.grant("ann", "own", "owner")
    prepared(s, threshold=1)
    r = s.quorum("own", 1, ["ben"], acks=s.base)
    p = s.propose("dan", "eve", acks=sorted([s.q, r]))
    s.approve("cat", p)
    s.remove("ann", "eve", expect="needs_quorum")
    s.approve("ben", p)
    s.remove("ann", "eve")


@case("a proposal that was used up", "Q3")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("cat", p)
    s.approve("eve", p)
    s.remove("dan", "ben")
    s.grant("ann", "ben", "write")
    s.remove("dan", "ben", expect="needs_quorum")
    p = s.propose("dan", "ben")
    s.approve("cat", p)
    s.approve("eve", p)
    s.remove("dan", "ben")


@case("a leave does not use up a proposal", "Q3")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("cat", p)
    s.approve("eve", p)
    s.remove("ben", "ben", "write")
    s.remove("dan", "ben")


@case("another removal of the member uses up a proposal", "Q3")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    o = s.propose("dan", "ben", "write")
    for signer in ("cat", "eve"):
        s.approve(signer, p)
        s.approve(signer, o)
    s.remove("dan", "ben", "write")
    s.remove("dan", "ben", expect="needs_quorum")


@case("a removal that does not count uses up a proposal", "Q3", "R2")
def _(s):
    s.grant("ann", "own", "owner")
    prepared(s, threshold=1, signers=("eve",))
    p = s.propose("dan", "cat")
    a = s.approve("eve", p)
    # The quorum that follows is another's, and falls with it.
    x = s.remove("dan", "cat", acks=[a])
    s.quorum("ann", 1, ["ben"], acks=[a])
    s.remove("ben", "cat", expect="nothing_to_remove")
    assert x


# M14


@case("approvals by whom no quorum names", "M14")
def _(s):
    prepared(s)
    p = s.propose("ann", "ben")
    s.approve("ann", p, expect="not_permitted")
    s.approve("ben", p, expect="not_permitted")
    s.approve("fay", p, expect="unknown_author|not_permitted")
    s.approve("cat", s.q, expect="unknown_proposal")
    s.approve("cat", ID, expect="unknown_proposal")
    s.approve("cat", p)


@case("approvals without a quorum, and proposals", "M14")
def _(s):
    for user, level in PEOPLE:
        s.grant("ann", user, level)
    p = s.propose("dan", "ben")
    s.approve("cat", p, expect="not_permitted|unknown_proposal")
    s.approve("ann", p, expect="not_permitted|unknown_proposal")
    q = s.quorum("ann", 1, ["cat"])
    s.approve("cat", p, acks=[p], expect="not_permitted|unknown_proposal")
    s.approve("cat", p, acks=[q])


@case("an approval beside its proposal", "M14")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("cat", p, acks=[s.q], expect="unknown_proposal")


# R6


@case("an approval that a junior of the quorum would take", "R6")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("dan", p)
    a = s.approve("cat", p)
    s.remove("ben", "dan", acks=s.base)
    s.remove("dan", "ben", acks=[a])
    s.note("cat")
    return {"check": lambda results: _members(s, results, "ann", "cat", "dan", "eve")}


def _members(s, results, *users):
    assert set(results["members"]) == {s.id(user).hex() for user in users}, results["members"]


@case("an approval that the founder takes", "R6")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    s.approve("dan", p)
    a = s.approve("cat", p)
    s.remove("ann", "dan", acks=s.base)
    s.remove("cat", "ben", acks=[a])
    return {"check": lambda results: _members(s, results, "ann", "ben", "cat", "eve")}


@case("an approval of a third makes up for one that was taken", "R6")
def _(s):
    prepared(s)
    p = s.propose("dan", "ben")
    for signer in ("dan", "eve"):
        s.approve(signer, p)
    a = s.approve("cat", p)
    s.remove("ann", "dan", acks=s.base)
    s.remove("cat", "ben", acks=[a])
    return {"check": lambda results: _members(s, results, "ann", "cat", "eve")}


@case("a signer whom the quorum has excluded goes on signing", "R6", "Q2")
def _(s):
    prepared(s)
    p = s.propose("dan", "eve")
    s.approve("dan", p)
    a = s.approve("cat", p)
    x = s.remove("dan", "eve", acks=[a])
    # eve signs by a past that does not have it.
    r = s.propose("cat", "ben", acks=[s.q])
    b = s.approve("eve", r, acks=[r])
    c = s.approve("cat", r, acks=[b])
    y = s.remove("cat", "ben", acks=sorted([x, c]))
    assert y
    return {"check": lambda results: _members(s, results, "ann", "cat", "dan")}


@case("the first approval of each signer is what a removal rests on", "Q2", "R6")
def _(s):
    s.grant("ann", "ben", "admin")
    first = s.grant("ann", "dan", "write")
    s.q = s.quorum("ann", 1, ["dan"])
    p = s.propose("dan", "ben")
    # Two approvals beside each other: of one rank, so the id decides which is the first.
    a = s.approve("dan", p, acks=[p])
    g = s.grant("ann", "dan", "manage", acks=[p])
    s.approve("dan", p, acks=[g])
    s.remove("dan", "ben")
    assert first
    assert a


@case("a removal that rested on what fell, though a later approval stands", "Q2", "R6")
def _(s):
    s.grant("ann", "ben", "admin")
    g = s.grant("ann", "dan", "write")
    s.q = s.quorum("ann", 1, ["dan"])
    p = s.propose("dan", "ben")
    a = s.approve("dan", p)
    # ann excludes dan by an older past, and grants again before the second approval.
    x = s.remove("ann", "dan", acks=[g])
    h = s.grant("ann", "dan", "write", acks=[x])
    s.approve("dan", p, acks=sorted([a, h]))
    r = s.remove("dan", "ben", acks=[a])
    t = s.remove("dan", "ben", acks=[one for one in s.heads() if one != r])
    assert t
    return {"check": lambda results: _members(s, results, "ann", "dan")}


# Checkpoints.


def at(s, commits, threshold=1, removals=False, signers=("eve",)):
    """A proposal of a checkpoint and its approvals."""
    prepared(s, removals, threshold, signers)
    s.posts = [s.note("ann", f"{n}", branch=s.b, acks=[s.b]) for n in range(3)]
    s.p = s.commit("dan", ["propose-checkpoint1", s.b, commits(s)])


@case("a checkpoint", "M13", "N4")
def _(s):
    at(s, lambda s: s.posts[:2])
    a = s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    late = s.note("ann", "late", branch=s.b, acks=[s.b])
    after = s.note("ann", "after", branch=s.b, acks=sorted([c, late, s.posts[2]]))

    def check(results):
        order = results["branches"][s.b.hex()]["timeline"]
        assert [order[0], order[3], order[-1]] == [s.b.hex(), c.hex(), after.hex()], order

    assert a
    return {"check": check}


@case("checkpoints that are wrong", "M13")
def _(s):
    at(s, lambda s: s.posts[:2])
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2], expect="needs_quorum")
    early = s.heads()
    s.approve("eve", s.p)
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2], place=early, expect="needs_quorum")
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts, expect="bad_checkpoint")
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1], expect="bad_checkpoint")
    s.commit("dan", ["checkpoint1", ID], branch=s.b, acks=s.posts[:2], expect="unknown_proposal")
    s.commit("dan", ["checkpoint1", s.q], branch=s.b, acks=s.posts[:2], expect="unknown_proposal")
    s.commit(
        "dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2], place=[s.q], expect="unknown_proposal"
    )
    s.commit("eve", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2], expect="not_permitted")
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])


@case("a checkpoint by the proposal of another branch", "M13")
def _(s):
    at(s, lambda s: s.posts[:1])
    s.approve("eve", s.p)
    c = s.branch("ann")
    p = s.commit("dan", ["propose-checkpoint1", c, [c]])
    s.approve("eve", p)
    q = s.commit("dan", ["propose-checkpoint1", s.b, [c]])
    s.approve("eve", q)
    s.commit("dan", ["checkpoint1", q], branch=c, expect="bad_checkpoint")
    s.commit("dan", ["checkpoint1", p], branch=c)


@case("a checkpoint without a quorum", "M13")
def _(s):
    b = s.branch("ann")
    p = s.commit("ann", ["propose-checkpoint1", b, [b]])
    s.commit("ann", ["checkpoint1", p], branch=b, expect="unknown_proposal")


@case("a checkpoint by a proposal of a removal", "M13")
def _(s):
    prepared(s)
    p = s.propose("ann", "ben")
    s.approve("cat", p)
    s.approve("eve", p)
    s.commit("ann", ["checkpoint1", p], branch=s.b, expect="unknown_proposal")


@case("a checkpoint whose approval falls, and that is adopted", "N4")
def _(s):
    at(s, lambda s: s.posts[:2])
    s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    s.remove("ann", "eve", acks=s.base)
    s.commit("ann", ["adopt1", s.b, [c]])
    s.note("ann", branch=s.b)
    s.expected[c] = "void"


@case("a checkpoint whose author falls, and that is adopted", "N1", "N3", "N4")
def _(s):
    at(s, lambda s: s.posts[:2])
    s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    d = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    s.remove("ann", "dan", acks=s.base)
    s.commit("ann", ["adopt1", s.b, [c]])
    s.expected[d] = "void"
    s.expected[c] = "accepted"
    late = s.note("ann", "late", branch=s.b, acks=[s.b])
    assert late


@case("checkpoints of the same heads count once", "section 6")
def _(s):
    at(s, lambda s: s.posts[:2], threshold=1)
    s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    d = s.commit("cat", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    e = s.note("ann", branch=s.b, acks=[c])
    s.note("ann", branch=s.b, acks=sorted([d, e]))
    s.note("ann", branch=s.b, acks=s.posts[2:])


@case("checkpoints beside each other count each", "section 6")
def _(s):
    at(s, lambda s: s.posts[:1], threshold=1)
    s.approve("eve", s.p)
    q = s.commit("dan", ["propose-checkpoint1", s.b, s.posts[1:2]])
    s.approve("eve", q)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1])
    d = s.commit("cat", ["checkpoint1", q], branch=s.b, acks=s.posts[1:2])
    f = s.note("ann", branch=s.b, acks=[c])
    s.note("ann", branch=s.b, acks=[d])
    s.note("ann", branch=s.b, acks=sorted([d, f]))
    s.note("ann", branch=s.b, acks=s.posts[2:])


@case("checkpoints one after another", "section 6")
def _(s):
    at(s, lambda s: s.posts[:2])
    s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    n = s.note("ann", branch=s.b, acks=[c])
    q = s.commit("dan", ["propose-checkpoint1", s.b, [n]])
    s.approve("eve", q)
    s.commit("dan", ["checkpoint1", q], branch=s.b, acks=[n])
    for post in s.posts:
        s.note("ann", branch=s.b, acks=[post])


@case("a checkpoint under two quorums", "Q1", "M13")
def _(s):
    at(s, lambda s: s.posts[:2], threshold=1, signers=("eve",))
    s.grant("ann", "own", "owner")
    heads = s.heads()
    q = s.quorum("ann", 1, ["eve"], removals=False, acks=heads)
    r = s.quorum("own", 1, ["cat"], removals=False, acks=heads)
    s.approve("eve", s.p, acks=sorted([q, r]))
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2], expect="needs_quorum")
    s.approve("cat", s.p)
    s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])


@case("a chain of checkpoints, the first of which becomes void", "N4", "section 6")
def _(s):
    at(s, lambda s: s.posts[:2])
    s.approve("eve", s.p)
    c = s.commit("dan", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:2])
    s.note("ann", branch=s.b, acks=[c])
    s.note("ann", branch=s.b, acks=s.posts[2:])
    s.remove("ann", "eve", acks=s.base)
    s.expected[c] = "void"
