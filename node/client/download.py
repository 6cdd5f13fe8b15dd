"""Result type of a file download by the API client."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Download:
    """A file on its way: the size, id and name of the whole, and the bytes that were asked for."""

    size: int
    file_id: str
    name: str
    pieces: Iterator[bytes]
