"""Named histories of content: what is void (N), ends of feeds, adoptions, orders."""

from .cases import add, case
from .family_bodies import ID
from .family_rights import said


def meant(s, **ends):
    """Say what becomes of commits: lists of them by end."""
    for end, commits in ends.items():
        for one in commits:
            s.expected[one] = end


def posts(s, author, branch, count, place, **how):
    """Posts of one author, one after another, all at one place."""
    made = []
    for number in range(count):
        acks = how.pop("acks", None) or (made[-1:] if made else [branch])
        made.append(s.note(author, f"post {number}", branch=branch, place=place, acks=acks, **how))
    return made


def start(s, level="write"):
    """A branch, and ben who may write in it."""
    s.grant("ann", "ben", level)
    s.b = s.branch("ann")
    return s.heads()


@case("content beside an exclusion, before it and after it", "N1")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 2, base)
    x = s.remove("ann", "ben", acks=base)
    s.note("ben", branch=s.b, place=[x], acks=made[-1:], expect="unknown_author", by_writer=True)
    s.note("ann", branch=s.b, place=[x], acks=made[-1:])
    meant(s, void=made)


@case("content beside a demotion to writing", "N1")
def _(s):
    base = start(s, "admin")
    made = posts(s, "ben", s.b, 2, base)
    c = s.commit("ben", ["compaction1", []], branch=s.b, place=base, acks=made[-1:])
    s.remove("ann", "ben", "write", acks=base)
    meant(s, void=[c])


@case("content beside a demotion to managing", "N1")
def _(s):
    base = start(s, "admin")
    s.commit("ben", ["compaction1", []], branch=s.b, place=base)
    s.remove("ann", "ben", "manage", acks=base)


@case("content beside a demotion to reading", "N1")
def _(s):
    base = start(s, "admin")
    made = posts(s, "ben", s.b, 2, base)
    s.remove("ann", "ben", "read", acks=base)
    meant(s, void=made)


@case("content beside a leave", "N1", "R5")
def _(s):
    base = start(s)
    posts(s, "ben", s.b, 2, base)
    x = s.remove("ben", "ben", acks=base)
    s.note("ben", branch=s.b, place=[x], expect="unknown_author", by_writer=True)


@case("content beside an exclusion that falls", "N1", "R4")
def _(s):
    s.grant("ann", "cat", "admin")
    base = start(s)
    made = posts(s, "ben", s.b, 2, base)
    s.remove("cat", "ben", acks=base)
    s.remove("ann", "cat", acks=base)
    assert made


@case("content of who was granted again", "N1")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 2, base)
    s.remove("ann", "ben", acks=base)
    s.grant("ann", "ben", "write")
    s.note("ben", branch=s.b)
    meant(s, void=made)


@case("content of who had two grants, of which one falls", "N1")
def _(s):
    s.grant("ann", "cat", "admin")
    g = s.grant("cat", "ben", "write")
    s.b = s.branch("ann")
    base = s.heads()
    made = posts(s, "ben", s.b, 2, base)
    s.remove("ann", "cat", acks=list(s.ledger.commits[g].acks))
    meant(s, void=made)
    s.note("ann", branch=s.b)


@case("content by a join whose invitation is revoked beside it", "N1", "R2")
def _(s):
    i = s.invite("ann")
    s.b = s.branch("ann")
    base = s.heads()
    j = s.join("ben", i)
    made = posts(s, "ben", s.b, 2, [j])
    s.revoke("ann", i, acks=base)
    meant(s, void=made)


@case("a first commit that becomes void", "N1")
def _(s):
    base = start(s)
    c = s.branch("ben", add=False, place=base)
    s.add("ann", c)
    n = s.note("ann", branch=c)
    s.remove("ann", "ben", acks=base)
    meant(s, void=[c], accepted=[n])


@case("all of a branch becomes void", "N1")
def _(s):
    base = start(s)
    c = s.branch("ben", add=False, place=base)
    s.add("ann", c)
    s.remove("ann", "ben", acks=base)
    meant(s, void=[c])


@case("ranks count void commits", "N1", "section 6")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 4, base)
    one = s.note("ann", branch=s.b, acks=made[-1:])
    two = s.note("ann", branch=s.b, acks=[s.b])
    s.remove("ann", "ben", acks=base)
    assert s.ledger.commits[one].rank == 5
    assert s.ledger.commits[two].rank == 1
    meant(s, void=made)


# N2


def ends(s, feeds, void, more=None):
    """Four posts of ben and an exclusion whose ends name some of them."""
    base = start(s)
    s.c = s.branch("ann")
    base = s.heads()
    s.made = posts(s, "ben", s.b, 4, base)
    s.other = posts(s, "ben", s.c, 1, base)
    s.anns = s.note("ann", branch=s.b, acks=s.made[-1:])
    if more:
        more(s, base)
    s.remove("ann", "ben", feeds=feeds(s), acks=base)
    for one in s.made + s.other + getattr(s, "more", []):
        s.expected[one] = "accepted"
    for one in void(s):
        s.expected[one] = "void"


