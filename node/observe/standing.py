"""Standing of each repo with others: who holds the same, what is here alone, and what keeps it from coming.

Connections are looked at now and then, so that it can be said since when a peer holds the same, and until when. Who held
what is kept in the store, so that a restart does not forget it. What is said is what is known: where nothing is, no count
is given.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
import trio

from node.ingest.tables import Tables
from node.network.network import Network
from node.network.peer_state import PeerState
from node.network.peer_views import find_stall
from node.observe.standing_view import (
    BELIEVED_SECONDS,
    NO_OUTLOOK,
    QUIET_SAID_SECONDS,
    UNHELD_COUNTED_MAX,
    Link,
    Outlook,
    PeerStanding,
    Unheld,
)
from node.sync.connection import Connection
from node.sync.given_blocks import keep_fetched
from node.sync.hub import Hub
from node.sync.kept_parts import find_kept_by
from node.sync.sync_progress import TransferRates
from protocol.ids import BlockId, PeerId, RepoId, TopicKey, UserId
from protocol.session.topic_progress import IN_SYNC, TopicProgress
from storage.blobs.unfetched import count_unfetched
from storage.commits.commits import has_newer
from storage.commits.own_commits import load_author_num, load_last_num, load_latest, load_since
from storage.engine.errors import StorageError
from storage.peers.peers import (
    Holder,
    PeerUser,
    load_holders,
    load_peer_users,
    put_holders,
    put_peer_users,
)
from storage.repos.repos import DAY_MS, Repo

log = structlog.get_logger()

HOLDERS_MAX: Final = 64
"""Peers of one repo whose times of holding all are stored, those that held most: as many as a large club has."""
SAVE_SECONDS: Final = 60.0
"""Seconds between two times that they are stored: a crash makes what was written and sent since count as unheld."""
_LOOK_SECONDS: Final = 5.0
_REFUSED: Final = "refused: "
"""Beginning of the state of a topic that the peer takes no more of."""


@dataclass(slots=True)
class _Memory:
    level_since: dict[PeerId, int] = field(default_factory=dict)
    holders: dict[PeerId, Holder] = field(default_factory=dict)
    held: dict[TopicKey, int] = field(default_factory=dict)
    parts: dict[int, int] = field(default_factory=dict)
    recent: dict[int, tuple[int, int]] = field(default_factory=dict)
    is_stored: bool = True


@dataclass(slots=True)
class _Seen:
    """A connection at the last look."""

    is_relay: bool = False
    repos: set[int] = field(default_factory=set)
    """Repos that both nodes follow."""
    moving: set[int] = field(default_factory=set)
    """Shared repos with a transfer in progress."""
    has_turns: bool = False
    """True if topics were seen to wait for their turn."""


class Standings:
    """Remembers since when peers hold the same. `run` looks; `outlook` looks too, and tells. A listener of the hub.

    A look costs what has changed since the one before: topics that connections have worked on, and repos that the store
    has touched. A node has thousands of both, and each page that is open looks each second.
    """

    def __init__(self, hub: Hub, network: Network) -> None:
        """Read the store. Raises StorageError."""
        self._hub = hub
        self._network = network
        self._memories: dict[RepoId, _Memory] = {}
        with hub.replica.database.read() as connection:
            self._last_at_start = load_last_num(connection)
            hub.owners.load(load_peer_users(connection))
            for num, holders in load_holders(connection).items():
                if num in hub.replica.repos:
                    held = {one.peer: one for one in holders}
                    self._memories[hub.replica.repos[num].repo_id] = _Memory(holders=held)
        # By repo: the last commit's number, of those that connections were told.
        self._last: dict[int, int] = {}
        self._brought: set[int] = set()  # repos that have got commits since the last look
        # As the last look found them.
        self._looked_ms = hub.clock_ms()
        self._tick: int | None = None
        self._relays: set[PeerId] = set()
        self._foreign = 0
        """Connected peers that say what this version does not know."""
        self._seen: dict[Connection, _Seen] = {}
        self._links: dict[int, dict[Connection, Link]] = {}  # by repo
        self._outlooks: dict[int, Outlook] = {}
        self._repo_ids: dict[int, RepoId] = {}
        self._changed: set[int] = set()
        hub.add(self)

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Note new commits. Connections get them in the same step, so a peer that is level after it has these."""
        opened = self._hub.replica.by_topic.get(topic)
        if opened is not None:
            known = self._last.get(opened.repo_num, self._last_at_start)
            self._last[opened.repo_num] = max(known, *nums)
            self._brought.add(opened.repo_num)

    def topics_changed(self) -> None:
        """Do nothing: the next look sees them."""

    def missed(self) -> None:
        """Do nothing: commits that were missed count as unheld."""

    async def run(self, user: UserId) -> None:
        """Look until cancelled."""
        saved_at = trio.current_time()
        while True:
            self.look()
            new = self._hub.given.take_new()
            if new:
                await self._try(self._record_fetched, user, new)
            if said := self._hub.owners.take_new():
                await self._try(self._keep_owners, said)
            if trio.current_time() - saved_at >= SAVE_SECONDS:
                await self.save()
                saved_at = trio.current_time()
            await trio.sleep(_LOOK_SECONDS)

    async def save(self, *, is_last: bool = False) -> None:
        """Store which peers held which repos, as far as it changed.

        `is_last`: also the time up to which connected peers held them."""
        for one in self._memories.values():
            if is_last and one.level_since:
                one.is_stored = False
        changed = {repo_id: one for repo_id, one in self._memories.items() if not one.is_stored}
        if not changed:
            return
        for one in changed.values():
            _note_still_held(one, self._looked_ms)
        holders = {repo_id: list(one.holders.values()) for repo_id, one in changed.items()}
        for one in changed.values():
            one.is_stored = True

        def write() -> None:
            repos = self._hub.replica.repos  # by number: one that was deleted meanwhile is not among them
            found = {num: holders[one.repo_id] for num, one in repos.items() if one.repo_id in holders}
            with self._hub.replica.database.write() as connection:
                put_holders(connection, found)

        if not await self._try(self._hub.write, write):
            for one in changed.values():
                one.is_stored = False  # tried again with the next

    async def _try(self, work: Callable[..., Awaitable[object]], *args: object) -> bool:
        """Return True if the store took part. Commits that are not noted count as unheld; a full disk is said elsewhere."""
        try:
            await work(*args)
        except StorageError as error:
            log.error("storage failed", error=str(error))
            return False
        return True

    async def _record_fetched(self, user: UserId, new: Mapping[tuple[int, BlockId], int]) -> None:
        replica = self._hub.replica
        asked = {repo_num for (repo_num, _), kept_from in new.items() if kept_from}
        try:
            whole = await self._hub.run_blocking(self._hub.given.settle, replica, new)
            if whole or asked:
                await self._hub.write(keep_fetched, replica, whole, new, user)
        except StorageError:
            self._hub.given.note_again(new)  # else who gives a file up would count for one that has it
            raise
        if whole or asked:
            replica.shown.restate({*asked, *(repo_num for repo_num, _ in whole)} & replica.repos.keys())

    async def _keep_owners(self, said: Sequence[PeerUser]) -> None:
        """Store the users of peers, and recompute the standing of repos that names them."""
        peers = {one.peer for one in said}
        self._changed.update(
            num for num, links in self._links.items() if any(link.peer in peers for link in links.values())
        )

        def write() -> None:
            with self._hub.replica.database.write() as connection:
                put_peer_users(connection, said)

        await self._hub.write(write)

    def outlook(self, repo: Repo) -> Outlook:
        """Look at one repo now. Runs in trio's thread, where connections change."""
        self.look()
        return self._outlooks.get(repo.num, NO_OUTLOOK)

    @property
    def outlooks(self) -> Mapping[int, Outlook]:
        """Results of the last look, by number of the repo. Replaced one by one: to be copied for another thread."""
        return self._outlooks

    def holders(self, repo: Repo) -> list[PeerStanding]:
        """List peers that follow a repo now, those that hold the same first, then others by when they held all last."""
        links = {link.peer: link for link in self.outlook(repo).links if link.is_joined}
        memory = self._memories.get(repo.repo_id, _Memory())
        found = [
            PeerStanding(
                peer,
                link.is_relay if (link := links.get(peer)) is not None else peer in self._network.relays,
                link,
                None if (held := memory.holders.get(peer)) is None else held.held_at,
            )
            for peer in links.keys() | memory.holders.keys()
        ]
        return sorted(
            found,
            key=lambda one: (
                one.link is None,
                one.link is not None and not one.link.is_level,
                -(one.held_at or 0),
                one.peer,
            ),
        )

    def take_changed(self) -> set[int]:
        """Take the numbers of repos of which something else is known than at the last call. For one caller."""
        self.look()
        changed, self._changed = self._changed, set()
        return changed

    def look(self) -> None:
        """Read the changes of connections and repos. In trio's thread."""
        self._tick, touched, _ = self._hub.replica.shown.repos_since(self._tick)
        tables = self._hub.replica.tables
        # A number may be given again, to another repo.
        gone = [num for num in touched if num not in tables.repos or self._is_other(tables.repos[num])]
        due = {*touched, *self._brought}
        self._brought.clear()
        states = [(one.connection, one) for one in self._network.peers if one.connection is not None]
        foreign = sum(connection.unknown_count > 0 for connection, _ in states)
        is_other_count = len(states) != len(self._seen) or foreign != self._foreign
        self._foreign = foreign
        for connection in self._seen.keys() - {connection for connection, _ in states}:
            due |= self._lose(connection)
        for num in gone:
            self._forget(num)
        for connection, state in states:
            due |= self._look_at(connection, state, touched)
        if self._relays != self._network.relays:
            self._relays = set(self._network.relays)
            due |= tables.repos.keys()
        elif is_other_count:  # where a peer is level, no matter how many others are connected
            due.update(num for num, one in self._outlooks.items() if not one.level_since)
        for num in due & tables.repos.keys():
            outlook = self._outlook(tables.repos[num], len(states))
            if self._outlooks.get(num) != outlook:
                self._outlooks[num] = outlook
                self._changed.add(num)
        self._looked_ms = self._hub.clock_ms()

    def _look_at(self, connection: Connection, state: PeerState, touched: Sequence[int]) -> set[int]:
        """Read the changes of one connection, or all of a new one; return the repos whose links changed."""
        tables, changed = self._hub.replica.tables, connection.take_changed()
        seen = self._seen.get(connection)
        if seen is None:
            seen = self._seen[connection] = _Seen()
            changed = {progress.topic for progress in connection.topics}
        if connection.waiting_count and not seen.has_turns:
            seen.has_turns = True
            changed |= {topic for topic in tables.by_topic if connection.is_waiting(topic)}
        nums = {tables.by_topic[topic].repo_num for topic in changed if topic in tables.by_topic}
        nums.update(num for num in (*touched, *seen.moving) if num in tables.repos)
        if connection.peer_is_relay != seen.is_relay:
            seen.is_relay = connection.peer_is_relay
            nums |= seen.repos
        found = set()
        for num in nums:
            links = self._links.setdefault(num, {})
            progress = [connection.session.progress_of(one.topic) for one in tables.topics_in(num)]
            joined = [one for one in progress if one is not None and one.is_joined]
            waiting = sum(connection.is_waiting(one.topic) for one in tables.topics_in(num))
            now = self._hub.clock_ms() // 1000
            has_link = joined or waiting  # a peer with which a topic waits may follow it
            link = _link(state, joined, tables, num, waiting, now) if has_link else None
            if links.get(connection) != link:
                found.add(num)
            (seen.moving.add if link is not None and link.changes_alone else seen.moving.discard)(num)
            if link is None:
                links.pop(connection, None)
                seen.repos.discard(num)
            else:
                links[connection] = link
                seen.repos.add(num)
        return found

    def _lose(self, connection: Connection) -> set[int]:
        """Look no more at a connection that has ended; repos that it linked."""
        repos = self._seen.pop(connection).repos
        for num in repos:
            self._links[num].pop(connection, None)
        return repos

    def _is_other(self, repo: Repo) -> bool:
        return self._repo_ids.get(repo.num, repo.repo_id) != repo.repo_id

    def _forget(self, num: int) -> None:
        """Forget a repo that is no longer here."""
        self._changed.add(num)
        self._outlooks.pop(num, None)
        self._last.pop(num, None)
        for connection in self._links.pop(num, ()):
            self._seen[connection].repos.discard(num)
            self._seen[connection].moving.discard(num)
        repo_id = self._repo_ids.pop(num, None)
        if repo_id is not None and repo_id not in self._hub.replica.tables.roots:
            self._memories.pop(repo_id, None)  # else it was deleted, and has come again

    def _outlook(self, repo: Repo, connected: int) -> Outlook:
        """Put the links of a repo together, and note who holds the same now."""
        memory = self._memories.setdefault(repo.repo_id, _Memory())
        self._repo_ids[repo.num] = repo.repo_id
        links = tuple(self._links.get(repo.num, {}).values())
        # While commits wait here, who holds the same does not hold what they wait for either.
        is_waiting = bool(self._hub.replica.waiting_in(repo.num))
        level = [] if is_waiting else [link.peer for link in links if link.has_all]
        newest = self._last.get(repo.num, self._last_at_start)
        _note_still_held(memory, self._looked_ms)
        _note_level(memory, level, self._hub.clock_ms(), newest)
        for link in links:
            if link.days:  # it gives up what it held, for the sake of this node, perhaps
                memory.held, memory.parts = {}, {}
                memory.is_stored &= memory.holders.pop(link.peer, None) is None
        here = {one.topic for one in self._hub.replica.tables.topics_in(repo.num)}
        memory.held = {topic: upto for topic, upto in memory.held.items() if topic in here}
        memory.held.update(dict.fromkeys((topic for link in links for topic in link.held), newest))
        for link in links:
            if link.is_level and not link.has_all and not is_waiting:
                self._note_part(memory, repo, link, newest)
        last = max(memory.holders.values(), key=lambda one: (one.upto, one.held_at), default=None)
        return Outlook(
            links,
            connected,
            dict(memory.level_since),
            last,
            last is not None and last.peer in self._network.relays,
            dict(memory.held),
            dict(memory.parts),
            dict(memory.recent),
            self._foreign,
        )

    def _note_part(self, memory: _Memory, repo: Repo, link: Link, newest: int) -> None:
        """Note what a peer has that keeps a part of the contents. Everybody keeps the root branch."""
        root = self._hub.replica.root_branch(repo).num
        kept = link.keeps
        if kept is None:
            kept = frozenset(one.num for one in self._hub.replica.branches_in(repo.num))
        if not link.days:
            memory.parts.update(dict.fromkeys({root, *kept}, newest))
            return
        memory.parts[root] = newest
        # A day less, for clocks differ. What is older it may give up for the sake of this node.
        since = self._hub.clock_ms() - (link.days - 1) * DAY_MS
        memory.recent.update(dict.fromkeys(kept, (newest, since)))

    def is_held(self, repo: Repo, outlook: Outlook) -> bool:
        """Return True if a peer is known to have held each commit of a repo that is here. Reads the store."""
        if outlook.last is None:
            return False
        branches = [one.num for one in self._hub.replica.branches_in(repo.num)]
        with self._hub.replica.database.read() as connection:
            return not has_newer(connection, branches, outlook.last.upto)

    def count_unheld(self, user: UserId, outlooks: Mapping[int, Outlook]) -> dict[int, Unheld]:
        """Count by repo the commits of a user that no other node is known to have. Reads the store.

        Counts commits since a peer last held all, without those that a peer was seen to hold of one topic since the start;
        at most UNHELD_COUNTED_MAX of each branch. Costs one query for all repos, and one for each branch that has such
        commits or files.
        """
        found: dict[int, int | None] = dict.fromkeys(outlooks, 0)
        asked = [num for num, one in outlooks.items() if not any(link.has_all for link in one.links)]
        with self._hub.replica.database.read() as connection:
            files = count_unfetched(connection, list(outlooks), user, UNHELD_COUNTED_MAX)
            author_num = load_author_num(connection, user)
            latest = [] if author_num is None else load_latest(connection, asked, author_num)
            for repo_num, branch_num, num in latest:
                assert author_num is not None, "some were found"
                outlook, count = outlooks[repo_num], found[repo_num]
                held, upto = outlook.held, outlook.parts.get(branch_num, 0)
                if outlook.last is not None:
                    upto = max(upto, outlook.last.upto)
                elif not (outlook.parts or outlook.recent):
                    found[repo_num] = count = None
                if count is not None and num > upto:
                    since = load_since(connection, branch_num, author_num, upto, UNHELD_COUNTED_MAX)
                    recent, posts_from = outlook.recent.get(branch_num, (0, 0))
                    found[repo_num] = count + sum(
                        own.num > held.get(own.topic, 0)
                        and (own.num > recent or (own.posted_at is not None and own.posted_at < posts_from))
                        for own in since
                    )
        return {num: Unheld(count, files[num]) for num, count in found.items()}


