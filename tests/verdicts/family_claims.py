"""Named histories of what a node comes to hold: E3, E7 and E1."""

from . import crypto
from .cases import case
from .family_bodies import ID
from .family_keys import forked


@case("a stranger with the founding epoch's link sees no later epoch", "E3")
def _(s):
    s.grant("ann", "ben", "write")
    n = s.note("ben")
    one = s.start("ann")
    m = s.note("ben")
    return {"node": "eve", "sees": {n: "accepted", one: "pending", m: "unseen"}}


@case("an excluded member sees no later epoch", "E3")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    s.remove("ann", "ben")
    one = s.start("ann")
    m = s.note("ann")
    n = s.note("ann", branch=b)
    p = s.note(
        "ann",
        branch=b,
        acks=[b],
        epoch=s.graph.init,
        place=s.ledger.commits[b].place[1],
        expect="unknown_branch",
    )
    q = s.note("ann", epoch=s.graph.init, acks=[one], expect="closed_epoch")
    return {
        "node": "ben",
        "sees": {one: "pending", m: "unseen", n: "unseen", p: "unknown_branch", q: "pending"},
    }


@case("a follower by the link of the last epoch sees all", "E7")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    for _ in range(3):
        s.note("ben", branch=b)
        s.start("ann")
    s.note("ben", branch=b)
    return {"node": "eve", "keys": [s.now]}


@case("a follower by the link of an epoch in the middle", "E7", "E3")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    s.start("ann")
    middle = s.now
    s.note("ben", branch=b)
    two = s.start("ann")
    m = s.note("ben", branch=b)
    return {"node": "eve", "keys": [middle], "sees": {two: "pending", m: "unseen"}}


@case("a link with a wrong key", "E7")
def _(s):
    s.note("ann")
    return {"keys": [(s.graph.init, ID)], "sees": dict.fromkeys(s.expected, "unseen")}


@case("a link with a wrong key of an epoch whose init comes", "E7", "E3")
def _(s):
    old = s.now
    one = s.start("ann")
    m = s.note("ann")
    return {"node": "eve", "keys": [old, (one, ID)], "sees": {one: "pending", m: "unseen"}}


@case("a link with no key", "E7")
def _(s):
    s.note("ann")
    return {"keys": [], "sees": dict.fromkeys(s.expected, "unseen")}


@case("a key that only an opening gives", "E7", "E11")
def _(s):
    forked(s)
    s.note("ben", epoch=s.two, acks=[s.two])
    o = s.open("ann", [s.epochs[s.two]], epoch=s.one)
    s.note("ann", epoch=s.one, acks=[o])
    return {"node": "eve", "keys": [s.epochs[s.one]]}


@case("a key that only an opening gives which waits for good", "E7")
def _(s):
    forked(s)
    m = s.note("ben", epoch=s.two, acks=[s.two])
    gone = s.note("ann", epoch=s.one, acks=[s.one], publish=False, expect="left out")
    s.expected[gone] = "unseen"
    o = s.open("ann", [s.epochs[s.two]], epoch=s.one, acks=sorted([gone, m]), expect="pending")
    return {"node": "eve", "keys": [s.epochs[s.one]], "sees": {o: "pending", m: "accepted"}}


@case("a box in a hand-over that waits for good", "E7")
def _(s):
    s.grant("ann", "ben", "write")
    base, old = s.heads(), s.now
    one = s.start("ann", acks=base)
    m = s.note("ann")
    g = s.grant("ann", "cat", "read", epoch=old, acks=base)
    gone = s.note("ann", epoch=old, acks=base, publish=False, expect="left out")
    s.expected[gone] = "unseen"
    o = s.open("ann", [old], acks=sorted([m, g, gone]), expect="pending")
    h = s.hand("ann", ["cat"], epoch=old, acks=[o], expect="pending")
    return {"node": "cat", "sees": {one: "accepted", m: "accepted", o: "pending", h: "pending"}}


@case("a box in a hand-over", "E7", "E10")
def _(s):
    base, old = s.heads(), s.now
    s.start("ann", acks=base)
    s.note("ann")
    s.grant("ann", "cat", "write", epoch=old, acks=base)
    s.open("ann", [old])
    s.hand("ann", ["cat"], writers=["cat"], epoch=old)
    s.note("cat")
    return {"node": "cat"}


@case("a member who is not handed the epoch waits", "E3", "E10")
def _(s):
    base, old = s.heads(), s.now
    one = s.start("ann", acks=base)
    m = s.note("ann")
    g = s.grant("ann", "cat", "write", epoch=old, acks=base)
    return {"node": "cat", "sees": {one: "pending", m: "unseen", g: "accepted"}}


@case("a chain of boxes", "E7")
def _(s):
    s.grant("ann", "ben", "write")
    for _ in range(4):
        s.start("ann")
        s.note("ben")
    return {"node": "ben"}


