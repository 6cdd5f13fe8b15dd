"""Gives editors of texts their Yjs client ids: the user's bits in the branch, and a session number that is free.

A number is free while no update of this user has it and it was given to nobody. It is written down before its editor
learns it, so that neither two editors nor a restart use it twice. When all were given, those that have rested longest are
given again: their editor goes on at the clock where the text stands, so it must take the text before it types.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from node.content.text_words import TextVersion
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.formats.body import Carried, kind_name
from protocol.formats.document_kinds import TEXT_SESSION_BITS, TextUpdate
from protocol.ids import UserId
from protocol.limits.users import TEXT_SESSION_REST_SECONDS
from storage.commits.commits import load_void_of_kinds
from storage.commits.local_state import load_sessions, put_session
from storage.repos.repos import Branch
from verifier.texts import is_client_of

_SESSIONS: Final = 1 << TEXT_SESSION_BITS
OWN_SESSION: Final = 0
"""The node's own: what it types itself, one text at a time."""
_KINDS: Final = (kind_name(TextUpdate), kind_name(Carried))


class TextClients:
    """Client ids of one user."""

    def __init__(self, hub: Hub, user: UserId) -> None:
        self._hub = hub
        self._user = user

    async def give(self, branch: Branch, version: TextVersion) -> int:
        """Return a client id for one more editor. Raises ServiceError `busy` where all are in use."""
        return await self._hub.write(self._give, branch, version)

    async def give_own(self, branch: Branch, version: TextVersion) -> int:
        """Return the client id under which the node itself types; a new one if clocks of the old one may come back."""
        if await self._hub.run_blocking(self._has_void, branch):
            return await self.give(branch, version)
        return self._client(branch, OWN_SESSION)

    def _give(self, branch: Branch, version: TextVersion) -> int:
        now = self._hub.clock_ms()
        ends = self._find_ends(branch, version)
        with self._hub.replica.database.write() as connection:
            given = load_sessions(connection, branch.num)
            free = sorted(set(range(1, _SESSIONS)) - ends.keys() - given.keys())
            if free:
                session = secrets.choice(free)
            else:
                rested = now - TEXT_SESSION_REST_SECONDS * 1000
                session = self._find_rested(branch, version, ends, given, rested)
            put_session(connection, branch.num, session, now)
        return self._client(branch, session)

    def _client(self, branch: Branch, session: int) -> int:
        return text_clients(self._user, branch.branch_id) << TEXT_SESSION_BITS | session

    def _find_ends(self, branch: Branch, version: TextVersion) -> dict[int, int]:
        """Return the clocks behind all that was said under each session number that was used."""
        clients = text_clients(self._user, branch.branch_id)
        ends = dict(version.words.ends)  # another thread may add to them
        return {client % _SESSIONS: end for client, end in ends.items() if is_client_of(client, clients)}

    def _find_rested(
        self,
        branch: Branch,
        version: TextVersion,
        ends: Mapping[int, int],
        given: Mapping[int, int],
        before_ms: int,
    ) -> int:
        """Return the session number that has rested longest, of those whose clocks are all in the text."""
        rested = [
            (given.get(session, 0), session)
            for session in range(1, _SESSIONS)
            if given.get(session, 0) < before_ms
            and version.words.places.end(self._client(branch, session)) == ends.get(session, 0)
        ]
        if not rested or self._has_void(branch):
            raise ServiceError(
                "busy",
                f"all {_SESSIONS - 1} client ids of this user in this text were given",
                "let programs keep the one that they have: it goes on where the text stands",
            )
        return min(rested)[1]

    def _has_void(self, branch: Branch) -> bool:
        """Return True if something that this user wrote here is void: it may come back, with clocks that no text shows."""
        with self._hub.replica.database.read() as connection:
            rows = load_void_of_kinds(connection, branch.num, _KINDS)
        return any(row.author == self._user for row in rows)
