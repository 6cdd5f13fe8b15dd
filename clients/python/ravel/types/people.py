"""Types of answers: people."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import Id, one_of


class OwnRepo(TypedDict):
    """State of a repo."""

    repo: Id
    name: str
    state: Annotated[
        str,
        one_of(
            "stated",
            "due",
            "not_permitted",
            description=(
                "`stated`: the repo says what this user calls itself. `due`: it will, within a minute or when the node can "
                "write there. `not_permitted`: this user may not write there."
            ),
        ),
    ]


class OwnName(TypedDict):
    """Name that this user states."""

    user: Id
    name: Annotated[str | None, Meta(description="Null: nothing.")]
    color: Annotated[int | None, Meta(description="The number of a color. Null: none was chosen.")]
    repos: list[OwnRepo]


class Petname(TypedDict):
    """A petname: the name that this user gives to another user or a node."""

    user: Annotated[Id, Meta(description="The user, or the node.")]
    name: Annotated[str, Meta(description="Empty: nothing any more.")]


class PetnameList(TypedDict):
    """All petnames."""

    petnames: Annotated[list[Petname], Meta(description="Of users.")]
    peers: Annotated[list[Petname], Meta(description="Of nodes.")]
