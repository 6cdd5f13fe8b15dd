"""Accounts of a relay: people whom its operator knows by a name, what they may have it keep, and which nodes are theirs.

A node comes by a link, which is good once. The store has the mark of the link's secret and not the secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.crypto.hashing import account_mark
from protocol.crypto.keys import AccountToken
from protocol.ids import PeerId
from protocol.limits.peers import (
    ACCOUNT_INVITATIONS_MAX,
    ACCOUNT_NODES_MAX,
    RELAY_ACCOUNTS_MAX,
    RELAYED_TOPIC_SIZE,
)
from storage.engine.database import Database
from storage.engine.queries import sum_of
from storage.relay.quotas import Account, used_by
from storage.relay.relay import mark_topics_known, mark_topics_unknown
from storage.schema.relay_schema import (
    relay_account_links,
    relay_account_nodes,
    relay_accounts,
    relay_sums,
)

_COLUMNS: Final = (relay_accounts.c.num, relay_accounts.c.name, relay_accounts.c.quota)


class AccountsFull(Exception):
    """Error of too many accounts, or too many links of this one."""


@dataclass(frozen=True, slots=True)
class AccountRow:
    """Account: what its nodes brought, which they are, and how many links wait to be used."""

    account: Account
    used: int
    created_at: int  # unix seconds
    nodes: tuple[PeerId, ...]
    links: int


@dataclass(frozen=True, slots=True)
class JoinedAccount:
    """Outcome for a node that shows a link: the account's quota and use in bytes, or why it has no account."""

    refusal: str = ""
    quota: int = 0
    used: int = 0


def load_accounts(connection: Connection) -> Mapping[PeerId, Account]:
    """Load accounts by their nodes. Costs O(nodes)."""
    nodes = relay_account_nodes.c
    query = select(nodes.peer, *_COLUMNS).join(relay_accounts, relay_accounts.c.num == nodes.account_num)
    return {peer: Account(*rest) for peer, *rest in connection.execute(query)}


def find_account(connection: Connection, name: str) -> Account | None:
    """Return the account of that name, or None. Costs O(1)."""
    row = connection.execute(select(*_COLUMNS).where(relay_accounts.c.name == name)).first()
    return None if row is None else Account(*row)


def list_accounts(connection: Connection, now: int) -> list[AccountRow]:
    """List all accounts, by name. Costs O(accounts and their nodes)."""
    nodes: dict[int, list[PeerId]] = {}
    for peer, account_num in connection.execute(
        select(relay_account_nodes.c.peer, relay_account_nodes.c.account_num)
    ):
        nodes.setdefault(account_num, []).append(peer)
    waiting = select(relay_account_links.c.account_num, func.count()).where(
        relay_account_links.c.used_by.is_(None), relay_account_links.c.expires_at > now
    )
    links = {
        row[0]: row[1] for row in connection.execute(waiting.group_by(relay_account_links.c.account_num))
    }
    node = relay_account_nodes.c
    counted = relay_sums.c.size + relay_sums.c.topic_count * RELAYED_TOPIC_SIZE
    sums = select(node.account_num, sum_of(counted)).join(relay_sums, relay_sums.c.peer == node.peer)
    used = {row[0]: int(row[1]) for row in connection.execute(sums.group_by(node.account_num))}
    query = select(*_COLUMNS, relay_accounts.c.created_at).order_by(relay_accounts.c.name)
    return [
        AccountRow(
            Account(num, name, quota),
            used.get(num, 0),
            created_at,
            tuple(sorted(nodes.get(num, ()))),
            links.get(num, 0),
        )
        for num, name, quota, created_at in connection.execute(query)
    ]


def sum_quotas(connection: Connection, without: str) -> int:
    """Return the bytes of the quotas of all accounts but the one of that name. Costs O(accounts)."""
    query = select(sum_of(relay_accounts.c.quota)).where(relay_accounts.c.name != without)
    return connection.execute(query).scalar_one() or 0


