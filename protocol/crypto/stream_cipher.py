"""ChaCha20 (RFC 8439, section 2.4) with a zero nonce from block 0 on, as blocks of objects are encrypted.

The same stream by two libraries: a call of libsodium costs half of one of OpenSSL, and OpenSSL is four times as fast
where there is much to encrypt. Most commits are small, and most bytes are in files.
"""

import ctypes
from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from nacl import _sodium

KEY_SIZE: Final = 32
SMALL_SIZE_MAX: Final = 1024
"""Bytes up to which libsodium takes less."""
_NONCE: Final = bytes(12)
_COUNTER_AND_NONCE: Final = bytes(16)  # as `cryptography` takes them
_BYTE: Final = ctypes.c_char

Encipher = Callable[[bytes, bytes], bytes]


def encipher(key: bytes, data: bytes) -> bytes:
    """Return data (bytes of any length) enciphered, or deciphered, under a key of KEY_SIZE bytes. Raises ValueError."""
    if len(data) <= SMALL_SIZE_MAX and by_sodium is not None:
        return by_sodium(key, data)
    return by_openssl(key, data)


def by_openssl(key: bytes, data: bytes) -> bytes:
    """Encipher by OpenSSL."""
    return Cipher(ChaCha20(key, _COUNTER_AND_NONCE), mode=None).encryptor().update(data)


def _load_sodium() -> Encipher | None:
    """Return a cipher of PyNaCl's libsodium; None if the library hides the function, which PyNaCl does not bind."""
    try:
        # With the interpreter's lock: another thread would keep it for longer than this takes.
        xor = ctypes.PyDLL(_sodium.__file__).crypto_stream_chacha20_ietf_xor
    except (OSError, AttributeError):
        return None
    text = ctypes.c_char_p
    xor.argtypes = (ctypes.c_void_p, text, ctypes.c_ulonglong, text, text)

    def encipher_small(key: bytes, data: bytes) -> bytes:
        if len(key) != KEY_SIZE:
            raise ValueError("a key of another length")
        size = len(data)
        if not size:
            return b""
        place = bytearray(size)
        xor(ctypes.byref(_BYTE.from_buffer(place)), bytes(data), size, _NONCE, key)
        return bytes(place)

    return encipher_small


by_sodium: Final = _load_sodium()
"""Enciphers by libsodium, where it can be asked."""
