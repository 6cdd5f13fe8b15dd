# ruff: noqa: E501
"""The worlds: who takes part, and what they may do."""

import random

from tests.model.commits import NONE, READ, WRITE
from tests.model.worlds import Action, Step, World

POST: Action = ("write",)
BRANCH: Action = ("branch",)
RENEW: Action = ("renew",)
TEND: Action = ("tend",)
USE: Action = ("use",)
LEAVE: Action = ("leave",)
LINK: Action = ("link-branch",)
OFFER: Action = ("offer",)


def out(user: str, level: int = NONE) -> Action:
    """Remove a member."""
    return ("remove", user, level)


def down(user: str) -> Action:
    """Take a member's right to be an admin."""
    return ("remove", user, WRITE)


def grant(user: str, level: int = WRITE) -> Action:
    """Grant a permission."""
    return ("grant", user, level)


def linked(inviter: str, level: int = WRITE) -> Action:
    """Get a link, to be used later; level 0: a link to read without membership."""
    return ("linked", inviter, level)


def invited(inviter: str, level: int = WRITE) -> Action:
    """Get a link and join by it at once."""
    return ("invited", inviter, level)


def step(actor: str, action: Action, pulled: str = "") -> Step:
    """Return a step of a prelude."""
    return Step(actor, action, tuple(pulled))


