"""Metrics, readiness checks and recent log lines of a running node."""

import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from node.exports.exports import Exports
from node.network.network import Network
from node.relay.relay import RelayService
from node.runtime import logs
from node.runtime.metrics import Family, Histogram, Sample, render
from node.runtime.process import process_age_seconds
from node.runtime.version import VERSION
from node.runtime.wording import size_text
from node.sync.hub import Hub
from protocol.ids import PeerId
from protocol.limits.users import DISK_FREE_MIN
from ravel.types.node import LogLines, StorageUse
from storage.commits.growth import GROWTH_CAUSES, add_growth, load_growth
from storage.commits.pending import CAUSES, READY, UNREAD
from storage.commits.stored_counts import count_stored
from storage.engine.database import StorageError
from storage.engine.store_identity import PACKS_NAME
from storage.relay.quotas import VISITOR_KINDS
from storage.relay.usage import load_usage

PEER_STATES: Final = ("connected", "dialing", "waiting")
_PAGE_SIZE: Final = os.sysconf("SC_PAGE_SIZE")
_EPOCH: Final = date(1970, 1, 1)


class Monitoring:
    """Counts what the API answers, and gathers what the rest of the node counts."""

    def __init__(
        self, hub: Hub, network: Network, home: Path, clock: Callable[[], float], exports: Exports
    ) -> None:
        self._hub = hub
        self._network = network
        self._home = home
        self._clock = clock
        self._exports = exports
        self._started_at = clock()
        self._start_seconds = process_age_seconds()  # all that takes long came before
        self._answers: Counter[tuple[str, str]] = Counter()
        self._api_seconds: dict[str, Histogram] = {}

    def answered(self, method: str, status: int, seconds: float) -> None:
        """Count an API request that has begun to be answered."""
        self._answers[method, f"{status // 100}xx"] += 1
        self._api_seconds.setdefault(method, Histogram()).observe(seconds)

    async def metrics(self) -> str:
        """Render all metrics as text. Raises StorageError."""
        partners, dialed = frozenset(self._network.relays), dialed_by(self._network)
        stored = await self._hub.run_blocking(self._stored, partners, dialed)
        return render(
            [
                *self._of_process(),
                *self._of_work(),
                *self._of_peers(),
                *self._of_circuits(),
                *self._of_relay(),
                *self._exports.families(),
                *stored,
            ]
        )

    async def readiness(self) -> tuple[bool, dict[str, str]]:
        """Return True if the node can do its work, and each check by name: `ok`, or what is wrong."""
        checks = await self._hub.run_blocking(self._check)
        return all(answer == "ok" for answer in checks.values()), checks

    async def find_faults(self) -> list[str]:
        """Return what keeps the node from storing anything, for people."""
        _, checks = await self.readiness()
        return [f"{name}: {answer}" for name, answer in checks.items() if answer != "ok"]

    async def log(self) -> LogLines:
        """Return the latest lines of the log."""
        return {"lines": logs.recent_lines()}

    def _check(self) -> dict[str, str]:
        database = self._hub.replica.database
        if missing := database.find_missing():
            database.fault = missing
        elif database.fault:
            with suppress(StorageError):  # the fault says it
                database.probe()
        free = free_space(self._home)
        return {
            "store": database.fault or "ok",
            "disk": "ok" if free >= DISK_FREE_MIN else f"{size_text(free)} are free",
        }

    def _of_process(self) -> list[Family]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        seconds = usage.ru_utime + usage.ru_stime
        return [
            _gauge("ravel_info", "The version that runs.", 1, version=VERSION),
            _gauge("process_start_time_seconds", "Unix time of the start.", self._started_at),
            _gauge("ravel_start_seconds", "What the start took.", self._start_seconds),
            _counter("process_cpu_seconds_total", "Processor time of the daemon itself.", seconds),
            _gauge("process_resident_memory_bytes", "Memory in use.", pages * _PAGE_SIZE),
            _gauge("process_open_fds", "Open files and sockets.", len(os.listdir("/proc/self/fd"))),
        ]

    def _of_work(self) -> list[Family]:
        totals = self._hub.totals
        taken = {
            "accepted": totals.accepted,
            "already": totals.already,
            "waiting": totals.waiting,
            "unread": totals.unread,
        }
        answered = [
            Sample(count, {"method": method, "status": status})
            for (method, status), count in sorted(self._answers.items())
        ]
        seconds = [
            sample
            for method, times in sorted(self._api_seconds.items())
            for sample in times.samples({"method": method})
        ]
        return [
            _counters(
                "ravel_publications_total",
                "Publications that came in, own ones too, by what became of them.",
                "result",
                taken,
            ),
            _counters(
                "ravel_publications_refused_total",
                "Publications that were refused, by the reason's code.",
                "reason",
                dict(sorted(totals.refused.items())),
            ),
            Family(
                "ravel_intake_seconds",
                "histogram",
                "Time from a peer's batch to its durable commit.",
                self._hub.intake.seconds.samples(),
            ),
            Family(
                "ravel_api_requests_total",
                "counter",
                "Answered API requests, by method and status.",
                answered,
            ),
            Family(
                "ravel_api_seconds",
                "histogram",
                "Time from an API request to the first byte of its answer.",
                seconds,
            ),
        ]

    def _of_peers(self) -> list[Family]:
        states = Counter(peer.state for peer in self._network.peers)
        connections = [peer.connection for peer in self._network.peers if peer.connection is not None]
        waiting = sum(one.outgoing.count for one in connections)
        return [
            _gauges("ravel_peers", "Peers by state.", "state", {name: states[name] for name in PEER_STATES}),
            _gauge("ravel_outgoing_messages", "Messages that wait to be written to peers.", waiting),
        ]

    def _of_circuits(self) -> list[Family]:
        """Measure the circuits that a relay passes on between peers."""
        switch = self._network.switch
        if switch is None:
            return []
        totals = switch.totals
        return [
            _gauge("ravel_circuits", "Circuits between peers that are open.", switch.count),
            _gauge("ravel_circuit_peers", "Connected peers that take circuits.", switch.node_count),
            _counter("ravel_circuits_opened_total", "Circuits that were opened.", totals.opened),
            _counters(
                "ravel_circuit_bytes_total",
                "Bytes that were passed on in circuits, by the kind of peer that asked for them.",
                "kind",
                {kind: totals.passed[kind] for kind in VISITOR_KINDS},
            ),
            _counters(
                "ravel_circuits_ended_total",
                "Circuits that ended or were refused, by the reason's code.",
                "reason",
                dict(sorted(totals.ended.items())),
            ),
        ]

    def _of_relay(self) -> list[Family]:
        """Measure what this relay keeps and refuses. No label names a peer or an account."""
        relay = self._hub.relay
        if relay is None:
            return []
        settled, accounts = self._hub.totals.files_settled, relay.accounts
        connected = count_connected(self._network, relay)
        refused = [
            Sample(counted.count, {"what": one.what, "kind": one.kind, "reason": one.reason})
            for one, counted in sorted(relay.refusals.counts.items())
        ]
        return [
            _counters(
                "ravel_relay_files_settled_total",
                "Deposited files that were kept, or refused, by the reason's code.",
                "result",
                dict(sorted(settled.items())),
            ),
            _gauge(
                "ravel_relay_accounts",
                "Accounts of this relay that have a node.",
                len({one.num for one in accounts.values()}),
            ),
            _gauge("ravel_relay_account_nodes", "Nodes of all accounts.", len(accounts)),
            _gauge(
                "ravel_relay_quota_bytes",
                "Bytes of commits and files that are kept for others at most.",
                relay.quotas.total,
            ),
            _gauges(
                "ravel_relay_connected_peers",
                "Connected peers of this relay, by kind.",
                "kind",
                {kind: connected[kind] for kind in VISITOR_KINDS},
            ),
            Family(
                "ravel_relay_refused_total",
                "counter",
                "What this relay refused, by what it was, the kind of peer, and the reason's code.",
                refused,
            ),
            _counter(
                "ravel_relay_damaged_blocks_total",
                "Blocks of files kept for others that were found damaged when they were wanted.",
                relay.blocks_damaged,
            ),
        ]

    def _stored(self, partners: Collection[PeerId], dialed: Collection[PeerId]) -> list[Family]:
        database = self._hub.replica.database
        with database.read() as connection:
            stored = count_stored(connection)
            rows_size = database.size(connection)
            usage = load_usage(connection, partners, dialed) if self._hub.relay is not None else {}
        waiting = stored.pending
        states = {
            "shown": stored.commits - stored.voids,
            "void": stored.voids,
            "waiting": waiting.get(CAUSES, 0) + waiting.get(READY, 0),
            "unread": waiting.get(UNREAD, 0),
        }
        brought = _gauges(
            "ravel_relay_brought_bytes",
            "Bytes that are kept for others, by the kind of peer that brought them.",
            "kind",
            {kind: used.size for kind, used in sorted(usage.items())},
        )
        sizes = store_sizes(self._home, rows_size)
        return [
            *([brought] if self._hub.relay is not None else []),
            _gauges("ravel_commits", "Commits in the store.", "state", states),
            _gauge("ravel_repos", "Repos.", len(self._hub.replica.repos)),
            _gauge("ravel_branches", "Branches.", stored.branches),
            _gauge("ravel_topics", "Topics that are followed.", stored.topics),
            _gauge("ravel_relay_topics", "Topics that are kept for others.", stored.relay_topics),
            _gauge("ravel_relay_commits", "Commits that are kept for others.", stored.relay_commits),
            _gauge("ravel_relay_bytes", "Bytes of commits that are kept for others.", stored.relay_size),
            _gauge(
                "ravel_relay_file_bytes", "Bytes of files that are kept for others.", stored.relay_file_size
            ),
            _gauges("ravel_store_bytes", "Bytes on disk, by part of the store.", "part", sizes),
            _gauge("ravel_disk_free_bytes", "Room left for the store.", free_space(self._home)),
            _gauge("ravel_store_faulty", "1 while the last write to the store failed.", bool(database.fault)),
        ]


