"""Named histories of device removals: M7, M13, R2, R4, R6 and Q."""

from .cases import case
from .family_devices import after, prepared
from .family_epochs import written

# M7, R4: who removes a device, and what that takes.


@case("a reader removes its device", "M7", "R4")
def _(s):
    prepared(s)
    s.device("eve", "phone", "read")
    s.device("cat", "tablet", "write")
    s.remove("eve", "tablet", expect="not_permitted")
    s.remove("eve", "tablet", "read", expect="not_permitted")
    s.remove("cat", "phone", expect="not_permitted")
    s.remove("eve", "phone")
    s.remove("eve", "phone", expect="nothing_to_remove")
    return after(s, phone=None, tablet="write", eve="read")


@case("a device is taken down, and raised again", "M7", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.remove("cat", "phone", "read")
    s.note("phone", expect="not_permitted", by_writer=True)
    s.device("cat", "phone", "write")
    s.note("phone")
    s.remove("cat", "phone")
    s.note("phone", expect="unknown_author")
    s.device("cat", "phone", "read")
    return after(s, phone="read")


@case("who takes down what its device holds by others, and what it holds by its person", "M7")
def _(s):
    prepared(s)
    s.join("phone", s.invite("ben", "read"))
    s.device("cat", "phone", "write")
    s.remove("cat", "phone", expect="not_permitted")
    s.remove("cat", "phone", "read")
    s.remove("cat", "phone", expect="not_permitted")
    return after(s, phone="read")


@case("who removes what an admin granted as well", "M7", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "read")
    s.grant("ben", "phone", "write")
    s.remove("cat", "phone", expect="not_permitted")
    s.device("ann", "tablet", "write")
    s.grant("ben", "tablet", "manage")
    base = s.heads()
    s.grant("ben", "tablet", "admin", acks=base)
    s.remove("ann", "tablet", acks=base)
    return after(s, phone="write", tablet=None)


@case("a device removal beside a grant by an admin", "R4")
def _(s):
    prepared(s)
    s.device("ann", "phone", "write")
    s.device("cat", "tablet", "write")
    base = s.heads()
    s.remove("ann", "phone", acks=base)
    s.remove("cat", "tablet", acks=base)
    again = s.grant("ben", "phone", "read", acks=base)
    s.grant("ben", "phone", "read", acks=[again], expect="already_holds")
    s.grant("ben", "phone", "manage", acks=[again])
    s.grant("ben", "tablet", "manage", acks=base)
    return after(s, phone="manage", tablet="manage")


@case("a device removal beside another device grant of its author, and of another", "R4")
def _(s):
    prepared(s)
    s.device("ben", "phone", "read")
    s.device("cat", "tablet", "read")
    base = s.heads()
    s.remove("ben", "phone", acks=base)
    s.remove("cat", "tablet", acks=base)
    s.device("ben", "phone", "admin", acks=base)
    s.device("ben", "tablet", "write", acks=base)
    s.device("cat", "phone", "write", acks=base)
    return after(s, phone="write", tablet="write")


@case("a device of two persons", "M7", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "read")
    s.device("ben", "phone", "write")
    s.remove("cat", "phone", expect="not_permitted")
    s.remove("ben", "phone", "read")
    s.note("phone", expect="not_permitted", by_writer=True)
    s.remove("ben", "phone")
    return after(s, phone=None)


@case("a device removal in whose past the grant is not", "M7")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.remove("cat", "phone", acks=s.base, expect="nothing_to_remove")
    s.remove("eve", "phone", acks=s.base, expect="nothing_to_remove")
    s.note("phone")


@case("a device that leaves, and one that goes down", "R5", "M7")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.device("cat", "tablet", "write")
    s.remove("phone", "phone")
    s.remove("tablet", "tablet", "read")
    s.remove("eve", "phone", expect="not_permitted")
    s.remove("cat", "phone")
    s.remove("cat", "phone", expect="nothing_to_remove")
    s.remove("cat", "tablet")
    s.device("cat", "phone", "read")
    return after(s, phone="read", tablet=None)


@case("a device does not remove its person, nor an earlier device", "M7", "R1")
def _(s):
    prepared(s)
    s.device("ben", "phone", "admin")
    s.device("ben", "tablet", "admin")
    s.device("cat", "desk", "write")
    s.remove("phone", "ben", expect="not_permitted")
    s.remove("phone", "ben", "manage", expect="not_permitted")
    s.remove("desk", "cat", expect="not_permitted")
    s.remove("tablet", "phone", expect="not_permitted")
    s.remove("desk", "tablet", expect="not_permitted")
    s.remove("phone", "tablet")
    s.remove("phone", "cat")
    return after(s, ben="admin", cat=None, tablet=None, phone="admin", desk="write")


@case("an admin removes the device of another", "M7", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.grant("ann", "fay", "admin")
    s.device("ben", "tablet", "admin")
    s.remove("fay", "phone", "read")
    s.remove("fay", "phone")
    s.remove("fay", "tablet", "write")
    s.remove("fay", "ben", expect="not_permitted")
    return after(s, phone=None, tablet="write")


# Beside what becomes of the person.


@case("a person who was demoted removes no device that holds more", "M7", "R3")
def _(s):
    prepared(s)
    s.device("ben", "phone", "admin")
    s.device("ben", "tablet", "write")
    s.remove("ann", "ben", "write")
    s.remove("ben", "phone", expect="not_permitted")
    s.remove("ben", "phone", "write", expect="not_permitted")
    s.remove("ben", "tablet")
    s.remove("ann", "ben", "read")
    s.remove("ben", "phone", expect="not_permitted")
    s.remove("ann", "phone", "read")
    s.remove("ben", "phone")
    return after(s, ben="read", phone=None, tablet=None)


@case("a person who was raised again is not senior to what it gave before", "M7", "R1")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.remove("ann", "cat", "read")
    s.grant("ann", "cat", "write")
    s.remove("cat", "phone", expect="not_permitted")
    s.grant("ann", "cat", "manage")
    s.remove("cat", "phone")
    return after(s, cat="manage", phone=None)


@case("a demotion of the person beside its device removal", "R2", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.device("ben", "tablet", "write")
    base = s.heads()
    s.remove("cat", "phone", acks=base)
    s.remove("ben", "tablet", acks=base)
    s.remove("ann", "cat", "read", acks=base)
    s.remove("ann", "ben", "write", acks=base)
    s.note("phone")
    return after(s, cat="read", phone="write", ben="write", tablet=None)


@case("an exclusion of the person beside its device removal, and beside its device grant", "R2", "R4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    base = s.heads()
    one = s.remove("cat", "phone", acks=base)
    s.device("cat", "tablet", "write", acks=base)
    s.device("cat", "phone", "write", acks=[one])
    s.remove("ann", "cat", acks=base)
    s.note("tablet", expect="unknown_author")
    s.note("phone")
    return after(s, cat=None, phone="write", tablet=None)


@case("who was excluded long ago voids nothing that its device did, and makes no epoch due", "R2", "R4", "E8")
def _(s):
    s.grant("ann", "ben", "admin")
    old, given = s.now, s.device("ben", "phone", "admin")
    for user in ("cat", "dan"):
        s.grant("phone", user, "write")
    s.remove("ann", "ben")
    one = s.start("phone")
    for _ in range(2):
        s.remove("ben", "phone", acks=[given], epoch=old)
    s.note("cat")

    def check(results):
        after(s, ben=None, phone="admin", cat="write", dan="write")["check"](results)
        written(one)(results)

    return {"check": check}


@case("a leave of the person beside its device grant and its device removal", "R5", "R2")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    base = s.heads()
    s.remove("cat", "cat", acks=base)
    s.device("cat", "tablet", "write", acks=base)
    s.remove("cat", "phone", acks=base)
    s.device("cat", "desk", "write", expect="unknown_author")
    s.remove("cat", "tablet", expect="unknown_author|not_permitted")
    return after(s, cat=None, phone=None, tablet="write")


@case("a device grant by who held both ways counts by the right that is left", "R2", "M17")
def _(s):
    s.grant("ann", "ben", "admin")
    base = s.heads()
    fay = s.grant("ann", "fay", "admin", acks=base)
    gus = s.grant("ann", "gus", "admin", acks=[fay])
    device = s.device("ann", "gus", "admin", acks=base)
    given = s.device("gus", "phone", "admin", acks=sorted([device, gus]))
    s.note("gus", acks=[given])
    s.remove("fay", "gus", acks=[gus])
    return after(s, gus="admin", phone="admin")


# Beside what the device did.


@case("what a device did beside its removal does not count", "R2", "R4", "N1")
def _(s):
    prepared(s)
    s.device("ann", "phone", "admin")
    base, old = s.heads(), s.now
    old_post = s.note("phone", branch=s.b, acks=[s.b], place=base)
    s.grant("phone", "fay", "write", acks=base)
    i = s.invite("phone", "write", acks=base)
    s.join("gus", i, acks=[i])
    s.remove("phone", "eve", acks=base)
    s.device("phone", "tablet", "read", acks=base, expect="not_permitted")
    post = s.note("phone", branch=s.b, acks=[old_post], place=base, expect="void")
    one = s.start("phone", acks=base, stay=True)
    s.remove("ann", "phone", feeds=[[s.b, 1, old_post]], acks=base, epoch=old)

    def check(results):
        after(s, fay=None, gus=None, eve="read", phone=None)["check"](results)
        assert one.hex() not in results["epochs"]["counting"]
        assert results["commits"][post.hex()]["is"] == "void"

    return {"check": check, "keys": list(s.epochs.values())}


@case("what a device did before its removal stays, of content as far as the removal says", "R4", "N2")
def _(s):
    prepared(s)
    s.device("ben", "phone", "admin")
    one = s.note("phone", branch=s.b)
    s.note("phone", branch=s.b, expect="void")
    s.grant("phone", "fay", "write")
    s.join("gus", s.invite("phone", "write"))
    s.remove("ben", "phone", feeds=[[s.b, 1, one]])
    return after(s, fay="write", gus="write", phone=None)


@case("an adoption of what a device wrote beside its removal", "N3", "N1")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    base = s.heads()
    one = s.note("phone", branch=s.b, acks=[s.b], place=base)
    s.note("phone", branch=s.b, acks=[one], place=base, expect="void")
    s.remove("cat", "phone", acks=base)
    s.commit("ben", ["adopt1", s.b, [one]])


@case("a removed device joins by a new link, and by no older one", "M4")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    i = s.invite("ben", "write")
    s.remove("cat", "phone")
    s.join("phone", i, expect="not_permitted")
    s.join("phone", s.invite("ben", "read"))
    s.remove("cat", "phone", expect="not_permitted")
    s.device("cat", "phone", "write")
    s.remove("cat", "phone", "read")
    return after(s, phone="read")


# Quorums and councils.


@case("a device removal under a quorum that covers removals", "M13", "R6", "R2")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.device("ann", "tablet", "admin")
    s.quorum("ann", 2, ["ben", "eve"])
    s.remove("ben", "phone", expect="needs_quorum")
    s.remove("ann", "phone", expect="needs_quorum")
    s.remove("cat", "phone", "read")
    s.remove("cat", "phone")
    base = s.heads()
    s.remove("ann", "tablet", acks=base)
    s.grant("ben", "tablet", "owner", acks=base, expect="not_permitted")
    s.grant("tablet", "gus", "write", acks=base)
    return after(s, phone=None, tablet=None, gus=None)


@case("what is no device removal needs the quorum, also of a device", "M13", "R6")
def _(s):
    prepared(s)
    s.device("ben", "phone", "write")
    s.quorum("ann", 1, ["eve"])
    s.grant("ann", "phone", "manage")
    s.remove("ben", "phone", expect="needs_quorum")
    s.remove("ben", "phone", "write", expect="needs_quorum")
    p = s.propose("ben", "phone")
    s.approve("eve", p)
    s.remove("ben", "phone")
    return after(s, phone=None)


@case("a device removal that a quorum approved of takes no more than others", "R4", "R6")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.quorum("ann", 1, ["eve"])
    p = s.propose("cat", "phone")
    base = [s.approve("eve", p)]
    s.grant("ann", "phone", "admin", acks=base)
    s.remove("cat", "phone", acks=base)
    return after(s, phone="admin")


@case("no quorum's right holds a device removal", "R2", "R6")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.quorum("ann", 1, ["eve"])
    base = s.heads()
    asked = s.propose("ben", "phone", acks=base)
    signed = s.approve("eve", asked, acks=[asked])
    s.remove("cat", "phone", acks=[signed])
    other = s.propose("ann", "cat", acks=base)
    signed = s.approve("eve", other, acks=[other])
    s.remove("ann", "cat", acks=[signed])
    return after(s, cat=None, phone="write")


@case("a device removal uses up no proposal", "Q3")
def _(s):
    prepared(s)
    s.device("cat", "phone", "write")
    s.quorum("ann", 1, ["eve"])
    p = s.propose("ben", "phone")
    s.approve("eve", p)
    s.remove("cat", "phone")
    s.device("cat", "phone", "write")
    s.remove("ben", "phone")
    s.device("cat", "phone", "write")
    s.remove("ben", "phone", expect="needs_quorum")
    return after(s, phone="write")


@case(
    "the council's removal of a device is no device removal",
    "Q4",
    "R4",
    founders=("ann", "ben", "cat"),
    found=False,
)
def _(s):
    s.found(council=2)
    s.grant("ann", "eve", "write")
    s.grant("ann", "fay", "read")
    for person, device in (("eve", "phone"), ("eve", "tablet"), ("fay", "desk")):
        s.device(person, device, "read")
    base = s.heads()
    signed = []
    for device in ("phone", "desk"):
        p = s.propose("eve", device)
        s.approve("ann", p)
        signed.append(s.approve("ben", p))
    s.grant("cat", "phone", "admin", acks=base)
    s.grant("cat", "tablet", "admin", acks=base)
    s.remove("fay", "desk", acks=[signed[1]], expect="not_permitted")
    s.remove("eve", "phone", acks=[signed[0]])
    s.remove("eve", "tablet", acks=[signed[0]])
    return after(s, phone=None, tablet="admin", desk="read")


@case(
    "a device with an owner's rights is no founder", "Q4", "M13", founders=("ann", "ben", "cat"), found=False
)
def _(s):
    s.found(council=2)
    s.device("ann", "phone", "owner")
    p = s.propose("phone", "cat")
    s.approve("phone", p, expect="not_permitted")
    s.quorum("phone", 1, ["phone"])
    s.approve("phone", p)
    s.approve("ben", p)
    s.remove("phone", "cat", expect="needs_quorum|not_permitted")
    s.remove("ann", "phone")
    return after(s, phone=None, cat="owner")
