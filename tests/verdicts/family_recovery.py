"""Named histories of recovery friends and recovery grants: M19, M20, M17, R2, R4 and E."""

from .cases import add, case
from .family_devices import after
from .family_epochs import written
from .family_moves import placed
from .family_rights import SMALL

FRIENDS = ("dan", "eve", "fay")


def named(s, threshold=2, friends=FRIENDS):
    """An admin, a writer who names friends, and a reader, who is one of them."""
    placed(s)
    s.naming = s.friends("cat", threshold, friends)
    s.base = s.heads()


# M19: naming friends.

GUS = tuple(f"friend {number}" for number in range(15))
NAMINGS = {
    "nobody": ((), 0, True),
    "nobody, and a threshold": ((), 1, "bad_recovery"),
    "one": (("dan",), 1, True),
    "one, and none needed": (("dan",), 0, "bad_recovery"),
    "two, and one needed": (("dan", "eve"), 1, "bad_recovery"),
    "two, both needed": (("dan", "eve"), 2, True),
    "three, and one needed": (FRIENDS, 1, "bad_recovery"),
    "three, and two needed": (FRIENDS, 2, True),
    "three, and four needed": (FRIENDS, 4, "bad_recovery"),
    "fifteen": (GUS, 8, True),
    "fifteen, and seven needed": (GUS, 7, "bad_recovery"),
    "sixteen": ((*GUS, "dan"), 9, "bad_body"),
    "three, and sixteen needed": (FRIENDS, 16, "bad_body"),
    "oneself among others": (("dan", "cat"), 2, "bad_recovery"),
    "one twice": (("dan", "dan", "eve"), 2, "bad_recovery"),
}


def naming(s, friends, threshold, right):
    """A writer names friends."""
    placed(s)
    s.friends("cat", threshold, friends, expect="accepted" if right is True else right)
    s.note("cat")


for what, (friends, threshold, right) in NAMINGS.items():
    add(f"recovery friends: {what}", ["M19"], naming, friends=friends, threshold=threshold, right=right)


@case("recovery friends out of order, and friends who are no keys", "M19")
def _(s):
    placed(s)
    ids = sorted(map(s.id, FRIENDS))
    s.commit("cat", ["recovery-friends1", ids[::-1], 2], expect="bad_recovery")
    for key in SMALL:
        s.commit("cat", ["recovery-friends1", sorted([key, *ids]), 3], expect="bad_recovery")
    s.commit("cat", ["recovery-friends1", ids], expect="bad_body")
    s.commit("cat", ["recovery-friends1", ids, None], expect="bad_body")
    s.commit("cat", ["recovery-friends1", ids, 2], branch=s.b)
    s.note("cat")


@case("a reader, a device and who is no member name friends", "M19", "M20")
def _(s):
    placed(s, ("cat", "phone"))
    one = s.friends("eve", 2, ("dan", "fay"))
    two = s.friends("phone", 2, ("dan", "fay"))
    s.friends("stranger", 2, ("dan", "fay"), expect="unknown_author", by_writer=True)
    s.recover("ben", one, "tablet", "write", ("dan", "fay"), expect="not_permitted")
    s.recover("ben", one, "tablet", "read", ("dan", "fay"))
    s.recover("ben", two, "desk", "read", ("dan", "fay"), expect="not_permitted")
    return after(s, tablet="read", desk=None)


# M20: who signs.


@case("friends let a new device in", "M20", "R2")
def _(s):
    named(s)
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    s.recover("ben", s.naming, "tablet", "read", FRIENDS)
    s.note("phone")
    s.note("tablet", expect="not_permitted", by_writer=True)
    s.remove("eve", "phone", expect="not_permitted")
    s.remove("cat", "phone", "read")
    s.remove("cat", "tablet")
    return after(s, cat="write", phone="read", tablet=None)


def signatures_of(s, *friends, user="phone", level="write", naming=None, repo=None):
    """Signatures by friends, in order."""
    return s.signed(naming or s.naming, user, level, friends, repo)


