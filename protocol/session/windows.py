"""Windows of a session: the newest commits of one branch, asked for by its mark before its past is here. Pure.

Rank and mark stand in clear in the commit's block, so a relay answers as a member does. What comes proves nothing yet: it
goes to `WindowCame`, apart from the topic's own publications, and has no receipt.
"""

from protocol.ids import BranchMark, TopicKey
from protocol.limits.peers import WINDOWS_AT_ONCE_MAX, WINDOWS_PER_CHECK, WINDOWS_UNANSWERED_MAX
from protocol.session.allowance import Allowance
from protocol.session.events import WindowLoaded, WindowWanted
from protocol.session.machines.table import PeerFault
from protocol.session.messages import WantWindow, Window
from protocol.session.outputs import LoadWindow, Output, Send, WindowCame
from protocol.session.topic_progress import TopicProgress


class Windows:
    """Windows that are under way on one session, by side; one of a mark at a time."""

    def __init__(self) -> None:
        self._asked: dict[tuple[TopicKey, BranchMark], WindowWanted] = {}  # by this side, and not answered
        self._answering: set[tuple[TopicKey, BranchMark]] = set()
        self._takeable = Allowance(2 * WINDOWS_AT_ONCE_MAX, 2 * WINDOWS_PER_CHECK)

    def check(self) -> None:
        """Allow the peer some more questions: called at each keep-alive."""
        self._takeable.check()

    def ask(self, progress: TopicProgress, event: WindowWanted) -> list[Output]:
        """Ask for a window, unless the mark has a question already or the bound of open questions is reached."""
        key = progress.topic, event.mark
        if not progress.is_joined or key in self._asked or len(self._asked) >= WINDOWS_UNANSWERED_MAX:
            return []
        self._asked[key] = event
        return [Send(WantWindow(progress.blind, event.mark, event.rank, event.is_upwards, event.count))]

    def wanted(self, progress: TopicProgress, message: WantWindow) -> list[Output]:
        """Take a question of the peer's. Raises PeerFault."""
        key = progress.topic, message.mark
        if key in self._answering or len(self._answering) >= WINDOWS_UNANSWERED_MAX:
            raise PeerFault("too_many_windows")
        if not self._takeable.take():
            raise PeerFault("too_many_windows")
        self._answering.add(key)
        return [LoadWindow(progress.topic, message.mark, message.rank, message.is_upwards, message.count)]

    def loaded(self, progress: TopicProgress, event: WindowLoaded) -> list[Output]:
        """Answer the peer's question for a mark."""
        self._answering.discard((progress.topic, event.mark))
        return [Send(Window(progress.blind, event.mark, event.items, event.is_last))]

    def came(self, progress: TopicProgress, message: Window) -> list[Output]:
        """Take the peer's answer. Raises PeerFault where it was not asked for, or is longer than that."""
        asked = self._asked.pop((progress.topic, message.mark), None)
        if asked is None or len(message.items) > asked.count:
            raise PeerFault("unasked_window")
        return [WindowCame(progress.topic, asked, message.items, message.is_last)]
