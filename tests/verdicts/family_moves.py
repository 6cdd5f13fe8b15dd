"""Named histories of moves: M18, M17, M4, R1, R3 and R5."""

from .cases import case
from .family_devices import after


def placed(s, *devices):
    """An admin, a writer and a reader, the grants of whom are kept, a branch, and devices that may read."""
    s.ben, s.cat, s.eve = (
        s.grant("ann", *one) for one in (("ben", "admin"), ("cat", "write"), ("eve", "read"))
    )
    s.b = s.branch("ann")
    for person, device in devices:
        s.device(person, device, "read")
    s.base = s.heads()


# M18: who moves, to whom, by what.


@case("a founder, an admin, a writer and a reader move", "M18", "R3")
def _(s):
    placed(s, ("ann", "desk"), ("ben", "phone"), ("cat", "tablet"), ("eve", "watch"))
    i = s.invite("ben", "write")
    joined = s.join("fay", i)
    s.device("fay", "clock", "read")
    s.move("ben", "phone", s.ben)
    s.move("cat", "tablet", s.cat)
    s.move("eve", "watch", s.eve)
    s.move("fay", "clock", joined)
    s.move("ann", "desk")
    for gone in ("ann", "ben", "cat", "eve", "fay"):
        s.note(gone, expect="unknown_author", by_writer=True)
    s.note("tablet")
    s.note("clock")
    s.note("watch", expect="not_permitted", by_writer=True)
    s.grant("phone", "gus", "admin")
    s.grant("phone", "gus", "owner", expect="not_permitted")
    s.grant("desk", "gus", "owner")
    return after(
        s,
        ann=None,
        ben=None,
        cat=None,
        desk="owner",
        phone="admin",
        tablet="write",
        watch="read",
        clock="write",
    )


@case("moves to who is no device of their author alone", "M18")
def _(s):
    placed(s, ("cat", "phone"), ("ben", "tablet"), ("cat", "desk"))
    s.grant("ann", "fay", "read")
    s.device("cat", "fay", "write")
    s.device("ben", "desk", "write")
    s.remove("cat", "phone")
    for user in ("cat", "eve", "gus", "tablet", "fay", "desk", "phone"):
        s.move("cat", user, s.cat, expect="bad_move")
    s.remove("fay", "fay")
    s.device("cat", "fay", "read")
    s.move("cat", "fay", s.cat)
    return after(s, cat=None, fay="write")


@case("moves by what their author does not hold by", "M18")
def _(s):
    placed(s, ("cat", "phone"))
    given = s.device("ben", "cat", "manage")
    i = s.invite("ben", "write")
    for one in (s.ben, s.graph.init, given, i, s.base[0], s.secret()):
        s.move("cat", "phone", one, expect="bad_move")
    s.move("stranger", "phone", s.cat, expect="unknown_author", by_writer=True)
    s.move("phone", "cat", s.cat, expect="bad_move")
    s.move("cat", "phone", s.cat, acks=[s.eve], expect="bad_move")
    s.move("cat", "phone", s.cat)
    s.move("cat", "phone", s.cat, expect="unknown_author|bad_move", by_writer=True)
    return after(s, cat=None, phone="write")


@case("moves that do not decode", "section 4")
def _(s):
    placed(s, ("cat", "phone"))
    phone = s.id("phone")
    for body in (
        ["move1", phone],
        ["move1", phone, None],
        ["move1", phone, s.cat[:31]],
        ["move1", phone, s.cat, 1],
    ):
        s.commit("cat", body, expect="bad_body")
    return after(s, cat="write", phone="read")


@case("a move outside the root branch says nothing", "section 6")
def _(s):
    placed(s, ("cat", "phone"))
    s.commit("cat", ["move1", s.id("phone"), s.cat], branch=s.b)
    s.note("cat")
    return after(s, cat="write", phone="read")


@case("a credential that its author has left, and one by which it came back", "M18", "R5")
def _(s):
    placed(s)
    s.remove("cat", "cat")
    again = s.grant("ben", "cat", "read")
    s.device("cat", "phone", "read")
    s.move("cat", "phone", s.cat, expect="bad_move")
    s.move("cat", "phone", again)
    return after(s, cat=None, phone="read")


@case("a move passes on one credential, and leaves all", "M18", "R5")
def _(s):
    placed(s, ("cat", "phone"), ("eve", "tablet"))
    s.grant("ann", "cat", "manage")
    more = s.grant("ann", "eve", "admin")
    s.move("cat", "phone", s.cat)
    s.move("eve", "tablet", more)
    return after(s, cat=None, phone="write", eve=None, tablet="admin")


@case("what a member was taken down to is what it passes on", "R3")
def _(s):
    placed(s, ("ben", "phone"))
    s.remove("ann", "ben", "write")
    s.move("ben", "phone", s.ben)
    s.note("phone")
    s.grant("phone", "gus", "read", expect="not_permitted")
    return after(s, ben=None, phone="write")


