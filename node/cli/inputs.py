"""What commands read from standard input or a file, up to a bound."""

import sys
from pathlib import Path

from node.runtime.errors import ServiceError


def read_input(path: str, size_max: int) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises ServiceError `bad_input`, `too_large`."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(size_max + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(size_max + 1)
    except OSError as error:
        raise ServiceError(
            "bad_input", f"{path} cannot be read: {error.strerror or error}", "give a readable file"
        ) from None
    if len(content) > size_max:
        raise ServiceError("too_large", f"at most {size_max} bytes are taken at once", "send less at once")
    return content


def read_typed(size_max: int) -> str:
    """A line that is typed at a terminal, or all of a pipe or a file, of at most `size_max` bytes. Raises as `read_input`.

    What is not UTF-8 becomes U+FFFD: it belongs to nothing that is typed so.
    """
    if sys.stdin.isatty():
        return sys.stdin.readline(size_max).strip()
    return read_input("-", size_max).decode("utf-8-sig", "replace")
