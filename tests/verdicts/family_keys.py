"""Named histories of forks and merges of epochs, openings, hand-overs, and where members write."""

from . import crypto
from .cases import add, case
from .family_bodies import ID
from .family_epochs import both, written


def forked(s, *users):
    """Two admins who start epochs beside each other; their inits are s.one and s.two."""
    s.grant("ann", "ben", "admin")
    for user in users:
        s.grant("ann", user, "write")
    s.old = s.now
    s.base = s.heads()
    s.one = s.start("ann", acks=s.base, stay=True)
    s.two = s.start("ben", acks=s.base, stay=True)


# E8


@case("of two clean epochs of one size the smaller id", "E8")
def _(s):
    forked(s)
    return {"check": written(min(s.one, s.two), 2, 2)}


for number in range(4):

    def sizes(s, number):
        """Of two clean epochs the one that was made for fewer members."""
        s.grant("ann", "ben", "admin")
        base = s.heads()
        more = s.grant("ann", f"member {number}", "read")
        big = s.start("ann", acks=[more], stay=True)
        small = s.start("ben", acks=base, stay=True)
        assert big != small
        return {"check": written(small, 2, 2)}

    add(f"of two clean epochs the one for fewer members ({number})", ["E8"], sizes, number=number)


@case("an epoch that does not count is not written in", "E8")
def _(s):
    s.grant("ann", "ben", "admin")
    base = s.heads()
    s.start("ben", acks=base, stay=True)
    s.remove("ann", "ben", acks=base)
    # The founding epoch is the only one that counts, and lacks the exclusion.
    one = s.start(
        "ann", acks=s.heads()[:0] or [h for h in s.heads() if s.ledger.commits[h].body.tag == "remove1"]
    )
    return {"check": written(one, 1, 1)}


@case("the epochs before tips are not written in", "E8")
def _(s):
    one = s.start("ann")
    two = s.start("ann")
    assert one != two
    return {"check": written(two, 1, 1)}


@case("two epochs, each without the other's exclusion", "E8", "E9")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "write")
    s.grant("ann", "dan", "write")
    base = s.heads()
    x = s.remove("ann", "cat", acks=base)
    y = s.remove("ben", "dan", acks=base)
    one = s.start("ann", acks=[x], stay=True)
    two = s.start("ben", acks=[y], stay=True)
    s.one, s.two = one, two
    return {"check": written(None, 0, 2)}


@case("two epochs, each without the other's exclusion, and their merge", "E8", "E9")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "write")
    s.grant("ann", "dan", "write")
    base = s.heads()
    x = s.remove("ann", "cat", acks=base)
    y = s.remove("ben", "dan", acks=base)
    one = s.start("ann", acks=[x], stay=True)
    s.start("ben", acks=[y], stay=True)
    three = s.start("ben", epoch=one)
    s.note("ann")
    return {"check": written(three, 1, 1)}


@case("of an exclusion by one and not the other epoch one is clean", "E8")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "write")
    base = s.heads()
    x = s.remove("ann", "cat", acks=base)
    one = s.start("ann", acks=[x], stay=True)
    s.start("ben", acks=base, stay=True)
    return {"check": written(one, 1, 2)}


# V11, V12, E4, E5


@case("a commit in an epoch that was not started in its past", "V11", "E5")
def _(s):
    b = s.branch("ann")
    base = s.heads()
    s.start("ann")
    s.note("ann", acks=base, expect="unknown_epoch")
    s.note("ann", branch=b, acks=[b], place=base, expect="unknown_epoch")
    s.branch("ann", add=False, place=base, expect="unknown_epoch")
    s.open("ann", [s.epochs[s.graph.init]], acks=base, expect="unknown_epoch")
    s.note("ann", branch=b)