WRONG = {
    "of nobody": lambda s: [],
    "of one too few": lambda s: signatures_of(s, "dan"),
    "of one twice": lambda s: signatures_of(s, "dan", "dan"),
    "out of order": lambda s: signatures_of(s, "dan", "fay")[::-1],
    "of a stranger besides": lambda s: signatures_of(s, "dan", "fay", "gus"),
    "of the member besides": lambda s: signatures_of(s, "dan", "fay", "cat"),
    "of a friend and a stranger": lambda s: signatures_of(s, "dan", "gus"),
    "of one for another user": lambda s: sorted(
        signatures_of(s, "dan") + signatures_of(s, "fay", user="tablet")
    ),
    "for another permission": lambda s: signatures_of(s, "dan", "fay", level="read"),
    "for another naming": lambda s: signatures_of(s, "dan", "fay", naming=s.other),
    "for another repo": lambda s: signatures_of(s, "dan", "fay", repo=s.other),
    "that are no signatures": lambda s: [[one, bytes(64)] for one, _ in signatures_of(s, "dan", "fay")],
    "with a wrong one beside enough": lambda s: sorted(
        [*signatures_of(s, "dan", "fay"), [s.id("eve"), bytes(64)]]
    ),
    "of which each is another's": lambda s: [
        [one, other]
        for (one, _), (_, other) in zip(
            signatures_of(s, "dan", "fay"), signatures_of(s, "dan", "fay")[::-1], strict=True
        )
    ],
}


def wrongly_signed(s, what):
    """A recovery grant with signatures that do not do, and then one with right ones."""
    named(s)
    s.other = s.friends("ben", 2, FRIENDS)
    s.recover("eve", s.naming, "phone", "write", (), signatures=what(s), expect="bad_recovery")
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    return after(s, phone="write")


for title, what in WRONG.items():
    add(f"a recovery grant with signatures {title}", ["M20"], wrongly_signed, what=what)


@case("recovery grants that do not decode", "section 4", "section 11")
def _(s):
    named(s)
    phone, two = s.id("phone"), signatures_of(s, "dan", "fay")
    for body in (
        [s.naming, phone, 2],
        [s.naming, phone, 0, two],
        [s.naming, phone, 6, two],
        [s.naming, phone, None, two],
        [None, phone, 2, two],
        [s.naming, phone, 2, [*two, [s.id("eve"), bytes(63)]]],
        [s.naming, phone, 2, [[s.id("dan"), bytes(64), 1]]],
        [s.naming, phone, 2, [[s.id(one), bytes(64)] for one in (*GUS, "dan")]],
        [s.naming, phone, 2, two, None],
    ):
        s.commit("ben", ["recovery-grant1", *body], expect="bad_body")
    s.commit("ben", ["recovery-grant1", s.naming, phone, 2, two], branch=s.b)
    return after(s, phone=None)


@case("who publishes a recovery grant", "M20", "R2")
def _(s):
    named(s)
    s.recover("dan", s.naming, "phone", "write", ("dan", "fay"), expect="unknown_author", by_writer=False)
    s.recover("phone", s.naming, "phone", "write", ("dan", "fay"), expect="unknown_author", by_writer=False)
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    s.recover("cat", s.naming, "tablet", "write", ("dan", "fay"))
    s.recover("phone", s.naming, "desk", "write", ("dan", "fay"))
    base = s.heads()
    s.recover("eve", s.naming, "watch", "write", ("dan", "fay"), acks=base)
    s.remove("ann", "eve", acks=base)
    return after(s, phone="write", tablet="write", desk="write", watch="write", eve=None)


# M20: what it names.


@case("a recovery grant that names no naming", "M20")
def _(s):
    named(s)
    empty = s.friends("ben", 0, ())
    two = ("dan", "fay")
    for one in (s.cat, s.graph.init, s.secret(), s.b):
        s.recover("eve", one, "phone", "write", two, expect="bad_recovery")
    s.recover("eve", empty, "phone", "admin", (), expect="bad_recovery")
    s.recover("eve", empty, "phone", "admin", two, expect="bad_recovery")
    s.recover("eve", s.naming, "phone", "write", two, acks=[s.eve], expect="bad_recovery")
    return after(s, phone=None)