HONEST = [
    # An admin renews or excludes beside a new branch.
    World("honest", "FAW", {"F": (BRANCH, RENEW), "A": (RENEW,), "W": (POST,)}, 4),
    # Exclusions that are contested.
    World("contested", "FAVW", {"F": (down("A"), POST), "A": (out("W"),), "V": (POST,), "W": (POST,)}, 3),
    # Two admins exclude different people at once; who knows both may write only.
    World("two", "ABUVW", {"A": (out("W"),), "B": (out("V"), RENEW), "U": (POST,)}, 3),
    # An exclusion that does not count, and counts again: what may follow on its first half.
    World("again", "FGABW", {"F": (down("A"), POST), "G": (RENEW,), "A": (TEND,), "B": (TEND,)}, 3,
        prelude=(step("B", out("W")), step("A", down("B")))),
    World("again-writer", "FGABW", {"F": (down("A"), POST), "G": (RENEW,), "A": (TEND,), "B": (TEND,)}, 3,
        prelude=(step("B", out("W", READ)), step("A", down("B")))),
    # The same, where the epoch of the exclusion was opened meanwhile in one that the excluded member holds.
    World("again-opened", "FGABW", {"F": (down("A"), POST), "G": (POST,), "A": (TEND,)}, 3,
        prelude=(step("B", out("W")), step("A", out("B")))),
    # Nobody's exclusion, and yet no member: the one who invited or granted was demoted beside it.
    World("void-invited", "FABN", {"A": (down("B"),), "B": (RENEW,), "F": (POST,), "N": (invited("B"), linked("B"), USE, POST)}, 4),
    World("void-granted", "FABN", {"A": (down("B"),), "B": (grant("N"),), "F": (RENEW, POST), "N": (linked("F", NONE),)}, 4),
    World("void-writer", "FABN", {"A": (down("B"),), "B": (TEND,), "F": (grant("N", READ), POST), "N": (USE,)}, 4,
        prelude=(step("N", linked("B")),)),
    # An epoch that does not count, and the next one.
    World("void", "FAVW", {"F": (out("A"), RENEW), "A": (out("W"),), "V": (POST,)}, 4),
    # Somebody joins by an admin who knows one of two forks.
    World("joins", "FAVN", {"F": (RENEW, out("V"), POST), "A": (RENEW, out("V")), "N": (invited("A"), invited("F"), POST), "V": (POST,)}, 3),
    World("forks", "FAN", {"F": (RENEW,), "A": (RENEW,), "N": (invited("A"), invited("F"), POST)}, 4),
    # Who joins in another fork is excluded, while somebody who does not know that hands over.
    World("unaware", "FAN", {"F": (RENEW, out("N"), POST), "A": (TEND,), "N": (invited("A"),)}, 5),
    World("unaware-late", "FAN", {"F": (out("N"), POST), "A": (TEND,), "N": (POST,)}, 4,
        prelude=(step("F", RENEW), step("N", invited("A")), step("F", TEND, "N"))),
    World("unaware-revoked", "FAN", {"F": (("revoke",), POST), "A": (TEND,), "N": (USE,)}, 4,
        prelude=(step("N", linked("A")), step("F", RENEW, "A"), step("A", TEND, "F"))),
    # Somebody joins by a link of an older epoch, and is not handed anything before it writes.
    World("links", "FAWN", {"F": (RENEW, out("W"), POST), "A": (RENEW, TEND), "N": (linked("A"), USE, POST), "W": (POST,)}, 4),
    # Somebody comes back.
    World("back", "FAW", {"F": (out("W"), grant("W"), POST), "A": (out("W"), RENEW, grant("W")), "W": (POST,)}, 4),
    # People leave: a reader, and who is demoted to one.
    World("leaves", "FAWR", {"F": (POST, out("W", READ)), "A": (RENEW, POST), "W": (POST, LEAVE), "R": (LEAVE,)}, 3),
    # The machine stops between an exclusion and its epoch.
    World("cut", "FAVW", {"F": (("stop-remove", "W", NONE), POST), "A": (RENEW,), "V": (POST,), "W": (POST,)}, 3),
    # An invitation is revoked beside a join.
    World("revoked", "FAN", {"F": (("revoke",), RENEW, POST), "A": (POST, TEND), "N": (linked("A"), USE, POST)}, 4),
    # A follower by a link to read is granted a permission, or a device of the same person.
    World("granted", "FAN", {"F": (RENEW, grant("N"), POST), "A": (RENEW, TEND), "N": (linked("F", NONE), linked("A", NONE), POST)}, 4),
    # A founder who came by a link.
    World("cofounder", "FAC", {"F": (RENEW, POST), "A": (RENEW, out("V")), "C": (POST,)}, 4, settings={"cofounder": 1}),
    # Removals by a quorum of two; one of its signers is excluded beside it.
    World("quorum", "FGABVW", {"F": (out("W"), POST), "G": (out("B"), POST), "A": (("approve", "W", NONE),), "B": (("approve", "W", NONE),), "V": (POST,)}, 3,
        prelude=(step("F", ("quorum", 2, "AB")), step("A", ("approve", "W", NONE), "F"), step("B", ("approve", "W", NONE), "F"))),
    # More root heads than a commit may name.
    World("heads", "FAVWR", {"F": (POST, RENEW), "A": (POST, out("V")), "V": (POST,), "W": (POST,), "R": (LEAVE,)}, 3, settings={"heads_max": 2}),
    # More members than an init has boxes for.
    World("boxes", "FAVN", {"F": (RENEW, POST), "A": (RENEW, out("V")), "V": (POST,), "N": (invited("A"), POST)}, 3, settings={"boxes_max": 3}),
    # Who starts an epoch has no box in it, is excluded, and this counts only later.
    World("boxes-author", "FABWR", {"F": (down("A"), POST), "A": (TEND,), "W": (TEND,)}, 3, settings={"boxes_max": 3},
        prelude=(step("B", ("stop-remove", "W", NONE)), step("A", down("B")), step("R", LEAVE), step("W", TEND, "ABR"))),
    World("boxes-writer", "FABWR", {"F": (down("A"), POST), "A": (TEND,), "W": (TEND,)}, 3, settings={"boxes_max": 3},
        prelude=(step("B", ("stop-remove", "W", READ)), step("A", down("B")), step("R", LEAVE), step("W", TEND, "ABR"))),
    # Nobody meets anybody but by a relay.
    World("relay", "FAVN", {"F": (RENEW, out("V"), POST), "A": (RENEW, POST), "N": (linked("A"), USE, POST), "V": (POST,)}, 4, by_relay=True),
    # A branch is linked, by who has the writers' secret and by who has not.
    World("linked", "FAN", {"F": (BRANCH, LINK, POST, RENEW), "A": (POST,), "N": (linked("F", NONE), POST)}, 4,
        prelude=(step("F", grant("N")),)),
    # A reader offers, leaves and joins where epochs forked.
    World("reader", "FARN", {"F": (RENEW, BRANCH, POST), "A": (RENEW,), "R": (OFFER, ("withdraw",), LEAVE), "N": (linked("A", READ), USE, OFFER)}, 3),
]  # fmt: skip