@case("a commit in an epoch that its past has left behind", "V12", "E4")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    base, old = s.heads(), s.now
    s.start("ann")
    s.note("ann", epoch=old, expect="closed_epoch")
    s.note("ann", branch=b, epoch=old, expect="closed_epoch")
    c = s.branch("ann", add=False, epoch=old, expect="closed_epoch")
    s.add("ann", c)
    s.grant("ann", "cat", "read", epoch=old, expect="closed_epoch")
    s.note("ann", epoch=old, acks=base)
    s.note("ann", branch=b, acks=[b], epoch=old, place=base)
    s.note("ben", branch=b)
    s.note("ben")


@case("an epoch opens what its epochs open", "V12", "E4")
def _(s):
    one = s.start("ann")
    two = s.start("ann", gives=[one])
    three = s.start("ann", gives=[two])
    s.note("ann")
    assert three


@case("an init that leaves an epoch of its past closed", "V12", "E4")
def _(s):
    forked(s)
    s.start("ann", epoch=s.one, acks=sorted([s.one, s.two]), gives=[s.one], stay=True, expect="closed_epoch")
    s.start(
        "ann",
        epoch=s.one,
        acks=sorted([s.one, s.two]),
        gives=[s.one, s.graph.init],
        stay=True,
        expect="closed_epoch",
    )
    s.start("ann", epoch=s.one, acks=sorted([s.one, s.two]), gives=[s.one, s.two])
    s.note("ben")
    return both(s)


@case("an init that gives an epoch that is not in its past", "E2")
def _(s):
    forked(s)
    s.start("ann", epoch=s.one, acks=[s.one], gives=[s.one, s.two], stay=True, expect="bad_epoch")
    return both(s)


@case("an init that gives another key for an epoch of its past", "E2")
def _(s):
    one = s.start("ann")
    s.start("ann", gives=[one, (s.graph.init, ID)], stay=True, expect="bad_epoch")
    return both(s)


@case("an opening joins two epochs", "M11", "V12", "E11")
def _(s):
    b = s.branch("ann")
    forked(s)
    heads = sorted([s.one, s.two])
    s.note("ann", epoch=s.one, acks=heads, expect="closed_epoch")
    s.note("ann", branch=b, epoch=s.one, place=heads, expect="closed_epoch")
    s.now = s.epochs[s.one]
    o = s.open("ann", [s.epochs[s.two]], acks=heads)
    s.note("ann", acks=[o])
    s.note("ann", branch=b, place=[o])
    s.note("ann", branch=b, acks=[b], place=heads, expect="closed_epoch")


@case("an opening opens nothing in another epoch", "M11", "V12")
def _(s):
    forked(s)
    heads = sorted([s.one, s.two])
    s.now = s.epochs[s.one]
    o = s.open("ann", [s.epochs[s.two]], acks=heads)
    s.note("ann", epoch=s.two, acks=[o], expect="closed_epoch")
    p = s.open("ann", [s.epochs[s.one]], epoch=s.two, acks=[o])
    s.note("ann", epoch=s.two, acks=[p])
    s.note("ann", epoch=s.one, acks=[p])


@case("openings by one who is excluded beside them open all the same", "M11", "E4")
def _(s):
    forked(s)
    heads = sorted([s.one, s.two])
    s.now = s.epochs[s.one]
    o = s.open("ben", [s.epochs[s.two]], acks=heads)
    x = s.remove("ann", "ben", acks=[s.one])
    s.note("ann", acks=[o, x])


@case("openings of what is not started in their past", "M11")
def _(s):
    forked(s)
    s.now = s.epochs[s.one]
    s.open("ann", [s.epochs[s.two]], acks=[s.one], expect="bad_epoch")
    s.open("ann", [s.epochs[s.one], s.epochs[s.two]], acks=[s.one], expect="bad_epoch")
    s.commit("ann", ["epoch-open1", [[ID, ID]]], acks=[s.one], expect="bad_epoch")
    s.commit("ann", ["epoch-open1", [[s.base[0], ID]]], acks=[s.one], expect="bad_epoch")
    return both(s)


