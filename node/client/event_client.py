"""Server-sent events as a client reads them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from node.client.calls import CallParts
from node.client.errors import error_of, read_error
from node.client.http_client import HttpClient
from node.contract.endpoint import PREFIX
from node.runtime.errors import ServiceError


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. A reader that has handled it continues from `cursor`, where it has one.

    The endpoint's `events` state the type of `data` for each name.
    """

    name: str
    cursor: str
    data: dict[str, Any]


@contextmanager
def open_stream(http: HttpClient, parts: CallParts) -> Iterator[Iterator[StreamEvent]]:
    """The events that an endpoint streams. Raises ServiceError, ConnectionLost."""
    headers = {"Accept": "text/event-stream"}
    with http.open("GET", PREFIX + parts.path, query=parts.query, headers=headers) as response:
        if response.is_error:
            raise error_of(response.status, response.read())
        yield read_events(response.lines(), "watch again, from the last cursor")


def read_events(lines: Iterable[str], resume: str) -> Iterator[StreamEvent]:
    """The events that these lines make.

    Raises ServiceError, `interrupted` with `resume` as its next step when the daemon stops.
    """
    name, cursor, data = "", "", ""
    for line in lines:
        key, _, value = line.partition(": ")
        match key:
            case "event":
                name = value
            case "id":
                cursor = value
            case "data":
                data = value
            case "" if name == "closing":
                break
            case "" if data:
                yield _event_of(name, cursor, data)
                name, cursor, data = "", "", ""
            case _:
                pass  # a comment, or what a later version says
    raise ServiceError("interrupted", "the daemon has ended the stream", resume)


def _event_of(name: str, cursor: str, data: str) -> StreamEvent:
    if name == "error" and (error := read_error(data)) is not None:
        raise error
    try:
        return StreamEvent(name, cursor, msgspec.json.decode(data, type=dict[str, Any]))
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ServiceError("internal", "the daemon sent an event without JSON") from None