@case("a place is passed on sixteen times, and no more", "M18")
def _(s):
    placed(s)
    holder, place = "cat", s.cat
    for number in range(17):
        device = f"device {number}"
        s.device(holder, device, "read")
        passed = s.move(holder, device, place, expect="bad_move" if number == 16 else "accepted")
        holder, place = (holder, place) if number == 16 else (device, passed)
    s.note(holder)
    return after(s, **{"device 14": None, "device 15": "write", "device 16": "read"})


@case("a move away and back", "M18", "R5", "R3")
def _(s):
    placed(s, ("cat", "phone"))
    away = s.move("cat", "phone", s.cat)
    s.device("phone", "cat", "read")
    s.note("cat", expect="not_permitted", by_writer=True)
    s.move("phone", "cat", s.cat, expect="bad_move")
    s.move("phone", "cat", away)
    s.note("cat")
    s.note("phone", expect="unknown_author", by_writer=True)
    return after(s, cat="write", phone=None)


@case("the next holder takes back the key from which its place came, as its device", "M7")
def _(s):
    placed(s, ("cat", "phone"))
    s.move("cat", "phone", s.cat)
    s.device("phone", "cat", "read")
    s.remove("phone", "cat")
    s.remove("phone", "cat", expect="not_permitted")
    return after(s, cat=None, phone="write")


# Devices of a place: M17, M18, R4.


@case("devices of the key from which a place came", "M17", "M18", "R4")
def _(s):
    placed(s, ("eve", "phone"), ("eve", "tablet"), ("eve", "desk"), ("eve", "clock"))
    s.remove("phone", "tablet", expect="not_permitted")
    moved = s.move("eve", "phone", s.eve)
    s.remove("phone", "tablet")
    s.remove("cat", "desk", expect="not_permitted")
    s.move("phone", "desk", moved)
    s.device("desk", "watch", "read")
    s.remove("desk", "clock")
    return after(s, eve=None, phone=None, tablet=None, desk="read", watch="read", clock=None)


@case("the 15 devices of a place, and the 64 device grants of a key", "M17")
def _(s):
    placed(s)
    for number in range(15):
        s.device("ben", f"device {number}", "read")
    s.device("ben", "a further one", "read", expect="too_many_devices")
    for level in ("write", "manage", "admin"):
        for number in range(15):
            s.device("ben", f"device {number}", level)
    s.move("ben", "device 0", s.ben)
    s.device("device 0", "a further one", "read")
    s.device("device 0", "another", "read", expect="too_many_devices")
    s.remove("device 0", "device 1")
    for level in ("read", "write", "manage", "admin"):
        s.device("device 0", "another", level)
    return after(s, ben=None, **{"a further one": "read", "another": "admin", "device 1": None})


@case(
    "a device removal beside a device grant by a forerunner that it knows, and by one that it does not", "R4"
)
def _(s):
    placed(s, ("cat", "tablet"))
    one = s.device("cat", "phone", "read", acks=s.heads())
    two = s.device("eve", "phone", "read", acks=s.base)
    left = s.move("cat", "phone", s.cat, acks=[one])
    s.device("cat", "tablet", "write", acks=[one])
    right = s.move("eve", "phone", s.eve, acks=[two])
    s.device("eve", "desk", "read", acks=[two])
    s.device("eve", "watch", "read", acks=[two])
    more = s.device("phone", "desk", "write", acks=[left])
    s.remove("phone", "desk", acks=[more])
    s.remove("phone", "tablet", acks=[more])
    s.note("ann", acks=[right])
    return after(s, phone="write", tablet=None, desk="read", watch="read")


@case("a person removes its device beside its move to it", "R4", "M18")
def _(s):
    placed(s, ("cat", "phone"))
    s.move("cat", "phone", s.cat, acks=s.base)
    s.remove("cat", "phone", acks=s.base)
    s.note("phone")
    return after(s, cat=None, phone="write")


# R1: as senior as before.


@case("a place is as senior as before", "R1", "M7")
def _(s):
    placed(s, ("ben", "phone"))
    s.grant("ann", "fay", "admin")
    s.move("ben", "phone", s.ben)
    s.grant("ann", "gus", "admin")
    s.remove("fay", "phone", expect="not_permitted")
    s.remove("gus", "phone", "read", expect="not_permitted")
    s.remove("fay", "ben", expect="not_permitted")
    s.remove("phone", "fay")
    s.remove("phone", "gus", "write")
    return after(s, fay=None, gus="write", phone="admin")


