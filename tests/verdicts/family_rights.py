"""Named histories of the rules M and R: who may do what, and what counts."""

from .cases import add, case
from .story import LEVELS

ROLES = ("nobody", "reader", "writer", "manager", "admin", "owner", "ann")
HELD = {"nobody": 0, "reader": 1, "writer": 2, "manager": 3, "admin": 4, "owner": 5, "ann": 5}


def people(s):
    """Grant each permission to one user, the juniors last."""
    for role, level in (("owner", 5), ("admin", 4), ("manager", 3), ("writer", 2), ("reader", 1)):
        s.grant("ann", role, level)


def meant(role, need):
    """What becomes of an operation by who has a role."""
    if HELD[role] >= need:
        return "accepted"
    return "not_permitted" if HELD[role] else "unknown_author"


def prepared(s):
    """People, a branch, an invitation and an offer."""
    people(s)
    s.b = s.branch("ann")
    s.i = s.invite("ann")
    s.o = s.commit("writer", ["offer1", s.b, True, "a note", b""])
    s.p = s.note("ann", "in the branch", branch=s.b)


# What each kind needs, and how to write it by `who`.
KINDS = {
    "a post in the root branch": (2, lambda s, who, **how: s.note(who, **how)),
    "an unknown body": (2, lambda s, who, **how: s.commit(who, ["new-kind7", 1, 2, [3]], **how)),
    "a stated name": (2, lambda s, who, **how: s.commit(who, ["profile1", "Ann", 3], **how)),
    "hiding a post": (2, lambda s, who, **how: s.commit(who, ["hide1", s.b, [s.p], True], **how)),
    "a device statement": (2, lambda s, who, **how: s.commit(who, ["devices1", s.id(who)], **how)),
    "a first commit": (2, lambda s, who, **how: first(s, who, **how)),
    "adding a branch": (3, lambda s, who, **how: adding(s, who, **how)),
    "naming a branch": (3, lambda s, who, **how: s.commit(who, ["branch-edit1", s.b, "name", None], **how)),
    "archiving an unknown branch": (
        3,
        lambda s, who, **how: s.commit(who, ["branch-edit1", s.p, None, True], **how),
    ),
    "a tag": (3, lambda s, who, **how: s.commit(who, ["tag1", "tag", s.b, s.p], **how)),
    "a link to a branch": (2, lambda s, who, **how: s.commit(who, ["branch-link1", s.b], **how)),
    "an invitation to read": (4, lambda s, who, **how: s.invite(who, "read", **how)),
    "an invitation to write": (4, lambda s, who, **how: s.invite(who, "write", **how)),
    "a grant of read": (4, lambda s, who, **how: s.grant(who, "new", "read", **how)),
    "a grant of write": (4, lambda s, who, **how: s.grant(who, "new", "write", **how)),
    "a grant of manage": (4, lambda s, who, **how: s.grant(who, "new", "manage", **how)),
    "a grant of admin": (4, lambda s, who, **how: s.grant(who, "new", "admin", **how)),
    "a grant of owner": (5, lambda s, who, **how: s.grant(who, "new", "owner", **how)),
    "a revocation": (4, lambda s, who, **how: s.revoke(who, s.i, **how)),
    "an adoption": (4, lambda s, who, **how: s.commit(who, ["adopt1", s.b, [s.p]], **how)),
    "opening an epoch": (2, lambda s, who, **how: s.open(who, [s.now], **how)),
    "handing over an epoch": (2, lambda s, who, **how: s.hand(who, ["reader"], **how)),
    "starting an epoch": (4, lambda s, who, **how: s.start(who, stay=True, **how)),
    "an offer": (1, lambda s, who, **how: s.commit(who, ["offer1", s.b, False, "", b"link"], **how)),
    "accepting an offer": (4, lambda s, who, **how: s.commit(who, ["answer1", s.o, True], **how)),
    "refusing an offer": (
        4,
        lambda s, who, **how: s.commit(
            who, ["answer1", s.o, False], **(how | ({"expect": "accepted"} if who == "writer" else {}))
        ),
    ),
    "naming a quorum": (5, lambda s, who, **how: s.quorum(who, 1, ["reader"], **how)),
    "proposing a removal": (2, lambda s, who, **how: s.propose(who, "reader", **how)),
    "proposing a checkpoint": (
        2,
        lambda s, who, **how: s.commit(who, ["propose-checkpoint1", s.b, [s.p]], **how),
    ),
    "a post in a branch": (2, lambda s, who, **how: s.note(who, branch=s.b, **how)),
    "a post that says its kind": (
        2,
        lambda s, who, **how: s.note(who, branch=s.b, metadata=said("post1"), **how),
    ),
    "a grant outside the root branch": (
        2,
        lambda s, who, **how: s.grant(who, "new", "owner", branch=s.b, **how),
    ),
    "an unknown body in a branch": (2, lambda s, who, **how: s.commit(who, ["odd3"], branch=s.b, **how)),
    "a compaction": (3, lambda s, who, **how: s.commit(who, ["compaction1", []], branch=s.b, **how)),
    "a compaction in the root branch": (2, lambda s, who, **how: s.commit(who, ["compaction1", []], **how)),
    "a checkpoint in the root branch": (2, lambda s, who, **how: s.commit(who, ["checkpoint1", s.p], **how)),
}


