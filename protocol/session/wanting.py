"""Questions of one session for commits (`want1`, `want-bodies1`): how many each side may ask. Pure.

A connection may last for years, so no total ends them: each keep-alive allows some more. What finds no room waits for it,
since a cause that nobody asks for keeps commits waiting. What was asked for is remembered for a while, and not asked for
again meanwhile. Who is asked takes all: on a slow line much comes together. It reads no more while much is to be looked up
(`is_full`), and queues each commit once until it is sent (`Outbox.want`).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from protocol.ids import AnyId, CommitId, ItemId, TopicKey
from protocol.limits.peers import (
    WANT_COUNT_MAX,
    WANTED_AT_ONCE_MAX,
    WANTED_PER_CHECK,
    WANTS_LOOKED_UP_MAX,
    WANTS_REMEMBERED_MAX,
)
from protocol.session.allowance import Allowance
from protocol.session.machines.table import PeerFault
from protocol.session.messages import FoundBodies, Want, WantBodies
from protocol.session.outputs import Output, Send
from protocol.session.topic_progress import TopicProgress

_BODIES_SHARE: Final = 2
"""Into how many parts the room is divided, of which bodies leave one: a missing cause keeps commits waiting."""
_Asked = tuple[TopicKey, CommitId]


class Wanting:
    """Questions of both sides of one session. Not to be used after a PeerFault."""

    def __init__(self) -> None:
        self._askable = Allowance(WANTED_AT_ONCE_MAX, WANTED_PER_CHECK)
        self._unanswered = 0  # ids of the peer's that are to be looked up
        self._waiting: deque[tuple[TopicProgress, CommitId]] = deque()
        # In two generations, the older of which is forgotten when the younger one has half of what is remembered.
        self._asked: set[_Asked] = set()
        self._asked_before: set[_Asked] = set()

    # --- of this side ---

    def ask(self, progress: TopicProgress, ids: Iterable[CommitId]) -> list[Output]:
        """Ask for commits of a topic, each once while that is remembered. Those that find no room wait."""
        if not progress.is_joined:
            return []
        for commit_id in ids:
            asked = progress.topic, commit_id
            if asked not in self._asked and asked not in self._asked_before:
                self._remember(asked)
                self._waiting.append((progress, commit_id))
        while len(self._waiting) > WANTS_REMEMBERED_MAX:
            self._forget(*self._waiting.popleft())
        return self._ask_waiting()

    def ask_bodies(self, progress: TopicProgress, ids: tuple[ItemId, ...]) -> list[Output]:
        """Ask for commits with their bodies, if there is room: a share of it is left for causes.

        An id may be asked for again: the peer may have its body later.
        """
        room = self._askable.left - WANTED_AT_ONCE_MAX // _BODIES_SHARE
        if not progress.is_joined or room < len(ids):
            return []
        self._askable.take(len(ids))
        progress.bodies_unanswered += 1
        progress.bodies_found = None
        return [Send(WantBodies(progress.blind, tuple(map(AnyId, ids))))]

    def bodies_found(self, progress: TopicProgress, message: FoundBodies) -> list[Output]:
        """Note how many of the wanted bodies the peer has."""
        if not progress.bodies_unanswered:
            raise PeerFault("unasked_bodies")
        progress.bodies_unanswered -= 1
        progress.bodies_found = None if progress.bodies_unanswered else message.count
        return []

    def check(self) -> list[Output]:
        """Allow some more questions, and ask those that wait. Called at each keep-alive."""
        self._askable.check()
        return self._ask_waiting()

    def _ask_waiting(self) -> list[Output]:
        count = min(self._askable.left, len(self._waiting))
        self._askable.take(count)
        due = [self._waiting.popleft() for _ in range(count)]
        return [
            Send(Want(topic, part))
            for topic, of_topic in groupby(due, key=lambda one: one[0].blind)
            for part in _parts([commit_id for _, commit_id in of_topic])
        ]

    def _remember(self, asked: _Asked) -> None:
        if len(self._asked) >= WANTS_REMEMBERED_MAX // 2:
            self._asked_before, self._asked = self._asked, set()
        self._asked.add(asked)

    def _forget(self, progress: TopicProgress, commit_id: CommitId) -> None:
        self._asked.discard((progress.topic, commit_id))
        self._asked_before.discard((progress.topic, commit_id))

    # --- of the peer ---

    @property
    def is_full(self) -> bool:
        """Return True if the peer is to be read from again only when some of its questions were looked up."""
        return self._unanswered >= WANTS_LOOKED_UP_MAX

    def take(self, message: Want | WantBodies) -> None:
        """Take a question of the peer's, which is to be looked up."""
        self._unanswered += len(message.ids)

    def answer(self, message: Want | WantBodies) -> None:
        """Note that a question of the peer's was looked up."""
        self._unanswered -= len(message.ids)


def _parts(ids: Sequence[CommitId]) -> Iterable[tuple[CommitId, ...]]:
    return (tuple(ids[start : start + WANT_COUNT_MAX]) for start in range(0, len(ids), WANT_COUNT_MAX))