@case("a box in an epoch of a fork that a hand-over opens", "E7")
def _(s):
    forked(s, "cat")
    s.note("ann", epoch=s.one, acks=[s.one])
    s.note("ben", epoch=s.two, acks=[s.two])
    three = s.start("ann", epoch=s.one)
    s.note("cat", acks=[three])
    return {"node": "cat"}


@case("two newcomers of two forks", "E7", "E3")
def _(s):
    forked(s)
    i = s.invite("ann", epoch=s.one, acks=[s.one])
    s.join("dan", i, epoch=s.one, acks=[i])
    j = s.invite("ben", epoch=s.two, acks=[s.two])
    k = s.join("eve", j, epoch=s.two, acks=[j])
    return {"node": "dan", "keys": [s.epochs[s.one]], "sees": {s.two: "pending", j: "unseen", k: "unseen"}}


@case("two newcomers of two forks, and a merge", "E7")
def _(s):
    forked(s)
    i = s.invite("ann", epoch=s.one, acks=[s.one])
    k = s.join("dan", i, epoch=s.one, acks=[i])
    j = s.invite("ben", epoch=s.two, acks=[s.two])
    m = s.join("eve", j, epoch=s.two, acks=[j])
    three = s.start("ann", epoch=s.one, acks=sorted([k, m]))
    s.note("dan", acks=[three])
    s.note("eve")
    return {"node": "dan", "keys": [s.epochs[s.one]]}


@case("lies about a key in openings that wait", "E7")
def _(s):
    forked(s)
    s.note("ben", epoch=s.two, acks=[s.two])
    s.commit(
        "eve",
        ["epoch-open1", [[s.two, ID]]],
        epoch=s.one,
        acks=[bytes(32)],
        by_writer=False,
        rank=9,
        expect="pending",
    )
    s.open("ann", [s.epochs[s.two]], epoch=s.one)
    return {"node": "eve", "keys": [s.epochs[s.one]]}


@case("a stranger's opening that waits for good gives a key that is right", "E7")
def _(s):
    forked(s)
    m = s.note("ben", epoch=s.two, acks=[s.two])
    s.commit(
        "eve",
        ["epoch-open1", [[s.two, s.epochs[s.two].key]]],
        epoch=s.one,
        acks=[bytes(32)],
        by_writer=False,
        rank=9,
        expect="pending",
    )
    return {"node": "eve", "keys": [s.epochs[s.one]], "sees": {m: "accepted"}}


@case("an opening with another's signature gives nothing", "E7")
def _(s):
    forked(s)
    m = s.note("ben", epoch=s.two, acks=[s.two])
    s.open("ann", [s.epochs[s.two]], epoch=s.one, acks=[s.one], sign_with=s.secret(), expect="bad_signature")
    return {"node": "eve", "keys": [s.epochs[s.one]], "sees": {m: "unseen", s.two: "pending"}}


@case("openings outside the root branch give nothing", "E7")
def _(s):
    b = s.branch("ann")
    forked(s)
    m = s.note("ben", epoch=s.two, acks=[s.two])
    s.open("ann", [s.epochs[s.two]], branch=b, epoch=s.one, place=[s.one])
    return {"node": "eve", "keys": [s.epochs[s.one]], "sees": {m: "unseen", s.two: "pending"}}


@case("a claim of an epoch whose init never comes", "E7")
def _(s):
    other = s.new_epoch()
    other.id = ID
    s.epochs[ID] = other
    s.commit("ann", ["epoch-open1", [[ID, other.key]]], acks=[bytes(32)], rank=9, expect="pending")
    s.note("ann", epoch=other, acks=[bytes(32)], by_writer=False, rank=9, expect="pending")
    s.note("ann", epoch=other, by_writer=False, expect="unknown_epoch")
    del s.epochs[ID]


@case("the writers' topic that an init states", "E1")
def _(s):
    s.grant("ann", "ben", "write")
    s.start("ann", twist_states={"topic": crypto.public(bytes(range(32)))})
    true = s.note("ben", publish=False, expect="left out")
    s.publish(true, s.now, True)
    s.expected[true] = "unseen"
    stated = s.note("ann", acks=[s.now.id], publish=False)
    s.publish(stated, s.now, seed=bytes(range(32)))
    s.note("ann", acks=[stated], by_writer=False)


@case("a writers' topic that is the own topic of the same epoch", "E1")
def _(s):
    new = s.new_epoch(key=bytes([7]) * 32)
    s.start("ann", key=new.key, twist_states={"topic": crypto.own_topic(new.key, s.repo)})
    one = s.note("ann", publish=False)
    s.publish(one, s.now, False)
    s.note("ann", by_writer=False)


@case("a writers' topic that is that of another epoch", "E1")
def _(s):
    old = s.now
    s.start("ann", twist_states={"topic": old.writers_topic})
    one = s.note("ann", publish=False)
    s.publish(one, s.now, seed=old.writers_seed)
    two = s.note("ann", epoch=old, acks=[s.graph.init])
    assert two