@case("who moved a second time is as senior as at first", "R1")
def _(s):
    placed(s, ("ben", "phone"))
    s.grant("ann", "fay", "admin")
    moved = s.move("ben", "phone", s.ben)
    s.device("phone", "tablet", "read")
    s.move("phone", "tablet", moved)
    s.remove("fay", "tablet", expect="not_permitted")
    s.remove("tablet", "fay")
    return after(s, fay=None, phone=None, tablet="admin")


@case("two moves beside each other, and the holders are equals", "R1", "R3")
def _(s):
    placed(s, ("ben", "phone"), ("ben", "tablet"))
    s.move("ben", "phone", s.ben, acks=s.base)
    s.move("ben", "tablet", s.ben, acks=s.base)
    s.remove("phone", "tablet", expect="not_permitted")
    s.remove("tablet", "phone", "write", expect="not_permitted")
    s.remove("phone", "ben", expect="not_permitted")
    s.note("phone")
    s.note("tablet")
    s.remove("ann", "tablet")
    return after(s, ben=None, phone="admin", tablet=None)


@case("a grant by who took a place does not make it junior, nor is its own junior to later ones", "R1")
def _(s):
    placed(s, ("ben", "phone"))
    base = s.heads()
    moved = s.move("ben", "phone", s.ben, acks=base)
    fay = s.grant("phone", "fay", "admin", acks=[moved])
    gus = s.grant("ben", "gus", "admin", acks=base)
    s.remove("fay", "phone", acks=[fay], expect="not_permitted")
    s.remove("gus", "phone", acks=[*sorted([moved, gus])], expect="not_permitted")
    s.remove("phone", "gus")
    s.remove("phone", "fay")
    return after(s, fay=None, gus=None, phone="admin")


# R3, R4, R5: beside removals, and after them.


@case("an exclusion beside a move takes the place", "R3", "R4", "N1")
def _(s):
    placed(s, ("cat", "phone"), ("ben", "tablet"))
    base = s.heads()
    moved = s.move("cat", "phone", s.cat, acks=base)
    s.note("phone", branch=s.b, acks=[s.b], place=[moved], expect="void")
    s.move("ben", "tablet", s.ben, acks=base)
    s.grant("tablet", "gus", "write", acks=s.heads())
    s.remove("ann", "cat", acks=base)
    s.remove("ann", "ben", "write", acks=base)
    s.note("phone", expect="not_permitted", by_writer=True)
    s.note("tablet")
    s.grant("tablet", "gus", "write", expect="not_permitted")
    return after(s, cat=None, phone="read", ben=None, tablet="write", gus=None)


@case("a demotion beside a move, and what is written by the place", "R3", "N1")
def _(s):
    placed(s, ("cat", "phone"), ("ben", "tablet"))
    base = s.heads()
    moved = s.move("cat", "phone", s.cat, acks=base)
    other = s.move("ben", "tablet", s.ben, acks=base)
    one = s.note("phone", branch=s.b, acks=[s.b], place=[moved], expect="void")
    s.note("tablet", branch=s.b, acks=[s.b], place=[other])
    s.grant("tablet", "gus", "write", acks=[other])
    s.remove("ann", "cat", "read", acks=base)
    s.remove("ann", "ben", "write", acks=base)
    s.note("phone", branch=s.b, acks=[one], place=[moved], expect="void")
    s.note("phone", branch=s.b, acks=[one], expect="not_permitted", by_writer=True)
    return after(s, cat=None, phone="read", ben=None, tablet="write", gus=None)


@case("an exclusion after a move leaves the place, and what the old key does beside it is void", "R4", "M7")
def _(s):
    placed(s, ("cat", "phone"), ("cat", "tablet"))
    base = s.heads()
    moved = s.move("cat", "phone", s.cat, acks=base)
    s.note("cat", branch=s.b, acks=[s.b], place=base, expect="void")
    s.remove("ben", "cat", acks=[moved])
    s.remove("ben", "cat", expect="nothing_to_remove")
    s.move("cat", "tablet", s.cat, acks=base)
    s.note("phone")
    s.note("tablet", expect="not_permitted", by_writer=True)
    return after(s, cat=None, phone="write", tablet="read")


@case("an exclusion beside the first of two moves takes both", "R3")
def _(s):
    placed(s, ("cat", "phone"))
    base = s.heads()
    moved = s.move("cat", "phone", s.cat, acks=base)
    given = s.device("phone", "tablet", "read", acks=[moved])
    s.move("phone", "tablet", moved, acks=[given])
    s.remove("ann", "cat", acks=base)
    s.note("tablet", expect="not_permitted", by_writer=True)
    return after(s, cat=None, phone=None, tablet="read")


@case("an exclusion beside the second of two moves takes that", "R3")
def _(s):
    placed(s, ("cat", "phone"))
    moved = s.move("cat", "phone", s.cat)
    given = s.device("phone", "tablet", "read")
    s.move("phone", "tablet", moved, acks=[given])
    s.remove("ann", "phone", acks=[given])
    return after(s, cat=None, phone=None, tablet="read")


