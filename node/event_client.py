"""Server-sent events as a client reads them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from node.error_answers import read_error
from node.errors import ServiceError


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. Whoever has taken it goes on from `cursor`, where it has one."""

    name: str
    cursor: str
    data: dict[str, Any]


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
