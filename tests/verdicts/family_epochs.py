"""Named histories of inits: the rules E2 to E6, M9 and V12 as far as inits are concerned."""

from . import crypto
from .cases import add, case
from .codec import encode
from .family_bodies import ID
from .family_rights import SMALL


def both(s, **more):
    """Let the node hold all keys from the start."""
    return {"keys": list(s.epochs.values()), **more}


def written(epoch, clean=None, tips=None):
    """Make a check of the epoch that is written in, and of how many are clean and tips."""

    def check(results):
        found = results["epochs"]
        assert found["written_in"] == (epoch and epoch.hex()), found
        assert clean is None or len(found["clean"]) == clean, found
        assert tips is None or len(found["tips"]) == tips, found

    return check


def one_init(s, expect, how, dropped=0):
    """A repo with a writer and a reader, and an init that is right but for one thing."""
    s.grant("ann", "ben", "write")
    s.grant("ann", "cat", "read")
    s.users_in_order = sorted(map(s.id, ("ann", "ben", "cat")))
    right = expect == "accepted"
    s.start("ann", stay=not right, key=key_for(s), writers=key_for(s, b"writers"), expect=expect, **how(s))
    s.note("ben", by_writer=False if right else None)
    return both(s, dropped=dropped)


def key_for(s, letters=b""):
    """The key of the init that is written next."""
    return crypto.derive("key of a case", s.material + letters)


def boxes(s, users):
    """Boxes with the key of that init."""
    return [crypto.key_box(key_for(s), s.repo, user) for user in users]


def pairs(s, *given):
    """The founding epoch's key, and others."""
    return [s.now.id, *given]


def sealed(s, plain, letters=b"keys", key=None, mark=None):
    """Something sealed as the keys of that init are."""
    key = key or key_for(s)
    return crypto.seal(key, letters, s.repo, mark or crypto.mark_of(key_for(s), s.repo), bytes(24), plain)


def flipped(values):
    """Boxes of which one is wrong."""
    return [*values[:1], bytes([values[1][0] ^ 1]) + values[1][1:], *values[2:]]


ROUND = {
    "as it should be": lambda s: {},
    "with keys in another order and twice": lambda s: {"gives": pairs(s, s.now.id)},
    "with writers' boxes that open nothing": lambda s: {"writers_boxes": bytes(64)},
    "with a writers' mark that is none": lambda s: {"twist_states": {"writers_mark": bytes(32)}},
    "with a writers' topic of another": lambda s: {"twist_states": {"topic": s.id("ben")}},
    "with a writers' topic that is no key": lambda s: {"twist_states": {"topic": SMALL[1]}},
    "with the own topic of another epoch for a writers' topic": lambda s: {
        "twist_states": {"topic": crypto.own_topic(s.now.key, s.repo)}
    },
}
WRONG = {
    "with a box too few": lambda s: {"boxes": b"".join(boxes(s, s.users_in_order[:-1]))},
    "without boxes": lambda s: {"boxes": b""},
    "with a box for a stranger": lambda s: {
        "boxes": b"".join(boxes(s, sorted([*s.users_in_order, s.id("eve")])))
    },
    "with a box for a stranger instead of a member": lambda s: {
        "boxes": b"".join(boxes(s, [*s.users_in_order[:2], s.id("eve")]))
    },
    "with boxes in another order": lambda s: {"boxes": b"".join(boxes(s, s.users_in_order[::-1]))},
    "with a box twice": lambda s: {"boxes": b"".join(boxes(s, [*s.users_in_order, s.users_in_order[-1]]))},
    "with a wrong box": lambda s: {"boxes": b"".join(flipped(boxes(s, s.users_in_order)))},
    "with half a box more": lambda s: {"boxes": b"".join(boxes(s, s.users_in_order)) + bytes(16)},
    "with a writers' box too few": lambda s: {"writers_boxes": bytes(32)},
    "with a writers' box too many": lambda s: {"writers_boxes": bytes(96)},
    "with half a writers' box more": lambda s: {"writers_boxes": bytes(80)},
    "without writers' boxes": lambda s: {"writers_boxes": b""},
    "whose writers' topic does not open": lambda s: {"twist_states": {"sealed": bytes(72)}},
    "whose writers' topic is sealed under another key": lambda s: {
        "twist_states": {"sealed": sealed(s, bytes(32), b"topic", key=bytes(32))}
    },
    "whose writers' topic is sealed with other letters": lambda s: {
        "twist_states": {"sealed": sealed(s, bytes(32), b"keys")}
    },
    "whose writers' topic is sealed for another mark": lambda s: {
        "twist_states": {"sealed": sealed(s, bytes(32), b"topic", mark=bytes(32))}
    },
    "that gives an unknown epoch": lambda s: {"gives": pairs(s, (ID, ID))},
    "that gives what is no epoch": lambda s: {"gives": pairs(s, (s.heads()[0], ID))},
    "that gives itself": lambda s: {"gives": pairs(s, (ID, key_for(s)))},
}
# On the topic of the epoch that they start, these do not give what opens them.
UNGIVING = {
    "that gives no keys": lambda s: {"gives": []},
    "that does not give the epoch in which it is published": lambda s: {"gives": [(ID, ID)]},
    "that gives a wrong key of the epoch in which it is published": lambda s: {"gives": [(s.now.id, ID)]},
    "whose keys do not open": lambda s: {"sealed_keys": bytes(64)},
    "whose keys are shorter than a seal": lambda s: {"sealed_keys": bytes(20)},
    "whose keys are sealed with other letters": lambda s: {
        "sealed_keys": sealed(s, encode([[[s.now.id, s.now.key]]]), b"topic")
    },
    "whose keys are sealed for another mark": lambda s: {
        "sealed_keys": sealed(s, encode([[[s.now.id, s.now.key]]]), mark=bytes(32))
    },
    "whose keys are no list in a list": lambda s: {"sealed_keys": sealed(s, encode([[s.now.id, s.now.key]]))},
    "whose keys are not canonical": lambda s: {
        "sealed_keys": sealed(s, encode([[[s.now.id, s.now.key]]]) + b"\0")
    },
}
for title, how in ROUND.items():
    add(f"an init {title}", ["E2"], one_init, expect="accepted", how=how)
