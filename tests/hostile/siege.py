"""A victim in this process, and an honest peer beside its attackers: real stores, memory streams, a mock clock.

What the victim does is counted where it does it, so that a bound says the same on every machine.
"""

import itertools
import math
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pytest
import structlog
import trio
from sqlalchemy import Engine, create_engine, event, func, select
from trio.testing import MockClock, lockstep_stream_pair

from node.circuits.switch import CircuitSwitch
from node.ingest import publication_reading
from node.network.network import Network
from node.relay.relay import RelayService
from node.sync import connection as connection_module
from node.sync import session_queries
from node.sync.connection import Connection
from node.wire.transport import dial
from protocol.crypto.keys import AgreementSecret
from protocol.crypto.signing import Claim, check_claims
from protocol.formats.text import id_text
from storage.engine import sqlite as sqlite_module
from storage.schema.columns import metadata
from storage.schema.schema import commits  # noqa: F401  # the tables are in the metadata once their modules are imported
from tests.hostile.stage import Stage, set_up, stage_of
from tests.support.blocking import inline
from tests.support.circuits import PLENTY as CIRCUITS
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, share, together, until_equal
from tests.support.relays import PLENTY
from tests.support.streams import PassingStream

PLACES: Final = 16
"""Connections that a victim accepts here: as many as are needed to take all of them quickly."""
CHAIN_LENGTH: Final = 110
_SECONDS_MAX: Final = 20.0
"""Virtual seconds that an honest commit may take."""
_TICK_SECONDS: Final = 0.001
"""Of the processor, that any piece of work of the victim takes: it works in the same slices on every machine."""
_HONEST_HOST: Final = "9.9.9.9"
_ALIKE: Final = create_engine("sqlite://", query_cache_size=5000)
_ALIKE.connect().close()  # which sets its dialect up
# Row counts of these say nothing that another table does not: numbers given out, and where order is remembered.
_BOOKKEEPING: Final = frozenset({"sequences", "sketches", "order_spans", "store_seal"})


def prepare(folder: Path) -> Stage:
    """Stores of a victim and an honest peer that agree, in a folder to be copied from."""

    async def make() -> Stage:
        with fail_after(1000), open_nodes(folder, "victim", "honest") as (victim, honest):
            await share(victim, honest)
            repo = victim.repo()
            granted = set_up(victim.replica, victim.author, repo, CHAIN_LENGTH)
            await together(victim, honest)
            return stage_of(victim.replica, victim.key, victim.repo(), granted)

    return trio.run(make, clock=MockClock(autojump_threshold=0))


class Counts:
    """What the victim has done since it was watched."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.frames_at_once = 0
        self._frames = 0

    def frame(self) -> None:
        """One frame was dealt with."""
        self._frames += 1
        self.frames_at_once = max(self.frames_at_once, self._frames)

    def as_dict(self) -> dict[str, int]:
        """All of it, by the names of `table.Work`."""
        names = ("statements", "signatures", "opened", "listed")
        return {name: self.of[name] for name in names} | {"frames_at_once": self.frames_at_once}

    def before_task_step(self) -> None:
        """Another task has its turn."""
        self._frames = 0


class _Steps(trio.abc.Instrument):
    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._counts.before_task_step()


class _Socket:
    """What a node asks of a socket: where its other end is."""

    def __init__(self, host: str) -> None:
        self._host = host

    def getpeername(self) -> tuple[str, int]:
        return self._host, 4711


class _Wire(PassingStream):
    """A memory stream that comes from somewhere."""

    def __init__(self, stream: trio.abc.Stream, host: str) -> None:
        super().__init__(stream)
        self.socket = _Socket(host)


class _Listener(trio.abc.Listener[_Wire]):
    """Where connections to the victim arrive."""

    def __init__(self) -> None:
        self.send, self._arrived = trio.open_memory_channel[_Wire](math.inf)

    async def accept(self) -> _Wire:
        return await self._arrived.receive()

    async def aclose(self) -> None:
        self._arrived.close()


class Siege:
    """The victim with its network, and the honest peer."""

    def __init__(
        self, victim: Node, honest: Node, network: Network, listener: _Listener, nursery: trio.Nursery
    ) -> None:
        self.victim = victim
        self.honest = honest
        self.network = network
        self._listener = listener
        self._nursery = nursery
        self._hosts = itertools.count(1)
        self._scope = trio.CancelScope()
        self._posts = itertools.count(1)

    async def open_wire(self) -> trio.abc.Stream:
        """A connection to the victim, each from a host of its own."""
        number = next(self._hosts)
        return self._connect(f"8.{number // 65536}.{number // 256 % 256}.{number % 256}")

    async def meet_honest(self) -> None:
        """Connect the honest peer, anew if it was connected, and wait until both agree."""
        self._scope.cancel()
        self._scope = trio.CancelScope()
        await trio.sleep(0.1)
        stream = await dial(
            self._connect(_HONEST_HOST), self.honest.seed, self.victim.key, AgreementSecret(b"d" * 32)
        )
        self._nursery.start_soon(self._converse, Connection(self.honest.hub, stream), self._scope)
        await self.until_equal()

    async def until_equal(self) -> None:
        """Wait until both show the same, or fail."""
        with fail_after(_SECONDS_MAX):
            await until_equal(self.victim, self.honest)

    async def write(self) -> None:
        """The victim's user writes, and the honest peer gets it."""
        self.victim.write(self.victim.branch(), f"honest words {next(self._posts)}")
        await self.until_equal()

    def rows(self) -> dict[str, int]:
        """How many rows the victim's tables have."""
        names = sorted(metadata.tables.keys() - _BOOKKEEPING)
        counts = (select(func.count()).select_from(metadata.tables[name]).scalar_subquery() for name in names)
        with self.victim.replica.database.read() as connection:
            return dict(zip(names, connection.execute(select(*counts)).one(), strict=True))

    def _connect(self, host: str) -> trio.abc.Stream:
        ours, theirs = lockstep_stream_pair()
        self._listener.send.send_nowait(_Wire(theirs, host))
        return ours

    async def _converse(self, connection: Connection, scope: trio.CancelScope) -> None:
        with scope:
            await connection.run()