def _note_still_held(memory: _Memory, looked_ms: int) -> None:
    """Note that peers which were level have held the same until the last look."""
    for peer in memory.level_since:
        if peer in memory.holders:
            memory.holders[peer] = replace(memory.holders[peer], held_at=looked_ms)


def _note_level(memory: _Memory, level: Sequence[PeerId], now_ms: int, upto: int) -> None:
    """Note which peers hold all up to a commit now. Peers that left are stored again, with when they held it last."""
    left = memory.level_since.keys() - set(level)
    memory.level_since = {peer: memory.level_since.get(peer, now_ms // 1000) for peer in level}
    for peer in level:
        before = memory.holders.get(peer)
        memory.holders[peer] = Holder(peer, now_ms, upto)
        if before is None or before.upto != upto:
            memory.is_stored = False
    if left:
        memory.is_stored = False
    while len(memory.holders) > HOLDERS_MAX:
        del memory.holders[
            min(memory.holders, key=lambda peer: (memory.holders[peer].upto, memory.holders[peer].held_at))
        ]


def is_topic_level(state: str, behind: int, *, bodiless: bool) -> bool:
    """Return True if a peer has nothing of a topic to give, nor to get.

    Where it has erased bodies that commits are judged by, it gives no more: what follows these waits here.
    """
    return state == IN_SYNC and (not behind or bodiless)


def _link(
    state: PeerState,
    each: Sequence[TopicProgress],
    tables: Tables,
    repo_num: int,
    waiting: int,
    unix_seconds: int,
) -> Link:
    """Link a repo to a peer; `waiting` of its topics are still to be compared.

    A peer is level if it follows all topics that are written on now: excluded users hold earlier epochs.
    """
    assert state.connection is not None, "the caller looked"
    written = tables.writing_topics(repo_num)
    said = [find_kept_by(tables, tables.by_topic[one.topic], one.has_kept) for one in each]
    days = min((one.has_kept.days for one in each if one.has_kept.days), default=0)
    partly = [one for one in said if one is not None]
    keeps = partly[0].intersection(*partly) if partly else None
    follows_all = written <= {one.topic for one in each}
    is_level = all(is_topic_level(one.state, one.behind, bodiless=one.bodiless > 0) for one in each)
    is_compared = all(one.state != "comparing" for one in each)
    rates, now = state.connection.transfer_rates, trio.current_time()
    coming = [one.topic for one in each if one.behind]
    stalls = (find_stall(state.connection, one, unix_seconds) for one in each)
    return Link(
        state.peer,
        state.connection.peer_is_relay,
        is_level and not waiting and follows_all,
        sum(one.behind for one in each),
        sum(one.unconfirmed for one in each) if is_compared else None,
        next((one.state.removeprefix(_REFUSED) for one in each if one.state.startswith(_REFUSED)), ""),
        _sum_rates(rates.arriving, coming, now),
        _sum_rates(rates.leaving, [one.topic for one in each if one.unconfirmed], now),
        frozenset(
            one.topic
            for one in each
            if one.state == IN_SYNC and not one.unconfirmed and keeps is None and not days
        ),
        _quiet_for(
            now - max((rates.arriving.last_at(topic) or state.met_at for topic in coming), default=now)
        ),
        waiting,
        bool(each),
        min(filter(None, stalls), default=None),
        follows_all,
        any(one.topic in written or tables.is_link_in_use(one.topic) for one in each),
        keeps,
        days,
    )


def _quiet_for(seconds: float) -> int:
    """Round a wait down to steps: else each look would find that something has changed."""
    return int(min(seconds, BELIEVED_SECONDS)) // QUIET_SAID_SECONDS * QUIET_SAID_SECONDS


def _sum_rates(rates: TransferRates, topics: Sequence[TopicKey], now: float) -> float | None:
    """Return the sum of the rates that are known; None where none is."""
    known = [rate for topic in topics if (rate := rates.rate(topic, now)) is not None]
    return sum(known) if known else None
