"""`WindowPort`: a connection's questions for the newest commits of branches whose past is not here.

Of a topic of which nothing is here, and of which the peer holds much, this side says its summary last. Before it asks for
the root branch, causes first, then for a window of each branch from its newest commits back. So the newest posts are
there before the past begins to come, which takes the whole line. A node that is far behind asks beside the past.

Where the link states the newest posts, they are asked for as soon as their topic is joined, beside the root branch.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import trio

from node.ingest.publication_parsing import Opened, find_carrier_fault, prove_topics
from node.ingest.publication_reading import branch_mark_in
from node.runtime.scheduling import WorkBill
from node.runtime.token_bucket import TokenBucket
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.publication import decode_publication
from protocol.ids import BranchMark, TopicKey, root_branch
from protocol.limits.peers import (
    IDLE_TIMEOUT_SECONDS,
    WINDOW_ANSWER_SECONDS,
    WINDOW_ASK_COUNT,
    WINDOW_BEHIND_MIN,
    WINDOW_BRANCHES_MAX,
    WINDOW_HOLD_SECONDS,
    WINDOW_PAGES_MAX,
    WINDOW_RANK_MAX,
    WINDOW_SUMMARY_SECONDS,
    WINDOWS_AT_ONCE_MAX,
    WINDOWS_PER_CHECK,
    WINDOWS_UNANSWERED_MAX,
)
from protocol.session.events import WindowWanted
from protocol.session.features import WINDOWS
from protocol.session.outputs import WindowCame
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch

_Mark = tuple[TopicKey, BranchMark]


class _Done:
    """Waits for nothing (`batch_order.Previous`)."""

    async def wait(self) -> None:
        """Return."""


_AT_ONCE: Final = _Done()


class WindowPort:
    """Asks one peer for windows. The methods for the connection never wait."""

    def __init__(
        self,
        conversation: Conversation,
        hub: Hub,
        load_summaries: Callable[[Sequence[TopicKey]], None],
    ) -> None:
        """`load_summaries` has topics summarised, as the session has asked."""
        self._conversation = conversation
        self._hub = hub
        self._load_summaries = load_summaries
        is_dialer = conversation.session.is_dialer
        self._patience = WINDOW_SUMMARY_SECONDS if is_dialer else WINDOW_SUMMARY_SECONDS / 6
        self._room = trio.CapacityLimiter(WINDOWS_UNANSWERED_MAX)
        self._answers: dict[_Mark, trio.MemorySendChannel[WindowCame]] = {}
        self._seen: set[_Mark] = set()  # of which a window was asked for
        self._summaries: dict[TopicKey, trio.Event] = {}  # of topics that are held back
        self._behind: set[int] = set()  # repos of which much is to come from the peer
        self._promised: set[TopicKey] = set()  # joined topics that only a link names so far
        self._busy: dict[int, int] = {}  # by repo: windows that are under way
        self._done = trio.Event()  # one of them has ended
        self._answered = trio.Event()  # a question is answered, or nobody waits for it any more
        self._rate = TokenBucket(WINDOWS_AT_ONCE_MAX, WINDOWS_PER_CHECK / (IDLE_TIMEOUT_SECONDS / 3))

    # --- what the connection tells ---

    def summarise(self, topics: Sequence[TopicKey]) -> None:
        """Send summaries of topics, at once or after the newest commits that are asked for first."""
        held = {topic: None for topic in topics if self._may_be_new(topic)}
        if held:
            self._summaries.update((topic, trio.Event()) for topic in held)
            self._conversation.start(self._open_new, list(held))
        left = [topic for topic in topics if topic not in held]
        promised = {topic for topic in left if self._is_promised(topic)}
        waiting = {topic for topic in left if self._is_others_turn(topic)}
        self._summaries.update((topic, trio.Event()) for topic in waiting)
        for topic in waiting:
            self._conversation.start(self._summarise_in_turn, topic)
        self._load_summaries([topic for topic in left if topic not in promised and topic not in waiting])

    def summary_came(self, topic: TopicKey) -> None:
        """Note that the peer has said a summary of a topic: perhaps of one that is held back."""
        if topic in self._summaries and self._peer_count(topic) is not None:
            self._summaries[topic].set()

    def compared(self, topic: TopicKey) -> None:
        """Ask for windows where both summaries are here, and the peer's says that this node is far behind."""
        progress = self._conversation.session.progress_of(topic)
        followed = self._hub.replica.by_topic.get(topic)
        if progress is None or followed is None or not self._conversation.knows(WINDOWS):
            return
        if progress.behind >= WINDOW_BEHIND_MIN:
            self._behind.add(followed.repo_num)
            self._hub.bulk_turns.begin(followed.repo_num, self._conversation)
            self._fill(followed.repo_num)

    def topics_changed(self) -> None:
        """Ask for windows of branches of which nobody knew before the root branch had grown."""
        for repo_num in self._behind:
            self._fill(repo_num)
        stated = [topic for topic in self._promised if topic in self._hub.replica.by_topic]
        self._promised.difference_update(stated)
        if stated:
            self.summarise(stated)

    def came(self, output: WindowCame) -> None:
        """Give an answer to the window that asked for it."""
        sender = self._settle(output.topic, output.asked.mark)
        if sender is not None:  # else nobody waits any more
            sender.send_nowait(output)

    # --- tasks ---

    def _may_be_new(self, topic: TopicKey) -> bool:
        """Return True of a topic of a repo that was joined by a link, at its first summary on this connection."""
        followed = self._hub.replica.by_topic.get(topic)
        if followed is None or followed.is_link or topic in self._summaries:
            return False
        knows = self._conversation.knows(WINDOWS)
        return knows and followed.repo_num in self._hub.replica.tables.invited

    def _is_promised(self, topic: TopicKey) -> bool:
        """Return True of a topic that only a link names so far; ask for the posts that the link states, the first time."""
        if topic in self._hub.replica.by_topic:
            return False
        promised = self._hub.windows.vouchers.find_promised(topic)
        if promised is None:
            return False
        if topic not in self._promised and self._conversation.knows(WINDOWS):
            self._conversation.start(self._ask_vouched, promised)
        self._promised.add(topic)
        return True

    async def _ask_vouched(self, topic: Topic) -> None:
        """Ask for the posts that a link states: of the branch's window that ends with them."""
        vouched = self._hub.windows.vouchers.find(topic.repo_num)
        branch = None
        if vouched is not None:
            branch = self._hub.replica.tables.find_branch(topic.repo_num, vouched.states.branch)
        if vouched is None or branch is None:
            return
        (epoch,) = topic.writers_of
        mark = branch_mark_in(epoch.key, branch.branch_id)
        await self._ask_page(topic, branch, mark, vouched.states.rank + 1)

    async def _open_new(self, topics: Sequence[TopicKey]) -> None:
        """Send summaries of topics if more than the repo's root branch is held; begin windows of the other repos."""
        tables = await self._hub.run_blocking(self._hub.replica.read_tables)
        begun = {
            one.repo_num
            for one in tables.branches.values()
            if one.commit_count and not one.facts.is_root_branch
        }
        due: list[TopicKey] = []
        for topic in topics:
            followed = tables.by_topic.get(topic)
            if followed is None or followed.repo_num in begun:
                due.append(topic)
            else:
                self._conversation.start(self._open, topic)
        self._load_summaries(due)

    def _is_others_turn(self, topic: TopicKey) -> bool:
        followed = self._hub.replica.by_topic.get(topic)
        if followed is None or followed.is_link:
            return False
        return self._hub.bulk_turns.is_others(followed.repo_num, self._conversation)

    async def _summarise_in_turn(self, topic: TopicKey) -> None:
        """Summarise a topic. Where the peer holds much of it, wait until no other peer brings much of its repo."""
        self.summary_came(topic)
        with trio.move_on_after(self._patience):
            await self._summaries[topic].wait()
        followed = self._hub.replica.by_topic.get(topic)
        if followed is not None and (self._peer_count(topic) or 0) >= WINDOW_BEHIND_MIN:
            await self._hub.bulk_turns.take(followed.repo_num, self._conversation)
        self._load_summaries((topic,))

    def _peer_count(self, topic: TopicKey) -> int | None:
        progress = self._conversation.session.progress_of(topic)
        peer = None if progress is None else progress.rounds.peer or progress.rounds.kept
        return None if peer is None else peer.count

    async def _open(self, topic: TopicKey) -> None:
        """Ask for the newest posts of a topic before its past, then have the topic summarised."""
        try:
            self.summary_came(topic)
            with trio.move_on_after(WINDOW_HOLD_SECONDS):
                with trio.move_on_after(self._patience):
                    await self._summaries[topic].wait()
                followed = self._hub.replica.by_topic.get(topic)
                if followed is not None and (self._peer_count(topic) or 0) >= WINDOW_BEHIND_MIN:
                    await self._ask_first(followed)
        finally:
            if not self._conversation.has_ended:
                self._summaries[topic].set()  # it was waited for
                self._conversation.start(self._summarise_in_turn, topic)

    async def _ask_first(self, topic: Topic) -> None:
        """Ask for the root branch, and once it is here for windows of the others."""
        for epoch in topic.epochs:
            if epoch.writers_topic is None:  # its init has the mark of the epoch in which it was published
                self._conversation.want(topic.topic, (epoch.epoch_id,))
        for epoch in (*topic.epochs, *topic.writers_of):
            await self._ask_root(topic, epoch)
        while not self._has_root(topic.repo_num):
            await self._hub.changes.wait(self._hub.changes.count)
        self._behind.add(topic.repo_num)
        self._fill(topic.repo_num)
        while self._busy.get(topic.repo_num):
            await self._done.wait()

    def _has_root(self, repo_num: int) -> bool:
        """Return True if the epoch in use is known, and nothing of the repo waits."""
        tables = self._hub.replica.tables
        repo = tables.repos.get(repo_num)
        epoch = None if repo is None else tables.epochs.get(repo.epoch_num)
        return (
            epoch is not None
            and epoch.writers_topic is not None
            and not self._hub.replica.waiting_in(repo_num)
        )

    async def _ask_root(self, topic: Topic, epoch: Epoch) -> None:
        """Take the root branch's commits of one epoch in, the lowest ranks first."""
        mark = branch_mark_in(epoch.key, root_branch(epoch.repo_id))
        rank = 0
        while True:
            answer = await self._ask(topic.topic, mark, rank, WINDOW_ASK_COUNT, is_upwards=True)
            if answer is None or not answer.items:
                return
            ranks = await self._hub.run_blocking(_ranks_of, answer.items, mark)
            if ranks is None or min(ranks) < rank:
                self._conversation.part("wrong_window")
                return
            bill = WorkBill(self._conversation.account)
            with self._hub.byte_budget.holding(answer.items):
                ingested = await self._hub.intake.ingest(
                    topic, answer.items, _AT_ONCE, self._conversation, bill
                )
            bill.earn(ingested.count_useful() / len(answer.items))
            if answer.is_last or max(ranks) == rank:
                return
            rank = max(ranks)

    def _fill(self, repo_num: int) -> None:
        """Ask for windows of a repo's largest branches in the epoch in use, of each mark once on this connection.

        Which of them have anything new is not known.
        """
        tables = self._hub.replica.tables
        repo = tables.repos.get(repo_num)
        epoch = None if repo is None else tables.epochs.get(repo.epoch_num)
        if epoch is None:
            return
        for name in (epoch.topic, epoch.writers_topic):
            topic = None if name is None else tables.by_topic.get(name)
            if topic is None or not self._conversation.has_joined(topic.topic):
                continue
            branches = sorted(tables.branches_in(repo_num), key=lambda one: (-one.commit_count, one.num))
            for branch in branches[: WINDOW_BRANCHES_MAX + 1]:  # the root branch is one of them
                key = topic.topic, branch_mark_in(epoch.key, branch.branch_id)
                if not branch.facts.is_root_branch and key not in self._seen:
                    self._seen.add(key)
                    self._busy[repo_num] = self._busy.get(repo_num, 0) + 1
                    self._conversation.start(self._ask_newest, topic, branch, key[1])

    async def _ask_newest(self, topic: Topic, branch: Branch, mark: BranchMark) -> None:
        """Ask for a window, and for others below it as long as nothing of them is confirmed."""
        try:
            rank: int | None = WINDOW_RANK_MAX
            for _ in range(WINDOW_PAGES_MAX):
                if rank is None:
                    return
                rank = await self._ask_page(topic, branch, mark, rank)
        finally:
            self._busy[branch.repo_num] -= 1
            self._done.set()
            self._done = trio.Event()

    async def _ask_page(self, topic: Topic, branch: Branch, mark: BranchMark, below: int) -> int | None:
        """Ask for one window below a rank. Return the rank below which to go on; None if nothing more is to be asked."""
        found = await self._load(topic, mark, below, WINDOW_ASK_COUNT)
        if found is None or not found[0]:
            return None
        items, ranks, is_last = found
        with self._hub.byte_budget.holding(items):
            is_shown = await self._keep(topic, branch, items)
        return None if is_shown or is_last else min(ranks)

    async def look(self, topic: Topic, mark: BranchMark, below: int, count: int) -> list[Opened] | None:
        """Ask for at most `count` commits of a mark below a rank, and read them; None where the peer does not answer."""
        found = await self._load(topic, mark, below, count)
        if found is None:
            return None
        bill = WorkBill(self._conversation.account)
        with self._hub.byte_budget.holding(found[0]):
            opened = await self._read(topic, found[0], bill)
        bill.earn(len(opened) / max(1, len(found[0])))
        return opened

    async def _load(
        self, topic: Topic, mark: BranchMark, below: int, count: int
    ) -> tuple[Sequence[bytes], list[int], bool] | None:
        """Ask for commits below a rank. Return them, their ranks, and True if there are no more; None without an answer."""
        answer = await self._ask(topic.topic, mark, below, count, is_upwards=False)
        if answer is None:
            return None
        ranks = await self._hub.run_blocking(_ranks_of, answer.items, mark)
        if ranks is None or max(ranks, default=0) >= below:
            self._conversation.part("wrong_window")
            return None
        return answer.items, ranks, answer.is_last

    async def _keep(self, topic: Topic, branch: Branch, items: Sequence[bytes]) -> bool:
        """Keep a window apart. Return True if anything of the branch's is confirmed."""
        bill = WorkBill(self._conversation.account)
        opened = await self._read(topic, items, bill)
        self._hub.windows.keep(branch.num, topic, opened)
        shown = await self._hub.look(bill, self._hub.windows.find, branch.num)
        bill.earn(len(opened) / len(items))
        self._hub.replica.shown.touch(branch.repo_num)
        self._hub.changes.ring()
        return shown is not None and bool(shown.listed)

    async def _read(self, topic: Topic, items: Sequence[bytes], bill: WorkBill) -> list[Opened]:
        """Read commits of a window, without those that nobody who may write has published."""
        batch = await self._hub.intake.read_in_pieces(topic, items, bill)
        # Who only reads has all that opens a commit, and could fill the place of those who write.
        unproven = [one for one in batch.opened if not one.is_from_topic]
        proven = await self._hub.look(bill, prove_topics, unproven)
        if fault := find_carrier_fault(batch.dropped + proven.dropped):
            self._conversation.part(fault)
        return [one for one in batch.opened if one.is_from_topic] + proven.opened

    async def _ask(
        self, topic: TopicKey, mark: BranchMark, rank: int, count: int, *, is_upwards: bool
    ) -> WindowCame | None:
        """Ask the peer; None where it is not asked, or does not answer in time."""
        async with self._room:
            is_free = self._rate.try_acquire(trio.current_time())
            if not is_free or not self._conversation.has_joined(topic):
                return None
            wanted = WindowWanted(topic, mark, rank, is_upwards=is_upwards, count=count)
            sender, receiver = trio.open_memory_channel[WindowCame](1)
            with trio.move_on_after(WINDOW_ANSWER_SECONDS):
                while (topic, mark) in self._answers:  # of one mark there is one question at a time
                    await self._answered.wait()
                self._answers[topic, mark] = sender
                self._conversation.happen(wanted)
                answer = await receiver.receive()
                # One that comes late answers a question for which nobody waits any more.
                return answer if answer.asked == wanted else None
            if self._answers.get((topic, mark)) is sender:
                self._settle(topic, mark)
            return None

    def _settle(self, topic: TopicKey, mark: BranchMark) -> trio.MemorySendChannel[WindowCame] | None:
        """Take out who waits for an answer, and let the next ask."""
        sender = self._answers.pop((topic, mark), None)
        self._answered.set()
        self._answered = trio.Event()
        return sender


def _ranks_of(items: Collection[bytes], mark: BranchMark) -> list[int] | None:
    """Return the stated ranks of publications; None if one states none or has another mark. A relay can check as much."""
    ranks: list[int] = []
    for encoded in items:
        try:
            block = decode_publication(encoded).blocks[0]
        except DecodeError:
            return None
        if block.mark != mark:
            return None
        ranks.append(block.rank)
    return ranks
