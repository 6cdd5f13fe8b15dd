"""Names over the API, from Python: `ApiClient.people`."""

from __future__ import annotations  # the types of answers are named by modules that are not imported yet

from node.client.calls import Call
from node.contract import subjects


class PeopleClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show_me(self) -> subjects.people.OwnName:
        """What this user calls itself."""
        return self._call(subjects.people.SHOW_ME)

    def state_me(self, name: str | None, color: int | None) -> subjects.people.OwnName:
        """Call this user so from now on; None for nothing."""
        return self._call(subjects.people.STATE_ME, name=name, color=color)

    def list_petnames(self) -> subjects.people.PetnameList:
        """What this user calls others."""
        return self._call(subjects.people.LIST_PETNAMES)

    def set_petname(self, user: str, name: str | None, *, peer: bool = False) -> subjects.people.Petname:
        """Call a user, or a node, so on this node; None for nothing."""
        return self._call(subjects.people.SET_PETNAME, user=user, name=name, peer=peer)
