"""Named histories of device grants, and of the epochs and checkpoints of devices: M17, M10, E8."""

from .cases import add, case
from .family_checkpoints import concluding
from .family_epochs import written
from .family_rights import HELD, ROLES, SMALL, people

PEOPLE = (("ben", "admin"), ("cat", "write"), ("eve", "read"))


def prepared(s):
    """An admin, a writer and a reader, and a branch."""
    for user, level in PEOPLE:
        s.grant("ann", user, level)
    s.b = s.branch("ann")
    s.base = s.heads()


def after(s, **levels):
    """Check what users hold in the end, by name; None for who is no member."""

    def check(results):
        found = {name: results["members"].get(s.id(name).hex()) for name in levels}
        assert found == levels, found

    return {"check": check}


# M17: who grants what, to whom.


def by_role(s, role):
    """Each permission, granted to a device of its own: what is held is granted, and nothing more."""
    people(s)
    for level in range(1, 6):
        is_right = level <= HELD[role]
        s.device(
            role, f"device {level}", level, expect="accepted" if is_right else "not_permitted|unknown_author"
        )
    s.note("ann")


for role in ROLES:
    add(f"device grants by {role}", ["M17"], by_role, role=role)


@case("a device grants nothing", "M17")
def _(s):
    prepared(s)
    s.device("ben", "phone", "admin")
    for level in range(1, 6):
        s.device("phone", "tablet", level, expect="not_permitted")
    s.grant("phone", "tablet", "write")
    s.device("tablet", "desk", "write")


@case("a device that is also granted something grants that", "M17")
def _(s):
    prepared(s)
    s.grant("ann", "gus", "read")
    s.device("cat", "gus", "write")
    s.device("gus", "phone", "write", expect="not_permitted")
    s.device("gus", "phone", "read")
    s.grant("ann", "gus", "manage")
    s.device("gus", "phone", "manage")
    s.remove("gus", "phone", "write")
    s.remove("cat", "gus", "manage", expect="nothing_to_remove")
    s.remove("cat", "gus", expect="not_permitted")
    return after(s, gus="manage", phone="write")


@case("a member by a link grants what the link gives", "M17")
def _(s):
    prepared(s)
    s.join("fay", s.invite("ben", "read"))
    s.device("fay", "phone", "write", expect="not_permitted")
    s.device("fay", "phone", "read")
    s.device("fay", "tablet", "read")
    s.remove("fay", "phone")
    return after(s, phone=None, tablet="read")


@case("device grants that add nothing", "M17")
def _(s):
    prepared(s)
    s.device("cat", "cat", "write", expect="already_holds")
    s.device("cat", "cat", "manage", expect="not_permitted")
    s.device("cat", "eve", "read", expect="already_holds")
    s.device("cat", "phone", "write")
    s.device("cat", "phone", "write", expect="already_holds")
    s.device("cat", "phone", "read", expect="already_holds")
    s.device("ann", "phone", "write", expect="already_holds")
    s.device("cat", "eve", "write")
    return after(s, eve="write", phone="write")


@case("device grants to what is no key", "M17")
def _(s):
    prepared(s)
    for key in SMALL:
        s.device("cat", key, "read", expect="bad_user")
    for level in (0, 6):
        s.device("cat", "phone", level, expect="bad_body")
    s.note("cat")


@case("a device grant outside the root branch says nothing", "section 6")
def _(s):
    prepared(s)
    s.device("cat", "phone", "owner", branch=s.b)
    s.device("eve", "phone", "read", branch=s.b, expect="not_permitted", by_writer=True)
    s.note("phone", expect="unknown_author")
    return after(s, phone=None)


@case("the 64th device grant of a user, and the 65th", "M17")
def _(s):
    s.grant("ann", "ben", "owner")
    for number in range(13):
        for level in range(1, 6):
            is_last = (number, level) == (12, 5)
            s.device("ben", f"device {number}", level, expect="too_many_devices" if is_last else "accepted")
    s.device("ann", "device 12", "owner")


@case("the 15th device, and the 16th", "M17")
def _(s):
    prepared(s)
    for number in range(15):
        s.device("cat", f"device {number}", "read")
    s.device("cat", "a further one", "read", expect="too_many_devices")
    s.device("cat", "eve", "write", expect="too_many_devices")
    s.device("cat", "device 0", "write")
    s.device("ben", "device 1", "manage")
    s.remove("device 14", "device 14")
    s.device("cat", "another", "write")
    s.device("cat", "a further one", "read", expect="too_many_devices")
    s.remove("ben", "device 2", feeds=[])
    s.grant("ben", "device 2", "read")
    s.device("cat", "a further one", "read")
    s.device("cat", "device 2", "write", expect="too_many_devices")


