"""Duties of a member's node for the others' access to a repo (E9, E10): it starts, opens and hands over epochs.

Each duty falls to everybody who could do it, one after the other: first to who caused it, then to admins, then to other
writers, in the order of their ids. So it is done once where nodes are connected, and by those left where they are not.

Everything here runs in worker threads, and again after each change and when a delay is over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Final

import structlog

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.epoch_starts import make_epoch_hand
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.prekeys import renewal_ms
from protocol.formats.body import Join, Permission, Revoke
from protocol.formats.epochs import EpochHand
from protocol.formats.text import id_text
from protocol.ids import CommitId, EpochId, RepoId, UserId
from protocol.limits.formats import ACK_COUNT_MAX, EPOCH_HANDED_COUNT_MAX
from storage.engine.id_keys import chunks
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo
from verifier.epoch_commits import epoch_statement
from verifier.epochs import EPOCHS_TOLD_IN_MAX
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_keys

log = structlog.get_logger()

ADMIN_STEP_SECONDS: Final = 5.0
"""What an admin waits before starting or opening an epoch, and again for each admin that precedes: who caused it did so at
once, and the commit is on its way."""
WRITER_STEP_SECONDS: Final = 60.0
"""The same for other writers."""
HAND_SECONDS: Final = 60.0
"""What admins wait before they hand over what another is to hand over; other writers twice as long, and again for each
writer that precedes."""
_TICK_SECONDS: Final = 0.001
"""The least that is waited: of less than a clock can tell, work would be looked for again and again at the same time."""
_PLACES_COUNTED: Final = 10
"""Of the members that precede, so many are waited for, and the next begin anew: nobody waits for hours where many are away
for good, and what two do at once does no harm."""


@dataclass(slots=True)
class _Timers:
    """Since when things have been due in a repo, in seconds of a clock that only goes forward."""

    since: dict[bytes, float] = field(default_factory=dict)

    def left(self, what: bytes, delay: float, now: float) -> float:
        """Return the seconds until something has waited for `delay`; 0.0 if it has."""
        left = self.since.setdefault(what, now) + delay - now
        return max(left, _TICK_SECONDS) if left > 0 else 0.0


_START: Final = b"start"
_OPEN: Final = b"open"
_RENEW: Final = b"renew"


class EpochDuties:
    """The duties of one user. Not for two threads at a time."""

    def __init__(self, replica: Replica, author: Author) -> None:
        self._replica = replica
        self._author = author
        # By repo: root branch heads at which nothing was due, nor will be.
        self._done: dict[RepoId, tuple[CommitId, ...]] = {}
        self._timers: dict[RepoId, _Timers] = {}

    def perform(self, repo: Repo, now: float, stored: IngestResult) -> float | None:
        """Perform a repo's duties of this moment; return the seconds until more are due, None for never.

        `stored` gets the commits that were written. Costs O(members who lack the epoch) if the root branch has grown
        since, else O(1). Costs O(members) if an epoch is due or a branch was closed, to find whose turn it is. Raises
        ServiceError, StorageError.
        """
        replica = self._replica
        if repo.repo_id in replica.own_feeds.uncertain or repo.repo_id in replica.lobbies:
            return None
        with self._author.lock:
            return self._perform(replica.repos[repo.num], now, stored)

    def _perform(self, repo: Repo, now: float, stored: IngestResult) -> float | None:
        replica, me = self._replica, self._author.user
        epoch = replica.writing_epoch(repo)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            state, epochs = membership.now(), membership.epochs
            if self._done.get(repo.repo_id) == state.heads or epochs.find(epoch.epoch_id) is None:
                return None
            held = state.permission(me) or 0
            if held < Permission.WRITE or (repo.is_behind and not epochs.is_due(state)):
                return None
            turns = _Turns(membership, me)
            is_admin, is_due = held >= Permission.ADMIN, epochs.is_due(state)
            keys = find_keys(membership.operations, state, me)  # who made a link may have moved since
            used_up = epochs.find_used_up_links(state, keys) if is_admin and not is_due else []
            is_renewed = is_admin and epochs.is_renewal_due(state, keys)
            is_closed = not is_due and bool(epochs.find_unopened({epoch.epoch_id}, state.heads))
            stale_in = None if is_due or not is_admin else self._find_stale(membership, epoch)
            delay = turns.step() if is_due or is_closed or stale_in == 0.0 else 0.0
            heads = state.heads
        timers = self._timers.setdefault(repo.repo_id, _Timers())
        if used_up:
            self._revoke(repo, used_up, stored)
            return 0.0  # to renew
        if is_renewed:
            log.info("new secrets, since a link is over", repo=id_text(repo.repo_id))
            self._author.start_epoch(repo, stored)
            return 0.0
        if is_due or is_closed:
            if left := timers.left(_START if is_due else _OPEN, delay, now):
                return left
            timers.since.clear()
            self._author.preparation.prepare(repo, stored)
            return 0.0
        timers.since.pop(_START, None)
        timers.since.pop(_OPEN, None)
        if stale_in == 0.0 and not (stale_in := timers.left(_RENEW, delay, now)):
            log.info("new secrets, since members have fresh keys", repo=id_text(repo.repo_id))
            timers.since.clear()
            self._author.start_epoch(repo, stored)
            return 0.0
        wait = self._hand_over(repo, epoch, turns, timers, now, stored)
        if wait is None and stale_in is None:
            timers.since.clear()
            self._done[repo.repo_id] = heads
        return min((one for one in (wait, stale_in) if one is not None), default=None)

    def _revoke(self, repo: Repo, links: Sequence[Operation], stored: IngestResult) -> None:
        """Revoke used up links: else who has one joins by an older past, and is handed the new secrets."""
        root = self._replica.root_branch(repo)
        for link in links:
            self._author.write_many(root, [Draft(Revoke(link.commit_id))], stored=stored)

    def _find_stale(self, membership: Membership, epoch: Epoch) -> float | None:
        """Return the seconds until an epoch that does not know some member's prekey is old; None where it knows all."""
        state, started = membership.now(), membership.epochs.find(epoch.epoch_id)
        assert started is not None, "it was looked for"
        unknown = membership.epochs.find_unknown_prekeys(started)
        if not any(state.permission(one.author) is not None for one in unknown):
            return None
        old_at = started.timestamp + renewal_ms(len(state.members()))
        return max(0.0, (old_at - self._author.writer.clock_ms()) / 1000)

    # --- handing over ---

    def _hand_over(
        self,
        repo: Repo,
        epoch: Epoch,
        turns: "_Turns",
        timers: _Timers,
        now: float,
        stored: IngestResult,
    ) -> float | None:
        """Hand the current epoch to members who lack it; return the seconds until there is more to do."""
        with self._replica.membership_lock:
            lacking = [*self._find_lacking(turns.membership, epoch)]
            delays = {user: turns.hand_delay(epoch.epoch_id, user) for user, _ in lacking}
        for user in timers.since.keys() - delays.keys() - {_START, _OPEN, _RENEW}:
            del timers.since[user]
        waits = {user: timers.left(user, delay, now) for user, delay in delays.items()}
        due = [one for one in lacking if not waits[one[0]]]
        if due:
            self._author.preparation.prepare(repo, stored)
            # What could not be handed over, since something is closed that is not held here, is tried again later.
            is_written = self._write_hands(repo, epoch, turns.membership, due, stored)
            return 0.0 if is_written else HAND_SECONDS
        return min(waits.values(), default=None)

    def _find_lacking(self, membership: Membership, epoch: Epoch) -> Iterator[tuple[UserId, bool]]:
        """List members who may lack an epoch, and writers who may lack its writers' secret, in order.

        Each comes with whether the member may write. Members to whom all was handed that this node has are left out.
        Costs O(who lacks it).
        """
        epochs, (members, writers) = membership.epochs, membership.now().holders()
        numbers, has_secret = membership.operations.numbers, epoch.writers_seed is not None
        lacking = members & ~epochs.sure_holders(epoch.epoch_id)
        if has_secret:
            lacking |= writers & ~epochs.sure_writers(epoch.epoch_id)
        for user in numbers.users(lacking):
            may_write = bool(writers & numbers.bit(user))
            if self._find_places(membership, epoch, user, needs_secret=may_write and has_secret):
                yield user, may_write

    def _find_places(
        self, membership: Membership, epoch: Epoch, user: UserId, *, needs_secret: bool
    ) -> list[Epoch]:
        """Find the epochs in which to hand over to a member: the latest that the member surely holds, else the latest."""
        here = self._replica.tables.held_epochs(epoch.repo_num)
        operations = membership.operations
        held = [one for one in membership.epochs.find_held(user) if one.started_epoch in here]
        places = held[:1]
        if not places:
            # Who lacks the epoch cannot be told in it; but a follower by its link may lack the writers' secret alone.
            started = [
                one
                for one in operations.epochs
                if one.started_epoch in here and (needs_secret or one.started_epoch != epoch.epoch_id)
            ]
            places = sorted(started, key=operations.place, reverse=True)[:EPOCHS_TOLD_IN_MAX]
        told = {
            one.epoch
            for one in operations.hands_of(epoch.epoch_id)
            if isinstance(one.body, EpochHand)
            for item in one.body.boxes
            if item.user == user and (item.writers_box is not None or not needs_secret)
            if membership.epochs.is_handed(one, user)
        }
        return [here[one.started_epoch] for one in places if one.started_epoch not in told]

    def _write_hands(
        self,
        repo: Repo,
        epoch: Epoch,
        membership: Membership,
        due: list[tuple[UserId, bool]],
        stored: IngestResult,
    ) -> bool:
        """Write what hands an epoch to members, all in one transaction; return True if any was written.

        A follower is told in many epochs (E10). All tell the same, so boxes are sealed once.
        """
        with self._replica.membership_lock:
            now = membership.now()
            started = membership.epochs.find(epoch.epoch_id)
            if started is None or not membership.epochs.opens_all(epoch.epoch_id, now.heads):
                return False
            told: dict[int, tuple[Epoch, list[tuple[UserId, bool]]]] = {}
            for user, may_write in due:
                if now.permission(user) is None:
                    continue
                needs_secret = may_write and epoch.writers_seed is not None
                for place in self._find_places(membership, epoch, user, needs_secret=needs_secret):
                    told.setdefault(place.num, (place, []))[1].append((user, may_write))
            if len(now.heads) > ACK_COUNT_MAX:
                return (
                    False  # others wrote meanwhile: merged first, in the epoch in use, when it is tried again
                )
        seal = cache(partial(make_epoch_hand, epoch, epoch_statement(started), before=now))
        chain = [
            (place, Draft(seal(part), now.heads))
            for place, users in told.values()
            for part in chunks(tuple(users), EPOCH_HANDED_COUNT_MAX)
        ]
        if chain:
            stored.add(self._author.writer.write_chain(self._replica.root_branch(repo), chain))
        return bool(chain)


