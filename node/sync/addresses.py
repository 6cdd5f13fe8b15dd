"""Address book of learned peer addresses (untrusted until a handshake proves them).

Believed for nothing but a dial.

Anyone who says where a peer can be dialed may lie, or name a victim. So what is learned is counted for everyone concerned
(the teller, the peer, the repo, the host), gives way to nothing that a user configured, and is dropped when dialing it
fails; what was dropped is barred for a day, and a host at which dials keep failing is left alone, whatever keys and ports
are said to be there. Only the handshake proves an address.

Pure but for its memory: time is an argument, in seconds as trio counts. `node.network.peer_discovery` dials,
`storage.peers.peers` keeps what was reached.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from node.runtime.backoff import doubled_pause
from protocol.ids import PeerId, RepoId
from protocol.limits.network import (
    ADDRESS_BARRED_SECONDS,
    ADDRESS_FAILURES_MAX,
    ADDRESS_REACHED_SECONDS,
    ADDRESS_UNREACHED_SECONDS,
    ADDRESSES_BARRED_MAX,
    ADDRESSES_MAX,
    ADDRESSES_PER_PEER_MAX,
    ADDRESSES_PER_REPO_MAX,
    ADDRESSES_PER_TELLER_MAX,
    CUT_OFF_PAUSE_MAX_SECONDS,
    HOST_TRIES_MAX,
    HOST_TRIES_SECONDS,
    HOSTS_TRIED_MAX,
    LEARNED_PAUSE_MAX_SECONDS,
    LEARNED_PAUSE_MIN_SECONDS,
    REACHED_FAILURES_MAX,
)
from protocol.session.reach import host_of, network_of

T = TypeVar("T")


class AddressSource(StrEnum):
    """Source of an address of a peer."""

    CONFIGURED = "configured"
    LINK = "link"
    INTRODUCTION = "introduction"
    LAN = "lan"
    INCOMING = "incoming"  # where a peer that dialed this node comes from: not where it listens


@dataclass(slots=True)
class Learned:
    """One learned address of a peer."""

    peer: PeerId
    address: str
    source: AddressSource
    told_by: PeerId
    fresh_at: float  # when it was last told, or the peer reached there
    due_at: float  # when it may be dialed next
    repos: set[RepoId] = field(default_factory=set)
    is_reached: bool = False  # the peer has proved its key there
    failures: int = 0  # dials since then, of those that count
    missed: int = 0  # dials since then while nobody answered, which do not count


class AddressBook:
    """Learned addresses. `own_key` is never learned, `banned` peers are neither learned nor dialed."""

    def __init__(self, own_key: PeerId, banned: Collection[PeerId]) -> None:
        self._own_key = own_key
        self._banned = banned
        self._learned: dict[tuple[PeerId, str], Learned] = {}
        self._of_peer: dict[PeerId, set[str]] = {}
        self._told: Counter[PeerId] = Counter()  # by teller
        self._in_repo: Counter[RepoId] = Counter()
        self._barred: dict[tuple[PeerId, str], float] = {}  # until when
        self._tries: dict[
            str, tuple[float, int]
        ] = {}  # by network: since when, and how many that led nowhere

    @property
    def all(self) -> list[Learned]:
        """Every learned address."""
        return list(self._learned.values())

    def learn(
        self,
        peer: PeerId,
        address: str,
        source: AddressSource,
        *,
        told_by: PeerId,
        repos: Collection[RepoId],
        now: float,
        delay: float = 0.0,
    ) -> bool:
        """Take up an address, to be dialed after a delay; False where a bound or a bar speaks against it."""
        key = (peer, address)
        known = self._learned.get(key)
        if known is not None:
            known.fresh_at = now
            for repo in set(repos) - known.repos:
                if self._in_repo[repo] < ADDRESSES_PER_REPO_MAX:
                    known.repos.add(repo)
                    self._in_repo[repo] += 1
            return True
        if peer == self._own_key or peer in self._banned or key in self._barred or host_of(address) is None:
            return False
        if len(self._barred) >= ADDRESSES_BARRED_MAX or not self._make_room(peer, told_by, repos):
            return False
        self._learned[key] = Learned(peer, address, source, told_by, now, now + delay, set(repos))
        self._of_peer.setdefault(peer, set()).add(address)
        self._told[told_by] += 1
        self._in_repo.update(set(repos))
        return True

    def load(
        self, peer: PeerId, address: str, source: AddressSource, repos: Collection[RepoId], now: float
    ) -> None:
        """Take up an address at which the peer was reached before this node was started."""
        if self.learn(peer, address, source, told_by=peer, repos=repos, now=now):
            self._learned[peer, address].is_reached = True

    def due(self, now: float) -> list[Learned]:
        """List what may be dialed now: where peers were reached first, then the latest told."""
        self._forget_old(now)
        ready = [one for one in self._learned.values() if one.due_at <= now and one.peer not in self._banned]
        return sorted(ready, key=lambda one: (not one.is_reached, -one.fresh_at))

    def begin(self, learned: Learned, now: float) -> bool:
        """Return True if it may be dialed now, which counts as a try of its host until the peer is reached."""
        network = _network(learned)
        if network not in self._tries and len(self._tries) >= HOSTS_TRIED_MAX:
            return False
        since, count = self._tries.get(network, (now, 0))
        if count >= HOST_TRIES_MAX:
            return False
        self._tries[network] = (since, count + 1)
        learned.due_at = now + LEARNED_PAUSE_MAX_SECONDS  # until it is said how it went
        return True

    def reached(self, learned: Learned, now: float) -> None:
        """Note that the peer has proved its key there."""
        self._uncount_try(learned)
        learned.is_reached, learned.fresh_at = True, now

    def left(self, learned: Learned, now: float) -> None:
        """Note that a session with the peer has ended that lasted."""
        learned.failures, learned.missed, learned.fresh_at = 0, 0, now
        learned.due_at = now + LEARNED_PAUSE_MIN_SECONDS

    def failed(self, learned: Learned, now: float, *, is_online: bool) -> bool:
        """Note that nobody proved the key there, or no session lasted. Return True if the address was dropped.

        `is_online`: other peers answer, so it is not this node that is cut off.
        """
        if learned.is_reached and not is_online:
            self._uncount_try(learned)
            learned.missed += 1
            tries, longest = learned.missed, CUT_OFF_PAUSE_MAX_SECONDS
        else:
            learned.failures += 1
            tries, longest = learned.failures, LEARNED_PAUSE_MAX_SECONDS
        learned.due_at = now + doubled_pause(tries, LEARNED_PAUSE_MIN_SECONDS, longest)
        most = REACHED_FAILURES_MAX if learned.is_reached else ADDRESS_FAILURES_MAX
        if learned.failures < most:
            return False
        self._barred[learned.peer, learned.address] = now + ADDRESS_BARRED_SECONDS
        self._drop(learned)
        return True

    def hurry(self, now: float) -> None:
        """Let all be dialed at once: this node has slept, and when it tried last says nothing."""
        for one in self._learned.values():
            one.due_at = min(one.due_at, now)

    def forget(self, peer: PeerId) -> None:
        """Forget all addresses of a peer."""
        for address in list(self._of_peer.get(peer, ())):
            self._drop(self._learned[peer, address])

    def knows(self, peer: PeerId) -> bool:
        """Return True if an address of the peer was learned."""
        return peer in self._of_peer

    def repos_of(self, peer: PeerId) -> set[RepoId]:
        """Repos for whose sake a peer is dialed."""
        addresses = self._of_peer.get(peer, ())
        return {repo for address in addresses for repo in self._learned[peer, address].repos}

    def _make_room(self, peer: PeerId, told_by: PeerId, repos: Collection[RepoId]) -> bool:
        """Return True if one more fits. An address that a peer says of itself replaces one that was said of it before."""
        if any(self._in_repo[repo] >= ADDRESSES_PER_REPO_MAX for repo in repos):
            return False
        of_peer = [self._learned[peer, address] for address in self._of_peer.get(peer, ())]
        if len(of_peer) >= ADDRESSES_PER_PEER_MAX:
            if told_by != peer:
                return False
            self._drop(min(of_peer, key=lambda one: (one.is_reached, one.told_by == peer, one.fresh_at)))
        return self._told[told_by] < ADDRESSES_PER_TELLER_MAX and len(self._learned) < ADDRESSES_MAX

    def _drop(self, learned: Learned) -> None:
        if self._learned.pop((learned.peer, learned.address), None) is None:
            return  # it was dropped while it was being dialed
        self._of_peer[learned.peer].discard(learned.address)
        if not self._of_peer[learned.peer]:
            del self._of_peer[learned.peer]
        _uncount(self._told, {learned.told_by})
        _uncount(self._in_repo, learned.repos)

    def _uncount_try(self, learned: Learned) -> None:
        network = _network(learned)
        since, count = self._tries.get(network, (0.0, 0))
        if count > 1:
            self._tries[network] = (since, count - 1)
        else:
            self._tries.pop(network, None)

    def _forget_old(self, now: float) -> None:
        for one in self.all:
            lasts = ADDRESS_REACHED_SECONDS if one.is_reached else ADDRESS_UNREACHED_SECONDS
            if now - one.fresh_at > lasts:
                self._drop(one)
        self._barred = {key: until for key, until in self._barred.items() if until > now}
        self._tries = {
            network: (since, count)
            for network, (since, count) in self._tries.items()
            if now - since < HOST_TRIES_SECONDS
        }


def _uncount(counter: Counter[T], keys: Collection[T]) -> None:
    counter.subtract(keys)
    for key in keys:
        if counter[key] == 0:
            del counter[key]


def _network(learned: Learned) -> str:
    host = host_of(learned.address)
    assert host is not None, "it was looked at when it was learned"
    return network_of(host)