def fork(at):
    """Make another commit of ben at a feed sequence that there is already."""

    def more(s, base):
        previous = {} if at == 1 else {"feed_previous": s.made[at - 2]}
        s.more = [
            s.note(
                "ben",
                "forked",
                branch=s.b,
                place=base,
                acks=[s.b],
                sequence=at,
                lipmaa=s.made[0] if at == 4 else None,
                **previous,
            )
        ]

    return more


def gap(s, base):
    """Posts of ben whose feed links lead nowhere."""
    s.more = [
        s.note("ben", "gap", branch=s.b, place=base, acks=[s.b], sequence=6, feed_previous=ID, lipmaa=None)
    ]
    s.more.append(
        s.note(
            "ben",
            "after",
            branch=s.b,
            place=base,
            acks=s.more[:1],
            sequence=7,
            feed_previous=s.more[0],
            lipmaa=None,
        )
    )


def skip(s, base):
    """A post of ben that names as the one before what is two before."""
    s.more = [
        s.note(
            "ben",
            "skip",
            branch=s.b,
            place=base,
            acks=[s.b],
            sequence=6,
            feed_previous=s.made[3],
            lipmaa=None,
        )
    ]


ENDS = {
    "none": (lambda s: [], lambda s: s.made + s.other, None),
    "the second": (lambda s: [[s.b, 2, s.made[1]]], lambda s: s.made[2:] + s.other, None),
    "the last": (lambda s: [[s.b, 4, s.made[3]]], lambda s: s.other, None),
    "the last of both branches": (lambda s: [[s.b, 4, s.made[3]], [s.c, 1, s.other[0]]], lambda s: [], None),
    "the second, by a sequence that is not its own": (
        lambda s: [[s.b, 3, s.made[1]]],
        lambda s: s.made[3:] + s.other,
        None,
    ),
    "one that is not here": (lambda s: [[s.b, 3, ID]], lambda s: s.made[3:] + s.other, None),
    "one far ahead": (lambda s: [[s.b, 2**53 - 1, ID]], lambda s: s.other, None),
    "one of another author": (lambda s: [[s.b, 2, s.anns]], lambda s: s.made[2:] + s.other, None),
    "one of another branch": (lambda s: [[s.b, 1, s.other[0]]], lambda s: s.made[1:] + s.other, None),
    "one in a branch that is none": (lambda s: [[ID, 4, s.made[3]]], lambda s: s.made + s.other, None),
    "one side of a fork": (lambda s: [[s.b, 3, s.more[0]]], lambda s: s.made[2:] + s.other, fork(3)),
    "one side of a fork, and what follows": (
        lambda s: [[s.b, 4, s.made[3]]],
        lambda s: s.more + s.other,
        fork(3),
    ),
    "below a fork": (lambda s: [[s.b, 2, s.made[1]]], lambda s: s.made[2:] + s.more + s.other, fork(3)),
    "one that is not here, above a fork": (
        lambda s: [[s.b, 3, ID]],
        lambda s: s.made + s.more + s.other,
        fork(2),
    ),
    "one that is not here, below a fork": (
        lambda s: [[s.b, 2, ID]],
        lambda s: s.made[2:] + s.more + s.other,
        fork(3),
    ),
    "one that is not here, at a fork": (
        lambda s: [[s.b, 3, ID]],
        lambda s: s.made + s.more + s.other,
        fork(3),
    ),
    "one behind a gap": (lambda s: [[s.b, 7, s.more[1]]], lambda s: s.made + s.other, gap),
    "one that is not here, behind a gap": (lambda s: [[s.b, 6, ID]], lambda s: s.more[1:] + s.other, gap),
    "one that skips a sequence": (lambda s: [[s.b, 6, s.more[0]]], lambda s: s.made + s.other, skip),
}
for title, (feeds, void, more) in ENDS.items():
    add(f"an exclusion whose ends name {title}", ["N2"], ends, feeds=feeds, void=void, more=more)


@case("two exclusions, each with an end of its own", "N2")
def _(s):
    s.grant("ann", "cat", "admin")
    base = start(s)
    made = posts(s, "ben", s.b, 4, base)
    s.remove("ann", "ben", feeds=[[s.b, 3, made[2]]], acks=base)
    s.remove("cat", "ben", feeds=[[s.b, 2, made[1]]], acks=base)
    meant(s, void=made[2:])


@case("an end of an exclusion that falls", "N2", "R4")
def _(s):
    s.grant("ann", "cat", "admin")
    base = start(s)
    made = posts(s, "ben", s.b, 4, base)
    s.remove("cat", "ben", feeds=[[s.b, 3, made[2]]], acks=base)
    s.remove("ann", "cat", acks=base)
    s.remove("ann", "ben", feeds=[[s.b, 1, made[0]]], acks=base)
    meant(s, void=made[1:])


@case("the ends of a leave say nothing", "N2", "R5")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 3, base)
    s.remove("ben", "ben", feeds=[[s.b, 1, made[0]]], acks=base)