def said(tag):
    """Metadata that says a kind."""
    from .codec import encode

    return encode(["kind1", tag])


def first(s, who, expect, **how):
    """A first commit of a branch that ann adds."""
    one = s.branch(who, add=False, expect=expect, **how)
    s.add("ann", one)


def adding(s, who, expect):
    """A branch that waits until somebody adds it who may."""
    b = s.branch("ann", add=False, expect="accepted" if expect == "accepted" else "pending")
    s.add(who, b, expect=expect)


def by_role(s, write, need, role):
    """Prepare, and let one role try."""
    prepared(s)
    write(s, role, expect=meant(role, need))


for kind, (need, write) in KINDS.items():
    for role in ROLES:
        add(f"{kind} by {role}", ["M"], by_role, write=write, need=need, role=role)


def removal(s, remover, removed, keeps, order):
    """Let one role remove another, appointed in this order."""
    for role in order:
        s.grant("ann", role, HELD[role])
    have = HELD[removed] if removed in order or removed == "ann" else 0
    kept = LEVELS.get(keeps, 0)
    if have <= kept:
        expect = "nothing_to_remove"
    elif remover == removed:
        expect = "accepted"
    elif HELD[remover] < 4 or removed == "ann":
        expect = "not_permitted"
    elif HELD[remover] > have:
        expect = "accepted"
    else:
        expect = (
            "accepted" if remover == "ann" or order.index(remover) < order.index(removed) else "not_permitted"
        )
        if HELD[remover] < have:
            expect = "not_permitted"
    s.remove(remover, removed, keeps, expect=expect)


ORDER = ("owner", "admin", "manager", "writer", "reader")
for remover in ROLES[1:]:
    for removed in ROLES[1:]:
        for keeps in (None, "read", "admin"):
            if keeps is None or HELD[remover] > 3:
                add(
                    f"{remover} takes {removed} down to {keeps or 'nothing'}",
                    ["M7"],
                    removal,
                    remover=remover,
                    removed=removed,
                    keeps=keeps,
                    order=ORDER,
                )
for one in ("admin", "owner"):

    def two(s, one, early):
        """Two of one permission, of whom the other one was first."""
        s.grant("ann", "ben", one)
        s.grant("ann", "cat", one)
        s.remove(
            *(("ben", "cat") if early else ("cat", "ben")), expect="accepted" if early else "not_permitted"
        )

    add(f"the earlier {one} removes the later", ["M7"], two, one=one, early=True)
    add(f"the later {one} does not remove the earlier", ["M7"], two, one=one, early=False)


