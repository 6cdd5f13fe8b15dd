"""The compiled reader for tests, and one that takes every signature, so that made-up commits come as far as their fields."""

import ctypes
import os
from functools import cache

import pytest

from node.ingest.native_reading import Library, load_library

_NO_LIBRARY = "node/ingest/reading.so was not built: `make setup` does that where there is a C compiler"
_VERIFY = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_void_p
)


def library() -> Library:
    """Return it. Without it the test is skipped; in CI it fails."""
    found = load_library()
    if found is None:
        assert not os.environ.get("CI"), _NO_LIBRARY
        pytest.skip(_NO_LIBRARY)
    return found


_HOLD = _VERIFY(lambda _signature, _message, _size, _key: 0)


@cache
def credulous_library() -> Library:
    """Return one to which each canonical signature holds."""
    found = library()
    found._sodium.verify = ctypes.cast(_HOLD, ctypes.c_void_p).value
    return found