for title, how in WRONG.items():
    add(f"an init {title}", ["E2"], one_init, expect="bad_epoch", how=how)
for title, how in UNGIVING.items():
    add(f"an init {title}", ["E2", "E6"], one_init, expect="bad_epoch", how=how, dropped=1)


@case("an init that gives a key of 31 bytes", "E2", "E6")
def _(s):
    how = {"sealed_keys": sealed(s, encode([[[s.now.id, s.now.key[:31]]]]))}
    s.start("ann", stay=True, key=key_for(s), expect="bad_epoch", **how)
    return both(s, dropped=1)


for number, key in enumerate(SMALL[:3]):

    def odd_mark(s, key):
        """An init whose mark is of small order, so that no key gives it."""
        s.grant("ann", "ben", "write")
        s.start("ann", stay=True, twist_states={"mark": key}, expect="pending")
        s.note("ann", acks=s.heads())

    add(f"an init whose mark is of small order ({number})", ["E3", "section 2"], odd_mark, key=key)


@case("an init whose mark is that of another key", "E3")
def _(s):
    s.start("ann", stay=True, twist_states={"mark": s.new_epoch().mark}, expect="pending")
    s.note("ann")


@case("an init that uses the founding epoch's key again", "E2")
def _(s):
    s.start("ann", stay=True, key=s.now.key, expect="bad_epoch")
    s.note("ann")
    return both(s)


@case("an init that uses a key of an epoch before the last", "E2")
def _(s):
    one = s.start("ann")
    s.start("ann")
    s.start("ann", stay=True, key=s.epochs[one].key, expect="bad_epoch")
    return both(s)


@case("inits with one key beside each other", "E2")
def _(s):
    s.grant("ann", "ben", "admin")
    heads = s.heads()
    key = s.secret()
    s.start("ann", acks=heads, stay=True, key=key)
    s.start("ben", acks=heads, stay=True, key=key)
    return both(s, check=lambda results: len(results["epochs"]["clean"]) == 2)


@case("a merge of two epochs of one key", "E2")
def _(s):
    s.grant("ann", "ben", "admin")
    heads = s.heads()
    key = s.secret()
    one = s.start("ann", acks=heads, stay=True, key=key)
    two = s.start("ben", acks=heads, stay=True, key=key)
    s.start("ann", epoch=one, acks=sorted([one, two]))
    s.note("ben")


@case("an init with an objects' block too few", "E2")
def _(s):
    one = s.start("ann", stay=True, publish=False, expect="left out")
    s.expected[one] = "unseen"
    for blocks in (
        s.blocks[one][1][:4],
        s.blocks[one][1][:3] + s.blocks[one][1][4:],
        [*s.blocks[one][1], s.blocks[s.graph.init][1][1]],
    ):
        s.publish(one, s.now, True, blocks=blocks)
    return {"dropped": 3}


