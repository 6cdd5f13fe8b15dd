"""Calls: people. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.people import OwnName, Petname, PetnameList

SHOW_ME: Final[Operation[OwnName]] = Operation("GET", "/me", "people.OwnName")
STATE_ME: Final[Operation[OwnName]] = Operation("PUT", "/me", "people.OwnName", defaults={"color": None})
LIST_PETNAMES: Final[Operation[PetnameList]] = Operation("GET", "/petnames", "people.PetnameList")
SET_PETNAME: Final[Operation[Petname]] = Operation(
    "PUT", "/petnames", "people.Petname", defaults={"peer": False}
)


class PeopleCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_me(self) -> OwnName:
        """Show what this user calls itself, and in which repos others see it."""
        return self._call(SHOW_ME, {})

    def state_me(self, name: str | None, *, color: int | None = None) -> OwnName:
        """State what this user calls itself, in all repos where it may write, now and later.

        Of each minute the first statement in a repo counts: the node waits for the next one where that is
        needed.
        """
        return self._call(STATE_ME, {"name": name, "color": color})

    def list_petnames(self) -> PetnameList:
        """List what this user calls others. These names are on this node alone."""
        return self._call(LIST_PETNAMES, {})

    def set_petname(self, user: str, name: str | None, *, peer: bool = False) -> Petname:
        """Name a user or a node on this node, or take the name away. It goes before what a user calls itself."""
        return self._call(SET_PETNAME, {"user": user, "name": name, "peer": peer})