class _Turns:
    """Members who may act, and this user's turn among them. Hold `membership_lock`."""

    def __init__(self, membership: Membership, me: UserId) -> None:
        self.membership = membership
        self._me = me
        self._is_admin = (membership.now().permission(me) or 0) >= Permission.ADMIN

    @cached_property
    def _place(self) -> int:
        """Count the admins, or the writers, that precede. Costs O(members)."""
        least = Permission.ADMIN if self._is_admin else Permission.WRITE
        members = self.membership.now().members()
        before = [user for user, held in members.items() if held >= least and user < self._me]
        return len(before) % _PLACES_COUNTED

    def step(self) -> float:
        """Return the seconds to wait before starting or opening an epoch."""
        return (ADMIN_STEP_SECONDS if self._is_admin else WRITER_STEP_SECONDS) * (1 + self._place)

    def hand_delay(self, epoch_id: EpochId, user: UserId) -> float:
        """Seconds to wait before handing an epoch to a member."""
        operations = self.membership.operations
        started = self.membership.epochs.find(epoch_id)
        causes = [one.author for one in (started,) if one is not None]
        causes += [_admitter(self.membership, one) for one in operations.grants_of(user)]
        if self._me in causes:
            return 0.0
        if self._is_admin:
            return HAND_SECONDS + ADMIN_STEP_SECONDS * self._place
        return 2 * HAND_SECONDS + WRITER_STEP_SECONDS * self._place


def _admitter(membership: Membership, grant: Operation) -> UserId:
    """Return who gave a permission: the author of a grant, or of the invitation that a join used."""
    if isinstance(grant.body, Join):
        return membership.operations[grant.body.invitation].author
    return grant.author
