"""Fills a relay with all that a community has, by the service that a relay's daemon stores with."""

from collections.abc import Callable
from pathlib import Path

import trio

from benchmarks.common import clock_ms
from node.home.home import open_home
from node.home.identity import open_keys
from node.ingest.replica import Replica
from node.relay.relay import RelayService
from node.runtime.scheduling import NOBODY, Ledger, WorkBill
from protocol.crypto.signing import check_claims
from protocol.ids import PeerId
from protocol.limits.peers import BATCH_COUNT_MAX, BATCH_SIZE_TARGET
from storage.relay.quotas import RelayQuotas
from storage.topics.difference import plan_sending
from storage.topics.publishing import load_publications
from tests.support.blocking import inline
from tests.support.keys import no_passphrase

_PLENTY = 1 << 40
_QUOTAS = RelayQuotas(_PLENTY, _PLENTY, _PLENTY, _PLENTY, _PLENTY, _PLENTY, _PLENTY)


class _AtOnce:
    """Lane without waiting: batches come one after the other."""

    async def wait(self) -> None:
        """Return at once."""


def fill_relay(home: Path, source: Replica, peer: PeerId, tell: Callable[[int, int], None]) -> None:
    """Have a relay keep all topics of a node, which it knows. What it has is not brought again, topic by topic.

    `tell` is told how many topics of how many are done.
    """
    replica = Replica(home, open_keys(home, no_passphrase).store_key, open_home(home).storage_url)
    try:
        service = RelayService(replica.database, _QUOTAS, inline(), clock_ms, check_claims)
        trio.run(_fill, service, source, peer, tell)
    finally:
        replica.close()


async def _fill(
    service: RelayService, source: Replica, peer: PeerId, tell: Callable[[int, int], None]
) -> None:
    await service.allow(peer, is_allowed=True)
    visitor = service.visitor(peer, "")
    topics = list(source.topics.values())
    bill = WorkBill(Ledger(lambda: 0.0).of_peer(NOBODY))
    for number, topic in enumerate(topics):
        (kept,) = (await service.open([topic.topic], visitor)).kept
        with source.database.read() as connection:
            nums = plan_sending(connection, topic.num, ()).nums
            done = len(nums) if kept.commit_count == len(nums) else 0
            while done < len(nums):
                part = nums[done : done + BATCH_COUNT_MAX]
                items = load_publications(connection, topic, part, BATCH_SIZE_TARGET)
                stored = await service.ingest(kept, items, _AtOnce(), visitor, bill)
                if stored.refused or stored.dropped:
                    raise RuntimeError(f"the relay refused: {stored}")
                done += len(items)
        tell(number + 1, len(topics))
