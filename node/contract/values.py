"""Types that requests and answers of several subjects share: ids, times, names, and the base of all requests."""

import json
from typing import Annotated, Final, TypedDict

import msgspec
from msgspec import Meta

from protocol.limits.formats import LINK_SIZE_MAX, NAME_SIZE_MAX, TEXT_SIZE_MAX

_ID_TEXT_SIZE: Final = 52

Id = Annotated[
    str, Meta(min_length=_ID_TEXT_SIZE, max_length=_ID_TEXT_SIZE, description="32 bytes as 52 characters.")
]
"""An id or a public key as text."""
PersonText = Annotated[
    str,
    Meta(
        description=(
            "Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the "
            "beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing."
        )
    ),
]
"""What to show for a user."""
UnixSeconds = Annotated[int, Meta(description="Unix seconds.")]
ByteCount = Annotated[int, Meta(ge=0, description="Bytes.")]
Count = Annotated[int, Meta(ge=0)]

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


class ErrorDetail(TypedDict):
    """Code, message and advice of an error."""

    code: str
    message: str
    next: str


def one_of(*values: str, description: str) -> Meta:
    """Return the annotation of a text that is one of a few."""
    return Meta(
        description=description,
        pattern=f"^({'|'.join(values)})$",
        extra_json_schema={"enum": list(values)},
    )


def among(*values: str, description: str) -> Meta:
    """Return the annotation of a requested text that is one of a few. The service refuses others."""
    return Meta(description=description, extra_json_schema={"pattern": f"^({'|'.join(values)})$"})


def link_of(*kinds: str, description: str = "The link.") -> Meta:
    """Return the annotation of a link in a request. Spaces in it are ignored; the service explains faults."""
    pattern = rf"^\s*ravel:({'|'.join(kinds)}):[a-z2-7\s]+$"
    return Meta(description=description, max_length=2 * LINK_SIZE_MAX, extra_json_schema={"pattern": pattern})


HeldPermission = Annotated[
    str,
    one_of(
        "read", "write", "manage", "admin", "owner", description="A permission; each includes those before."
    ),
]


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
    """Return a key that stands twice in one object of a JSON text that was decoded before; None where none does.

    Of such an object some programs read the first value and some the last, so that what one of them checked another would
    not do.
    """
    try:
        _KEYS.decode(content.decode())
    except _RepeatedKey as found:
        return str(found.args[0])
    return None


class SyncProgress(TypedDict):
    """Progress of a transfer of commits, as far as this node knows."""

    direction: Annotated[
        str,
        one_of(
            "receiving", "sending", description="`receiving`: from a peer to this node. `sending`: to it."
        ),
    ]
    done: Annotated[
        int,
        Meta(
            ge=0,
            description="`receiving`: commits that are here. `sending`: of those, the ones that the peer has confirmed or "
            "had before. After a cut it goes on from there.",
        ),
    ]
    total: Annotated[
        int | None,
        Meta(
            description="`sending`: commits that are here. `receiving`: those, and what the peer states to have beyond "
            "them. It is at least that much, and grows while others write. Null: the peer states more than is believed.",
        ),
    ]
    rate: Annotated[
        int | None,
        Meta(
            description="Commits in a second, of the last seconds, rounded up. 0: none comes any more. Null: not known yet.",
        ),
    ]
    seconds_left: Annotated[int | None, Meta(description="If it goes on at that rate. Null: nothing tells.")]


class Empty(TypedDict):
    """No fields: the action is done."""


class RootCommit(TypedDict):
    """A commit that was written to a repo's root branch."""

    commit: Id
    repo: Id


LinkReach = Annotated[
    str,
    one_of(
        "machine",
        "network",
        "anywhere",
        description="From where the link's addresses can be dialed, at the farthest.",
    ),
]

DemandedReach = Annotated[
    str,
    one_of(
        "machine",
        "network",
        "anywhere",
        description="How far the link must reach. One that would not is not made (`bad_config`).",
    ),
]


class Capability(TypedDict):
    """A read capability: a secret that does not expire."""

    capability: Annotated[str, Meta(description="The link. Anyone who has it can read what it opens.")]
    addresses: Annotated[list[str], Meta(description="Addresses (`host:port`) that the link names.")]
    reach: LinkReach
