"""Named histories of who left and who took a place: M7, M14, Q4, E and membership checkpoints."""

from .cases import add, case
from .family_checkpoints import concluding
from .family_council import THREE, ask
from .family_devices import after
from .family_epochs import written
from .family_moves import placed

# M7: a removal looks past leaves, where nothing else is to be taken.


@case("a removal of who left", "M7", "R4", "N1")
def _(s):
    placed(s, ("cat", "phone"))
    base = s.heads()
    s.remove("cat", "cat", acks=base)
    s.note("cat", branch=s.b, acks=[s.b], place=base, expect="void")
    s.device("cat", "tablet", "write", acks=base)
    left = s.remove("eve", "eve", acks=base)
    s.remove("cat", "eve", acks=[left], expect="not_permitted")
    s.remove("gus", "eve", expect="unknown_author", by_writer=True)
    known = s.heads()
    s.remove("ben", "cat", acks=sorted(one for one in known if s.graph.commits[one].body.tag == "remove1"))
    s.remove("ben", "cat", expect="nothing_to_remove")
    s.remove("ben", "stranger", expect="nothing_to_remove")
    return after(s, cat=None, eve=None, phone="read", tablet=None)


@case("a removal of a senior who left, and of one who stepped down", "M7")
def _(s):
    placed(s)
    s.grant("ann", "fay", "admin")
    s.grant("ann", "dan", "admin")
    s.remove("ben", "ben")
    s.remove("fay", "ben", expect="not_permitted")
    s.remove("ann", "ben", "manage")
    s.remove("fay", "ben", "write")
    s.remove("fay", "dan", "read", acks=s.heads())
    s.remove("fay", "fay", "read")
    s.grant("ann", "gus", "admin")
    s.remove("gus", "fay", "read", expect="not_permitted")
    s.remove("gus", "fay")
    return after(s, ben=None, fay=None, dan="read")


@case("what others took from who left is not to be taken again", "M7")
def _(s):
    placed(s)
    s.remove("ann", "ben", "write")
    s.remove("ben", "ben")
    s.remove("ann", "ben", "write", expect="nothing_to_remove")
    s.remove("ann", "ben", "read")
    s.remove("ann", "ben", "read", expect="nothing_to_remove")
    s.remove("ann", "ben")
    return after(s, ben=None)


@case("a device that left is removed by its person, also what it did beside its leave", "M7", "R4")
def _(s):
    placed(s, ("ben", "tablet"))
    given = s.device("ben", "phone", "admin")
    left = s.remove("phone", "phone", acks=[given])
    s.grant("phone", "gus", "write", acks=[given])
    s.remove("eve", "phone", acks=[left], expect="not_permitted")
    s.remove("ben", "phone", acks=[left])
    return after(s, phone=None, gus=None, tablet="read")


@case("a device that was a member itself, and left, is its person's alone", "M7")
def _(s):
    placed(s)
    s.grant("ann", "fay", "write")
    s.remove("fay", "fay")
    s.device("cat", "fay", "read")
    s.remove("cat", "fay")
    s.remove("cat", "fay", expect="not_permitted|nothing_to_remove")
    return after(s, fay=None, cat="write")


@case("a device does not remove the key from which its person's place came", "M7", "R1")
def _(s):
    placed(s, ("ben", "phone"))
    s.device("ben", "tablet", "admin")
    base = s.heads()
    s.move("ben", "phone", s.ben)
    s.remove("tablet", "ben", expect="not_permitted")
    s.remove("tablet", "phone", expect="not_permitted")
    s.remove("tablet", "eve", acks=base)
    s.grant("tablet", "gus", "write", acks=base)
    s.remove(
        "phone", "tablet", acks=sorted(one for one in s.heads() if s.graph.commits[one].author == s.id("ben"))
    )
    return after(s, ben=None, phone="admin", tablet=None, gus=None, eve="read")


# Quorums and councils.


def council_moves(s, *devices):
    """Three founders of whom two are the council, a writer, and devices of founders."""
    s.found(council=2)
    s.grant("ann", "eve", "write")
    for person, device in devices:
        s.device(person, device, "read")
    s.base = s.heads()


