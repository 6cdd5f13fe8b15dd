"""The table of attacks: who attacks, with which script, and what the victim keeps promising.

What every attack is held to: the node stays up, an honest peer that is connected gets the next commit and can send one,
and one that comes back is let in. Beside that, an attack states the reasons with which the victim may end a connection,
the rows that may be stored, and what the work of the short run may cost. All of it is counted, nothing is timed.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tests.hostile.peer import Attacker

Script = Callable[[Attacker], Awaitable[None]]
OVER_BUDGET: Final = frozenset({"too_many_messages"})
"""Reasons with which any attack may be ended: the peer has used more than its share."""


class Role(StrEnum):
    """What an attacker knows."""

    STRANGER = "stranger"  # the node's key and address
    READER = "reader"  # a repo's read capability
    WRITER = "writer"  # all of a repo's secrets, and a right
    EXCLUDED = "excluded"  # the secrets of the first epoch, and no right any more
    RELAY_CLIENT = "relay client"  # a stranger; the victim keeps topics for others


@dataclass(frozen=True, slots=True)
class Work:
    """What the victim may do for one short run: so many of each, and no more."""

    statements: int = 300
    """SQL statements."""
    signatures: int = 0
    """Signatures checked."""
    opened: int = 0
    """Commits opened."""
    listed: int = 200
    """Ids read to compare whole topics."""
    frames_at_once: int = 64
    """Frames dealt with before others have their turn."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One row of the table."""

    role: Role
    script: Script
    ends: frozenset[str]
    """Reasons with which the victim ends a connection; none where it goes on. One that is empty: it may go on, too."""
    stores: Mapping[str, int] = field(default_factory=dict)
    """Tables, and how many more rows they may have."""
    work: Work = field(default_factory=Work)
    needs_daemon: bool = False

    @property
    def name(self) -> str:
        """The script's name."""
        return self.script.__name__

    @property
    def promise(self) -> str:
        """What the victim keeps promising, in a sentence."""
        return " ".join((self.script.__doc__ or "").split())


ATTACKS: Final[dict[str, Attack]] = {}


def attack(
    role: Role,
    *,
    ends: tuple[str, ...] = (),
    stores: Mapping[str, int] | None = None,
    work: Work | None = None,
    needs_daemon: bool = False,
) -> Callable[[Script], Script]:
    """Register a script, whose docstring says what is promised."""

    def register(script: Script) -> Script:
        assert script.__name__ not in ATTACKS, f"two attacks are called {script.__name__}"
        ATTACKS[script.__name__] = Attack(
            role, script, frozenset(ends), stores or {}, work or Work(), needs_daemon
        )
        return script

    return register
