"""Places where peers were reached, once for each peer, for so many of them."""

from pathlib import Path

import pytest

from protocol.ids import PeerId, RepoId
from protocol.limits.network import PEER_ADDRESSES_MAX, REACHED_PEERS_MAX
from storage.engine.database import Database
from storage.peers.peers import (
    ReachedRow,
    ban_peer,
    forget_peer,
    forget_reached,
    keep_peer,
    link_peer,
    load_links,
    load_peers,
    load_reached,
    put_reached,
    replace_links,
)

BOB, CAROL = PeerId(b"b" * 32), PeerId(b"c" * 32)
REPO = RepoId(b"r" * 32)


def test_the_last_place_of_a_peer_counts(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as connection:
        put_reached(connection, BOB, "10.0.0.1:1", "introduction", 7, (REPO,))
        put_reached(connection, CAROL, "10.0.0.2:1", "configured", 8, ())
        put_reached(connection, BOB, "10.0.0.3:1", "lan", 9, ())
        assert load_reached(connection) == [
            ReachedRow(BOB, "10.0.0.3:1", "lan", 9, frozenset()),
            ReachedRow(CAROL, "10.0.0.2:1", "configured", 8, frozenset()),
        ]
        forget_reached(connection, CAROL)
        keep_peer(connection, BOB, "10.0.0.3:1", source="configured")
        forget_peer(connection, BOB)
        assert load_reached(connection) == []
    database.close()


def test_a_peer_is_kept_at_all_addresses_that_were_named(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as connection:
        keep_peer(connection, BOB, "a:1", source="link", others=("b:1", "a:1", "c:1"))
        keep_peer(connection, CAROL, "d:1", source="configured")
        assert {row.peer: (row.address, row.others) for row in load_peers(connection)} == {
            BOB: ("a:1", ("b:1", "c:1")),
            CAROL: ("d:1", ()),
        }
        keep_peer(connection, CAROL, "e:1", source="configured")
        keep_peer(connection, CAROL, "f:1", source="link", others=("d:1",))
        keep_peer(connection, BOB, "g:1", source="link", others=tuple(f"{number}:1" for number in range(9)))
        found = {row.peer: (row.address, *row.others) for row in load_peers(connection)}
        assert found[CAROL] == ("e:1", "d:1"), "links add nothing to what a user has named"
        assert found[BOB] == ("a:1", "g:1", *(f"{number}:1" for number in range(6))), "of too many some"
        assert len(found[BOB]) == PEER_ADDRESSES_MAX
        keep_peer(connection, BOB, "z:1", source="configured")
        assert [(row.address, row.others) for row in load_peers(connection) if row.peer == BOB] == [
            ("z:1", ())
        ]
        ban_peer(connection, BOB)
        assert [row.others for row in load_peers(connection) if row.peer == BOB] == [()]
        keep_peer(connection, BOB, "a:1", source="configured")
        assert [row.address for row in load_peers(connection) if row.peer == BOB] == ["a:1"]
    database.close()


def test_the_repos_whose_links_named_a_peer_are_replaced(tmp_path: Path) -> None:
    database = Database(tmp_path)
    other = RepoId(b"s" * 32)
    with database.write() as connection:
        for peer in (BOB, CAROL):
            link_peer(connection, peer, REPO)
        replace_links(connection, BOB, {other, REPO})
        assert load_links(connection) == {BOB: {REPO, other}, CAROL: {REPO}}
        replace_links(connection, BOB, ())
        assert load_links(connection) == {CAROL: {REPO}}
    database.close()


@pytest.mark.sqlite
@pytest.mark.extended
@pytest.mark.slow
def test_so_many_are_kept(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as connection:
        for number in range(REACHED_PEERS_MAX + 1):
            put_reached(
                connection, PeerId(number.to_bytes(32, "big")), "10.0.0.1:1", "introduction", number, (REPO,)
            )
        rows = load_reached(connection)
        assert len(rows) == REACHED_PEERS_MAX
        assert rows[-1].reached_at == 1, "the oldest went"
    database.close()