@case("who took a founder's place signs for the founder", "Q4", "M14", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"), ("ben", "tablet"))
    p = s.propose("eve", "cat")
    s.approve("phone", p, expect="not_permitted")
    s.move("ann", "phone")
    s.approve("ann", p, expect="unknown_author|not_permitted")
    s.approve("tablet", p, expect="not_permitted")
    s.approve("phone", p)
    s.remove("eve", "cat", expect="needs_quorum|not_permitted")
    s.approve("ben", p)
    s.remove("eve", "cat")
    return after(s, ann=None, phone="owner", cat=None)


@case("a founder's approval before its move is not asked after it", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"))
    p = ask(s, "cat", "ann", "ben")[1]
    moved = s.move("ann", "phone")
    s.remove("eve", "cat", acks=[moved], expect="needs_quorum|not_permitted")
    s.approve("phone", p, acks=[moved])
    s.remove("eve", "cat", acks=s.heads())
    return after(s, cat=None, phone="owner")


@case("two who took one founder's place sign for one", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"), ("ann", "tablet"))
    acks, p = ask(s, "cat")
    s.move("ann", "phone", acks=acks)
    s.move("ann", "tablet", acks=acks)
    s.approve("phone", p)
    s.approve("tablet", p)
    s.remove("eve", "cat", expect="needs_quorum|not_permitted")
    s.approve("ben", p)
    s.remove("phone", "cat")
    return after(s, ann=None, phone="owner", tablet="owner", cat=None)


@case("who took a place from who took a founder's signs for the founder", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"), ("ann", "tablet"))
    acks, p = ask(s, "cat")
    moved = s.move("ann", "phone", acks=acks)
    given = s.device("phone", "watch", "read", acks=[moved])
    s.move("phone", "watch", moved, acks=[given])
    s.move("ann", "tablet", acks=acks)
    s.approve("watch", p)
    s.approve("tablet", p)
    s.remove("eve", "cat", expect="needs_quorum|not_permitted")
    s.approve("ben", p)
    s.remove("eve", "cat")
    return after(s, cat=None, watch="owner", tablet="owner")


@case("one who took two founders' places signs for two", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s)
    acks, p = ask(s, "cat")
    one = s.device("ann", "phone", "read", acks=acks)
    two = s.device("ben", "phone", "read", acks=acks)
    s.move("ann", "phone", acks=[one])
    s.move("ben", "phone", acks=[two])
    s.remove("eve", "cat", expect="needs_quorum|not_permitted")
    s.approve("phone", p)
    s.remove("eve", "cat")
    return after(s, ann=None, ben=None, phone="owner", cat=None)


@case("who took an owner's place by a grant signs for no founder", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s)
    dan = s.grant("ann", "dan", "owner")
    s.device("dan", "phone", "read")
    s.move("dan", "phone", dan)
    p = s.propose("eve", "cat")
    s.approve("phone", p, expect="not_permitted")
    return after(s, phone="owner", cat="owner")


@case("a place that came by two moves signs, and the council excludes it", "Q4", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"), ("ann", "tablet"))
    moved = s.move("ann", "phone")
    s.move("phone", "tablet", moved)
    p = s.propose("eve", "ben")
    s.approve("phone", p, expect="unknown_author|not_permitted")
    s.approve("tablet", p)
    acks, _ = ask(s, "tablet", "ben", "cat")
    s.remove("eve", "tablet", acks=acks)
    s.approve("cat", p)
    s.remove("eve", "ben", expect="needs_quorum|not_permitted|unknown_author|nothing_to_remove")
    return after(s, tablet=None, ben="owner")


@case("a council's removal beside a founder's move", "Q4", "R3", founders=THREE, found=False)
def _(s):
    council_moves(s, ("ann", "phone"))
    acks, _ = ask(s, "ann", "ben", "cat")
    moved = s.move("ann", "phone", acks=acks)
    s.grant("phone", "gus", "owner", acks=[moved])
    s.remove("eve", "ann", acks=acks)
    return after(s, ann=None, phone="read", gus=None)


@case(
    "who takes the place of a quorum's signer does not sign, nor does a move need a quorum", "M14", "Q1", "R6"
)
def _(s):
    placed(s, ("cat", "phone"), ("ann", "desk"))
    s.quorum("ann", 1, ["cat"])
    p = s.propose("ben", "eve")
    base = s.heads()
    a = s.approve("cat", p, acks=base)
    s.move("cat", "phone", s.cat, acks=base)
    s.approve("phone", p, expect="not_permitted")
    s.remove("ben", "eve", acks=[a])
    s.move("ann", "desk")
    s.remove("desk", "ben", expect="needs_quorum")
    return after(s, eve=None, phone="write", desk="owner", ben="admin")


@case("an approval beside the exclusion of who passed the signer's place on", "R6", "R3")
def _(s):
    placed(s)
    base = s.heads()
    given = s.device("cat", "phone", "read", acks=base)
    moved = s.move("cat", "phone", s.cat, acks=[given])
    s.quorum("ann", 1, ["phone"], acks=[moved])
    p = s.propose("ben", "eve", acks=s.heads())
    s.approve("phone", p)
    s.remove("ben", "eve")
    s.remove("ann", "cat", acks=base)
    return after(s, eve="read", cat=None, phone=None)


@case(
    "an approval by whom a place admitted, beside what a junior of the remover took from the place",
    "R6",
    "R3",
)
def _(s):
    placed(s)
    fay = s.grant("ann", "fay", "admin")
    dan = s.grant("ann", "dan", "admin")
    s.device("dan", "phone", "read")
    base = s.heads()
    s.move("dan", "phone", dan)
    s.grant("phone", "gus", "read")
    s.quorum("ann", 1, ["gus"])
    p = s.propose("ben", "eve")
    s.approve("gus", p)
    s.remove("ben", "eve")
    s.remove("fay", "dan", acks=base)
    assert fay in s.graph.past[dan]
    return after(s, eve=None, dan=None, gus=None, phone="read")


# E and membership checkpoints.


@case("a move makes an epoch due, and who took the place starts it", "E8", "E9", "M9")
def _(s):
    placed(s, ("cat", "phone"))
    s.start("phone", stay=True, expect="not_permitted")
    s.move("cat", "phone", s.cat)
    s.start("eve", stay=True, expect="not_permitted", by_writer=False)
    one = s.start("phone")
    s.note("phone")
    return {"check": written(one, 1, 1), "keys": list(s.epochs.values())}


@case("moves that give nothing, by who was excluded, make no epoch due", "E8")
def _(s):
    placed(s, ("cat", "phone"))
    base, old = s.heads(), s.now
    s.remove("ann", "cat", acks=base)
    one = s.start("ann")
    for _ in range(2):
        s.move("cat", "phone", s.cat, acks=base, epoch=old)
    return {"check": written(one)}


def holding_by_move(s, stays):
    """A move in an epoch that its user has no box of, whose author comes back; the user stays, or leaves beside it."""
    placed(s)
    old = s.now
    given = s.device("cat", "phone", "read", acks=s.base)
    one = s.start("ann", acks=s.base)
    s.open("ann", [old], acks=sorted([one, given]))
    s.move("cat", "phone", s.cat)
    s.grant("ann", "cat", "write")
    if not stays:
        s.remove("phone", "phone", acks=[given], epoch=old)
    return {"check": written(one if stays else None), "keys": list(s.epochs.values())}


for word, stays in (("stays", True), ("leaves", False)):
    add(f"who took a place may hold the epoch of the move, and {word}", ["E8"], holding_by_move, stays=stays)


@case("checkpoints of members with moves", "R3", "M4")
def _(s):
    placed(s, ("cat", "phone"), ("ben", "tablet"))
    i = s.invite("ben", "write")
    s.join("gus", i)
    s.move("cat", "phone", s.cat)
    one = s.checkpoint("ann")
    base = s.heads()
    s.move("ben", "tablet", s.ben, acks=base)
    s.remove("ann", "ben", acks=base)
    two = s.checkpoint("ann")
    s.move("phone", "desk", s.cat, expect="bad_move")
    three = s.checkpoint("tablet", expect="not_permitted", by_writer=True)
    return concluding(one=(one, True), two=(two, True), three=(three, None))
