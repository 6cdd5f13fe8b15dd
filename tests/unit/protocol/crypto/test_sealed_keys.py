"""Keys that one user seals for another outside the repo: who opens them, and for which repo."""

import pytest
from nacl import bindings

from protocol.crypto import signing
from protocol.crypto.keys import EpochKey, UserSeed
from protocol.crypto.sealed_keys import NONCE_SIZE, SEALED_KEY_SIZE, NotForUs, open_key, seal_key
from protocol.crypto.signing import BadSignature
from protocol.ids import RepoId, UserId

ANN, ANN_SECRET = signing.key_pair(UserSeed(b"a" * 32))
BEN, BEN_SECRET = signing.key_pair(UserSeed(b"b" * 32))
EVE, EVE_SECRET = signing.key_pair(UserSeed(b"e" * 32))
REPO, OTHER = RepoId(b"r" * 32), RepoId(b"o" * 32)
KEY = EpochKey(b"k" * 32)
NONCE = bytes(range(NONCE_SIZE))
SEALED = seal_key(ANN_SECRET, BEN, REPO, KEY, NONCE)
IDENTITY = (1).to_bytes(32, "little")
ILLEGAL = [bytes(32), IDENTITY, b"\xff" * 32, b"short"]


def test_the_receiver_opens_what_the_author_sealed() -> None:
    assert open_key(BEN_SECRET, ANN, REPO, SEALED) == KEY
    assert len(SEALED) == SEALED_KEY_SIZE
    assert SEALED.find(KEY) == -1


def test_the_author_opens_it_too_and_nobody_else_does() -> None:
    assert open_key(ANN_SECRET, BEN, REPO, SEALED) == KEY
    for author in (ANN, BEN, EVE):
        with pytest.raises(NotForUs):
            open_key(EVE_SECRET, author, REPO, SEALED)


def test_the_receiver_knows_who_sealed_it() -> None:
    with pytest.raises(NotForUs):
        open_key(BEN_SECRET, EVE, REPO, SEALED)


def test_it_opens_nothing_in_another_repo() -> None:
    with pytest.raises(NotForUs, match="of another repo"):
        open_key(BEN_SECRET, ANN, OTHER, SEALED)


@pytest.mark.parametrize("place", [0, NONCE_SIZE, NONCE_SIZE + 16, SEALED_KEY_SIZE - 1])
def test_what_was_altered_anywhere_does_not_open(place: int) -> None:
    altered = bytearray(SEALED)
    altered[place] ^= 1
    with pytest.raises(NotForUs):
        open_key(BEN_SECRET, ANN, REPO, bytes(altered))


@pytest.mark.parametrize("sealed", [b"", SEALED[:NONCE_SIZE], SEALED[:-1], SEALED + b"\0"])
def test_what_has_another_length_does_not_open(sealed: bytes) -> None:
    with pytest.raises(NotForUs):
        open_key(BEN_SECRET, ANN, REPO, sealed)


def test_a_box_of_the_right_two_that_holds_no_key_is_not_for_us() -> None:
    theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(BEN)
    ours = bindings.crypto_sign_ed25519_sk_to_curve25519(ANN_SECRET)
    for inside in (REPO, REPO + KEY[:-1], REPO + KEY + b"\0"):
        with pytest.raises(NotForUs):
            open_key(BEN_SECRET, ANN, REPO, NONCE + bindings.crypto_box(inside, NONCE, theirs, ours))


@pytest.mark.parametrize("illegal", ILLEGAL)
def test_nothing_is_sealed_for_or_opened_from_an_illegal_key(illegal: bytes) -> None:
    with pytest.raises(BadSignature):
        seal_key(ANN_SECRET, UserId(illegal), REPO, KEY, NONCE)
    with pytest.raises(NotForUs):
        open_key(BEN_SECRET, UserId(illegal), REPO, SEALED)


def test_each_nonce_gives_another_box() -> None:
    assert seal_key(ANN_SECRET, BEN, REPO, KEY, NONCE) == SEALED
    assert seal_key(ANN_SECRET, BEN, REPO, KEY, bytes(NONCE_SIZE))[NONCE_SIZE:] != SEALED[NONCE_SIZE:]