@case("openings that are wrong", "M11")
def _(s):
    s.grant("ann", "ben", "read")
    one = s.start("ann")
    two = s.start("ann")
    known = sorted([s.graph.init, one, two])
    entries = [[epoch, s.epochs[epoch].key] for epoch in known]
    s.commit("ann", ["epoch-open1", entries[::-1]], expect="bad_epoch")
    s.commit("ann", ["epoch-open1", [entries[0], entries[0]]], expect="bad_epoch")
    s.commit("ann", ["epoch-open1", [[known[0], ID]]], expect="bad_epoch")
    s.commit("ann", ["epoch-open1", [entries[0], [known[1], ID]]], expect="bad_epoch")
    s.commit("ben", ["epoch-open1", entries], expect="not_permitted")
    s.commit("eve", ["epoch-open1", entries], expect="unknown_author")
    s.commit("ann", ["epoch-open1", entries])
    return both(s)


# M10


def handing(s, entries, expect="bad_epoch", author="ann", marks=None, handed=None):
    """A hand-over of the epoch that is written in, published in the founding one."""
    s.grant("ann", "ben", "write")
    s.grant("ann", "cat", "read")
    base = s.heads()
    s.start("ann", acks=base)
    s.grant("ann", "dan", "write", epoch=s.graph.init, acks=base)
    s.open("ann", [s.epochs[s.graph.init]])
    s.hand(
        author,
        [],
        epoch=s.graph.init,
        entries=entries(s),
        expect=expect,
        marks=marks and marks(s),
        handed=handed and handed(s),
    )
    s.note("ann", acks=list(s.heads()))
    return both(s)


def entry(s, user, writers=False, epoch=None):
    """A right entry of a hand-over."""
    epoch = epoch or s.now
    user = s.id(user)
    return [
        user,
        crypto.key_box(epoch.key, s.repo, user),
        crypto.writers_box(epoch.writers, s.repo, user) if writers else None,
    ]


HANDED = {
    "of a member": (lambda s: [entry(s, "dan")], "accepted", {}),
    "of a writer with the writers' secret": (lambda s: [entry(s, "dan", True)], "accepted", {}),
    "of all members": (
        lambda s: sorted(entry(s, user) for user in ("ann", "ben", "cat", "dan")),
        "accepted",
        {},
    ),
    "by a writer": (lambda s: [entry(s, "dan")], "accepted", {"author": "ben"}),
    "by a reader": (lambda s: [entry(s, "dan")], "not_permitted", {"author": "cat"}),
    "by a stranger": (lambda s: [entry(s, "dan")], "unknown_author", {"author": "eve"}),
    "with a writers' box that opens nothing": (lambda s: [[*entry(s, "dan")[:2], ID]], "accepted", {}),
    "with a writers' box for a reader": (lambda s: [entry(s, "cat", True)], "bad_epoch", {}),
    "of a stranger": (lambda s: [entry(s, "eve")], "bad_epoch", {}),
    "of a member and a stranger": (lambda s: sorted([entry(s, "dan"), entry(s, "eve")]), "bad_epoch", {}),
    "of what is no key": (lambda s: [[bytes(32), ID, None]], "bad_epoch", {}),
    "out of order": (lambda s: sorted([entry(s, "dan"), entry(s, "ben")])[::-1], "bad_epoch", {}),
    "of one twice": (lambda s: [entry(s, "dan"), entry(s, "dan")], "bad_epoch", {}),
    "with a wrong box": (lambda s: [[s.id("dan"), ID, None]], "bad_epoch", {}),
    "with the box of another": (lambda s: [[s.id("dan"), entry(s, "ben")[1], None]], "bad_epoch", {}),
    "with another mark": (
        lambda s: [entry(s, "dan")],
        "bad_epoch",
        {"marks": lambda s: [ID, s.now.writers_mark]},
    ),
    "with a mark of small order": (
        lambda s: [entry(s, "dan")],
        "bad_epoch",
        {"marks": lambda s: [bytes(32), s.now.writers_mark]},
    ),
    "with another writers' mark": (
        lambda s: [entry(s, "dan")],
        "bad_epoch",
        {"marks": lambda s: [s.now.mark, ID]},
    ),
    "with both marks changed": (
        lambda s: [entry(s, "dan")],
        "bad_epoch",
        {"marks": lambda s: [s.now.writers_mark, s.now.mark]},
    ),
}
for title, (entries, expect, how) in HANDED.items():
    add(f"a hand-over {title}", ["M10"], handing, entries=entries, expect=expect, **how)


