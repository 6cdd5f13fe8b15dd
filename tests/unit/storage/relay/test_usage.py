"""Use of a relay's store: by kind of peer, and how fast it fills."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection, insert, update

from protocol.crypto.keys import AccountToken
from protocol.ids import PeerId, TopicKey
from storage.engine.database import Database
from storage.relay import usage
from storage.relay.accounts import invite_to_account, join_account, revoke_account
from storage.relay.quotas import ACCOUNT, KNOWN, PARTNER, STRANGER, Account, Visitor, add_share
from storage.relay.relay import allow_peer, open_topics
from storage.relay.usage import Usage, load_growth, load_usage
from storage.schema.relay_schema import relay_commits, relay_files
from tests.support.relays import PLENTY

DAY_MS: Final = 86_400_000
NOW: Final = 100 * DAY_MS
ANN, BEA, COLE, DORA, EVE = (PeerId(name * 32) for name in (b"a", b"b", b"c", b"d", b"e"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path)
    with database.write() as connection:
        topic = TopicKey(b"t" * 32)
        open_topics(database, connection, [topic], Visitor(ANN, is_known=True), PLENTY, 0)
    yield database
    database.close()


def test_what_peers_have_brought_is_told_by_their_kind(database: Database) -> None:
    with database.write() as connection:
        token = AccountToken(b"k" * 32)
        invite_to_account(database, connection, "ann", 1000, token, 100, 0)
        join_account(connection, token, ANN, 1)
        allow_peer(connection, BEA)
        for peer, size in ((ANN, 5), (BEA, 7), (COLE, 11), (DORA, 13), (EVE, 17)):
            add_share(connection, 1, Visitor(peer), size)
        found = load_usage(connection, {DORA}, {EVE})
        assert found == {
            ACCOUNT: Usage(1, 5),
            KNOWN: Usage(2, 24),
            STRANGER: Usage(1, 11),
            PARTNER: Usage(1, 13),
        }
        revoke_account(connection, "ann")
        assert load_usage(connection, {DORA}, {EVE})[STRANGER] == Usage(2, 16), "as it is from now on"


@pytest.mark.sqlite
def test_a_visitor_is_of_one_kind() -> None:
    account = Account(1, "ann", 10)
    assert Visitor(ANN, is_known=True, is_partner=True, account=account).kind == ACCOUNT
    assert Visitor(ANN, is_known=True, is_partner=True).kind == PARTNER
    assert Visitor(ANN, is_known=True).kind == KNOWN
    assert Visitor(ANN, "10.0.0.0/24").kind == STRANGER


def _commits(database: Database, *came: tuple[int, int]) -> None:
    """Store commits with the days before now on which they came, and their sizes."""
    with database.write() as connection:
        for days, size in came:
            row = {"id_key": 0, "commit_id": bytes(32), "topic_num": 1, "rank": 0, "acks": b""}
            row |= {"publication": bytes(size), "received_at": NOW - days * DAY_MS}
            row |= {"publication_id": bytes(32), "publication_key": 0}
            connection.execute(insert(relay_commits).values(row))


def _put_file(connection: Connection) -> None:
    """Store a file of 70 bytes that began a day ago, and of which something came just now."""
    row = {"topic_num": 1, "file_id": bytes(32), "claimed_size": 70, "size": 70, "signature": bytes(64)}
    row |= {"peer": bytes(32), "is_whole": True, "touched_at": NOW, "began_at": NOW - DAY_MS}
    connection.execute(insert(relay_files).values(row))


def _growth(database: Database) -> int:
    with database.read() as connection:
        return load_growth(connection, NOW)


def test_growth_goes_by_the_last_week(database: Database) -> None:
    assert _growth(database) == 0
    _commits(database, (0, 300))
    assert _growth(database) == 300, "a first day counts as a whole one"
    _commits(database, (2, 300))
    assert _growth(database) == 300
    _commits(database, (30, 5000), (6, 100))
    assert _growth(database) == 100, "what is older tells that there was a week"


def test_files_count_and_a_burst_goes_by_its_own_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.write() as connection:
        _put_file(connection)
    assert _growth(database) == 70
    with database.write() as connection:
        connection.execute(update(relay_files).values(began_at=NOW - 8 * DAY_MS))
    assert _growth(database) == 0, "whatever came of it or was damaged since"
    monkeypatch.setattr(usage, "RELAY_GROWTH_COUNT_MAX", 2)
    _commits(database, (3, 1000), (0, 10), (0, 10))
    assert _growth(database) == 20 * 24, "of more than are looked at, the last two: at least an hour"