@case("friends who were replaced, and by whom", "M20")
def _(s):
    named(s)
    s.friends("ben", 2, ("dan", "gus"))
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    again = s.friends("cat", 2, ("eve", "gus"))
    s.recover("eve", s.naming, "tablet", "write", ("dan", "fay"), expect="bad_recovery")
    s.recover("eve", s.naming, "tablet", "write", ("eve", "gus"), expect="bad_recovery")
    s.recover("eve", again, "tablet", "write", ("dan", "fay"), expect="bad_recovery")
    s.recover("eve", again, "tablet", "write", ("eve", "gus"))
    s.friends("cat", 0, ())
    s.recover("eve", again, "desk", "write", ("eve", "gus"), expect="bad_recovery")
    return after(s, phone="write", tablet="write", desk=None)


@case("friends who were named later, and the naming is not in the past", "M20")
def _(s):
    named(s)
    base = s.heads()
    later = s.friends("cat", 2, ("eve", "gus"), acks=base)
    s.recover("eve", later, "tablet", "write", ("eve", "gus"), acks=base, expect="bad_recovery")
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"), acks=base)
    return after(s, phone="write", tablet=None)


@case("two groups of friends who were named beside each other", "M20")
def _(s):
    placed(s)
    one = s.friends("cat", 2, ("dan", "fay"), acks=s.base)
    two = s.friends("cat", 2, ("gus", "hal"), acks=s.base)
    mixed = sorted(s.signed(one, "phone", "write", ("dan",)) + s.signed(two, "phone", "write", ("gus",)))
    for naming in (one, two):
        s.recover("eve", naming, "phone", "write", (), signatures=mixed, expect="bad_recovery")
    base = s.heads()
    s.recover("eve", one, "phone", "write", ("dan", "fay"), acks=base)
    s.recover("eve", two, "phone", "write", ("gus", "hal"), acks=base)
    s.recover("eve", two, "tablet", "write", ("gus", "hal"))
    s.friends("cat", 1, ("dan",))
    s.recover("eve", two, "desk", "write", ("gus", "hal"), expect="bad_recovery")
    s.remove("cat", "phone")
    return after(s, phone=None, tablet="write", desk=None)


@case("a recovery grant is used once for a user", "M20", "R4")
def _(s):
    named(s)
    two = ("dan", "fay")
    s.recover("eve", s.naming, "phone", "read", two)
    s.recover("eve", s.naming, "phone", "write", two, expect="bad_recovery")
    s.remove("cat", "phone")
    s.recover("eve", s.naming, "phone", "read", two, expect="bad_recovery")
    s.device("cat", "phone", "read")
    s.recover("eve", s.naming, "tablet", "write", two)
    again = s.friends("cat", 2, FRIENDS)
    s.recover("eve", again, "phone", "write", two)
    return after(s, phone="write", tablet="write")


@case("a recovery grant published again beside the device removal", "M20", "R4")
def _(s):
    named(s)
    two = ("dan", "fay")
    s.recover("eve", s.naming, "phone", "write", two, acks=s.base)
    known = s.heads()
    s.remove("cat", "phone", acks=known)
    for author in ("eve", "ben"):
        s.recover(author, s.naming, "phone", "write", two, acks=s.base)
    s.recover("eve", s.naming, "tablet", "write", two, acks=s.base)
    s.recover("eve", s.naming, "phone", "write", two, expect="bad_recovery")
    return after(s, phone=None, tablet="write")


# M17 of the member in whose place it is made.


@case("what a recovery grant gives", "M17", "M20")
def _(s):
    named(s)
    two = ("dan", "fay")
    for level in ("manage", "admin", "owner"):
        s.recover("ann", s.naming, "phone", level, two, expect="not_permitted")
    s.recover("ann", s.naming, "eve", "read", two, expect="already_holds")
    s.recover("ann", s.naming, "cat", "write", two, expect="already_holds")
    for key in SMALL:
        s.recover("ann", s.naming, key, "read", two, expect="bad_user")
    s.recover("ann", s.naming, "eve", "write", two)
    s.remove("ann", "cat", "read")
    s.recover("ann", s.naming, "phone", "write", two, expect="not_permitted")
    s.recover("ann", s.naming, "phone", "read", two)
    s.device("ben", "cat", "manage")
    s.recover("ann", s.naming, "tablet", "write", two, expect="not_permitted")
    return after(s, eve="write", phone="read", tablet=None)