@case("hand-overs of what is no epoch in their past", "M10")
def _(s):
    s.grant("ann", "ben", "write")
    base, old = s.heads(), s.now
    s.start("ann", acks=base)
    s.hand("ann", ["ben"], epoch=old, acks=base, expect="bad_epoch")
    s.commit(
        "ann",
        ["epoch-hand1", ID, ID, ID, [[s.id("ben"), ID, None]]],
        epoch=old,
        acks=base,
        expect="bad_epoch",
    )
    s.commit(
        "ann",
        ["epoch-hand1", base[0], ID, ID, [[s.id("ben"), ID, None]]],
        epoch=old,
        acks=base,
        expect="bad_epoch",
    )
    s.hand("ann", ["ben"], epoch=old)
    return both(s)


@case("a hand-over of an epoch that does not open all of its past", "M10", "V12", "E4")
def _(s):
    forked(s, "cat")
    heads = sorted([s.one, s.two])
    s.hand("ann", ["cat"], epoch=s.old, handed=s.epochs[s.one], acks=heads, expect="closed_epoch")
    s.hand("ann", ["cat"], epoch=s.old, handed=s.epochs[s.one], acks=[s.one])
    s.hand("ann", ["cat"], epoch=s.old, handed=s.epochs[s.two], acks=[s.two])
    o = s.open("ann", [s.epochs[s.two]], epoch=s.one, acks=heads)
    s.hand("ann", ["cat"], epoch=s.old, handed=s.epochs[s.one], acks=[o])
    s.hand("ann", ["cat"], epoch=s.old, handed=s.epochs[s.two], acks=[o], expect="closed_epoch")


@case("a hand-over published in an epoch that opens less than its past", "E4")
def _(s):
    forked(s, "cat")
    three = s.start("ann", epoch=s.one, acks=sorted([s.one, s.two]))
    s.hand("ann", ["cat"], epoch=s.two, acks=[three])
    s.hand("ann", ["cat"], epoch=s.old, acks=[three])
    s.note("cat", acks=s.heads())


@case("a hand-over to who is excluded beside it makes an epoch due", "M10", "E8")
def _(s):
    s.grant("ann", "ben", "write")
    s.start("ann")
    heads = s.heads()
    s.hand("ann", ["ben"], acks=heads)
    s.remove("ann", "ben", acks=heads)
    return {"check": written(None, 0, 1)}


@case("a hand-over to who was excluded", "M10")
def _(s):
    s.grant("ann", "ben", "write")
    old = s.now
    s.remove("ann", "ben")
    s.start("ann")
    s.hand("ann", ["ben"], epoch=old, expect="bad_epoch")
    return both(s)


@case("a hostile member hands the next epoch to an excluded one unseen", "M10", "E8")
def _(s):
    s.grant("ann", "ben", "write")
    s.grant("ann", "cat", "write")
    base, old = s.heads(), s.now
    one = s.start("ann", acks=base)
    s.hand("cat", ["ben"], epoch=old, acks=[one])
    s.remove("ann", "ben", acks=[one])
    s.note("ann")
    return {"check": written(None, 0, 1)}


@case("hands of the founding epoch", "M10", "E10")
def _(s):
    s.grant("ann", "ben", "write")
    s.hand("ann", ["ben"], writers=["ben"])
    s.note("ben")