@case("an init with its blocks in another order", "section 7")
def _(s):
    one = s.start("ann", publish=False)
    head, *rest = s.blocks[one][1]
    s.publish(one, s.epochs[s.graph.init], True, blocks=[head, *rest[::-1]])
    s.note("ann")


@case("an init by a member by its own topic alone", "E6")
def _(s):
    one = s.start("ann", publish=False)
    s.publish(one, s.now, False)
    s.note("ann")
    return {"keys": [s.now]}


@case("an init on the topic of its epoch alone, that nobody holds here", "E6")
def _(s):
    one = s.start("ann", publish=False)
    s.publish(one, s.now, False)
    s.note("ann", expect="left out")
    s.expected[one] = "unseen"


@case("an init on the topic of the epoch that it names alone", "E6", "E1")
def _(s):
    one = s.start("ann", publish=False)
    s.publish(one, s.epochs[s.graph.init], True)
    s.note("ann")


@case("an init on the own topic of the epoch that it names", "E1")
def _(s):
    s.grant("ann", "ben", "write")
    s.start("ann", by_writer=False)
    s.note("ben")


@case("an init on its own topic with the hidden key of the epoch that it names", "E6")
def _(s):
    one = s.start("ann", publish=False)
    old = s.epochs[s.graph.init]
    s.publish(one, old, True)
    s.publish(one, s.now, False, read_key=old.read_key)
    s.note("ann")
    return {"dropped": 1}


# M9 and what is due.


def starts(s, level, expect):
    """An init by who has a permission while none is due."""
    s.grant("ann", "ben", level)
    s.start("ben", stay=expect != "accepted", expect=expect)
    s.note("ann")


def starts_when_due(s, level, expect):
    """An init by who has a permission while one is due."""
    s.grant("ann", "ben", level)
    s.grant("ann", "cat", "write")
    s.remove("ann", "cat")
    s.start("ben", stay=True, expect=expect)
    return {"node": "ben"} if expect == "accepted" else {}


for level, now, due in (
    (1, "not_permitted", "not_permitted"),
    (2, "not_permitted", "accepted"),
    (3, "not_permitted", "accepted"),
    (4, "accepted", "accepted"),
    (5, "accepted", "accepted"),
):
    add(f"an init by who holds {level}, none due", ["M9"], starts, level=level, expect=now)
    add(f"an init by who holds {level}, one due", ["M9", "E9"], starts_when_due, level=level, expect=due)

DUE = {
    "an exclusion": (True, lambda s: s.remove("ann", "cat")),
    "a demotion to reading": (True, lambda s: s.remove("ann", "cat", "read")),
    "a demotion of a manager to writing": (False, lambda s: s.remove("ann", "dan", "write")),
    "a leave": (True, lambda s: s.remove("cat", "cat")),
    "a leave of a reader": (True, lambda s: s.remove("eve", "eve")),
    "an exclusion of a reader": (True, lambda s: s.remove("ann", "eve")),
    "a writer, whom nobody gave the secret, who goes down to reading": (
        False,
        lambda s: s.remove("cat", "cat", "read"),
    ),
    "a writer who was handed the secret and goes down to reading": (
        True,
        lambda s: (s.hand("ann", ["cat"], writers=["cat"]), s.remove("cat", "cat", "read")),
    ),
    "a writer who was handed the key alone and goes down to reading": (
        False,
        lambda s: (s.hand("ann", ["cat"]), s.remove("cat", "cat", "read")),
    ),
    "a writer who joined and goes down to reading": (
        True,
        lambda s: (s.join("fay", s.i), s.remove("fay", "fay", "read")),
    ),
    "a writer who joined to read and was granted writing, and goes down to reading": (
        False,
        lambda s: (
            s.join("fay", s.invite("ann", "read")),
            s.grant("ann", "fay", "write"),
            s.remove("fay", "fay", "read"),
        ),
    ),
    "a writer with a box in the init who goes down to reading": (
        True,
        lambda s: (s.start("ann"), s.remove("cat", "cat", "read")),
    ),
    "a reader with a box in the init who leaves": (True, lambda s: (s.start("ann"), s.remove("eve", "eve"))),
    "a member who came after the init and never had the key, who leaves": (
        True,
        lambda s: (s.start("ann"), s.grant("ann", "fay", "read"), s.remove("fay", "fay")),
    ),
    "who was granted in an earlier epoch alone, and leaves": (False, lambda s: passed_by(s)),
    "a manager who goes down to writing": (False, lambda s: s.remove("dan", "dan", "write")),
    "a grant": (False, lambda s: s.grant("ann", "fay", "write")),
    "a revocation": (False, lambda s: s.revoke("ann", s.i)),
    "a revocation after a join": (False, lambda s: (s.join("fay", s.i), s.revoke("ann", s.i))),
    "a revocation beside a join": (True, lambda s: beside(s)),
    "a revocation beside a join, merged": (True, lambda s: (beside(s), s.note("ann"))),
    "an exclusion that does not count": (False, lambda s: uncounted(s)),
    "a grant that does not count": (True, lambda s: falling_grant(s)),
}