def remember_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all stores share what SQLAlchemy compiles of their statements: it is half of what opening one costs."""
    make = create_engine

    def make_alike(*arguments: Any, **more: Any) -> Engine:  # noqa: ANN401  # whatever it takes
        engine = make(*arguments, **more)
        engine.dialect, engine._compiled_cache = _ALIKE.dialect, _ALIKE._compiled_cache
        return engine

    monkeypatch.setattr(sqlite_module, "create_engine", make_alike)


@asynccontextmanager
async def besieged(prepared: Path, folder: Path, *, is_relay: bool = False) -> AsyncIterator[Siege]:
    """A victim and an honest peer that are connected, from copies of what was prepared."""
    shutil.copytree(prepared, folder)
    ticks = itertools.count()

    def processor_clock() -> float:
        return next(ticks) * _TICK_SECONDS

    with open_nodes(folder, "victim", "honest") as (victim, honest):
        hub = victim.hub
        hub.cpu_clock = hub.intake._cpu_clock = processor_clock
        if is_relay:
            hub.relay = RelayService(
                victim.replica.database, PLENTY, inline(), lambda: 0, check_claims, processor_clock
            )
        relay = hub.relay
        network = Network(
            victim.hub,
            victim.seed,
            lambda: 1_700_000_000 + trio.current_time(),
            own_address="8.8.8.8:4711",
            introduces=not is_relay,
            takes_circuits=relay is None,
            switch=None if relay is None else CircuitSwitch(victim.key, CIRCUITS, relay.visitor),
        )
        async with trio.open_nursery() as nursery:
            listener = _Listener()
            await nursery.start(network.run, cast("list[trio.SocketListener]", [listener]))
            for node in (victim, honest):
                nursery.start_soon(node.joiner.run)
            siege = Siege(victim, honest, network, listener, nursery)
            await siege.meet_honest()
            yield siege
            nursery.cancel_scope.cancel()


@contextmanager
def watched(victim: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """Count what the victim does, by the places where it does it."""
    counts = Counts()

    def check(claims: Sequence[Claim]) -> Sequence[bool]:
        counts.of["signatures"] += len(claims)
        return check_claims(claims)

    def counting(module: Any, name: str, note: Any) -> None:  # noqa: ANN401  # whatever stands there
        old = getattr(module, name)

        def count(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401  # whatever it takes and gives
            found = old(*arguments, **more)
            note(found)
            return found

        monkeypatch.setattr(module, name, count)

    def add(name: str, count: int) -> None:
        counts.of[name] += count

    url = victim.replica.database._engine.url

    def executed(connection: Any, *_: object) -> None:  # noqa: ANN401  # SQLAlchemy's
        if connection.engine.url == url:
            counts.of["statements"] += 1

    monkeypatch.setattr(victim.hub.intake._reader, "check", check)
    if victim.hub.relay is not None:
        monkeypatch.setattr(victim.hub.relay, "_check", check)
    counting(publication_reading, "open_commit", lambda _: add("opened", 1))
    counting(session_queries, "load_set", lambda found: add("listed", len(found[1])))
    counting(connection_module, "decode_message", lambda _: counts.frame())
    event.listen(Engine, "before_cursor_execute", executed)
    steps = _Steps(counts)
    trio.lowlevel.add_instrument(steps)
    try:
        yield counts
    finally:
        trio.lowlevel.remove_instrument(steps)
        event.remove(Engine, "before_cursor_execute", executed)


def reasons(logs: Sequence[Mapping[str, Any]], honest: Node) -> Counter[str]:
    """Why the victim has ended connections of others, by its log."""
    found: Counter[str] = Counter()
    for line in logs:
        is_end = line["event"] in ("disconnected", "handshake failed", "connection refused")
        if is_end and line.get("peer") != id_text(honest.key):
            found[str(line["reason"])] += 1
    return found


capture_logs = structlog.testing.capture_logs
