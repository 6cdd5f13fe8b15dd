"""ChaCha20 by two libraries: the RFC's stream, the same from both, and no key of another length."""

import pytest

from protocol.crypto import stream_cipher
from protocol.crypto.stream_cipher import KEY_SIZE, SMALL_SIZE_MAX, by_openssl, by_sodium, encipher

KEY = bytes(range(KEY_SIZE))


def test_it_is_the_stream_of_the_rfc() -> None:
    stream = bytes.fromhex(  # RFC 8439, appendix A.1, test vector 1
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert encipher(bytes(KEY_SIZE), bytes(len(stream))) == stream


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 500, SMALL_SIZE_MAX, SMALL_SIZE_MAX + 1, 20_000])
def test_both_libraries_give_the_same_and_undo_each_other(size: int) -> None:
    assert by_sodium is not None, "PyNaCl's libsodium shows the function"
    data = bytes(number * 7 % 256 for number in range(size))
    enciphered = by_openssl(KEY, data)
    assert by_sodium(KEY, data) == encipher(KEY, data) == enciphered
    assert by_sodium(KEY, enciphered) == by_openssl(KEY, enciphered) == data


@pytest.mark.parametrize("key", [b"", KEY[:-1], KEY + b"k"])
def test_a_key_of_another_length_is_refused(key: bytes) -> None:
    for size in (10, SMALL_SIZE_MAX + 1):
        with pytest.raises(ValueError, match="key"):
            encipher(key, bytes(size))


def test_openssl_does_all_where_libsodium_does_not_show_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = encipher(KEY, b"a commit")
    monkeypatch.setattr(stream_cipher, "by_sodium", None)
    assert encipher(KEY, b"a commit") == expected
