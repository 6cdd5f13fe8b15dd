"""Tables of what people do and adversaries forge in a drawn history: how often, and what it needs."""

from typing import Final

from protocol.formats.body import Permission

LEVELS: Final = ("read", "write", "manage", "admin", "owner")
_ANYBODY: Final = 0
ACTS: Final[dict[str, tuple[int, int]]] = {
    "write": (16, Permission.WRITE),
    "words": (4, Permission.WRITE),
    "text": (6, Permission.WRITE),
    "link-branch": (2, Permission.WRITE),
    "device": (1, Permission.WRITE),
    "merge": (2, Permission.WRITE),
    "branch": (5, Permission.MANAGE),
    "fork": (2, Permission.MANAGE),
    "edit-branch": (2, Permission.MANAGE),
    "compact": (2, Permission.MANAGE),
    "renew": (6, Permission.ADMIN),
    "refresh": (6, Permission.READ),
    "exclude": (10, Permission.ADMIN),
    "demote": (8, Permission.ADMIN),
    "exclude and stop": (4, Permission.ADMIN),
    "grant": (12, Permission.ADMIN),
    "lend": (8, Permission.READ),
    "take back": (16, Permission.READ),
    "pair": (6, Permission.READ),
    "move": (6, Permission.READ),
    "friends": (3, Permission.READ),
    "vouch": (4, Permission.READ),
    "let in": (3, Permission.READ),
    "invite": (6, Permission.ADMIN),
    "revoke": (5, Permission.ADMIN),
    "adopt": (2, Permission.ADMIN),
    "sign": (2, Permission.ADMIN),
    "quorum": (1, Permission.OWNER),
    "propose": (1, Permission.WRITE),
    "approve": (2, Permission.READ),
    "checkpoint": (1, Permission.WRITE),
    "finish": (1, Permission.WRITE),
    "offer": (1, Permission.READ),
    "withdraw": (1, _ANYBODY),
    "leave": (1, Permission.READ),
    "erase": (1, _ANYBODY),
    "restart": (2, _ANYBODY),
    "stop": (2, _ANYBODY),
    "wait": (4, _ANYBODY),
}
"""Acts of honest people: how often, and the permission that each needs."""
PLACE_ACTS: Final = frozenset({"pair", "move", "friends", "vouch", "let in"})
OUTSIDE: Final = {"join": 12, "follow": 3, "wait": 2, "restart": 1}
"""Acts of somebody who is no member, and how often."""
FORGED: Final = {
    "write": 8,
    "act": 12,
    "init": 10,
    "open": 8,
    "hand": 8,
    "claims": 4,
    "graph": 8,
    "place": 6,
    "epoch": 8,
    "feed": 4,
    "body": 4,
    "removal": 6,
    "grant": 4,
    "join": 4,
    "topic": 6,
    "bytes": 5,
    "branch": 4,
    "device": 6,
    "move": 24,
    "friends": 8,
    "recovery": 14,
    "puppet": 10,
}
"""Kinds of commits that adversaries forge, and how often."""
_READ, _WRITE, _MANAGE, _ADMIN, _OWNER = Permission
_WRITERS: Final = (_WRITE, _OWNER)
_ADMINS: Final = (_ADMIN, _OWNER)
RULES: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(
        (
            *(
                "V1 epoch",
                "V1 by a writer",
                "V2 root",
                "V3 place",
                "V3 root branch",
                "V4",
                "V6 rank",
                "V6 branch",
            ),
            *("V6 place", "V6 monotony", "V10", "V11", "V12 root", "V12 content", "V12 hand"),
            *(
                "M6 adds",
                "M17 adds",
                "M10 box",
                "M10 mark",
                "M10 writers' mark",
                "M10 stranger",
                "M10 reader",
                "M10 twice",
            ),
            *("M11 key", "M11 nowhere", "M11 twice", "M13 checkpoint"),
        ),
        _WRITERS,
    ),
    **dict.fromkeys(("V2 added", "M2"), (_MANAGE, _OWNER)),
    **dict.fromkeys(
        (
            *("M3", "M4 proof", "M4 late", "M4 revoked", "M4 uses", "M7", "M7 takes"),
            *(
                "E2 box",
                "E2 fewer",
                "E2 stranger",
                "E2 order",
                "E2 writers' boxes",
                "E2 keys",
                "E2 junk keys",
            ),
            *("E2 own key", "E2 topic", "E2 mark"),
        ),
        _ADMINS,
    ),
    **dict.fromkeys(("M3 admin", "M8", "M9 admin", "M12"), (_WRITE, _MANAGE)),
    "M5": (_READ, _READ),
    "M6": (_ADMIN, _ADMIN),
    "M17": (_READ, _ADMIN),
    **dict.fromkeys(
        (
            *("M18 held", "M18 kind", "M18 user", "M18 stranger", "M19 order", "M19 self", "M19 threshold"),
            *(
                "M20 publisher",
                "M20 later",
                "M20 once",
                "M20 friends",
                "M20 threshold",
                "M20 nobody",
                "M20 signed",
            ),
        ),
        (_READ, _OWNER),
    ),
    "M13 owner": (_WRITE, _ADMIN),
    **dict.fromkeys(("M13 stranger", "M13 threshold", "M14"), (_OWNER, _OWNER)),
}
"""Rules that adversaries break alone (`hostile_rules`), with the least and the most that who does it may hold."""

QUARRELS: Final = (
    *("circle", "quorum", "claimed", "let in", "revoked", "raised", "renewals", "back", "revoked beside"),
    *("two circles", "quorum", "to and fro", "devices", "followed", "branches", "devices"),
    *("moved", "friends", "moved back", "turncoat", "moved signer", "friends", "moved"),
)
"""Acts of several at once. Each history does the next few."""