@case("an end names what was written in many epochs", "N2")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 1, base)
    for _ in range(3):
        s.start("ann")
        made.append(s.note("ben", branch=s.b))
    last = s.heads()
    made.append(s.note("ben", branch=s.b))
    s.remove("ann", "ben", feeds=[[s.b, 4, made[3]]], acks=last)
    # What follows an init is not in the exclusion's past, which names the first four.
    meant(s, void=made[4:])


@case("a demotion with an end", "N2")
def _(s):
    base = start(s, "admin")
    made = posts(s, "ben", s.b, 3, base)
    s.remove("ann", "ben", "read", feeds=[[s.b, 2, made[1]]], acks=base)
    meant(s, void=made[2:])


# N3


@case("adopted content", "N3")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 3, base)
    s.remove("ann", "ben", acks=base)
    s.commit("ann", ["adopt1", s.b, [made[1], made[1], ID]])
    meant(s, void=[made[0], made[2]])


@case("content adopted beside its exclusion", "N3")
def _(s):
    base = start(s)
    made = posts(s, "ben", s.b, 3, base)
    s.commit("ann", ["adopt1", s.b, made], acks=base)
    s.remove("ann", "ben", acks=base)


@case("an adoption that falls", "N3", "R4")
def _(s):
    s.grant("ann", "cat", "admin")
    base = start(s)
    made = posts(s, "ben", s.b, 2, base)
    x = s.remove("ann", "ben", acks=base)
    s.commit("cat", ["adopt1", s.b, made], acks=[x])
    s.remove("ann", "cat", acks=[x])
    meant(s, void=made)


@case("an adopted compaction", "N3", "M15")
def _(s):
    base = start(s, "manage")
    c = s.commit("ben", ["compaction1", []], branch=s.b, place=base)
    d = s.commit("ben", ["compaction1", []], branch=s.b, place=base)
    s.remove("ann", "ben", "write", acks=base)
    s.commit("ann", ["adopt1", s.b, [c]])
    meant(s, void=[d])


@case("an adoption of a rejected commit", "N3")
def _(s):
    start(s)
    bad = s.note("cat", branch=s.b, expect="unknown_author")
    s.commit("ann", ["adopt1", s.b, [bad]])


# V6 and others of branches, with more members.


@case("content in several epochs, and void in some", "N1", "E1")
def _(s):
    s.grant("ann", "cat", "write")
    base = start(s)
    one = posts(s, "ben", s.b, 2, base)
    x = s.remove("ann", "ben", acks=base)
    s.start("ann", acks=[x])
    two = s.note("cat", branch=s.b, place=[s.now.id])
    s.grant("ann", "ben", "write")
    three = s.note("ben", branch=s.b)
    s.commit("ann", ["adopt1", s.b, one[:1]])
    meant(s, void=one[1:], accepted=[two, three, one[0]])


@case("a removed member's content in the old epoch comes late", "N1", "E4")
def _(s):
    s.grant("ann", "cat", "write")
    base, old = start(s), s.now
    s.remove("ann", "ben", acks=base)
    s.start("ann")
    late = s.note("ben", branch=s.b, epoch=old, place=base, acks=[s.b], by_writer=True)
    s.note("cat", branch=s.b, acks=[late])
    meant(s, void=[late])


@case("wide graphs", "section 6")
def _(s):
    b = s.branch("ann")
    wide = [s.note("ann", f"{n}", branch=b, acks=[b], whole=False) for n in range(12)]
    s.note("ann", branch=b, acks=wide)
    wide = [s.note("ann", f"{n}", acks=[s.graph.init]) for n in range(12)]
    s.note("ann", branch=b)
    s.note("ann")


@case("128 acks, and 128 of a place", "section 11")
def _(s):
    b = s.branch("ann")
    top = s.heads()
    wide = [s.note("ann", f"{n}", branch=b, acks=[b]) for n in range(128)]
    roots = [s.note("ann", f"{n}", acks=top) for n in range(128)]
    s.note("ann", branch=b, acks=wide, place=roots)
    s.note("ann", acks=roots)


@case("many kinds of content", "section 4")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["set1", ["a", "b"], ["c"], []], branch=b)
    s.commit("ann", ["set1", ["a"], [], []], branch=b, metadata=said("set1"))
    s.commit("ann", ["dict1", [["k", "v"], ["k", "w"]], ["k"], []], branch=b)
    s.commit("ann", ["text-snapshot1", [[b, b"update", []]]], branch=b)
    s.commit("ann", ["merge1", b, [b]], branch=b)
    s.commit("ann", ["imported1", "source", "author", -5, "text"], branch=b)
    s.commit("ann", ["epoch-open1", [[b, b]]], branch=b)
    s.commit("ann", ["join1", b, bytes(64)], branch=b)
    s.commit("ann", ["remove1", s.id("ann"), None, []], branch=b)
    s.note("ann", branch=b)


@case("a forked feed in the root branch", "section 6")
def _(s):
    s.grant("ann", "ben", "write")
    base = s.heads()
    s.note("ben", acks=base, sequence=1)
    s.note("ben", acks=base, sequence=1)
    s.note("ann", sequence=1)