EVIL = [
    World("evil", "FAVW", {"F": (out("A"), BRANCH, POST), "A": (("init-wrong-box", "W"), ("init",), ("init-closed",), ("write",)), "V": (POST,), "W": (POST,)}, 3, evil="A"),
    World("evil-writer", "FAVW", {"F": (BRANCH, out("W")), "A": (RENEW,), "V": (POST,), "W": (("write",),)}, 4, evil="W"),
    World("evil-acks", "FANW", {"F": (RENEW, POST), "A": (RENEW,), "N": (invited("A"), POST), "W": (("write",),)}, 4, evil="W"),
    World("evil-inits", "FAVW", {"F": (out("A"), POST), "A": (
        ("init-wrong-keys",), ("init-key-again",), ("init-key-of-nobody",), ("init-topic-again",), ("init-topic-of-nobody",),
        ("init-wrong-writers-box", "V"), ("init-without-own",), ("hand-writers", "R"), ("init-without", "V"), ("init-with", "X"), ("init-old",),
        ("echo-only",)), "V": (POST,)}, 3, evil="A"),
    World("evil-hands", "FANX", {"F": (RENEW, POST), "A": (
        ("hand-wrong", "N"), ("hand-stranger", "X"), ("hand-unknown", "N"), ("open-wrong",), ("open-unknown",)),
        "N": (linked("A"), USE), "X": (linked("F", NONE),)}, 3, evil="A"),
    World("evil-shapes", "FAVW", {"F": (BRANCH, RENEW, POST), "A": (BRANCH, RENEW), "V": (POST,), "W": (
        ("rank",), ("mark",), ("old-places",), ("old-branch-acks",), ("other-branch",), ("implied",), ("words",), ("second-root",),
        ("republish",), ("write-without-init",))}, 3, evil="W"),
    World("evil-reader", "FARN", {"F": (RENEW, POST), "A": (RENEW,), "R": (("says-writer",), ("leave-old", ), ("republish",)), "N": (invited("F"),)}, 3, evil="R"),
    World("evil-joins", "FANV", {"F": (("revoke",), POST), "A": (RENEW, out("N"), TEND), "N": (linked("A"), ("join-again",), ("write",)), "V": (POST,)}, 4, evil="N"),
    World("evil-leaves", "FAVW", {"F": (out("W"), POST), "A": (RENEW,), "V": (POST,), "W": (("leave-old",),)}, 3, evil="W"),
    # A reader floods the root branch with heads.
    World("evil-heads", "FAR", {"F": (POST, RENEW, out("A")), "A": (POST, TEND), "R": (("leave-old", 3), ("leave-old", 7))}, 3, evil="R",
        settings={"heads_max": 3}),
    World("evil-keys", "FABVW", {"F": (POST,), "B": (("init-key-old",), ("init-with", "W"), ("init-writers", "R")), "V": (POST,)}, 3, evil="B",
        prelude=(step("F", out("W")), step("B", ("pull",), "F"))),
    World("evil-rights", "FABXW", {"F": (POST, out("X")), "A": (TEND,), "B": (
        ("grant-owner", "X"), ("invite-owner",), ("approve-alone", "A"), ("approve-alone", "W"), ("join-back",), ("init",)),
        "X": (linked("F"), ("join-back",), ("init",)), "W": (("leave-old",),)}, 3, evil="BX"),
    World("evil-pins", "FABV", {"F": (RENEW, POST, out("B")), "A": (RENEW,), "B": (("pin-hidden",), ("demote-all",)), "V": (POST,)}, 3, evil="B"),
]  # fmt: skip

WORLDS = {world.name: world for world in (*HONEST, *EVIL)}


# Histories that went wrong under earlier rules (epochs.md, section 6).
HISTORIES = {
    "an admin renews beside a new branch": ("honest", [step("F", BRANCH), step("A", RENEW), step("W", POST, "FA"), step("F", RENEW, "A")]),
    "an exclusion that does not count": ("contested", [step("A", out("W")), step("V", POST, "A"), step("F", down("A")), step("F", POST)]),
    "an excluded admin seals wrongly": ("evil", [step("A", ("init-wrong-box", "W")), step("V", POST, "A"), step("F", out("A"))]),
    "an excluded admin's epoch, right boxes": ("evil", [step("F", BRANCH), step("A", ("init",)), step("F", POST, "A"), step("F", out("A"))]),
    "two exclusions at once, and a writer": ("two", [step("A", out("W")), step("B", out("V")), step("U", POST, "AB")]),
    "an exclusion that counts again": ("again", [step("G", RENEW, "AB"), step("F", down("A")), step("F", POST, "G")]),
    "the machine stops after an exclusion": ("cut", [step("F", ("stop-remove", "W", NONE)), step("V", POST, "F")]),
    "joins by who knows one of two forks": ("joins", [step("F", out("V")), step("N", invited("A")), step("N", POST, "A"), step("F", RENEW, "N")]),
}  # fmt: skip

