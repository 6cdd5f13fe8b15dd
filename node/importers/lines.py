"""Reads lines of a plain or compressed file, with a size limit per line."""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from node.runtime.errors import ServiceError


def read_lines(path: Path, size_max: int) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line that is not blank; of one over `size_max` bytes, the first `size_max` + 1.

    A byte order mark at the start is no part of the first. A name that ends in .gz is decompressed as it
    is read. Raises ServiceError `bad_input`.
    """
    number = 0
    try:
        with _open(path) as file:
            while line := file.readline(size_max + 1):
                number += 1
                if number == 1 and line.startswith(BOM_UTF8):
                    line = line.removeprefix(BOM_UTF8)
                    line += b"" if line.endswith(b"\n") else file.readline(len(BOM_UTF8))
                if line.strip() or len(line) > size_max:
                    yield number, line
                while len(line) > size_max and not line.endswith(b"\n"):
                    line = file.readline(size_max + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ServiceError("bad_input", f"{path} cannot be read: {error}", "give a readable file") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    return path.open("rb")