def granted(s, level, held):
    """A grant that adds nothing, or something."""
    if held:
        s.grant("ann", "ben", held)
    s.grant("ann", "ben", level, expect="accepted" if level > held else "already_holds")


for level in range(1, 6):
    for held in range(6):
        add(f"a grant of {level} to who holds {held}", ["M6"], granted, level=level, held=held)

SMALL = [
    bytes(32),
    bytes([1]) + bytes(31),
    bytes.fromhex("ec" + "ff" * 30 + "7f"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("ee" + "ff" * 30 + "7f"),
    bytes([2]) + bytes(31),
]


def odd_user(s, key):
    """A grant to what is no key of the prime-order group."""
    s.grant("ann", key, "read", expect="bad_user")
    s.note("ann")


for number, key in enumerate(SMALL):
    add(f"a grant to a key that is none ({number})", ["M6"], odd_user, key=key)


@case("a removal of who is no member", "M7")
def _(s):
    s.remove("ann", "ben", expect="nothing_to_remove")
    s.remove("ben", "ben", expect="nothing_to_remove|unknown_author")
    s.grant("ann", "ben", "write")
    s.remove("ann", "ben", "write", expect="nothing_to_remove")
    s.remove("ann", "ben", "owner", expect="nothing_to_remove")
    s.remove("ann", "ben", "read")


@case("feeds that name a branch twice", "M7")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    one = s.note("ben", branch=b)
    s.remove("ann", "ben", feeds=[[b, 1, one], [b, 1, one]], expect="bad_feed_ends")
    s.remove("ben", "ben", feeds=[[b, 1, one], [b, 2, one]], expect="bad_feed_ends")
    s.remove("ann", "ben", feeds=[[b, 1, one], [s.repo, 1, one]])


@case("founders do not remove each other", "M7", founders=("ann", "ben"))
def _(s):
    s.remove("ann", "ben", expect="not_permitted")
    s.remove("ben", "ann", "read", expect="not_permitted")
    s.grant("ben", "cat", "owner")
    s.remove("cat", "ben", expect="not_permitted")
    s.remove("ben", "cat")


@case("a founder who left and came back is a member like others", "M7", "R4", founders=("ann", "ben"))
def _(s):
    s.remove("ben", "ben")
    s.grant("ann", "cat", "owner")
    s.grant("cat", "ben", "admin")
    s.grant("ann", "dan", "admin")
    s.remove("dan", "ben", expect="not_permitted")
    s.remove("cat", "ben")


@case("a founder who left writes on by an older past", "R5", founders=("ann", "ben"))
def _(s):
    g = s.grant("ann", "cat", "read")
    s.remove("ben", "ben", acks=[g])
    s.grant("ben", "dan", "admin", acks=[g])
    s.note("ben", expect="unknown_author")
    s.note("dan")


@case("an owner removes the rights of a founder that are left", "M7", "R1", founders=("ann", "ben"))
def _(s):
    s.grant("ann", "cat", "owner")
    s.remove("ben", "ben", "admin")
    s.remove("cat", "ben", "read")
    s.note("ben", expect="not_permitted")


@case("an admin who demotes itself", "R5", "M7")
def _(s):
    s.grant("ann", "ben", "admin")
    s.remove("ben", "ben", "write")
    s.grant("ben", "cat", "read", expect="not_permitted")
    s.note("ben")
    s.remove("ben", "ben", "write", expect="nothing_to_remove")
    s.remove("ben", "ben", "read")
    s.note("ben", expect="not_permitted", by_writer=True)


@case("a later grant undoes a leave", "R5")
def _(s):
    s.grant("ann", "ben", "admin")
    s.remove("ben", "ben")
    s.grant("ann", "ben", "write")
    s.note("ben")
    s.grant("ben", "cat", "read", expect="not_permitted")


@case("a grant beside a leave stays", "R5")
def _(s):
    g = s.grant("ann", "ben", "write")
    s.remove("ben", "ben", acks=[g])
    s.grant("ann", "ben", "manage", acks=[g])
    s.note("ben", expect="unknown_author")