_EVERYBODY: dict[str, tuple[Action, ...]] = {
    "F": (POST, POST, BRANCH, RENEW, TEND, LINK, out("A"), out("B"), out("W"), out("N"), out("V", READ), down("A"), down("B"),
          grant("W"), grant("V"), grant("N"), grant("N", READ), ("revoke",), ("quorum", 2, "AB"), ("stop-remove", "W", NONE)),
    "G": (POST, RENEW, out("A"), down("B"), TEND),
    "C": (POST, TEND),
    "A": (POST, BRANCH, RENEW, TEND, out("W"), out("V"), out("B"), down("B"), out("N"), ("stop-remove", "W", NONE), out("V", READ),
          ("approve", "W", NONE), ("revoke",), grant("N", READ)),
    "B": (POST, RENEW, TEND, out("V"), out("W"), grant("W"), grant("N"), ("approve", "W", NONE), ("approve", "V", NONE)),
    "U": (POST, TEND), "V": (POST, POST, TEND, LEAVE, LINK), "W": (POST, POST, TEND, LEAVE), "R": (LEAVE, OFFER, ("withdraw",), ("pull",)),
    "N": (invited("A"), invited("B"), invited("F"), invited("A", READ), linked("A"), linked("B"), linked("F", NONE), ("paired", "F"),
          USE, POST, TEND, LEAVE, OFFER),
}  # fmt: skip
_EVERYBODY["M"] = _EVERYBODY["N"]
_EVIL: dict[str, tuple[Action, ...]] = {
    "A": (("init-wrong-box", "W"), ("init",), ("init-closed",), ("write",), ("init-wrong-keys",), ("init-key-again",), ("init-key-old",),
          ("init-key-of-nobody",), ("init-topic-again",), ("init-topic-of-nobody",), ("init-wrong-writers-box", "V"), ("init-old",),
          ("init-without", "V"), ("init-with", "N"), ("echo-only",), ("hand-wrong", "N"), ("hand-stranger", "N"), ("hand-unknown", "V"),
          ("open-wrong",), ("open-unknown",), ("demote-all",), ("pin-hidden",), ("republish",), ("grant-owner", "N")),
    "W": (("write",), ("rank",), ("mark",), ("old-places",), ("old-branch-acks",), ("other-branch",), ("implied",), ("words",),
          ("second-root",), ("republish",), ("write-without-init",), ("leave-old",), ("open-wrong",), ("init-old",)),
    "R": (("says-writer",), ("leave-old", 3), ("republish",), ("init",)),
    "N": (("join-again",), ("join-back",), ("write",), ("republish",), ("init",)),
}  # fmt: skip


def draw_world(chance: random.Random) -> World:
    """Return a world with random people, of whom up to two are changed."""
    people = "".join(
        sorted([*chance.sample("GABUVWR", chance.randint(3, 5)), "F", "N", *chance.choice(("", "M", "C"))])
    )
    evil = "".join(user for user in chance.choice(("", "", "A", "W", "AW", "R", "N", "AN")) if user in people)
    actions = {}
    for user in people:
        wanted = (*_EVERYBODY[user], *(_EVIL.get(user, ()) if user in evil else ()))
        actions[user] = tuple(
            a for a in wanted if a[0] not in ("invited", "linked", "paired") or str(a[1]) in people
        )
    # Who was handed an epoch in the latest 2 alone need not hold one of them.
    presumes, latest_max = chance.choice(((0, 2), (0, 64), (1, 64)))
    settings = {
        "heads_max": chance.choice((2, 3, 4, 9)),
        "boxes_max": chance.choice((99, 99, 4)),
        "cofounder": int("C" in people),
        "presumes": presumes,
        "latest_max": latest_max,
    }
    by_relay = chance.random() < 0.15
    return World("random", people, actions, 0, evil, (), {**settings, "salt": chance.randint(0, 1)}, by_relay)
