"""What is derived so that only those recognise it who know what it stands for."""

from protocol.crypto import hashing
from protocol.crypto.keys import AccountToken, HashKey
from protocol.ids import PeerId

KEY, OTHER = HashKey(b"k" * 32), HashKey(b"o" * 32)
NODE, NEIGHBOUR = PeerId(b"n" * 32), PeerId(b"b" * 32)


def test_a_node_is_recognised_on_its_network_and_not_followed_from_salt_to_salt() -> None:
    first, second = b"1" * 16, b"2" * 16
    assert hashing.lan_mark(first, NODE) == hashing.lan_mark(first, NODE)
    marks = {hashing.lan_mark(salt, node) for salt in (first, second) for node in (NODE, NEIGHBOUR)}
    assert len(marks) == 4


def test_the_mark_of_an_account_tells_tokens_apart_and_does_not_show_them() -> None:
    token, other = AccountToken(b"t" * 32), AccountToken(b"u" * 32)
    assert hashing.account_mark(token) == hashing.account_mark(token)
    assert len({hashing.account_mark(token), hashing.account_mark(other), token, other}) == 4


def test_a_word_is_found_in_its_part_of_a_search_index_and_differs_in_another_part_or_store() -> None:
    parts = [hashing.search_part_key(key, num) for key in (KEY, OTHER) for num in (-1, 0, 1)]
    assert len(set(parts)) == 6
    found = [hashing.search_word(part, "straße") for part in parts]
    assert hashing.search_word(parts[0], "straße") == found[0]
    assert len(set(found)) == 6
    assert hashing.search_word(parts[0], "strasse") != found[0]
    assert all(0 <= word < 2**48 for word in found)


def test_equal_boxes_of_a_store_have_equal_nonces_and_no_others_have() -> None:
    nonce = hashing.box_nonce(KEY, b"place", b"said")
    assert hashing.box_nonce(KEY, b"place", b"said") == nonce
    others = [
        hashing.box_nonce(OTHER, b"place", b"said"),
        hashing.box_nonce(KEY, b"plac", b"esaid"),
        hashing.box_nonce(KEY, b"places", b"aid"),
        hashing.box_nonce(KEY, b"place", b"say"),
    ]
    assert len({nonce, *others}) == 5
    assert len(nonce) == 24
