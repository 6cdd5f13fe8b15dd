"""Asks for circuits to peers that no direct dial reaches, through the relays that this node uses.

A peer's own addresses come first (`node.network.network`): a circuit is asked for once they have had a moment, and they are
dialed on meanwhile. Where both lead to the peer, the direct connection stays.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
import trio

from node.circuits.client import CircuitClient, CircuitStream
from node.runtime.backoff import Backoff
from node.wire.transport import TransportError
from protocol.codec import DecodeError
from protocol.formats.text import id_text, parse_id
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_BACKOFF_MAX_SECONDS,
    CIRCUIT_BACKOFF_MIN_SECONDS,
    CIRCUIT_DIALS_AT_ONCE_MAX,
    CIRCUIT_HEAD_START_SECONDS,
)

log = structlog.get_logger()

_PLACE_PREFIX: Final = "relay:"


def place_of(relay: PeerId) -> str:
    """Name the place of a peer that is reached through a relay. It stands for host:port, and is no address."""
    return _PLACE_PREFIX + id_text(relay)


def relay_at(place: str) -> PeerId | None:
    """Return the relay of a place that names one; None for host:port."""
    if not place.startswith(_PLACE_PREFIX):
        return None
    try:
        return PeerId(parse_id(place.removeprefix(_PLACE_PREFIX)))
    except DecodeError:
        return None


@dataclass(slots=True)
class _Pause:
    """Time when a peer is to be asked for next, as trio counts, and the pause after that."""

    due_at: float = -math.inf
    backoff: Backoff = field(
        default_factory=partial(Backoff, CIRCUIT_BACKOFF_MIN_SECONDS, CIRCUIT_BACKOFF_MAX_SECONDS)
    )


class CircuitDialer:
    """Asks for circuits. `run` owns every task."""

    def __init__(
        self,
        client: CircuitClient,
        missed: Callable[[], Mapping[PeerId, float]],
        is_wanted: Callable[[PeerId, TopicKey], bool],
        converse: Callable[[PeerId, CircuitStream, PeerId], Awaitable[bool]],
    ) -> None:
        """`missed` says which kept peers are not connected, and since when; `is_wanted`, whether one is that a relay has
        named for a topic; `converse` shakes hands on a circuit and converses, and returns True if that lasted."""
        self._client = client
        self._missed = missed
        self._is_wanted = is_wanted
        self._relays: set[PeerId] = set()  # of the last look
        self._converse = converse
        self._pauses: dict[PeerId, _Pause] = {}
        self._asking: set[PeerId] = set()
        self._trying: set[PeerId] = set()
        self._news = trio.Event()

    def look_again(self) -> None:
        """Look again: a relay came, or a peer was lost."""
        self._news.set()
        self._news = trio.Event()

    def hurry(self) -> None:
        """Forget all pauses: this machine has slept, or changed its network."""
        self._pauses.clear()
        self.look_again()

    async def run(self) -> None:
        """Ask for peers whose time has come, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                news = self._news
                with trio.move_on_after(self._start_due(nursery)):
                    await news.wait()

    def _start_due(self, nursery: trio.Nursery) -> float:
        """Ask for peers whose time has come. Return the seconds until the next."""
        if not self._client.relays:
            return math.inf
        now, wait = trio.current_time(), math.inf
        if not self._relays.issuperset(self._client.relays):
            for pause in self._pauses.values():  # what was tried before says nothing of a relay that has come
                pause.due_at = -math.inf  # and the next pause is as long as ever: relays may come and go
        self._relays = set(self._client.relays)
        named = self._client.named_nodes.items()
        missed = {peer: one.since for peer, one in named if self._is_wanted(peer, one.topic)}
        missed |= self._missed()
        self._pauses = {
            peer: one for peer, one in self._pauses.items() if peer in missed or peer in self._trying
        }
        for peer, since in missed.items():
            if peer in self._trying or peer in self._client.relays:
                continue
            pause = self._pauses.setdefault(peer, _Pause())
            due_at = max(since + CIRCUIT_HEAD_START_SECONDS, pause.due_at)
            if due_at > now:
                wait = min(wait, due_at - now)
            elif len(self._asking) < CIRCUIT_DIALS_AT_ONCE_MAX:
                self._asking.add(peer)
                self._trying.add(peer)
                nursery.start_soon(self._try, peer, pause)
        return wait

    async def _try(self, peer: PeerId, pause: _Pause) -> None:
        """Ask one relay after the other. Whatever comes of it, a pause follows: a peer may be let in and left at once."""
        has_conversed = False
        try:
            for relay in self._client.relays_to(peer):
                try:
                    stream = await self._client.open(relay, peer)
                except TransportError as error:
                    log.debug("no circuit", peer=id_text(peer), relay=id_text(relay), reason=error.message)
                    continue
                self._asking.discard(peer)
                self.look_again()  # the next one need not wait for the end of this conversation
                has_conversed = await self._converse(peer, stream, relay)
                break
        finally:
            self._asking.discard(peer)
            self._trying.discard(peer)
            if has_conversed:
                pause.backoff.reset()
            pause.due_at = trio.current_time() + pause.backoff.fail()
            self.look_again()
