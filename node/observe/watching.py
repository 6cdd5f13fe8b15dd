"""Metrics, readiness checks and recent log lines of a running node."""

import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from node.contract.node import LogLines
from node.exports.exports import Exports
from node.network.network import Network
from node.runtime import logs
from node.runtime.metrics import Family, Histogram, Sample, render
from node.runtime.version import VERSION
from node.sync.hub import Hub
from node.sync.relay import RelayService
from protocol.ids import PeerId
from protocol.limits.users import DISK_FREE_MIN
from storage.commits.pending import CAUSES, READY, UNREAD
from storage.commits.stored_counts import count_stored
from storage.engine.database import StorageError
from storage.engine.store_identity import PACKS_NAME
from storage.relay.quotas import VISITOR_KINDS
from storage.relay.usage import load_usage

PEER_STATES: Final = ("connected", "dialing", "waiting")
_PAGE_SIZE: Final = os.sysconf("SC_PAGE_SIZE")


class Watching:
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
            "disk": "ok" if free >= DISK_FREE_MIN else f"{free >> 20} MiB are free",
        }

    def _of_process(self) -> list[Family]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return [
            Family("ravel_info", "gauge", "The version that runs.", [Sample(1, {"version": VERSION})]),
            Family(
                "process_start_time_seconds", "gauge", "Unix time of the start.", [Sample(self._started_at)]
            ),
            Family(
                "process_cpu_seconds_total",
                "counter",
                "Processor time of the daemon itself.",
                [Sample(usage.ru_utime + usage.ru_stime)],
            ),
            Family("process_resident_memory_bytes", "gauge", "Memory in use.", [Sample(pages * _PAGE_SIZE)]),
            Family(
                "process_open_fds",
                "gauge",
                "Open files and sockets.",
                [Sample(len(os.listdir("/proc/self/fd")))],
            ),
        ]

    def _of_work(self) -> list[Family]:
        totals = self._hub.totals
        taken = {
            "accepted": totals.accepted,
            "already": totals.already,
            "waiting": totals.waiting,
            "unread": totals.unread,
        }
        return [
            Family(
                "ravel_publications_total",
                "counter",
                "Publications that came in, own ones too, by what became of them.",
                [Sample(count, {"result": name}) for name, count in taken.items()],
            ),
            Family(
                "ravel_publications_refused_total",
                "counter",
                "Publications that were refused, by the reason's code.",
                [Sample(count, {"reason": code}) for code, count in sorted(totals.refused.items())],
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
                [
                    Sample(count, {"method": method, "status": status})
                    for (method, status), count in sorted(self._answers.items())
                ],
            ),
            Family(
                "ravel_api_seconds",
                "histogram",
                "Time from an API request to the first byte of its answer.",
                [
                    sample
                    for method, times in sorted(self._api_seconds.items())
                    for sample in times.samples({"method": method})
                ],
            ),
        ]

    def _of_peers(self) -> list[Family]:
        states = Counter(peer.state for peer in self._network.peers)
        connections = [peer.connection for peer in self._network.peers if peer.connection is not None]
        return [
            Family(
                "ravel_peers",
                "gauge",
                "Peers by state.",
                [Sample(states[name], {"state": name}) for name in PEER_STATES],
            ),
            Family(
                "ravel_outgoing_messages",
                "gauge",
                "Messages that wait to be written to peers.",
                [Sample(sum(one.outgoing.count for one in connections))],
            ),
        ]

    def _of_circuits(self) -> list[Family]:
        """Measure the circuits that a relay passes on between peers."""
        switch = self._network.switch
        if switch is None:
            return []
        totals = switch.totals
        return [
            Family(
                "ravel_circuits", "gauge", "Circuits between peers that are open.", [Sample(switch.count)]
            ),
            Family(
                "ravel_circuit_peers",
                "gauge",
                "Connected peers that take circuits.",
                [Sample(switch.node_count)],
            ),
            Family(
                "ravel_circuits_opened_total",
                "counter",
                "Circuits that were opened.",
                [Sample(totals.opened)],
            ),
            Family(
                "ravel_circuit_bytes_total",
                "counter",
                "Bytes that were passed on in circuits, by the kind of peer that asked for them.",
                [Sample(totals.passed[kind], {"kind": kind}) for kind in VISITOR_KINDS],
            ),
            Family(
                "ravel_circuits_ended_total",
                "counter",
                "Circuits that ended or were refused, by the reason's code.",
                [Sample(count, {"reason": code}) for code, count in sorted(totals.ended.items())],
            ),
        ]

    def _of_relay(self) -> list[Family]:
        """Measure what this relay keeps and refuses. No label names a peer or an account."""
        relay = self._hub.relay
        if relay is None:
            return []
        settled, accounts = self._hub.totals.files_settled, relay.accounts
        connected = count_connected(self._network, relay)
        return [
            Family(
                "ravel_relay_files_settled_total",
                "counter",
                "Deposited files that were kept, or refused, by the reason's code.",
                [Sample(count, {"result": code}) for code, count in sorted(settled.items())],
            ),
            Family(
                "ravel_relay_accounts",
                "gauge",
                "Accounts of this relay that have a node.",
                [Sample(len({one.num for one in accounts.values()}))],
            ),
            Family("ravel_relay_account_nodes", "gauge", "Nodes of all accounts.", [Sample(len(accounts))]),
            Family(
                "ravel_relay_quota_bytes",
                "gauge",
                "Bytes of commits and files that are kept for others at most.",
                [Sample(relay.quotas.total)],
            ),
            Family(
                "ravel_relay_connected_peers",
                "gauge",
                "Connected peers of this relay, by kind.",
                [Sample(connected[kind], {"kind": kind}) for kind in VISITOR_KINDS],
            ),
            Family(
                "ravel_relay_refused_total",
                "counter",
                "What this relay refused, by what it was, the kind of peer, and the reason's code.",
                [
                    Sample(counted.count, {"what": one.what, "kind": one.kind, "reason": one.reason})
                    for one, counted in sorted(relay.refusals.counts.items())
                ],
            ),
            Family(
                "ravel_relay_damaged_blocks_total",
                "counter",
                "Blocks of files kept for others that were found damaged when they were wanted.",
                [Sample(relay.blocks_damaged)],
            ),
        ]

    def _stored(self, partners: Collection[PeerId], dialed: Collection[PeerId]) -> list[Family]:
        database = self._hub.replica.database
        with database.read() as connection:
            stored = count_stored(connection)
            rows_size = database.size(connection)
            usage = load_usage(connection, partners, dialed) if self._hub.relay is not None else {}
        sizes = store_sizes(self._home, rows_size)
        brought = Family(
            "ravel_relay_brought_bytes",
            "gauge",
            "Bytes that are kept for others, by the kind of peer that brought them.",
            [Sample(used.size, {"kind": kind}) for kind, used in sorted(usage.items())],
        )
        return [
            *([brought] if self._hub.relay is not None else []),
            Family(
                "ravel_commits",
                "gauge",
                "Commits in the store.",
                [
                    Sample(stored.commits - stored.voids, {"state": "shown"}),
                    Sample(stored.voids, {"state": "void"}),
                    Sample(
                        stored.pending.get(CAUSES, 0) + stored.pending.get(READY, 0), {"state": "waiting"}
                    ),
                    Sample(stored.pending.get(UNREAD, 0), {"state": "unread"}),
                ],
            ),
            Family("ravel_repos", "gauge", "Repos.", [Sample(len(self._hub.replica.repos))]),
            Family("ravel_branches", "gauge", "Branches.", [Sample(stored.branches)]),
            Family("ravel_topics", "gauge", "Topics that are followed.", [Sample(stored.topics)]),
            Family(
                "ravel_relay_topics",
                "gauge",
                "Topics that are kept for others.",
                [Sample(stored.relay_topics)],
            ),
            Family(
                "ravel_relay_commits",
                "gauge",
                "Commits that are kept for others.",
                [Sample(stored.relay_commits)],
            ),
            Family(
                "ravel_relay_bytes",
                "gauge",
                "Bytes of commits that are kept for others.",
                [Sample(stored.relay_size)],
            ),
            Family(
                "ravel_relay_file_bytes",
                "gauge",
                "Bytes of files that are kept for others.",
                [Sample(stored.relay_file_size)],
            ),
            Family(
                "ravel_store_bytes",
                "gauge",
                "Bytes on disk, by part of the store.",
                [Sample(size, {"part": name}) for name, size in sizes.items()],
            ),
            Family(
                "ravel_disk_free_bytes", "gauge", "Room left for the store.", [Sample(free_space(self._home))]
            ),
            Family(
                "ravel_store_faulty",
                "gauge",
                "1 while the last write to the store failed.",
                [Sample(bool(database.fault))],
            ),
        ]


def free_space(folder: Path) -> int:
    """Bytes that this user may still write beside a folder's files."""
    return shutil.disk_usage(folder).free


def store_sizes(home: Path, rows_size: int | None = None) -> dict[str, int]:
    """Bytes of the database, of its log, of copies that were made before migrations, and of packs.

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
        sizes["packs"] = sum(path.stat().st_size for path in (home / PACKS_NAME).iterdir())
    return sizes


def count_connected(network: Network, relay: RelayService) -> Counter[str]:
    """Connected peers of a relay by kind (`storage.relay.quotas.VISITOR_KINDS`), each once."""
    connections = {one.peer: one.connection for one in network.peers if one.connection is not None}
    return Counter(relay.visitor(peer, one.subnet).kind for peer, one in connections.items())


def dialed_by(network: Network) -> set[PeerId]:
    """Peers that this node keeps a connection to of its own accord, so that a relay's operator knows them."""
    return {one.peer for one in network.peers if network.is_kept(one.peer)}
