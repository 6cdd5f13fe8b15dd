"""Types that requests and answers of several subjects share: ids, times, names, and the base of all requests."""

import json
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from protocol.limits.formats import LINK_SIZE_MAX, NAME_SIZE_MAX, TEXT_SIZE_MAX
from ravel.types.values import one_of

Name = Annotated[str, Meta(min_length=1, max_length=NAME_SIZE_MAX)]
"""A name in a request, in characters."""
IdText = Annotated[str, Meta(min_length=1, max_length=64, description="An id or a unique prefix of one.")]
"""An id in a request."""
UserText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        description="A user: its id, a unique prefix of 4 or more characters, or its name.",
    ),
]
"""A user in a request."""
Text = Annotated[str, Meta(max_length=TEXT_SIZE_MAX)]
"""A text in a request, in characters."""


def among(*values: str, description: str) -> Meta:
    """Return the annotation of a requested text that is one of a few. The service refuses others."""
    return Meta(description=description, extra_json_schema={"pattern": f"^({'|'.join(values)})$"})


def link_of(*kinds: str, description: str = "The link.") -> Meta:
    """Return the annotation of a link in a request. Spaces in it are ignored; the service explains faults."""
    pattern = rf"^\s*ravel:({'|'.join(kinds)}):[a-z2-7\s]+$"
    return Meta(description=description, max_length=2 * LINK_SIZE_MAX, extra_json_schema={"pattern": pattern})


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON body of a request. A field that is not listed is refused."""


class NameRequest(Request, frozen=True):
    """Names what is created."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=NAME_SIZE_MAX,
            description="No controls, no colon, no spaces at its ends, no `-` in front. Kept in Unicode's form NFC.",
        ),
    ]


class _RepeatedKey(Exception):
    """Raised by `_keep_keys` with the key."""


def _keep_keys(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedKey(key)
        seen.add(key)


_KEYS: Final = json.JSONDecoder(object_pairs_hook=_keep_keys)


def find_repeated_key(content: bytes) -> str | None:
    """Return a key that occurs twice in one object of a JSON text that was decoded before; None if there is none.

    Of such an object some programs read the first value and some the last, so that what one of them checked another
    would not do.
    """
    try:
        _KEYS.decode(content.decode())
    except _RepeatedKey as found:
        return str(found.args[0])
    return None


DemandedReach = Annotated[
    str,
    one_of(
        "machine",
        "network",
        "anywhere",
        description="How far the link must reach. One that would not is not made (`bad_config`).",
    ),
]
