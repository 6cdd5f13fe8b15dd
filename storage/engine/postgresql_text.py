"""Escapes the character U+0000 in texts, which PostgreSQL refuses and a peer may send.

U+0000 is kept as U+0001 "0" and U+0001 as U+0001 "1". Different texts stay different, and equal ones equal. For this one
module needs the driver; nothing imports it before there is a connection.
"""

from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown

_ESCAPE = "\x01"


class TextDumper(StrDumperUnknown):
    """On the way in."""

    def dump(self, obj: str) -> Buffer | None:
        """The text's bytes, escaped."""
        if _ESCAPE in obj or "\0" in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class TextLoader(Loader):
    """On the way out."""

    def load(self, data: Buffer) -> str:
        """The text as it was."""
        text = bytes(data).decode()
        if _ESCAPE in text:
            text = text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
        return text
