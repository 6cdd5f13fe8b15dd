"""Types of answers: requests. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class AskLinkMade(TypedDict):
    """A new link that asks."""

    link: str
    """The link. It has no secret of the repo."""
    lobby: str
    """By which the link is known afterwards."""
    expires_at: int
    """Unix seconds."""
    addresses: list[str]
    """Addresses (`host:port`) that the link names."""
    reach: str
    """From where the link's addresses can be dialed, at the farthest."""


class AskLinkList(TypedDict):
    """The links that ask of a repo."""

    links: list[AskLinkView]
    """The latest first."""


class RequestList(TypedDict):
    """Requests to be let into repos."""

    requests: list[RequestView]
    """To repos whose admin this user is."""
    made: list[AskView]
    """By this user. Empty where one repo's are listed."""


class RequestView(TypedDict):
    """A request to be let into a repo."""

    request: str
    """The id of its commit."""
    repo: str
    repo_name: str
    lobby: str
    """The link by which the user asked."""
    user: str
    name: str
    """This user's name for the user, else what the user states."""
    looks_alike: bool
    """A member of the repo has a name that looks like it."""
    permission: str
    """A permission; each includes those before."""
    code: str
    """Six words. Both sides see the same ones unless somebody asks in the name of another."""
    asked_at: int
    """Unix seconds."""
    expires_at: int
    """Unix seconds."""
    status: str
    """What became of a request."""


class AskLinkView(TypedDict):
    """A link that asks."""

    lobby: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    permission: str
    """A permission; each includes those before."""
    expires_at: int
    """Unix seconds."""
    here: bool
    """This node takes requests by it."""
    requests: int
    closed: bool
    full: bool
    """It has taken as much as a link may: make another one."""


class AskView(TypedDict):
    """A request that this user made."""

    repo: str
    repo_name: str
    lobby: str
    admin: str
    """Who made the link."""
    admin_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    permission: str
    """A permission; each includes those before."""
    code: str
    """Six words. Both sides see the same ones unless somebody asks in the name of another."""
    expires_at: int
    """Unix seconds."""
    status: str
    """How a request of this user stands. `sending`: no node that takes it has been met yet."""
    reason: str
    """Why the link lets this user ask nothing; else empty."""
