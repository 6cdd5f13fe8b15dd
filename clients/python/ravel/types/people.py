"""Types of answers: people."""

from typing import Annotated, TypedDict

from ravel.types.values import Id, means, one_of


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
    name: Annotated[str | None, means("Null: nothing.")]
    shown: Annotated[
        str, means("Name by which others see the person whose device this is. Empty: this one's own.")
    ]
    color: Annotated[int | None, means("The number of a color. Null: none was chosen.")]
    repos: list[OwnRepo]


class Petname(TypedDict):
    """A petname: the name that this user gives to another user or a node."""

    user: Annotated[Id, means("The user, or the node.")]
    name: Annotated[str, means("Empty: nothing any more.")]


class PetnameList(TypedDict):
    """All petnames."""

    petnames: Annotated[list[Petname], means("Of users.")]
    peers: Annotated[list[Petname], means("Of nodes.")]
