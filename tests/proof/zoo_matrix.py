"""Members of the zoo's histories as Matrix has them: Synapse's own rules and state resolution, in a room of version 12.

    python -m venv /tmp/synapse && /tmp/synapse/bin/pip install matrix-synapse==1.163.2
    python -m tests.proof.zoo --json | /tmp/synapse/bin/python tests/proof/zoo_matrix.py > tests/proof/zoo_matrix.jsonl

Takes a line of JSON for each history, and prints one: title, members with their permissions, numbers of refused steps. A
server that has all of a step's past makes its events: a grant is an invitation, a join and a change of power levels; a
demotion is such a change; an exclusion is a ban, which a grant lifts first. Power: read 0, write 10, manage 25, admin 50,
owner 90; the founder is the room's creator. Events are dated in the order of the steps, which decides between equals.
"""

import asyncio
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from synapse import event_auth  # type: ignore[import-not-found]
from synapse.api.errors import SynapseError  # type: ignore[import-not-found]
from synapse.api.room_versions import RoomVersions  # type: ignore[import-not-found]
from synapse.events import make_event_from_dict  # type: ignore[import-not-found]
from synapse.state.v2 import resolve_events_with_store  # type: ignore[import-not-found]
from synapse.storage.databases.main.event_federation import (  # type: ignore[import-not-found]
    StateDifference,
)

_VERSION: Final = RoomVersions.V12
_POWER: Final = {"read": 0, "write": 10, "manage": 25, "admin": 50, "owner": 90}
_LEVEL_NAMES: Final = {power: name for name, power in _POWER.items()}
_POWER_KEY: Final = ("m.room.power_levels", "")
_LEVELS: Final = {
    "users": {},
    "users_default": 0,
    "events_default": 10,
    "state_default": 50,
    "invite": 25,
    "kick": 50,
    "ban": 50,
    "events": {"m.room.power_levels": 25},
}
State = dict[tuple[str, str], str]


class _Clock:
    """The clock that a resolution of very many events would let others run by."""

    async def sleep(self, _duration: object) -> None:
        """Go on at once."""


class _Room:
    """Events of a room by id, and what the resolution asks of a server's store."""

    def __init__(self) -> None:
        self._events: dict[str, Any] = {}
        self._id = ""

    def act(self, sender: str, kind: str, key: str, content: dict[str, Any], state: State) -> State | None:
        """Return the state after an event that a member makes in this one; None if the rules refuse it."""
        fields: dict[str, Any] = {
            "type": kind,
            "state_key": key,
            "sender": _user(sender),
            "content": content,
            "origin_server_ts": len(self._events),
            "depth": len(self._events),
            "prev_events": list(state.values()),
            "auth_events": [],
            "hashes": {"sha256": "x"},
            "signatures": {},
        }
        if self._id:
            fields["room_id"] = self._id
            wanted = event_auth.auth_types_for_event(_VERSION, make_event_from_dict(fields, _VERSION))
            known = (one for one in sorted(wanted) if one in state and one[0] != "m.room.create")
            fields["auth_events"] = [state[one] for one in known]
        event = make_event_from_dict(fields, _VERSION)
        self._events[event.event_id] = event
        self._id = self._id or "!" + event.event_id[1:]
        try:
            event_auth.check_state_dependent_auth_rules(event, [self._events[one] for one in state.values()])
        except SynapseError:
            return None
        return {**state, (kind, key): event.event_id}

    def content(self, state: State, key: tuple[str, str]) -> dict[str, Any]:
        """Return the content of an event of a state, empty if it has none."""
        return dict(self._events[state[key]].content) if key in state else {}

    async def resolve(self, states: Sequence[State]) -> State:
        """Return the state that several make together."""
        if len(states) == 1:
            return states[0]
        made = await resolve_events_with_store(_Clock(), self._id, _VERSION, states, dict(self._events), self)
        return dict(made)

    async def get_events(self, ids: Iterable[str], allow_rejected: bool = False) -> dict[str, Any]:
        """Return events by id."""
        del allow_rejected
        return {one: self._events[one] for one in ids if one in self._events}

    async def get_auth_chain_difference(
        self, _room: str, sets: Sequence[Collection[str]], conflicted: Collection[str] | None, _more: object
    ) -> Any:  # noqa: ANN401  # Synapse's
        """Return events that some chains have, and those on a way from one conflicted event to another."""
        chains = [self._chain(one) for one in sets]
        wanted = set(conflicted or ())
        between = {one for one in self._chain(wanted) if self._chain([one]) & wanted}
        some = set[str]().union(*chains)
        return StateDifference({one for one in some if not all(one in chain for chain in chains)}, between)

    def _chain(self, ids: Iterable[str]) -> set[str]:
        seen: set[str] = set()
        waiting = list(ids)
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += self._events[one].auth_event_ids()
        return seen


def _user(name: str) -> str:
    return f"@{name}:example.org"


def _member(name: str) -> tuple[str, str]:
    return "m.room.member", _user(name)


def _begin(room: _Room) -> State:
    state: State | None = {}
    for kind, key, content in (
        ("m.room.create", "", {"room_version": "12"}),
        (*_member("ann"), {"membership": "join"}),
        (*_POWER_KEY, _LEVELS),
    ):
        assert state is not None
        state = room.act("ann", kind, key, content, state)
    assert state is not None
    return state


def _take(room: _Room, step: dict[str, Any], state: State) -> State | None:
    """Return the state after a step; None if one of its events is refused."""
    author, user, level = step["author"], step["user"], step["level"]
    wanted: list[tuple[str, str]] = []  # who makes it, and which membership the user has then
    now = room.content(state, _member(user)).get("membership", "")
    if step["kind"] == "grant" and now != "join":
        wanted = [(author, "leave")] * (now == "ban") + [(author, "invite"), (user, "join")]
    elif step["kind"] == "remove" and not level:
        wanted = [(author, "leave" if author == user else "ban")]
    made: State | None = state
    for who, membership in wanted:
        made = made and room.act(who, *_member(user), {"membership": membership}, made)
    if made and level:
        levels = room.content(made, _POWER_KEY)
        users = {**levels["users"], _user(user): _POWER[level]}
        made = room.act(author, *_POWER_KEY, {**levels, "users": users}, made)
    return made


async def answer(history: dict[str, Any]) -> dict[str, Any]:
    """Return what Matrix says of a history."""
    room = _Room()
    states, pasts = [_begin(room)], [frozenset[int]()]
    refused = []
    for number, step in enumerate(history["steps"], start=1):
        before = await room.resolve([states[ack] for ack in step["acks"]])
        after = _take(room, step, before)
        refused += [number] * (after is None)
        states.append(before if after is None else after)
        pasts.append(frozenset(step["acks"]).union(*(pasts[ack] for ack in step["acks"])))
    heads = [states[number] for number in range(len(states)) if not any(number in past for past in pasts)]
    state = await room.resolve(heads)
    levels = room.content(state, _POWER_KEY)["users"]
    members = {
        name: "owner" if name == "ann" else _LEVEL_NAMES[levels.get(_user(name), 0)]
        for name in history["names"]
        if room.content(state, _member(name)).get("membership") == "join"
    }
    return {"title": history["title"], "members": members, "refused": refused}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(asyncio.run(answer(json.loads(line)))))