@case("devices beside each other are more than 15, and all stay", "M17", "R2")
def _(s):
    s.grant("ann", "cat", "write")
    base = s.heads()
    for side in ("one", "other"):
        acks = base
        for number in range(8):
            acks = [s.device("cat", f"{side} {number}", "write", acks=acks)]
    s.note("ann")
    s.note("one 7")
    s.note("other 7")
    s.device("cat", "a further one", "read", expect="too_many_devices")
    s.remove("cat", "one 0")
    s.device("cat", "a further one", "read", expect="too_many_devices")
    s.remove("cat", "one 1")
    s.device("cat", "a further one", "read")


@case("device grants that do not count are no devices, and are counted among the 64", "M17", "R2")
def _(s):
    prepared(s)
    base = s.heads()
    acks = base
    for number in range(2):
        acks = [s.device("ben", f"fallen {number}", "admin", acks=acks)]
    s.remove("ann", "ben", "manage", acks=base)
    for number in range(15):
        s.device("ben", f"device {number}", "read")
    s.device("ben", "a further one", "read", expect="too_many_devices")
    for number in range(15):
        s.device("ben", f"device {number}", "write")
        s.device("ben", f"device {number}", "manage")
    for number in range(15):
        s.remove("ben", f"device {number}")
        s.device("ben", f"device {number}", "read")
    s.device("ben", "device 0", "write")
    s.device("ben", "device 1", "write")
    s.device("ben", "device 2", "write", expect="too_many_devices")
    return after(s, **{"fallen 0": None, "device 14": "read"})


# E: epochs.

DUE = {
    "an exclusion of a device": (True, lambda s: s.remove("cat", "phone")),
    "an exclusion of a reader's device": (True, lambda s: s.remove("eve", "tablet")),
    "a device that its person takes down to reading": (True, lambda s: s.remove("cat", "phone", "read")),
    "a device that its person takes down to writing": (False, lambda s: s.remove("ben", "desk", "write")),
    "a device that leaves": (True, lambda s: s.remove("tablet", "tablet")),
    "a device grant": (False, lambda s: s.device("cat", "gus", "write")),
    "a device grant that does not count": (True, lambda s: fallen(s)),
    "a device removal that does not count": (False, lambda s: uncounted(s)),
}


def fallen(s):
    """A device grant by an admin who was demoted beside it."""
    heads = s.heads()
    s.device("ben", "gus", "admin", acks=heads)
    s.remove("ann", "ben", "write", acks=heads)


def uncounted(s):
    """A device removal by a manager who was excluded beside it, and an epoch that follows the exclusion alone."""
    heads, old = s.heads(), s.now
    x = s.remove("ann", "dan", acks=heads)
    s.start("ann", acks=[x])
    s.remove("dan", "watch", acks=heads, epoch=old)


def becomes_due(s, what, due):
    """What makes an epoch due, and what does not; then a writer's device starts one where it may."""
    prepared(s)
    s.grant("ann", "dan", "manage")
    for person, device, level in (
        ("cat", "phone", "write"),
        ("eve", "tablet", "read"),
        ("ben", "desk", "manage"),
        ("dan", "watch", "read"),
        ("cat", "second", "write"),
    ):
        s.device(person, device, level)
    what(s)
    now = s.now.id
    s.note("ann", acks=s.heads())
    one = s.start("second", stay=True, expect="accepted" if due else "not_permitted")
    return {"check": written(one if due else now), "keys": list(s.epochs.values())}


for title, (is_due, what) in DUE.items():
    add(
        f"{title}, and an epoch {'is' if is_due else 'is not'} due",
        ["E8", "E9", "M9"],
        becomes_due,
        what=what,
        due=is_due,
    )


@case("an epoch is handed to a device", "M10", "E4")
def _(s):
    prepared(s)
    old = s.now
    g = s.device("cat", "phone", "write", acks=s.base)
    s.start("ann", acks=s.base)
    s.open("ann", [old], acks=s.heads())
    s.hand("eve", ["phone"], epoch=old, expect="not_permitted", by_writer=False)
    s.hand("cat", ["phone"], writers=["phone"], epoch=old)
    s.note("phone")
    assert g in s.graph.past
    return {"node": "phone"}


# Checkpoints of members.


@case("a checkpoint of members with devices, and of a device", "R3", "M17")
def _(s):
    prepared(s)
    s.device("ben", "phone", "admin")
    s.device("ann", "tablet", "owner")
    s.device("cat", "desk", "write")
    i = s.invite("ben")
    s.join("gus", i)
    s.remove("cat", "desk", "read", feeds=[[s.b, 1, s.b]])
    s.start("ben")
    one = s.checkpoint("ann")
    two = s.checkpoint("phone")
    three = s.checkpoint("desk", expect="not_permitted", by_writer=True)
    four = s.checkpoint("cat")
    return concluding(one=(one, True), two=(two, True), three=(three, None), four=(four, None))
