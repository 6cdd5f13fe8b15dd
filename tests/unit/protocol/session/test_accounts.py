"""Links to accounts at relays: who may show them, how often, and what is asked of whom."""

from typing import Final

import pytest

from protocol.codec import DecodeError
from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress, RelayLink, parse_relay_link, relay_link_text
from protocol.ids import PeerId
from protocol.limits.peers import ACCOUNT_LINKS_MAX
from protocol.session.accounts import Accounts
from protocol.session.events import AccountSettled, AccountWanted
from protocol.session.machines.table import PeerFault
from protocol.session.messages import AccountJoined, JoinAccount
from protocol.session.outputs import AccountAnswered, GiveAccount, Send

TOKEN: Final = AccountToken(b"t" * 32)
AT: Final = PeerAddress("192.0.2.7:7474", PeerId(b"r" * 32))


def test_a_node_shows_a_link_and_is_answered_once() -> None:
    node, relay = Accounts(is_relay=False), Accounts(is_relay=True)
    assert node.ask(AccountWanted(TOKEN)) == [Send(JoinAccount(TOKEN))]
    assert relay.handle_join(JoinAccount(TOKEN)) == [GiveAccount(TOKEN)]
    assert relay.settle(AccountSettled("", 7, 3)) == [Send(AccountJoined("", 7, 3))]
    assert node.handle_joined(AccountJoined("", 7, 3)) == [AccountAnswered("", 7, 3)]
    with pytest.raises(PeerFault, match="unasked_account"):
        node.handle_joined(AccountJoined("", 7, 3))
    with pytest.raises(PeerFault, match="no_relay"):
        node.handle_join(JoinAccount(TOKEN))


def test_a_relay_looks_at_so_many_links_on_one_connection() -> None:
    relay = Accounts(is_relay=True)
    for _ in range(ACCOUNT_LINKS_MAX):
        relay.handle_join(JoinAccount(TOKEN))
    with pytest.raises(PeerFault, match="too_many_account_links"):
        relay.handle_join(JoinAccount(TOKEN))


def test_a_link_names_one_relay() -> None:
    link = RelayLink(TOKEN, (AT, PeerAddress("[2001:db8::7]:7474", AT.peer)))
    assert parse_relay_link(relay_link_text(link)) == link
    assert "t" * 32 not in repr(link)
    two = RelayLink(TOKEN, (AT, PeerAddress("192.0.2.8:7474", PeerId(b"s" * 32))))
    with pytest.raises(DecodeError, match="bad_shape"):
        parse_relay_link(relay_link_text(two))
