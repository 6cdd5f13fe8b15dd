"""Named histories of due epochs (E8, M9) where more is here than an init's past, and of what is told before an init (E7)."""

from .cases import add, case
from .family_bodies import ID
from .family_epochs import DUE, written


def joined_beside(s):
    """A join and a revocation that do not know of each other, and an epoch in use that does not know the join."""
    heads, old = s.heads(), s.now
    s.start("ann", acks=heads)
    s.join("fay", s.i, acks=heads, epoch=old)
    s.revoke("ann", s.i, acks=[s.now.id])


def opened_by_another(s):
    """A member who may hold an epoch that does not count and opens the one in use, and leaves."""
    heads, old = s.heads(), s.now
    one = s.start("gus", acks=heads)
    s.grant("ann", "fay", "read", acks=[one])
    s.remove("ann", "gus", "write", acks=heads, epoch=old)
    s.remove("fay", "fay")


def handed_and_gone(s):
    """A member to whom the epoch in use was handed, who wrote nothing there, and leaves."""
    heads, old = s.heads(), s.now
    s.start("ann", acks=heads)
    one = s.grant("ann", "fay", "read", epoch=old, acks=heads)
    s.open("ann", [old])
    s.hand("ann", ["fay"], epoch=old)
    s.remove("fay", "fay", acks=[one], epoch=old)


MORE = {
    "a revocation beside a join that the epoch in use does not know": joined_beside,
    "a leave of who may hold an epoch that opens the one in use": opened_by_another,
    "a leave of who was handed the epoch in use": handed_and_gone,
}
ALL = {title: what for title, (is_due, what) in DUE.items() if is_due} | MORE


def begin(s, what):
    """People and a link, and what makes an epoch due."""
    for user, level in (("gus", "admin"), ("ben", "write"), ("cat", "write"), ("eve", "read")):
        s.grant("ann", user, level)
    s.i = s.invite("ann")
    what(s)


def starts_beside(s, what):
    """A writer starts the epoch that is due, while something else is here that it does not know."""
    begin(s, what)
    heads = s.heads()
    s.note("ann", acks=heads)
    one = s.start("ben", acks=heads, stay=True)
    return {"check": written(one)}


def stays(s, what):
    """Nobody starts it."""
    begin(s, what)
    s.note("ann")
    return {"check": written(None, 0)}


for title, what in ALL.items():
    add(f"{title}, and a writer starts an epoch beside a note", ["E8", "E9", "M9"], starts_beside, what=what)
for title, what in MORE.items():
    add(f"{title}, and nobody starts an epoch", ["E8"], stays, what=what)


@case("a lie about the key of an epoch, before the right one and the init", "E7", "E10")
def _(s):
    s.grant("ann", "ben", "write")
    base, old = s.heads(), s.now
    s.start("ann", acks=base)
    two = s.start("ann")
    g = s.grant("ann", "cat", "read", epoch=old, acks=base)
    lie = {"acks": [bytes(32)], "by_writer": False, "rank": 9, "expect": "pending"}
    s.commit("ben", ["epoch-open1", [[two, ID]]], epoch=old, **lie)
    s.open("ann", [old], acks=sorted([two, g]))
    s.hand("ann", ["cat"], epoch=old)
    s.note("ann")
    return {"node": "cat"}
