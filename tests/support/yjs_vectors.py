"""Reads state vectors of Yjs, as libraries make them."""

from protocol.formats.yjs_updates import Cursor


def read_vector(encoded: bytes) -> dict[int, int]:
    """Return the clock behind what is there of each client, from a state vector."""
    cursor = Cursor(encoded)
    return {cursor.number(): cursor.number() for _ in range(cursor.number())}
