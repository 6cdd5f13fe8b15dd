"""Files on their way to a node, and from it."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, overload
from urllib.parse import unquote

import msgspec

from ravel.errors import RavelError, incompatible

P = TypeVar("P", Iterator[bytes], AsyncIterator[bytes])


def encode_head(name: str, size: int) -> bytes:
    """Return the line before the `size` bytes of one file in the body of `add_files`. `name` may be a path with `/`."""
    return msgspec.json.encode({"name": name, "size": size}) + b"\n"


@overload
def pieces_of(content: bytes | Iterable[bytes]) -> Iterable[bytes]: ...
@overload
def pieces_of(
    content: bytes | Iterable[bytes] | AsyncIterable[bytes],
) -> Iterable[bytes] | AsyncIterable[bytes]: ...
def pieces_of(
    content: bytes | Iterable[bytes] | AsyncIterable[bytes],
) -> Iterable[bytes] | AsyncIterable[bytes]:
    """Return the content of an upload, in pieces. Raises RavelError `bad_request` for a text: the caller encodes it."""
    if isinstance(content, str):
        raise RavelError(
            "bad_request", "the content is a text, and must be bytes", "encode it: text.encode()"
        )
    return (bytes(content),) if isinstance(content, bytes | bytearray | memoryview) else content


@dataclass(frozen=True, slots=True)
class Download(Generic[P]):
    """A file on its way: the size, id and name of the whole, and the bytes that were asked for."""

    size: int
    file_id: str
    name: str
    pieces: P


def range_headers(start: int, stop: int | None) -> Mapping[str, str]:
    """Return the headers that ask for a part of a file; none for a whole file, as an empty one has no first byte."""
    if not start and stop is None:
        return {}
    return {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}


def download_of(header: Callable[[str], str], pieces: P) -> "Download[P]":
    """Return what an answer's headers state. Raises RavelError `incompatible`."""
    found = re.fullmatch(r"bytes [0-9]+-[0-9]+/([0-9]+)", header("content-range"))
    size = found[1] if found else header("content-length")
    if not re.fullmatch(r"[0-9]{1,18}", size):
        raise incompatible("the daemon sent a file without its size")
    name = header("content-disposition").partition("''")[2]
    return Download(int(size), header("etag").strip('"').partition("-")[0], unquote(name), pieces)


def cut_short(error: Exception) -> RavelError:
    """Return the error where the bytes stop coming."""
    return RavelError(
        "interrupted", f"the daemon stopped sending: {error}", "ask again: what the node fetched stays there"
    )
