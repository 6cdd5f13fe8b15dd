"""Makes a run of nodes follow from its seed: their secrets, and the order in which trio's tasks take turns.

Orders of sets of ids follow from the interpreter's hash seed (`hash_seed`).
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import trio

_trio: Any = trio._core._run  # what Hypothesis's support of trio seeds


@contextmanager
def fixed_chance(seed: int) -> Iterator[None]:
    """Draw all secrets from a seed, and let trio's tasks run in an order that follows from it."""
    rng = Random(f"secrets {seed}")

    def token_bytes(size: int | None = None) -> bytes:
        return rng.randbytes(32 if size is None else size)

    def token_hex(size: int | None = None) -> str:
        return token_bytes(size).hex()

    before = _trio._r.getstate(), _trio._ALLOW_DETERMINISTIC_SCHEDULING
    _trio._r.seed(seed)
    _trio._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        with patch.object(secrets, "token_bytes", token_bytes), patch.object(secrets, "token_hex", token_hex):
            yield
    finally:
        _trio._r.setstate(before[0])
        _trio._ALLOW_DETERMINISTIC_SCHEDULING = before[1]