def invite_to_account(
    database: Database,
    connection: Connection,
    name: str,
    quota: int,
    token: AccountToken,
    expires_at: int,
    now: int,
) -> Account:
    """Store a link to the account of that name, which is made if there is none, and gets this quota.

    Raises AccountsFull.
    """
    connection.execute(delete(relay_account_links).where(relay_account_links.c.expires_at <= now))
    account = find_account(connection, name)
    if account is None:
        count = connection.execute(select(func.count()).select_from(relay_accounts)).scalar_one()
        if count >= RELAY_ACCOUNTS_MAX:
            raise AccountsFull
        num = database.next_nums(connection, relay_accounts, 1)[0]
        values = {"num": num, "name": name, "quota": quota, "created_at": now}
        connection.execute(insert(relay_accounts).values(values))
        account = Account(num, name, quota)
    elif account.quota != quota:
        change_quota(connection, name, quota)
        account = Account(account.num, name, quota)
    here = (relay_account_links.c.account_num == account.num) & relay_account_links.c.used_by.is_(None)
    if connection.execute(select(func.count()).where(here)).scalar_one() >= ACCOUNT_INVITATIONS_MAX:
        raise AccountsFull
    row = {"mark": account_mark(token), "account_num": account.num, "expires_at": expires_at}
    connection.execute(insert(relay_account_links).values(row))
    return account


def has_link(connection: Connection, token: AccountToken) -> bool:
    """Return True if there is such a link, used or not. Costs O(1)."""
    query = select(relay_account_links.c.account_num).where(relay_account_links.c.mark == account_mark(token))
    return connection.execute(query).first() is not None


def join_account(connection: Connection, token: AccountToken, peer: PeerId, now: int) -> JoinedAccount:
    """Give a node the account of a link. It may show it again: the answer may have been lost.

    Costs O(topics that the node brought).
    """
    links, nodes = relay_account_links.c, relay_account_nodes.c
    link = connection.execute(
        select(links.mark, links.account_num, links.expires_at, links.used_by).where(
            links.mark == account_mark(token)
        )
    ).first()
    if link is None:
        return JoinedAccount("unknown_link")
    if link.used_by is not None and link.used_by != peer:
        return JoinedAccount("used_link")
    account = connection.execute(select(*_COLUMNS).where(relay_accounts.c.num == link.account_num)).one()
    if link.used_by is None:
        if link.expires_at <= now:
            return JoinedAccount("expired_link")
        count = select(func.count()).where(nodes.account_num == link.account_num, nodes.peer != peer)
        if connection.execute(count).scalar_one() >= ACCOUNT_NODES_MAX:
            return JoinedAccount("account_full")
        connection.execute(update(relay_account_links).where(links.mark == link.mark).values(used_by=peer))
        connection.execute(delete(relay_account_nodes).where(nodes.peer == peer))
        connection.execute(insert(relay_account_nodes).values(peer=peer, account_num=link.account_num))
        mark_topics_known(connection, peer)
    return JoinedAccount("", account.quota, used_by(connection, account.num))


def change_quota(connection: Connection, name: str, quota: int) -> bool:
    """Change an account's quota (bytes); return True if there is such an account. What is kept stays."""
    changed = update(relay_accounts).where(relay_accounts.c.name == name).values(quota=quota)
    return bool(connection.execute(changed).rowcount)


def revoke_account(connection: Connection, name: str) -> bool:
    """Forget an account, its links and its nodes, which are strangers again; return True if there was one.

    Costs O(topics that its nodes brought).
    """
    account = find_account(connection, name)
    if account is None:
        return False
    nodes = relay_account_nodes.c
    for peer in (
        connection.execute(select(nodes.peer).where(nodes.account_num == account.num)).scalars().all()
    ):
        mark_topics_unknown(connection, peer)
    connection.execute(delete(relay_account_nodes).where(nodes.account_num == account.num))
    connection.execute(delete(relay_account_links).where(relay_account_links.c.account_num == account.num))
    connection.execute(delete(relay_accounts).where(relay_accounts.c.num == account.num))
    return True
