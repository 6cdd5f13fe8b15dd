"""Named histories of prekeys: M16, the boxes of E2 and M10, and the last condition of clean (E8)."""

from . import crypto
from .cases import add, case
from .epochs import prekey
from .family_epochs import both, written
from .family_rights import SMALL


def members(s):
    """An admin and a reader beside the founder."""
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "read")


def boxes(s, key, prekeys):
    """Boxes of an epoch's key for some users, each with the prekey that is given."""
    return b"".join(crypto.key_box(key, s.repo, user, prekeys[user]) for user in sorted(prekeys))


def sealed(s, choose, expect):
    """An init after two prekeys of cat; what its box goes to is chosen."""
    members(s)
    keys = [crypto.point(s.secret()) for _ in range(3)]
    s.prekey("cat", keys[0])
    s.prekey("cat", keys[1])
    s.prekey("cat", keys[2], acks=[s.graph.init], by_writer=False, expect="unknown_author")
    key, chosen = s.secret(), {s.id("ann"): None, s.id("ben"): None, s.id("cat"): choose(keys)}
    right = expect == "accepted"
    s.start("ann", key=key, boxes=boxes(s, key, chosen), stay=not right, expect=expect)
    s.note("ann")
    return both(s)


CHOICES = {
    "the newest prekey": (lambda keys: keys[1], "accepted"),
    "an older prekey": (lambda keys: keys[0], "bad_epoch"),
    "the user's own key, though it has prekeys": (lambda keys: None, "bad_epoch"),
    "a prekey that was refused": (lambda keys: keys[2], "bad_epoch"),
}
for title, (choose, expect) in CHOICES.items():
    add(f"an init whose box goes to {title}", ["E2"], sealed, choose=choose, expect=expect)


def handed(s, is_newest, expect):
    """A hand-over after a prekey that the init did not know."""
    members(s)
    s.start("ann")
    s.prekey("cat")
    new = prekey(s.view(s.heads()), s.id("cat"))
    box = crypto.key_box(s.now.key, s.repo, s.id("cat"), new if is_newest else None)
    s.hand("ann", [], entries=[[s.id("cat"), box, None]], expect=expect)
    return both(s)


add("a hand-over to the newest prekey in its own past", ["M10"], handed, is_newest=True, expect="accepted")
add("a hand-over to the key that the init used", ["M10"], handed, is_newest=False, expect="bad_epoch")


def beside(s, then):
    """Two prekeys beside each other, and what follows; the next init seals to the prekey that this gives."""
    members(s)
    s.prekey("cat")
    heads = s.heads()
    one = s.prekey("cat", acks=heads)
    s.prekey("cat", acks=heads)
    chosen = then(s, one)
    key = s.secret()
    found = {s.id("ann"): None, s.id("ben"): None, s.id("cat"): chosen}
    s.start("ann", key=key, boxes=boxes(s, key, found))
    return both(s, check=written(s.now.id))


def mended(s, one):
    """A prekey that follows both."""
    key = crypto.point(s.secret())
    s.prekey("cat", key)
    return key


def followed(s, one):
    """A prekey that follows one of the two alone: there is none to seal to."""
    s.prekey("cat", acks=[one])


BESIDE = {
    "leave none": lambda s, one: None,
    "and one that follows both": mended,
    "and one that follows one of them": followed,
}
for title, then in BESIDE.items():
    add(f"prekeys beside each other {title}", ["E2"], beside, then=then)


@case("a prekey in another branch says nothing", "E2")
def _(s):
    members(s)
    branch = s.branch()
    s.prekey("ben", branch=branch)
    s.prekey("ben", SMALL[0], branch=branch)
    s.start("ann")
    return both(s)


@case("a prekey that does not count is sealed to where its author is a member again", "E2")
def _(s):
    members(s)
    heads = s.heads()
    gone = s.remove("ann", "ben", acks=heads)
    s.prekey("ben", acks=heads)
    s.start("ann", acks=[gone])
    s.grant("ann", "ben", "write")
    s.start("ann")
    return both(s)


