"""Named histories of places where a reader of the pages could go wrong."""

from . import crypto
from .cases import case
from .codec import encode
from .family_bodies import ID
from .family_keys import forked
from .family_publications import publishing
from .formats import make_block


@case("commits in an epoch whose init is rejected", "E7")
def _(s):
    s.grant("ann", "ben", "write")
    one = s.start("ben", expect="not_permitted")
    s.now = s.epochs[one]
    s.note("ben", acks=[one], by_writer=False, expect="rejected_cause")


def two_forks(s):
    """What a node sees that holds all before the fork, and one of its epochs."""
    forked(s)
    m = s.note("ben", epoch=s.two, acks=[s.two])
    return {"node": "eve", "keys": [s.old, s.epochs[s.one]], "sees": {m: "accepted"}}


@case("a key that only a rejected opening gives", "E7", "M11")
def _(s):
    seen = two_forks(s)
    s.open("eve", [s.epochs[s.two]], epoch=s.one, acks=[s.one], expect="unknown_author|bad_epoch")
    return seen


@case("a key that only a rejected opening gives, to who holds one fork alone", "E7", "M11")
def _(s):
    seen = two_forks(s)
    s.open("eve", [s.epochs[s.two]], epoch=s.one, acks=[s.one], expect="unknown_author|bad_epoch")
    return {**seen, "keys": [s.epochs[s.one]]}


@case("a box that only a rejected hand-over has", "E7", "M10")
def _(s):
    seen = two_forks(s)
    two = s.epochs[s.two]
    s.hand("ann", ["eve"], handed=two, epoch=s.one, acks=[s.one], expect="bad_epoch")
    return seen


@case("keys that only a rejected init gives", "E7", "M9")
def _(s):
    seen = two_forks(s)
    given = [s.graph.init, s.one, s.two]
    key = s.secret()
    three = s.start(
        "eve",
        epoch=s.one,
        acks=[s.one],
        gives=given,
        key=key,
        boxes=crypto.key_box(key, s.repo, s.id("eve")),
        stay=True,
        expect="unknown_author|bad_epoch",
    )
    s.note("ann", epoch=three, acks=[three], by_writer=False, expect="rejected_cause")
    return seen


def rejected_at_once(s, boxed):
    """An init that is rejected whoever holds its key, since what it acks is; it gives the key of another fork."""
    bad = s.note("eve", epoch=s.one, acks=[s.one], rank=9, by_writer=False, expect="bad_rank|unknown_author")
    key = s.secret()
    return s.start(
        "eve",
        epoch=s.one,
        acks=[bad],
        rank=10,
        gives=[s.one, s.two],
        key=key,
        boxes=crypto.key_box(key, s.repo, s.id(boxed)),
        by_writer=False,
        stay=True,
        expect="rejected_cause",
    )


@case("keys that a rejected init gives, whose own key comes later", "E7", "V4")
def _(s):
    seen = two_forks(s)
    three = rejected_at_once(s, "ann")
    s.open("eve", [s.epochs[three]], epoch=s.one, acks=[s.one], expect="unknown_author|bad_epoch")
    return seen


@case("an own box in an init that is rejected whoever holds its key", "E7", "V4")
def _(s):
    seen = two_forks(s)
    three = rejected_at_once(s, "eve")
    s.note("ann", epoch=three, acks=[three], by_writer=False, expect="rejected_cause")
    return seen


@case("a commit of another version", "section 6")
def _(s):
    body = encode(["post1", "a note"])
    _, _body_id, _body_key = make_block(s.now.convergence, body)
    s.note("ann", plain=encode(["commit3", 1, 2, 3]), expect="left out")
    one = list(s.blocks)[-1]
    s.expected[one] = "pending"


@case("a commit of another version that another acks", "section 6")
def _(s):
    top = s.heads()
    s.note("ann", plain=encode(["commit3", 1, 2, 3]), expect="left out")
    one = list(s.blocks)[-1]
    s.expected[one] = "pending"
    s.note("ann", acks=[one], rank=2, expect="pending")
    s.note("ann", acks=top)


def in_block(s, **how):
    """A commit whose block itself is at fault."""
    one = s.note("ann", expect="dropped", **how)
    s.expected[one] = "unseen"
    s.note("ann")
    return {"dropped": 1}


@case("a commit's block with children", "section 1")
def _(s):
    s.note("ann", expect="bad_commit", children=[ID])


@case("a commit's block that acks something twice", "section 4")
def _(s):
    s.note("ann", expect="bad_commit", acks=[s.graph.init, s.graph.init], rank=1)


