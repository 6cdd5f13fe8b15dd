"""What the parts of the API's client share: how they make a request, and how they write a path."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

JsonObject = dict[str, Any]


class Call(Protocol):
    """Makes a request of the API and gives its answer. Raises ServiceError."""

    def __call__(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        query: Mapping[str, int | str] | None = None,
    ) -> JsonObject:
        """Make it."""
        ...


def path_part(text: str) -> str:
    """One segment of a path. A text of dots alone is written out: it would mean the segment above."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if text in (".", "..") else quoted
