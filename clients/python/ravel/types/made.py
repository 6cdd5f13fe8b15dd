"""Types of answers: made."""

from typing import Annotated, Literal, TypedDict, get_args

from ravel.types.values import Id, UnixSeconds, means, one_of

MadeKind = Literal[
    "invitation",
    "ask_link",
    "read_link",
    "branch_link",
    "device_link",
    "member",
    "token",
    "browser",
    "relay_account",
    "peer",
    "allowed_peer",
]


class MadeThing(TypedDict):
    """Thing that the holder of a token made."""

    kind: Annotated[
        str,
        one_of(
            *get_args(MadeKind),
            description="`ask_link`: by which users ask. `device_link`: for a device. `allowed_peer`: of this relay.",
        ),
    ]
    what: Annotated[
        str,
        means(
            "What tells it from others: the id of an invitation, link, member or peer; a token's, browser's or "
            "account's name. Empty of a link that opens a repo, and of what is begun."
        ),
    ]
    repo: Annotated[Id | None, means("Null: it is of no repo.")]
    repo_name: Annotated[str | None, means("Null: it is of no repo, or the repo is not here any more.")]
    made_at: UnixSeconds
    expires_at: Annotated[int | None, means("Unix seconds. Null: it does not expire.")]
    begun: Annotated[bool, means("Possibly there: it is being made, or was never noted as made.")]
    ended: Annotated[bool, means("It has expired, or was taken back by this request.")]
    advice: Annotated[
        str, means("Command or page that takes it back, or finds it. Empty: nothing is left to do.")
    ]


class Revoked(TypedDict):
    """A token or a browser that was revoked."""

    made: Annotated[list[MadeThing], means("Things that its holder made, the latest first.")]