@case("a recovered device makes no devices, and a place passes to it", "M17", "M18")
def _(s):
    named(s)
    s.recover("eve", s.naming, "phone", "read", ("dan", "fay"))
    s.device("phone", "tablet", "read", expect="not_permitted")
    s.move("phone", "eve", s.naming, expect="bad_move")
    s.move("cat", "phone", s.cat)
    s.device("phone", "tablet", "write")
    return after(s, cat=None, phone="write", tablet="write")


@case("recovery grants and the 15 devices of a member", "M17", "M20")
def _(s):
    named(s)
    two = ("dan", "fay")
    for number in range(14):
        s.device("cat", f"device {number}", "read")
    s.recover("eve", s.naming, "phone", "read", two)
    s.recover("eve", s.naming, "tablet", "read", two, expect="too_many_devices")
    s.device("cat", "tablet", "read", expect="too_many_devices")
    s.remove("cat", "phone")
    s.device("cat", "tablet", "read")
    s.remove("cat", "tablet")
    s.recover("eve", s.naming, "desk", "read", two)
    return after(s, phone=None, tablet=None, desk="read")


@case("recovery grants are none of the 64 device grants of a member, nor of their publisher", "M17", "M20")
def _(s):
    s.grant("ann", "ben", "owner")
    naming = s.friends("ben", 1, ("dan",))
    base = s.heads()
    for _number in range(3):
        s.recover("ann", naming, "phone", "read", ("dan",), acks=base)
    s.recover("ben", naming, "tablet", "read", ("dan",))
    for number in range(13):
        for level in range(1, 6):
            is_last = (number, level) == (12, 5)
            s.device("ben", f"device {number}", level, expect="too_many_devices" if is_last else "accepted")
    s.remove("ben", "device 0")
    s.remove("ben", "device 1")
    s.recover("ann", naming, "desk", "owner", ("dan",))
    return after(s, desk="owner", phone="read")


# R2, R4: beside what becomes of the member.


@case("a recovery grant beside an exclusion of its member, and after it", "R2", "M20")
def _(s):
    named(s)
    two = ("dan", "fay")
    base = s.heads()
    s.recover("eve", s.naming, "phone", "write", two, acks=base)
    x = s.remove("ann", "cat", acks=base)
    s.recover("eve", s.naming, "tablet", "write", two, acks=[x], expect="unknown_author|not_permitted")
    s.note("phone", expect="unknown_author", by_writer=True)
    again = s.grant("ann", "cat", "read")
    s.recover("eve", s.naming, "tablet", "write", two, acks=[again], expect="not_permitted")
    s.recover("eve", s.naming, "tablet", "read", two, acks=[again])
    return after(s, cat="read", phone=None, tablet="read")


@case("a recovery grant beside a demotion of its member", "R2")
def _(s):
    named(s)
    two = ("dan", "fay")
    s.recover("eve", s.naming, "phone", "write", two, acks=s.base)
    s.recover("eve", s.naming, "tablet", "read", two, acks=s.base)
    s.remove("ann", "cat", "read", acks=s.base)
    return after(s, cat="read", phone=None, tablet="read")


@case("a recovery grant that an exclusion of its member follows", "R4", "R2")
def _(s):
    named(s)
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    known = s.heads()
    s.remove("ann", "cat", acks=known)
    s.friends("cat", 1, ("gus",), acks=[s.naming])
    s.remove("cat", "phone", acks=known)
    s.note("phone")
    return after(s, cat=None, phone="write")


@case("a recovery grant beside a leave and a move of its member", "R2", "R4", "R5")
def _(s):
    named(s)
    two = ("dan", "fay")
    one = s.friends("ben", 2, FRIENDS)
    s.device("cat", "phone", "read")
    base = s.heads()
    s.remove("ben", "ben", acks=base)
    s.move("cat", "phone", s.cat, acks=base)
    s.recover("eve", one, "tablet", "admin", two, acks=base)
    s.recover("eve", s.naming, "desk", "write", two, acks=base)
    s.recover("eve", s.naming, "watch", "write", two, acks=base)
    s.recover("eve", s.naming, "clock", "write", two, expect="unknown_author|not_permitted")
    s.note("tablet")
    s.remove("phone", "desk")
    s.remove("phone", "tablet", expect="not_permitted")
    return after(s, ben=None, cat=None, tablet="admin", desk=None, watch="write", phone="write")