def beside(s):
    """A join and a revocation that do not know of each other."""
    heads = s.heads()
    s.join("fay", s.i, acks=heads)
    s.revoke("ann", s.i, acks=heads)


def passed_by(s):
    """A member who was granted beside an epoch that does not open to it, and leaves."""
    heads = s.heads()
    old = s.now
    s.grant("ann", "fay", "read", acks=heads)
    s.remove("fay", "fay", epoch=old)
    s.start("ann", acks=heads)


def uncounted(s):
    """An exclusion by an admin who was demoted beside it."""
    heads = s.heads()
    s.remove("gus", "cat", acks=heads)
    s.remove("ann", "gus", "write", acks=heads)


def falling_grant(s):
    """A grant by an admin who was demoted beside it: the user may hold the epoch, and is no member."""
    heads = s.heads()
    s.grant("gus", "hal", "read", acks=heads)
    s.remove("ann", "gus", "write", acks=heads)


def becomes_due(s, what, due):
    """What makes an epoch due, and what does not; then a writer starts one where it may."""
    for user, level in (
        ("gus", "admin"),
        ("dan", "manage"),
        ("ben", "write"),
        ("cat", "write"),
        ("eve", "read"),
    ):
        s.grant("ann", user, level)
    s.i = s.invite("ann")
    what(s)
    now = s.now.id
    one = s.start("ben", stay=True, expect="accepted" if due else "not_permitted")
    return {"check": written(one if due else now)}


for title, (is_due, what) in DUE.items():
    add(
        f"{title}, and an epoch {'is' if is_due else 'is not'} due",
        ["E8", "E9", "M9"],
        becomes_due,
        what=what,
        due=is_due,
    )


def stays_due(s, what):
    """The same, and nobody starts one."""
    for user, level in (
        ("gus", "admin"),
        ("dan", "manage"),
        ("ben", "write"),
        ("cat", "write"),
        ("eve", "read"),
    ):
        s.grant("ann", user, level)
    s.i = s.invite("ann")
    what(s)
    s.note("ann")
    return {"check": written(None, 0)}


for title, (is_due, what) in DUE.items():
    if is_due:
        add(f"{title}, and nobody starts the epoch that is due", ["E8"], stays_due, what=what)


@case("an admin's epoch that was due stays though its author is taken down to writing", "M9", "E9")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "write")
    s.remove("ann", "cat")
    base, old = s.heads(), s.now
    one = s.start("ben", acks=base)
    s.remove("ann", "ben", "write", acks=base, epoch=old)
    return {"check": lambda results: counting(results, one, True)}


@case("an admin's epoch that was not due falls where its author is taken down to writing", "M9", "E9")
def _(s):
    s.grant("ann", "ben", "admin")
    base, old = s.heads(), s.now
    one = s.start("ben", acks=base)
    s.remove("ann", "ben", "write", acks=base, epoch=old)
    return {"check": lambda results: counting(results, one, False)}


def counting(results, epoch, counts):
    """Check whether an epoch counts."""
    assert (epoch.hex() in results["epochs"]["counting"]) == counts


@case("an init that gives an epoch which opens the one that it is published in, and not that one", "E2")
def _(s):
    old = s.now.id
    one = s.start("ann")
    s.start("ann", epoch=old, gives=[one], stay=True, by_writer=True, expect="bad_epoch")
    s.note("ann", acks=[one])
    return both(s, dropped=1)


@case("who was handed an epoch and leaves, and an epoch is due", "E8")
def _(s):
    s.grant("ann", "ben", "write")
    base, old = s.heads(), s.now
    s.start("ann", acks=base)
    g = s.grant("ann", "cat", "read", epoch=old, acks=base)
    s.open("ann", [old])
    s.hand("ann", ["cat"], epoch=old)
    s.remove("cat", "cat", acks=[g], epoch=old)
    return {"check": written(None, 0, 1)}