@case("a commit's block with 129 acks", "section 11")
def _(s):
    return in_block(s, acks=[number.to_bytes(32, "big") for number in range(129)], rank=1)


@case("a commit's block without a mark", "section 3")
def _(s):
    return in_block(s, mark=b"")


def body_in_block(s, expect, **how):
    """A body whose block itself is odd."""
    data, one, key = make_block(s.now.convergence, encode(["post1", "text"]), **how)
    made = s.note("ann", reference=[one, key], publish=False, expect=expect)
    s.blocks[made][1][1] = data
    if expect == "dropped":
        s.expected[made] = "unseen"
    s.publish(made, s.now, True)
    return {"dropped": int(expect == "dropped")}


@case("a body's block with a mark", "section 3")
def _(s):
    return body_in_block(s, "bad_body", mark=bytes(8))


@case("a body's block with a mark of 7 bytes", "section 3")
def _(s):
    return body_in_block(s, "dropped", mark=bytes(7))


@case("a body's block with acks", "section 3")
def _(s):
    return body_in_block(s, "dropped", acks=[ID])


@case("a body's block with a rank", "section 3")
def _(s):
    return body_in_block(s, "dropped", rank=1)


@case("a body's block with children", "section 3")
def _(s):
    return body_in_block(s, "bad_body", children=[ID])


@case("an init on the writers' topic of the epoch that it starts", "V1", "E6")
def _(s):
    one = s.start("ann", publish=False)
    s.publish(one, s.epochs[s.graph.init], True)
    s.publish(one, s.now, True)
    s.note("ann")
    return {"dropped": 1}


@case("a repo's init on the writers' topic", "V1", found=False)
def _(s):
    one = s.found()
    s.publish(one, s.now, True)
    s.note("ann")
    return {"dropped": 1}


@case("a repo's init whose writers' topic does not open", "M1", "E2", found=False)
def _(s):
    epoch = s.new_epoch()
    s.count -= 2  # so that the story makes the same secrets again
    s.found(states=[epoch.mark, epoch.writers_mark, bytes(72)], expect="bad_epoch")
    s.note("ann", by_writer=False, acks=[s.graph.init], expect="rejected_cause")


@case("a repo's init that is a post", "M1", found=False)
def _(s):
    s.found(
        body=["post1", "no init"],
        expect="not_permitted|unknown_author|bad_certificate|bad_body|closed_epoch",
    )


@case("an init whose objects are made with another convergence secret", "M9")
def _(s):
    one = s.start("ann", stay=True, object_secret=bytes(32), publish=False, expect="bad_body")
    s.publish(one, s.now, True)
    return {"keys": list(s.epochs.values())}


@case("an end in the root branch", "N2", "R4")
def _(s):
    s.grant("ann", "ben", "admin")
    base = s.heads()
    g = s.grant("ben", "cat", "write", acks=base)
    s.remove("ann", "ben", feeds=[[s.repo, 1, g]], acks=base)
    s.note("cat", expect="unknown_author", by_writer=True)


@case("an adoption that names another branch", "N3")
def _(s):
    s.grant("ann", "ben", "write")
    b, c = s.branch("ann"), s.branch("ann")
    base = s.heads()
    one = s.note("ben", branch=b, place=base)
    s.remove("ann", "ben", acks=base)
    s.commit("ann", ["adopt1", c, [one]])
    s.expected[one] = "void"


@case("a checkpoint in the root branch moves nothing", "M13", "section 5")
def _(s):
    for user in ("ben", "cat"):
        s.grant("ann", user, "write")
    s.quorum("ann", 1, ["ben"])
    base = s.heads()
    high = [s.note("ann") for _ in range(3)][-1]
    p = s.commit("cat", ["propose-checkpoint1", s.repo, [high]], acks=base)
    a = s.approve("ben", p, acks=[p])
    s.commit("cat", ["checkpoint1", p], acks=[high])
    s.commit("cat", ["checkpoint1", p], acks=[high, a])
    s.commit("cat", ["checkpoint1", high], acks=base)
    beside = s.note("cat", acks=base)

    def check(results):
        order = results["branches"][s.repo.hex()]["timeline"]
        assert order == [one.id.hex() for one in sorted(s.accepted(), key=lambda one: (one.rank, one.id))]
        assert order.index(beside.hex()) < order.index(high.hex())

    return {"check": check}


@case("a compaction in the root branch is a post of a writer", "M15", "N1", "section 5")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    base = s.heads()
    post = s.note("ben", branch=b, place=base)
    s.commit("ben", ["compaction1", [post, *base]], acks=base)
    s.commit("ben", ["compaction1", []], branch=b, place=base, expect="not_permitted")
    s.remove("ann", "ben", acks=base)
    s.expected[post] = "void"
    s.commit("ann", ["compaction1", [post]])
    s.note("ann", branch=b)


