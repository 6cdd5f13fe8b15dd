"""Accounts of this node as a relay, and the use of links to accounts of others."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE
from node.contract.endpoint import Endpoint
from node.contract.made import Makes
from node.contract.values import NameRequest, Request, link_of
from ravel.types.relay_accounts import AccountLink, JoinedRelay, RelayAccount, RelayAccountList
from ravel.types.values import Empty

Quota = Annotated[
    int,
    Meta(
        ge=1,
        le=2**50,
        description="Bytes that the account's nodes may bring together; files take seven eighths at most.",
    ),
]


class AccountInvitation(NameRequest, frozen=True, kw_only=True):
    """Invites to the account of that name, which is made if there is none, and has this quota from now on."""

    quota: Quota
    expires_seconds: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 7 * 86_400


class AccountChange(Request, frozen=True):
    """Changes an account. What is kept stays."""

    quota: Quota


class RelayJoin(Request, frozen=True):
    """Uses a link to a relay's account."""

    link: Annotated[str, link_of("relay")]


LIST_RELAY_ACCOUNTS: Final = Endpoint(
    name="list_relay_accounts",
    method="GET",
    path="/relay/accounts",
    scopes=NODE,
    summary="List the accounts of this relay, with their quotas and what they use.",
    answer=RelayAccountList,
    errors=("bad_config",),
)
INVITE_TO_RELAY: Final = Endpoint(
    name="invite_to_relay",
    method="POST",
    path="/relay/accounts",
    scopes=NODE,
    summary="Make a link that gives one node an account at this relay.",
    request=AccountInvitation,
    answer=AccountLink,
    makes=Makes(kind="relay_account", what="name"),
    errors=("bad_config", "too_large"),
)
CHANGE_RELAY_ACCOUNT: Final = Endpoint(
    name="change_relay_account",
    method="PUT",
    path="/relay/accounts/{account}",
    scopes=NODE,
    summary="Change an account's quota.",
    request=AccountChange,
    answer=RelayAccount,
    errors=("bad_config",),
)
REVOKE_RELAY_ACCOUNT: Final = Endpoint(
    name="revoke_relay_account",
    method="DELETE",
    path="/relay/accounts/{account}",
    scopes=NODE,
    summary="Forget an account. Its nodes are strangers again, and what they brought stays until there is no room.",
    answer=Empty,
    errors=("bad_config",),
)
JOIN_RELAY: Final = Endpoint(
    name="join_relay",
    method="POST",
    path="/relay/join",
    scopes=NODE,
    summary="Use a link to a relay's account: connect to the relay, and have it keep all that this node follows.",
    request=RelayJoin,
    answer=JoinedRelay,
    makes=Makes(kind="peer", what="relay"),
    errors=("bad_link", "expired", "incomplete", "not_permitted", "too_large"),
)
