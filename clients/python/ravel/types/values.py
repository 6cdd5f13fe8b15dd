"""Types of answers: values."""

from typing import Annotated, Final, Literal, TypedDict

from msgspec import Meta

_ID_TEXT_SIZE: Final = 52


def means(description: str, *, ge: int | None = None) -> Meta:
    """Return the annotation that says what a field means, and what a number is at least."""
    return Meta(description=description, ge=ge)


Id = Annotated[
    str, Meta(min_length=_ID_TEXT_SIZE, max_length=_ID_TEXT_SIZE, description="32 bytes as 52 characters.")
]
"""An id or a public key as text."""
PersonText = Annotated[
    str,
    means(
        "Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the "
        "beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing."
    ),
]
"""Text to show for a user."""
UnixSeconds = Annotated[int, means("Unix seconds.")]
ByteCount = Annotated[int, means("Bytes.", ge=0)]
Count = Annotated[int, Meta(ge=0)]
Action = Literal["read", "write", "manage", "admin", "node", "metrics"]


class ErrorDetail(TypedDict):
    """Code, message and advice of an error."""

    code: str
    message: str
    next: str


def one_of(*values: str, description: str) -> Meta:
    """Return the annotation of a text that is one of a few."""
    return Meta(
        description=description, pattern=f"^({'|'.join(values)})$", extra_json_schema={"enum": list(values)}
    )


HeldPermission = Annotated[
    str,
    one_of(
        "read", "write", "manage", "admin", "owner", description="A permission; each includes those before."
    ),
]


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
        means(
            "`receiving`: commits that are here. `sending`: of those, the ones that the peer has confirmed or "
            "had before. After a cut it goes on from there.",
            ge=0,
        ),
    ]
    total: Annotated[
        int | None,
        means(
            "`sending`: commits that are here. `receiving`: those, and what the peer states to have beyond "
            "them. It is at least that much, and grows while others write. Null: the peer states more than is believed."
        ),
    ]
    rate: Annotated[
        int | None,
        means(
            "Commits in a second, of the last seconds, rounded up. 0: none comes any more. Null: not known yet."
        ),
    ]
    seconds_left: Annotated[int | None, means("If it goes on at that rate. Null: nothing tells.")]


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


class Capability(TypedDict):
    """A read capability: a secret that does not expire."""

    capability: Annotated[str, means("The link. Anyone who has it can read what it opens.")]
    addresses: Annotated[list[str], means("Addresses (`host:port`) that the link names.")]
    reach: LinkReach