def _gauge(name: str, meaning: str, value: float, **labels: str) -> Family:
    return Family(name, "gauge", meaning, [Sample(value, labels)])


def _gauges(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Family:
    return Family(name, "gauge", meaning, [Sample(value, {label: one}) for one, value in values.items()])


def _counter(name: str, meaning: str, value: float) -> Family:
    return Family(name, "counter", meaning, [Sample(value)])


def _counters(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Family:
    return Family(name, "counter", meaning, [Sample(value, {label: one}) for one, value in values.items()])


def free_space(folder: Path) -> int:
    """Return the bytes that this user may still write beside a folder's files."""
    return shutil.disk_usage(folder).free


def store_sizes(home: Path, rows_size: int | None = None) -> dict[str, int]:
    """Return the bytes of the database, of its log, of copies made before migrations, and of packs.

    `rows_size` is that of a database outside of the folder.
    """
    sizes = {"database": rows_size or 0, "log": 0, "older": 0, "packs": 0}
    for path in home.iterdir():
        if path.name == "ravel.sqlite":
            sizes["database"] += path.stat().st_size
        elif path.name.startswith("ravel.sqlite-"):
            sizes["log"] += path.stat().st_size
        elif path.suffix == ".sqlite":
            sizes["older"] += path.stat().st_size
    if (home / PACKS_NAME).exists():
        for path in (home / PACKS_NAME).iterdir():
            with suppress(FileNotFoundError):  # what was given up goes meanwhile
                sizes["packs"] += path.stat().st_size
    return sizes


def count_connected(network: Network, relay: RelayService) -> Counter[str]:
    """Count connected peers of a relay by kind (`storage.relay.quotas.VISITOR_KINDS`), each once."""
    connections = {one.peer: one.connection for one in network.peers if one.connection is not None}
    return Counter(relay.visitor(peer, one.subnet).kind for peer, one in connections.items())


def dialed_by(network: Network) -> set[PeerId]:
    """Return the peers that a relay dials by its own settings: its operator knows them."""
    return {one.peer for one in network.peers if network.is_kept(one.peer)}


class StorageView:
    """Use of the disk: size by part, growth by day, and a relay's room."""

    def __init__(self, hub: Hub, home: Path) -> None:
        self._hub = hub
        self._home = home

    async def show(self) -> StorageUse:
        """Return bytes by part of the store, free bytes, commits by day, and a relay's room. Raises StorageError."""
        return await self._hub.run_blocking(self._show)

    def _show(self) -> StorageUse:
        database, relay = self._hub.replica.database, self._hub.relay
        with database.read() as connection:
            days = load_growth(connection)
            rows_size = database.size(connection)
        sizes = store_sizes(self._home, rows_size)
        kept = [] if relay is None else list(relay.topics.values())
        return {
            "database": sizes["database"],
            "log": sizes["log"],
            "older": sizes["older"],
            "packs": sizes["packs"],
            "free": free_space(self._home),
            "days": [
                {
                    "day": str(_EPOCH + timedelta(days=one.day)),
                    "commits": one.all.commits,
                    "size": one.all.size,
                }
                for one in days
            ],
            "causes": [
                {"cause": cause, **add_growth(one.causes[cause] for one in days)._asdict()}  # type: ignore[typeddict-item]
                for cause in GROWTH_CAUSES
            ],
            "relay": None
            if relay is None
            else {
                "topics": len(kept),
                "size": sum(one.size + one.file_size for one in kept),
                "size_max": relay.quotas.total,
            },
        }
