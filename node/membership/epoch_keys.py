"""Takes up the keys of epochs that others give this user (E7), from all that opens, whatever becomes of it.

A commit may wait for what only its own contents open, find no room to wait, or be rejected. So keys are taken before it is
judged, and each is checked by the mark that its epoch's init states. While that init is not here either, a key is a *claim*:
the epoch's topics are followed, until what comes there tells (`epoch_claims`). What an init says counts as right where its
own epoch is known to be right: the repo's members have accepted it.

Everything here runs in worker threads, and again after each change.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import structlog

from node.authoring.author import Author
from node.ingest.key_givers import KEY_GIVING
from node.ingest.membership_effects import choose_epoch, follow_links
from node.ingest.publication_parsing import read_pending
from node.ingest.publication_reading import DecodedCommit
from node.ingest.replica import Replica, load_start_parts
from node.membership.epoch_claims import ClaimKind, ClaimMemory, Claims
from protocol.crypto.epoch_boxes import BOX_SIZE, BoxOpener, epoch_mark, writers_mark
from protocol.crypto.keys import EpochKey, WritersSecret
from protocol.formats.commit import Commit
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, EpochStatement, GivenEpoch, open_keys
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text
from protocol.ids import CommitId, EpochId, Mark, RepoId, UserId, root_branch
from protocol.limits.peers import BOXES_TRIED_MAX
from storage.commits.pending import load_pending
from storage.commits.rejected_givers import (
    forget_rejected_givers,
    list_rejected_givers,
    load_rejected_givers,
)
from storage.engine.errors import StorageError
from storage.engine.id_keys import id_key
from storage.repos.deletion import forget_claim
from storage.repos.epochs import Epoch, add_epoch
from storage.repos.prekeys import load_prekeys
from storage.repos.repos import Repo, set_writing_epoch
from verifier.epoch_commits import epoch_statement
from verifier.verify import key_mark

log = structlog.get_logger()


class KeyTaker:
    """Takes up the keys and writers' secrets of one user. Not for two threads at a time."""

    def __init__(self, replica: Replica, author: Author) -> None:
        self._replica = replica
        self._author = author
        self._memories: dict[RepoId, ClaimMemory] = {}
        self._boxes_tried: Counter[UserId | None] = (
            Counter()
        )  # in vain, by the member who made them; None: others

    def take(self, repo: Repo, now: float = 0.0) -> bool:
        """Store the keys and secrets that are offered; whether any was new, so that more may be judged now.

        `now` is in seconds of a clock that only goes forward. Of the repo's commits that wait, or are kept though they were
        rejected, each is read and opened once: O(those that are new). Their ids are listed each time: O(all of them). Beyond
        REMEMBERED_MAX the surplus is read each time. What other repos have plays no part. Raises StorageError.
        """
        memory = self._remember(repo)
        try:
            fresh, gone = self._find_given(repo, memory, now)
            fresh += self._find_writers_secrets(repo, memory)
            memory.forget_surplus()
            return bool(fresh or gone) and self.keep(repo, fresh, gone)
        except StorageError:  # nothing was stored of what was looked at
            memory.forget_looks()
            raise

    def _remember(self, repo: Repo) -> ClaimMemory:
        here = self._replica.tables.of_id
        if len(self._memories) > len(here):
            self._memories = {one: memory for one, memory in self._memories.items() if one in here}
        return self._memories.setdefault(repo.repo_id, ClaimMemory())

    def forget(self, repo: Repo) -> None:
        """Forget what was looked at of a repo that is deleted: followed again, it gives its keys again."""
        self._memories.pop(repo.repo_id, None)

    def wait(self, repo: Repo, now: float) -> float | None:
        """Return the seconds until keys are taken again though nothing changes."""
        memory = self._memories.get(repo.repo_id)
        return None if memory is None or not memory.left_out else self._know(repo, memory, now).wait()

    def _find_given(self, repo: Repo, memory: ClaimMemory, now: float) -> tuple[list[Epoch], list[Epoch]]:
        """Find the keys that commits give which were not accepted, and claims that leave for others."""
        here = self._replica.tables.epochs_in(repo.num)
        memory.note_right({one.epoch_id for one in here if one.claimed_by is None})
        # First: it says which epochs' inits are here, so that fewer keys are claims.
        self._forget_givers(repo, memory)
        waiting = self._read_waiting(repo, memory)
        if not waiting and not memory.left_out:
            return [], []
        known = self._know(repo, memory, now)
        known.drop_false()
        again: list[CommitId] = []
        if known.is_time_to_look_again():
            memory.left_at = known.count()
            again = memory.find_left_out()
            for commit_id in again:
                memory.looked_at.pop(commit_id, None)
            waiting = self._read_waiting(repo, memory)
            known.marks |= memory.marks
            for commit_id in again:
                if commit_id not in waiting:
                    memory.left_out.pop(commit_id, None)
        fresh: list[Epoch] = []
        for giver in self._give_again(known, waiting, again):
            commit_id, kind = giver.commit.commit_id, known.kind_of(giver.commit)
            known.begin_look()
            for epoch in self._find_keys(known, giver):
                known.add(epoch)
                fresh.append(epoch)
                memory.givers[epoch.epoch_id, epoch.key] = commit_id, kind
                memory.looked_at.pop(CommitId(epoch.epoch_id), None)  # its init, which may say more now
            known.end_look(commit_id, kind)
        if memory.left_out:
            memory.left_at = max(memory.left_at, known.count())
        return [one for one in fresh if one not in known.gone], [one for one in known.gone if one.num]

    def keep(self, repo: Repo, fresh: list[Epoch], gone: Iterable[Epoch] = ()) -> bool:
        """Store epochs, follow their topics, and write in the right one; whether anything changed. Raises StorageError."""
        replica, has_changed = self._replica, False
        with replica.change() as change:
            connection = change.connection
            for epoch in gone:
                forget_claim(connection, epoch.num)
                has_changed = True
            added = [add_epoch(replica.database, connection, epoch) for epoch in fresh]
            membership = replica.membership(repo.repo_id)
            follow_links(replica.database, connection, change.reload(), repo.num, membership)
            tables = change.refresh()
            now = tables.repos[repo.num]
            number, is_behind = choose_epoch(membership, now, tables)
            if (number, is_behind) != (now.epoch_num, now.is_behind):
                set_writing_epoch(connection, repo.num, number, is_behind=is_behind)
            change.unreleased |= {id_key(key_mark(epoch.epoch_id)): False for epoch in fresh}
        return has_changed or any(num is not None for num in added)

    def _know(self, repo: Repo, memory: ClaimMemory, now: float) -> Claims:
        replica = self._replica
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            marks = {one.started_epoch: epoch_statement(one).mark for one in membership.operations.epochs}
            members = list(membership.now().members())
        known = Claims(repo, {*marks}, {**memory.marks, **marks}, members, memory, now)
        here = replica.tables.epochs_in(repo.num)
        memory.forget_all_but({(one.epoch_id, one.key) for one in here})
        for one in here:
            known.add(one)
        return known

    # --- commits that were not accepted ---

    def _read_waiting(self, repo: Repo, memory: ClaimMemory) -> dict[CommitId, DecodedCommit]:
        """Commits of the root branch that give keys and were not looked at; and note the marks that inits state."""
        replica, looked_at = self._replica, memory.looked_at
        for commit_id in [one for one, topic in memory.closed.items() if topic in replica.by_topic]:
            del memory.closed[commit_id]
            looked_at.pop(commit_id, None)
        found = {
            commit_id: one
            for commit_id, one in replica.givers.find(repo.repo_id).items()
            if commit_id not in looked_at
        }
        root_num, known = replica.root_branch(repo).num, looked_at.keys() | found.keys()
        with replica.database.read() as connection:
            kept = [
                (one, replica.topics.get(topic_num), publication)
                for one, topic_num, publication in load_pending(connection, root_num, known)
            ]
            rejected = load_rejected_givers(connection, root_num, known)
        for commit_id, publication in rejected:
            name = decode_publication(publication).topic
            topic = replica.by_topic.get(name)
            if topic is None:  # of a claim whose turn is over: it is read when that has another
                memory.closed[commit_id] = name
            kept.append((commit_id, topic, publication))
        for commit_id, topic, publication in kept:
            readable = None if topic is None else read_pending(topic, publication)
            # What waits for a branch that nobody has added yet stands here, too.
            is_root = readable is not None and readable.commit.branch_id == root_branch(repo.repo_id)
            if readable is None or not is_root or not isinstance(readable.body, KEY_GIVING):
                looked_at[commit_id] = None
            else:
                found[commit_id] = readable
        for commit_id, one in found.items():
            if isinstance(one.body, EpochInit):
                memory.marks[EpochId(commit_id)] = one.body.states.mark
        return found

    def _forget_givers(self, repo: Repo, memory: ClaimMemory) -> None:
        """Forget commits that have no further key to give and of which no key is being tried."""
        replica, tried = self._replica, {commit_id for commit_id, _ in memory.givers.values()}

        def find_spent(ids: Iterable[CommitId]) -> list[CommitId]:
            return [one for one in ids if one not in tried and memory.is_spent(one)]

        replica.givers.discard(repo.repo_id, find_spent(replica.givers.find(repo.repo_id)))
        with replica.database.read() as connection:
            rejected = list_rejected_givers(connection, replica.root_branch(repo).num)
        if gone := [one for one in find_spent(rejected) if EpochId(one) not in memory.marks]:
            with replica.change() as change:
                forget_rejected_givers(change.connection, gone)

    def _give_again(
        self, known: Claims, waiting: dict[CommitId, DecodedCommit], left_out: Sequence[CommitId]
    ) -> Iterator[DecodedCommit]:
        """Commits that were not looked at, by their kinds, as long as they are given back for another look.

        Those that were `left_out` come first, in their order.
        """
        places = {commit_id: place for place, commit_id in enumerate(left_out)}

        def place_of(one: DecodedCommit) -> tuple[ClaimKind, int]:
            return known.kind_of(one.commit), places.get(one.commit.commit_id, len(places))

        while again := [one for commit_id, one in waiting.items() if commit_id not in known.turns.looked_at]:
            yield from sorted(again, key=place_of)

    def _find_keys(self, known: Claims, giver: DecodedCommit) -> Iterator[Epoch]:
        """Yield the new keys of a commit that may be taken up."""
        commit, body = giver.commit, giver.body
        match body:
            case EpochInit():
                yield from self._open_init(known, giver, body)
            case EpochOpen():
                for given in body.epochs:
                    yield from self._check(known, given, commit, is_right=False)
            case EpochHand():
                for epoch in self._open_hand(known.repo, body):
                    given = GivenEpoch(epoch.epoch_id, epoch.key)
                    yield from self._check(known, given, commit, is_right=False)
            case _:
                pass

    def _open_init(self, known: Claims, giver: DecodedCommit, body: EpochInit) -> Iterator[Epoch]:
        commit, parts = giver.commit, giver.parts
        assert parts is not None, "an init is read with what it names"
        epoch_id, mark, repo_id = EpochId(commit.commit_id), body.states.mark, known.repo.repo_id
        held = known.find(epoch_id, mark)
        if held is None or known.lacks_giver(held):
            key = self._find_own_box(known, commit.content.author, mark, parts.boxes)
            if key is not None:
                yield from self._check(known, GivenEpoch(epoch_id, key), commit, is_right=False)
                held = held or Epoch(
                    0, known.repo.num, repo_id, epoch_id, key, claimed_by=commit.content.author
                )
        if held is None:
            return
        for given in open_keys(held.key, repo_id, mark, parts.keys) or ():
            yield from self._check(known, given, commit, is_right=held.claimed_by is None)

    def _check(self, known: Claims, given: GivenEpoch, by: Commit, *, is_right: bool) -> Iterator[Epoch]:
        """Yield the key if it is new and gives its epoch's mark, or while that is unknown, if this author may claim it."""
        repo, author = known.repo, by.content.author
        epoch = Epoch(
            0, repo.num, repo.repo_id, given.epoch, given.key, claimed_by=None if is_right else author
        )
        same = known.epochs.get(given.epoch, ())
        if any(one.key == given.key and (not is_right or one.claimed_by is None) for one in same):
            if (name := (given.epoch, given.key)) in known.turns.began:  # a restart has forgotten who gave it
                known.turns.givers.setdefault(name, (by.commit_id, known.kind_of(by)))
            return
        mark = known.marks.get(given.epoch)
        if mark is not None and epoch.keys.mark != mark:
            return
        if mark is None and not is_right and any(one.claimed_by == author for one in same):
            known.is_full = True  # of each author one for an epoch; the next once that has turned out wrong
            return
        if is_right or known.make_room(by, is_seen=mark is not None):
            yield epoch
        else:
            known.is_full = True

    # --- boxes ---

    def _find_own_box(self, known: Claims, author: UserId, mark: Mark, boxes: bytes) -> EpochKey | None:
        """Open the key of an epoch with this user's box, which stands about where the user stands among the known members.

        Costs 60 us for each box that is tried: one, unless the init's past is not here. The first is always tried; of the
        others each member has BOXES_TRIED_MAX, and all who are no members together.
        """
        count = len(boxes) // BOX_SIZE
        expected = min(bisect_left(known.members, self._author.user), max(count - 1, 0))
        openers = self._open_boxes(known.repo, mark)
        payer = author if known.is_member(author) else None
        for number, place in enumerate(
            sorted(range(count), key=lambda place: (abs(place - expected), place))
        ):
            if number and self._boxes_tried[payer] >= BOXES_TRIED_MAX:
                log.warning("too many boxes of one author open nothing", author=id_text(author))
                return None
            box = boxes[BOX_SIZE * place : BOX_SIZE * (place + 1)]
            if (key := self._open_box(known.repo, mark, box, openers)) is not None:
                return key
            self._boxes_tried[payer] += number > 0
        return None

    def _open_boxes(self, repo: Repo, mark: Mark) -> list[BoxOpener]:
        with self._replica.database.read() as connection:
            prekeys = load_prekeys(connection, repo.num)
        return self._author.open_boxes(mark, prekeys.values())

    def _open_box(self, repo: Repo, mark: Mark, box: bytes, openers: list[BoxOpener]) -> EpochKey | None:
        """Open the key of an epoch with one of this user's keys, the one that gives the mark. Costs 60 us for each."""
        for opener in openers:
            opened = opener.open(box)
            if opened is not None and epoch_mark(EpochKey(opened), repo.repo_id) == mark:
                return EpochKey(opened)
        return None

    def _open_hand(self, repo: Repo, body: EpochHand) -> Iterator[Epoch]:
        """Yield the epoch that is handed to this user, if its box opens."""
        for item in body.boxes:
            if item.user != self._author.user:
                continue
            key = self._open_box(repo, body.mark, item.box, self._open_boxes(repo, body.mark))
            if key is None:
                return
            secret = None
            if item.writers_box is not None:
                secret = self._open_writers_box(repo, body.writers_mark, item.writers_box)
            yield Epoch(0, repo.num, repo.repo_id, body.epoch, key, secret)

    def _open_writers_box(self, repo: Repo, mark: Mark, box: bytes) -> WritersSecret | None:
        for opener in self._open_boxes(repo, mark):
            opened = opener.open(box)
            if opened is not None and writers_mark(WritersSecret(opened), repo.repo_id) == mark:
                return WritersSecret(opened)
        log.warning("a writers' box for this user does not open", repo=id_text(repo.repo_id))
        return None

    # --- writers' secrets ---

    def _find_writers_secrets(self, repo: Repo, memory: ClaimMemory) -> list[Epoch]:
        """Find writers' secrets of accepted epochs: in this user's boxes of inits, and in commits that hand them over."""
        replica, user, opened = self._replica, self._author.user, memory.opened
        lacking = {
            one.epoch_id: one
            for one in replica.tables.held_epochs(repo.num).values()
            if one.writers_secret is None
        }
        if not lacking:
            return []
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            inits: list[tuple[Epoch, EpochStatement, int]] = []
            hands: list[tuple[Epoch, EpochHand]] = []
            for started in membership.operations.epochs:
                epoch = lacking.get(started.started_epoch)
                if epoch is None:
                    continue
                start = started.start
                if start is not None and user in start.writers and started.commit_id not in opened:
                    place = sum(other < user for other in start.writers)
                    inits.append((epoch, epoch_statement(started), place))
                for one in membership.operations.hands_of(started.started_epoch):
                    if isinstance(one.body, EpochHand) and one.commit_id not in opened:
                        opened[one.commit_id] = None
                        hands.append((epoch, one.body))
        found: list[Epoch] = []
        for epoch, states, place in inits:
            opened[CommitId(epoch.epoch_id)] = None
            with replica.database.read() as connection:
                parts = load_start_parts(connection, replica.tables, CommitId(epoch.epoch_id))
            box = parts.writers_boxes[BOX_SIZE * place : BOX_SIZE * (place + 1)]
            secret = self._open_writers_box(repo, states.writers_mark, box)
            found += [] if secret is None else [replace(epoch, writers_secret=secret)]
        for epoch, hand in hands:
            found += [
                replace(epoch, writers_secret=one.writers_secret)
                for one in self._open_hand(repo, hand)
                if one.writers_secret is not None
            ]
        return found
