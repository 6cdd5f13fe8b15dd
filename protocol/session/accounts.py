"""Account links on one session: a node shows the secret of a link to a relay, which answers with its quota. Pure.

`storage.relay.accounts` knows which links there are and whose.
"""

from protocol.limits.peers import ACCOUNT_LINKS_MAX
from protocol.session.events import AccountSettled, AccountWanted
from protocol.session.machines.table import PeerFault
from protocol.session.messages import AccountJoined, JoinAccount
from protocol.session.outputs import AccountAnswered, GiveAccount, Output, Send


class Accounts:
    """Account links that each side of one session has shown."""

    def __init__(self, *, is_relay: bool) -> None:
        self._is_relay = is_relay
        self._asked = 0  # questions of this side without an answer
        self._shown = 0  # links of the peer's

    def ask(self, event: AccountWanted) -> list[Output]:
        """Show the peer, a relay, the secret of a link."""
        self._asked += 1
        return [Send(JoinAccount(event.token))]

    def settle(self, event: AccountSettled) -> list[Output]:
        """Answer the peer's link."""
        return [Send(AccountJoined(event.refusal, event.quota, event.used))]

    def handle_join(self, message: JoinAccount) -> list[Output]:
        """Take a link that the peer shows. Raises PeerFault."""
        if not self._is_relay:
            raise PeerFault("no_relay")
        self._shown += 1
        if self._shown > ACCOUNT_LINKS_MAX:
            raise PeerFault("too_many_account_links")
        return [GiveAccount(message.token)]

    def handle_joined(self, message: AccountJoined) -> list[Output]:
        """Take the peer's answer. Raises PeerFault where it was not asked."""
        if not self._asked:
            raise PeerFault("unasked_account")
        self._asked -= 1
        return [AccountAnswered(message.refusal, message.quota, message.used)]