def states(s, who, expect):
    """A prekey by who may, or may not."""
    members(s)
    s.prekey(who, by_writer=who == "ann", expect=expect)
    return both(s)


for who, expect in (("ann", "accepted"), ("cat", "accepted"), ("dan", "unknown_author")):
    add(f"a prekey by {who}", ["M16"], states, who=who, expect=expect)

ODD = {
    f"of small order ({number})": (key, "bad_prekey") for number, key in enumerate([*SMALL[:3], SMALL[4]])
} | {
    "of small order, with the last bit set": (bytes([1]) + bytes(30) + bytes([128]), "bad_prekey"),
    "in another form than its smallest": (bytes.fromhex("ef" + "ff" * 30 + "ff"), "accepted"),
    "on the twist": (bytes([2]) + bytes(31), "accepted"),
}
for title, (key, expect) in ODD.items():

    def odd(s, key, expect):
        """A prekey that may be none."""
        members(s)
        s.prekey("cat", key, expect=expect)
        s.start("ann")
        return both(s)

    add(f"a prekey {title}", ["M16"], odd, key=key, expect=expect)


@case("a prekey that was stated before, by its author and by another", "M16", "E2")
def _(s):
    members(s)
    key = crypto.point(s.secret())
    heads = s.heads()
    s.prekey("cat", key, acks=heads)
    s.prekey("cat")
    s.prekey("cat", key)
    s.prekey("ben", key)
    s.start("ann")
    return both(s)


@case("a fifth prekey that no epoch knows", "M16")
def _(s):
    members(s)
    heads = s.heads()
    for _ in range(4):
        s.prekey("cat")
    s.prekey("cat", expect="bad_prekey")
    s.prekey("ben")
    s.prekey("cat", acks=heads)
    s.start("ann")
    s.prekey("cat")
    return both(s)


@case("an epoch that knows a prekey, beside one that does not", "E8")
def _(s):
    members(s)
    heads = s.heads()
    one = s.start("ann", acks=heads, stay=True)
    s.prekey("cat", acks=heads)
    two = s.start("ben", acks=[op for op in s.heads() if op != one], stay=True)
    return both(s, check=written(two, clean=1, tips=2))


@case("a prekey that no init knows leaves the epoch in use", "E8")
def _(s):
    members(s)
    one = s.start("ann")
    s.prekey("cat")
    return both(s, check=written(one, clean=1))


@case("two epochs, of which each knows a prekey that the other does not", "E8", "E9")
def _(s):
    members(s)
    s.grant("ann", "dan", "write")
    heads = s.heads()
    one = s.prekey("cat", acks=heads)
    two = s.prekey("dan", acks=heads)
    s.start("ann", acks=[one], stay=True)
    s.start("ben", acks=[two], stay=True)
    check = written(None, clean=0, tips=2)
    s.prekey("dan", acks=[two], expect="accepted")
    return both(s, check=check)


@case("a writer starts the epoch after two that know other prekeys", "M9", "E8")
def _(s):
    members(s)
    s.grant("ann", "dan", "write")
    heads = s.heads()
    one = s.prekey("cat", acks=heads)
    two = s.prekey("dan", acks=heads)
    first = s.start("ann", acks=[one], stay=True)
    s.start("ben", acks=[two], stay=True)
    last = s.start("dan", epoch=first)
    return both(s, check=written(last, clean=1, tips=1))


@case("an epoch that does not count and knows a prekey", "E8")
def _(s):
    members(s)
    heads = s.heads()
    s.remove("ann", "ben", "write", acks=heads)
    s.prekey("cat", acks=heads)
    s.start("ben", acks=[op for op in s.heads() if s.graph.commits[op].body.tag == "prekey1"], stay=True)
    return both(s, check=written(None, clean=0))


@case("a prekey of who was excluded, known by the one epoch of two", "E8")
def _(s):
    members(s)
    heads = s.heads()
    gone = s.remove("ann", "cat", acks=heads)
    one = s.start("ann", acks=[gone], stay=True)
    known = s.prekey("cat", acks=heads)
    s.start("ben", acks=[known], stay=True)
    return both(s, check=written(one, clean=1))
