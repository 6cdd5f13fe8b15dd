"""Named histories of publications: what is dropped, what comes bare, and V1."""

from . import crypto
from .cases import add, case
from .codec import encode
from .crypto import ZEROS
from .family_bodies import ID
from .family_rights import said
from .formats import make_block


def publishing(s, twist, dropped=1, kind=None, there=None):
    """A commit whose only publication is at fault."""
    b = s.branch("ann")
    s.other = s.note("ann", "another", publish=True)
    one = s.note(
        "ann", branch=b, publish=False, metadata=said(kind) if kind else b"", expect=there or "left out"
    )
    if there is None:
        s.expected[one] = "unseen"
    twist(s, one)
    return {"dropped": dropped}


def blocks(s, one):
    """The blocks of a commit's publication."""
    return s.blocks[one][1]


def corrupt(s, one, change):
    """Publish what was changed afterwards."""
    data = s.publish(one, s.now, True)
    s.publications[-1] = change(data)


PUBLISHED = {
    "with a signature of another key": lambda s, one: corrupt(s, one, lambda data: data[:-64] + bytes(64)),
    "signed by the other topic's key": lambda s, one: s.publish(
        one, s.now, seed=s.now.topic_seed, topic=s.now.writers_topic
    ),
    "hidden with another read key": lambda s, one: s.publish(one, s.now, True, read_key=bytes(32)),
    "without its body": lambda s, one: s.publish(one, s.now, True, blocks=blocks(s, one)[:1]),
    "with another body": lambda s, one: s.publish(
        one, s.now, True, blocks=[blocks(s, one)[0], blocks(s, s.other)[1]]
    ),
    "with a surplus block": lambda s, one: s.publish(
        one, s.now, True, blocks=[*blocks(s, one), blocks(s, s.other)[1]]
    ),
    "with its body twice": lambda s, one: s.publish(
        one, s.now, True, blocks=[*blocks(s, one), blocks(s, one)[1]]
    ),
    "on the own topic, by a writer": lambda s, one: s.publish(one, s.now, False),
    "bare, without saying its kind": lambda s, one: s.publish(one, s.now, True, bare=True),
    "with nine blocks": lambda s, one: s.publish(
        one,
        s.now,
        True,
        blocks=blocks(s, one)[:1] + [make_block(s.now.convergence, bytes([n]))[0] for n in range(8)],
    ),
    "without blocks": lambda s, one: corrupt(s, one, lambda data: no_blocks(s)),
    "with something behind it": lambda s, one: corrupt(s, one, lambda data: data + b"\0"),
    "that is cut": lambda s, one: corrupt(s, one, lambda data: data[:-1]),
    "with a block that is none": lambda s, one: s.publish(
        one, s.now, True, blocks=[blocks(s, one)[0], b"block"]
    ),
    "with a block of another version": lambda s, one: s.publish(
        one, s.now, True, blocks=[blocks(s, one)[0], blocks(s, one)[1].replace(b"block2", b"block1")]
    ),
    "whose body's block has an ack": lambda s, one: s.publish(
        one, s.now, True, blocks=[blocks(s, one)[0], encode(["block2", [], [ID], 0, b"", b"text"])]
    ),
    "that a bit of another block stands in": lambda s, one: corrupt(
        s, one, lambda data: data[:-80] + bytes([data[-80] ^ 1]) + data[-79:]
    ),
}


def no_blocks(s):
    """A publication with an empty list of blocks."""
    seed, topic = s.now.writers_seed, s.now.writers_topic
    signature = crypto.sign(seed, crypto.publication_digest(topic, ID, []))
    return encode(["publication1", topic, ID, [], signature])


for title, twist in PUBLISHED.items():
    add(f"a publication {title}", ["section 6"], publishing, twist=twist)