@case("friends named by the key from which a place came let nobody in after the move", "M20")
def _(s):
    named(s)
    two = ("dan", "fay")
    s.device("cat", "phone", "read")
    s.move("cat", "phone", s.cat)
    s.recover("eve", s.naming, "tablet", "write", two, expect="unknown_author|not_permitted")
    again = s.friends("phone", 2, FRIENDS)
    s.recover("eve", again, "tablet", "write", two)
    s.friends("phone", 2, ("cat", "dan"))
    return after(s, tablet="write")


@case("what a recovered device did beside its removal by its member", "R4", "M7")
def _(s):
    placed(s)
    naming = s.friends("ben", 2, FRIENDS)
    recovered = s.recover("eve", naming, "phone", "admin", ("dan", "fay"))
    s.grant("phone", "gus", "write", acks=[recovered])
    s.remove("phone", "ben", acks=[recovered], expect="not_permitted")
    s.remove("phone", "cat", acks=[recovered])
    s.remove("ben", "phone", acks=[recovered])
    return after(s, phone=None, gus=None, cat="write", ben="admin")


@case("a recovered device is as senior as its grant", "R1", "M7")
def _(s):
    placed(s)
    naming = s.friends("ben", 2, FRIENDS)
    s.grant("ann", "gus", "admin")
    s.recover("eve", naming, "phone", "admin", ("dan", "fay"))
    s.grant("ann", "hal", "admin")
    s.remove("phone", "gus", expect="not_permitted")
    s.remove("phone", "hal")
    s.grant("phone", "hal", "admin")
    s.remove("gus", "phone")
    return after(s, gus="admin", phone=None, hal="admin")


@case("an admin grants to who was recovered what it holds", "M6")
def _(s):
    named(s)
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"))
    s.grant("ben", "phone", "write")
    s.grant("ben", "phone", "write", expect="already_holds")
    s.remove("cat", "phone", expect="not_permitted")
    s.device("phone", "tablet", "write")
    return after(s, phone="write", tablet="write")


@case("a founder's recovered device signs for nobody", "Q4", founders=("ann", "ben", "cat"), found=False)
def _(s):
    s.found(council=2)
    naming = s.friends("ann", 2, FRIENDS)
    s.recover("ben", naming, "phone", "owner", ("dan", "fay"))
    p = s.propose("phone", "cat")
    s.approve("phone", p, expect="not_permitted")
    s.move("ann", "phone")
    s.approve("phone", p)
    s.approve("ben", p)
    s.remove("phone", "cat")
    return after(s, phone="owner", cat=None, ann=None)


# E: epochs.


def becoming_due(s, beside):
    """A recovery grant after an epoch began, and the member's exclusion after it or beside it."""
    named(s)
    base = s.heads()
    now = s.now.id
    given = s.recover("eve", s.naming, "phone", "write", ("dan", "fay"), acks=base)
    if beside:
        x = s.remove("ann", "cat", acks=base)
        one = s.start("ann", acks=[x])
        s.open("ann", [s.epochs[now]], acks=sorted([one.id if hasattr(one, "id") else one, given]))
        return {"check": written(one), "keys": list(s.epochs.values())}
    return {"check": written(now)}


for word, beside in (("alone", False), ("beside the exclusion of its member", True)):
    add(f"a recovery grant {word}, and the epoch that is written in", ["E8"], becoming_due, beside=beside)


def holding_by_recovery(s, stays):
    """A recovery grant in an epoch that its user has no box of; the user stays, or leaves beside it."""
    named(s)
    old = s.now
    given = s.device("cat", "phone", "read", acks=s.base)
    one = s.start("ann", acks=s.base)
    s.recover("eve", s.naming, "phone", "write", ("dan", "fay"), acks=[one])
    if not stays:
        s.remove("phone", "phone", acks=[given], epoch=old)
    return {"check": written(one if stays else None), "keys": list(s.epochs.values())}


for word, stays in (("stays", True), ("leaves", False)):
    add(f"who was recovered may hold the epoch of that, and {word}", ["E8"], holding_by_recovery, stays=stays)