@case("the body of an init outside the root branch", "section 6")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["epoch-init3", [ID, ID, bytes(72)], [ID, ID], [ID, ID], [ID, ID]], branch=b)


@case("files in the root branch", "V8")
def _(s):
    s.commit("ann", ["files1", [["a file", 1]]], expect="bad_files")
    s.commit("ann", ["files1", [["a file", 1]]], files=[ID])


@case("an unknown body with garbage behind its tag", "section 5")
def _(s):
    b = s.branch("ann")
    for branch in (None, b):
        s.commit("ann", branch=branch, body_data=encode(["odd1"])[:-4] + b"odd1\xc1\xc1")
        s.commit("ann", branch=branch, body_data=b"\x93\xa4odd1\xd9\x01a\xce\x00\x00\x00\x01")


@case("two quorums, each satisfied by a proposal of its own", "Q1", "Q2")
def _(s):
    s.grant("ann", "own", "owner")
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "admin")
    s.grant("ann", "dan", "write")
    base = s.heads()
    q = s.quorum("ann", 1, ["ben"], acks=base)
    r = s.quorum("own", 1, ["cat"], acks=base)
    p = s.propose("ben", "dan", acks=sorted([q, r]))
    o = s.propose("cat", "dan", acks=sorted([q, r]))
    s.approve("ben", p)
    s.approve("cat", o)
    s.remove("ann", "dan", expect="needs_quorum")


@case("boxes out of order, seen by a member who holds no other key", "E2", "E7")
def _(s):
    s.grant("ann", "ben", "write")
    key = s.secret()
    boxes = [crypto.key_box(key, s.repo, user) for user in sorted(map(s.id, ("ann", "ben")))]
    s.start("ann", stay=True, key=key, boxes=boxes[1] + boxes[0], expect="bad_epoch", publish=False)
    one = list(s.blocks)[-1]
    s.publish(one, s.now, True)
    return {"node": "ben"}


@case("bytes that are no publication at all", "section 6")
def _(s):
    s.note("ann")
    s.publications += [b"", b"\xc1", b"hello", encode(["publication2", s.now.writers_topic])]


@case("a publication of another version on a topic that is followed", "section 6")
def _(s):
    def twist(s, one):
        data = s.publish(one, s.now, True)
        s.publications[-1] = data.replace(b"publication1", b"publication2")

    return publishing(s, twist, dropped=0)


@case("an end at sequence 0", "section 11")
def _(s):
    s.grant("ann", "ben", "write")
    s.remove("ann", "ben", feeds=[[s.repo, 0, ID]], expect="bad_body")


@case("who wrote by a writer and was never handed the secret goes down to reading", "E8")
def _(s):
    s.grant("ann", "ben", "write")
    s.note("ben", by_writer=True)
    s.remove("ben", "ben", "read")

    def check(results):
        assert results["epochs"]["written_in"], results["epochs"]

    return {"check": check}


@case("approvals where no quorum names their author", "M14")
def _(s):
    s.grant("ann", "ben", "write")
    p = s.propose("ben", "ben")
    s.approve("ben", p, expect="not_permitted")


@case("a revocation of what is no invitation of its past", "M8")
def _(s):
    base = s.heads()
    i = s.invite("ann")
    s.revoke("ann", s.graph.init, expect="unknown_invitation")
    s.revoke("ann", ID, expect="unknown_invitation")
    s.revoke("ann", i, acks=base, expect="unknown_invitation")
    s.revoke("ann", i)
    s.revoke("ann", i)


@case("a revocation of an invitation that does not count", "M8")
def _(s):
    g = s.grant("ann", "ben", "admin")
    i = s.invite("ben")
    x = s.remove("ann", "ben", acks=[g])
    s.revoke("ann", i, acks=[i, x])


@case("a carried commit of a time below 0", "section 11")
def _(s):
    b = s.branch("ann")
    s.commit(
        "ann", ["carried1", b, b, s.id("ann"), -5, encode(["post1", "text"])], branch=b, expect="bad_body"
    )


@case(
    "an init that gives two keys of its epoch, the wrong one first, seen by who holds its own alone",
    "E6",
    "E2",
)
def _(s):
    pairs = [(s.now.id, ID), (s.now.id, s.now.key)]
    one = s.start("ann", gives=pairs, stay=True, expect="bad_epoch")
    return {
        "node": "eve",
        "keys": [s.epochs[one]],
        "sees": {s.graph.init: "unseen", one: "unseen"},
        "dropped": 1,
    }
