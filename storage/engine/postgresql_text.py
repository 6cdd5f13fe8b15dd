"""Escapes the character U+0000 in texts, which PostgreSQL refuses and a peer may send.

U+0000 is kept as U+0001 "0" and U+0001 as U+0001 "1". Different texts stay different, and equal ones equal. For this one
module needs the driver; nothing imports it before there is a connection.
"""

from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown

_ESCAPE = "\x01"


class TextDumper(StrDumperUnknown):
    """Dumper of texts for PostgreSQL."""

    def dump(self, obj: str) -> Buffer | None:
        """Escape a text; return its bytes."""
        if _ESCAPE in obj or "\0" in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class TextLoader(Loader):
    """Loader of texts from PostgreSQL."""

    def load(self, data: Buffer) -> str:
        """Unescape a text."""
        text = bytes(data).decode()
        if _ESCAPE in text:
            text = text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
        return text
