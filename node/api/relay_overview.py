"""Overview of a relay for its operator: kept data by owner, refusals with reasons, and when the quota will be full."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from node.network.network import Network
from node.observe.watching import count_connected, dialed_by, free_space
from node.relay.relay import RelayService
from node.runtime.blocking import RunBlocking
from ravel.types.peers import RelayCircuits, RelayStatus, RelayVisitors
from storage.relay.quotas import VISITOR_KINDS
from storage.relay.relay import KeptTopic
from storage.relay.usage import Usage

_DAYS_TOLD_MAX: Final = 3650
"""Days of a forecast: of more nobody can tell."""
_NONE: Final = Usage(0, 0)


class RelayOverview:
    """Raises ServiceError `bad_config` on a node that is no relay."""

    def __init__(
        self, network: Network, find_relay: Callable[[], RelayService], home: Path, run_blocking: RunBlocking
    ) -> None:
        self._run_blocking = run_blocking
        self._network = network
        self._find_relay = find_relay
        self._home = home

    async def show(self) -> RelayStatus:
        """Return kept data, its owners, refusals and the day when all is full. Raises StorageError."""
        relay = self._find_relay()
        kept = await relay.list_all()
        accounts = await relay.list_accounts()
        usage, growth = await relay.load_usage(frozenset(self._network.relays), dialed_by(self._network))
        commits, size, file_size = await self._run_blocking(_sum, kept)  # of 100,000 topics: 30 ms
        free = free_space(self._home)
        room = max(0, relay.quotas.total - size)
        days = min(room, free) // growth if growth else _DAYS_TOLD_MAX + 1
        if not min(room, free):
            days = 0
        refusals = sorted(relay.refusals.counts.items(), key=lambda one: (-one[1].last_at, one[0]))
        return {
            "topics": len(kept),
            "topics_max": relay.quotas.topic_count,
            "commits": commits,
            "size": size,
            "file_size": file_size,
            "size_max": relay.quotas.total,
            "takes_strangers": relay.quotas.takes_strangers,
            "accounts": len(accounts),
            "promised": sum(one.account.quota for one in accounts),
            "free": free,
            "growth": growth,
            "full_in_days": days if days <= _DAYS_TOLD_MAX else None,
            "full_first": "quota" if room <= free else "disk",
            "visitors": self._visitors(relay, usage),
            "circuits": self._circuits(),
            "files_kept": relay.files_kept.total(),
            "blocks_damaged": relay.blocks_damaged,
            "refusals": [
                {
                    "what": refusal.what,
                    "kind": refusal.kind,
                    "reason": refusal.reason,
                    "count": counted.count,
                    "last_at": counted.last_at // 1000,
                }
                for refusal, counted in refusals
            ],
        }

    def _visitors(self, relay: RelayService, usage: Mapping[str, Usage]) -> list[RelayVisitors]:
        connected = count_connected(self._network, relay)
        switch = self._network.switch
        return [
            {
                "kind": kind,
                "peers": usage.get(kind, _NONE).peers,
                "size": usage.get(kind, _NONE).size,
                "connected": connected[kind],
                "circuits": switch.open_by[kind] if switch is not None else 0,
                "circuit_bytes": switch.totals.passed[kind] if switch is not None else 0,
            }
            for kind in VISITOR_KINDS
        ]

    def _circuits(self) -> RelayCircuits | None:
        switch = self._network.switch
        if switch is None:
            return None
        return {
            "open": switch.count,
            "open_max": switch.count_max,
            "peers": switch.node_count,
            "opened": switch.totals.opened,
            "bytes": switch.totals.bytes_passed,
            "bytes_per_second": int(switch.bytes_per_second),
        }


def _sum(kept: Sequence[KeptTopic]) -> tuple[int, int, int]:
    """Commits of topics, their bytes with files, and the bytes of files."""
    return (
        sum(one.commit_count for one in kept),
        sum(one.size + one.file_size for one in kept),
        sum(one.file_size for one in kept),
    )