@case("an exclusion of who takes a place, beside the move and before it", "R4")
def _(s):
    placed(s, ("cat", "phone"), ("eve", "tablet"))
    base = s.heads()
    s.move("cat", "phone", s.cat, acks=base)
    one = s.remove("ann", "phone", acks=base)
    two = s.remove("ann", "tablet", acks=[one])
    s.move("eve", "tablet", s.eve, acks=[two], expect="bad_move")
    again = s.device("eve", "tablet", "read", acks=[two])
    s.move("eve", "tablet", s.eve, acks=[again])
    return after(s, cat=None, phone=None, eve=None, tablet="read")


@case("who was excluded moves by an older past", "R3", "R4")
def _(s):
    placed(s, ("ben", "phone"))
    base = s.heads()
    s.remove("ann", "ben", acks=base)
    old = s.now
    s.start("ann")
    moved = s.move("ben", "phone", s.ben, acks=base, epoch=old)
    s.device("phone", "tablet", "admin", acks=[moved], epoch=old)
    s.grant("phone", "gus", "admin", acks=[moved], epoch=old)
    s.remove("phone", "cat", acks=[moved], epoch=old)
    return after(s, ben=None, phone="read", tablet=None, gus=None, cat="write")


@case("the old key moves again, and an admin ends that", "M7", "R3", "R4")
def _(s):
    placed(s, ("ben", "phone"), ("ben", "tablet"), ("ben", "desk"))
    base = s.heads()
    s.move("ben", "phone", s.ben, acks=base)
    s.move("ben", "tablet", s.ben, acks=base)
    known = s.heads()
    one = s.remove("ann", "tablet", acks=known)
    s.remove("ann", "ben", acks=[one])
    s.move("ben", "desk", s.ben, acks=base)
    s.remove("ben", "phone", acks=base)
    s.grant("ben", "gus", "admin", acks=base)
    return after(s, ben=None, phone="admin", tablet=None, desk="read", gus=None)


@case("lowering who took a place does not stop the old key, and lowering that does", "M7", "R3")
def _(s):
    placed(s, ("ben", "phone"), ("ben", "tablet"), ("ben", "desk"))
    base = s.heads()
    s.move("ben", "phone", s.ben, acks=base)
    s.remove("ann", "phone", "read")
    s.move("ben", "tablet", s.ben, acks=base)
    s.remove("ann", "ben", "read")
    s.remove("ann", "tablet", "read")
    s.move("ben", "desk", s.ben, acks=base)
    return after(s, ben=None, phone="read", tablet="read", desk="read")


@case("a move voids nothing, and takes all that follows it", "R5")
def _(s):
    placed(s, ("cat", "phone"))
    base = s.heads()
    s.note("cat", branch=s.b, acks=[s.b], place=base)
    s.device("cat", "tablet", "write", acks=base)
    s.prekey("cat", acks=base)
    again = s.grant("ben", "cat", "manage", acks=base)
    s.note("cat", acks=[again])
    s.move("cat", "phone", s.cat, acks=base)
    s.note("cat", expect="unknown_author", by_writer=True)
    s.grant("ben", "cat", "read")
    return after(s, cat="read", phone="write", tablet="write")


@case("a move that gives nothing is a leave like others", "R5", "M4")
def _(s):
    placed(s, ("cat", "phone"))
    base = s.heads()
    x = s.remove("ann", "cat", acks=base)
    again = s.grant("ann", "cat", "manage", acks=[x])
    i = s.invite("ann", "write", acks=[again])
    s.note("cat", acks=[again])
    moved = s.move("cat", "phone", s.cat, acks=base)
    s.note("cat", acks=sorted([i, moved]), expect="unknown_author", by_writer=True)
    s.join("cat", i, acks=sorted([i, moved]), expect="not_permitted")
    s.join("cat", s.invite("ann", "read", acks=sorted([i, moved])))
    return after(s, cat="read", phone="read")


@case("who moved joins by a later invitation", "M4")
def _(s):
    placed(s, ("cat", "phone"))
    i = s.invite("ben", "write")
    s.move("cat", "phone", s.cat)
    s.join("cat", i, expect="not_permitted")
    s.join("phone", i)
    s.join("cat", s.invite("ben", "read"))
    return after(s, cat="read", phone="write")


@case("who holds by a move is granted what adds to that", "M6", "M17")
def _(s):
    placed(s, ("cat", "phone"))
    s.move("cat", "phone", s.cat)
    s.grant("ben", "phone", "write", expect="already_holds")
    s.device("phone", "tablet", "manage", expect="not_permitted")
    s.grant("ben", "phone", "manage")
    s.device("phone", "tablet", "manage")
    return after(s, phone="manage", tablet="manage")