SAID = {
    "bare": (lambda s, one: s.publish(one, s.now, True, bare=True), 0),
    "bare and whole": (
        lambda s, one: (s.publish(one, s.now, True, bare=True), s.publish(one, s.now, True)),
        0,
    ),
    "whole": (lambda s, one: s.publish(one, s.now, True), 0),
    "bare, with the id of another body, and whole": (
        lambda s, one: (s.publish(one, s.now, True, bare=True, body_id=ID), s.publish(one, s.now, True)),
        1,
    ),
    "without its body, and bare": (
        lambda s, one: (
            s.publish(one, s.now, True, blocks=blocks(s, one)[:1]),
            s.publish(one, s.now, True, bare=True),
        ),
        1,
    ),
    "with a surplus block, and bare": (
        lambda s, one: (
            s.publish(one, s.now, True, blocks=[*blocks(s, one), blocks(s, s.other)[1]]),
            s.publish(one, s.now, True, bare=True),
        ),
        1,
    ),
}
for title, (twist, dropped) in SAID.items():
    add(
        f"a publication of a commit that says its kind, {title}",
        ["V9", "section 7"],
        publishing,
        twist=twist,
        dropped=dropped,
        kind="post1",
        there="accepted",
    )


def unfollowed(s, one):
    """Publish on topics that nobody follows."""
    seed = s.secret()
    s.publish(one, s.now, seed=seed)
    s.publish(one, s.new_epoch(), True)


add("publications on topics that are not followed", ["section 6"], publishing, twist=unfollowed, dropped=0)
add(
    "a right publication beside wrong ones",
    ["section 6"],
    publishing,
    there="accepted",
    dropped=3,
    twist=lambda s, one: (
        [
            PUBLISHED[title](s, one)
            for title in ("with a surplus block", "without its body", "signed by the other topic's key")
        ]
        + [s.publish(one, s.now, True)]
    ),
)


@case("the same publication twice", "section 7")
def _(s):
    s.note("ann")
    s.publications += s.publications


@case("a commit with another convergence secret", "section 6")
def _(s):
    one = s.note("ann", secret=bytes(32), expect="dropped")
    s.expected[one] = "unseen"
    s.note("ann")
    return {"dropped": 1}


@case("a body with another convergence secret", "section 6")
def _(s):
    data, one, key = make_block(bytes(32), encode(["post1", "text"]))
    made = s.note("ann", reference=[one, key], publish=False, expect="bad_body")
    s.blocks[made][1][1] = data
    s.publish(made, s.now, True)


@case("a body under another key", "section 6")
def _(s):
    data, one, _key = make_block(s.now.convergence, encode(["post1", "text"]))
    made = s.note("ann", reference=[one, bytes(32)], publish=False, expect="bad_body")
    s.blocks[made][1][1] = data
    s.publish(made, s.now, True)


@case("a body that says its kind under another key", "V9")
def _(s):
    b = s.branch("ann")
    data, one, _key = make_block(s.now.convergence, encode(["post1", "text"]))
    made = s.note("ann", branch=b, reference=[one, bytes(32)], metadata=said("post1"), publish=False)
    s.blocks[made][1][1] = data
    s.publish(made, s.now, True)


@case("a commit that names another epoch than its topic's", "V1")
def _(s):
    old = s.now
    s.start("ann")
    one = s.note("ann", expect="left out", publish=False)
    s.publish(one, old, True)
    s.publish(one, old, True, read_key=s.now.read_key)
    s.publish(one, s.now, True, read_key=old.read_key)
    two = s.note("ann", named=old.id, expect="left out")
    s.expected.update({one: "unseen", two: "unseen"})
    return {"dropped": 4}


@case("a writer that says it is none, and a reader that says it is one", "V1")
def _(s):
    s.grant("ann", "ben", "read")
    b = s.branch("ann")
    s.note("ann", by_writer=False)
    s.note("ann", branch=b, by_writer=False)
    s.commit("ben", ["offer1", b, True, "", b""], by_writer=True)
    s.commit("ben", ["offer1", b, True, "", b""], by_writer=False)
    one = s.note("ann", by_writer=False, publish=False, expect="left out")
    s.publish(one, s.now, True)
    s.expected[one] = "unseen"
    return {"dropped": 1}


@case("a commit that names no epoch", "V1")
def _(s):
    one = s.note("ann", named=ZEROS, expect="left out")
    s.expected[one] = "unseen"
    return {"dropped": 1}
