"""Named histories of membership checkpoints: which are true, and of whom they say nothing."""

from . import statements
from .cases import add, case
from .crypto import digest


def concluding(**meant):
    """Check what is concluded of checkpoints: True, False, or None where nothing is said. Given by name."""

    def check(results):
        found = results.get("checkpoints", {})
        assert found == {one.hex(): what for one, what in meant.values() if what is not None}, found

    return {"check": check}


def peopled(s):
    """An admin, a reader, a branch, and an epoch after an exclusion."""
    for user, level in (("ben", "admin"), ("eve", "read"), ("fay", "write")):
        s.grant("ann", user, level)
    s.b = s.branch("ann")
    s.remove("ben", "fay", feeds=[[s.b, 3, s.b]])
    s.start("ben")


@case("a true checkpoint of the members", "R3", "Q1")
def _(s):
    peopled(s)
    s.invite("ben")
    s.quorum("ann", 1, ["ben", "eve"])
    z = s.checkpoint("ben")
    return concluding(z=(z, True))


@case("a false checkpoint of the members moves nothing", "R3")
def _(s):
    peopled(s)
    z = s.checkpoint("ben", digest=digest(b"another"))
    s.note("ben")
    return concluding(z=(z, False))


@case("a checkpoint of the members right after the repo's init", "R3")
def _(s):
    return concluding(z=(s.checkpoint("ann"), True))


@case("a checkpoint of the members of a set that is not its past", "R3")
def _(s):
    peopled(s)
    of_now = statements.digest(s.view(s.heads()))
    s.grant("ann", "gus", "write")
    return concluding(z=(s.checkpoint("ben", digest=of_now), False))


@case("a checkpoint of the members of commits that nobody has", "V5")
def _(s):
    peopled(s)
    gone = s.note("ben", publish=False, expect="left out")
    s.checkpoint("ben", acks=[gone], expect="pending")
    return concluding()


@case("a checkpoint of the members of the future", "R3")
def _(s):
    peopled(s)
    return concluding(z=(s.checkpoint("ben", timestamp=2**53 - 1), True))


@case("two checkpoints of the members contradict each other over one past", "R3")
def _(s):
    peopled(s)
    at = s.heads()
    one, other = s.checkpoint("ben", acks=at), s.checkpoint("ann", digest=digest(b"another"), acks=at)
    third = s.checkpoint("ann")
    return concluding(one=(one, True), other=(other, False), third=(third, True))


@case("checkpoints of the members by somebody excluded beside them", "R4")
def _(s):
    peopled(s)
    at = s.heads()
    s.remove("ann", "ben", acks=at)
    right = s.checkpoint("ben", acks=at)
    wrong = s.checkpoint("ben", acks=[right], digest=digest(b"another"))
    s.start("ann")
    return concluding(right=(right, True), wrong=(wrong, False))


@case("checkpoints of the members by a demoted admin", "R4", "M5")
def _(s):
    peopled(s)
    before = s.checkpoint("ben")
    s.remove("ann", "ben", keeps="write")
    after = s.checkpoint("ben")
    return concluding(before=(before, True), after=(after, None))


@case("a checkpoint of the members by who may not write", "M5")
def _(s):
    peopled(s)
    s.checkpoint("eve", by_writer=False, expect="not_permitted")
    s.checkpoint("fay", by_writer=False, expect="unknown_author")
    return concluding()


@case("malformed checkpoints of the members say nothing", "M5", "shape")
def _(s):
    s.commit("ann", ["members-checkpoint1"])
    s.commit("ann", ["members-checkpoint1", bytes(31)])
    s.commit("ann", ["members-checkpoint1", bytes(32), 1])
    s.commit("ann", ["members-checkpoint2", bytes(32)])
    b = s.branch("ann")
    s.commit("ann", ["members-checkpoint1", bytes(32)], branch=b)
    return concluding()


@case("of checkpoints of the members by one author the last eight are considered", "R3")
def _(s):
    made = [s.checkpoint("ann", digest=digest(bytes([n]))) for n in range(3)]
    made += [s.checkpoint("ann") for _ in range(7)]
    meant = {str(n): (one, None if n < 2 else n > 2) for n, one in enumerate(made)}
    return concluding(**meant)


@case("a checkpoint of the members after removals that leave gaps", "R4")
def _(s):
    a = s.grant("ann", "cat", "admin")
    b = s.grant("ann", "ben", "admin")
    c = s.remove("cat", "ben", acks=[b])
    s.grant("ann", "ben", "owner", acks=[b])
    s.remove("ben", "ben", keeps="read", acks=[b])
    del a, c
    s.grant("ann", "dan", "write")
    return concluding(z=(s.checkpoint("ann"), True))


@case("a checkpoint of the members beside links in each state", "M4", "R2")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "write")
    used, revoked, beside = s.invite("ann", uses=1), s.invite("ben"), s.invite("ben", "read")
    s.join("dan", used)
    at = s.heads()
    s.join("eve", beside, acks=at)
    s.revoke("ann", beside, acks=at)
    s.revoke("ben", revoked)
    s.remove("cat", "cat")
    s.remove("ann", "dan", keeps="read")
    s.invite("ben", uses=3)
    s.start("ann")
    return concluding(z=(s.checkpoint("ben"), True))


@case("a checkpoint of the members where quorums stand beside each other", "Q1")
def _(s):
    s.grant("ann", "ben", "owner")
    at = s.heads()
    s.quorum("ann", 1, ["ann"], acks=at)
    s.quorum("ben", 2, ["ann", "ben"], removals=False, acks=at)
    one = s.checkpoint("ann")
    s.quorum("ann", 1, ["ben"])
    return concluding(one=(one, True), other=(s.checkpoint("ben"), True))


@case("checkpoints of the members in epochs beside each other", "E4")
def _(s):
    s.grant("ann", "ben", "admin")
    at = s.heads()
    one = s.start("ann", acks=at, stay=True)
    two = s.start("ben", acks=at, stay=True)
    here = s.checkpoint("ann", acks=[one], epoch=one)
    there = s.checkpoint("ben", acks=[two], epoch=two)
    s.open("ann", [s.epochs[two]], epoch=one)
    both = s.checkpoint("ben", epoch=one)
    return concluding(here=(here, True), there=(there, True), both=(both, True))


def parted(s, part):
    """A checkpoint whose statement differs in one part."""
    peopled(s)
    s.invite("ben")
    s.quorum("ann", 1, ["ben"])
    stated = statements.statement(s.view(s.heads()))
    stated[part] = stated[part][:-1]
    z = s.checkpoint("ben", digest=statements.digest_of(s.repo, stated))
    return concluding(z=(z, False))


PARTS = ("a right", "an order of admins", "an exclusion", "a link", "a quorum", "an epoch", "a branch")
for number, what in enumerate(PARTS):
    add(f"a checkpoint of the members without {what}", ["R3"], parted, part=number)
