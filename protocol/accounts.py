"""Accounts at a relay, on one session: a node shows the secret of a link, once, and is told what it may keep there. Pure.

Which links there are and whose, the relay knows (`storage.relay.accounts`).
"""

from protocol.limits.peers import ACCOUNT_LINKS_MAX
from protocol.machines.table import PeerFault
from protocol.messages import AccountJoined, JoinAccount
from protocol.session_events import AccountSettled, AccountWanted
from protocol.session_outputs import AccountAnswered, GiveAccount, Output, Send


class Accounts:
    """The part of a session machine that is about accounts."""

    def __init__(self, *, is_relay: bool) -> None:
        self._is_relay = is_relay
        self._asked = 0  # questions of this side without an answer
        self._shown = 0  # links of the peer's

    def happen(self, event: AccountWanted | AccountSettled) -> list[Output]:
        """What this side asks for or answers."""
        match event:
            case AccountWanted(token):
                self._asked += 1
                return [Send(JoinAccount(token))]
            case AccountSettled(refusal, quota, used):
                return [Send(AccountJoined(refusal, quota, used))]

    def receive(self, message: JoinAccount | AccountJoined) -> list[Output]:
        """What the peer says. Raises PeerFault where it may not."""
        match message:
            case JoinAccount(token):
                if not self._is_relay:
                    raise PeerFault("no_relay")
                self._shown += 1
                if self._shown > ACCOUNT_LINKS_MAX:
                    raise PeerFault("too_many_account_links")
                return [GiveAccount(token)]
            case AccountJoined(refusal, quota, used):
                if not self._asked:
                    raise PeerFault("unasked_account")
                self._asked -= 1
                return [AccountAnswered(refusal, quota, used)]
