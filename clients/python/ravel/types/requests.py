"""Types of answers: requests."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import Count, HeldPermission, Id, LinkReach, PersonText, UnixSeconds, one_of

RequestStatus = Annotated[
    str,
    one_of(
        "waiting",
        "accepted",
        "refused",
        "withdrawn",
        "closed",
        "expired",
        description="What became of a request.",
    ),
]
AskStatus = Annotated[
    str,
    one_of(
        "sending",
        "waiting",
        "accepted",
        "refused",
        "withdrawn",
        "closed",
        "expired",
        "failed",
        description="How a request of this user stands. `sending`: no node that takes it has been met yet.",
    ),
]
Code = Annotated[
    str,
    Meta(description="Six words. Both sides see the same ones unless somebody asks in the name of another."),
]


class AskLinkMade(TypedDict):
    """A new link that asks."""

    link: Annotated[str, Meta(description="The link. It has no secret of the repo.")]
    lobby: Annotated[Id, Meta(description="By which the link is known afterwards.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], Meta(description="Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class AskLinkView(TypedDict):
    """A link that asks."""

    lobby: Id
    author: Id
    author_name: PersonText
    permission: HeldPermission
    expires_at: UnixSeconds
    here: Annotated[bool, Meta(description="This node takes requests by it.")]
    requests: Count
    closed: bool
    full: Annotated[bool, Meta(description="It has taken as much as a link may: make another one.")]


class AskLinkList(TypedDict):
    """The links that ask of a repo."""

    links: Annotated[list[AskLinkView], Meta(description="The latest first.")]


class RequestView(TypedDict):
    """A request to be let into a repo."""

    request: Annotated[Id, Meta(description="The id of its commit.")]
    repo: Id
    repo_name: str
    lobby: Annotated[Id, Meta(description="The link by which the user asked.")]
    user: Id
    name: Annotated[PersonText, Meta(description="This user's name for the user, else what the user states.")]
    looks_alike: Annotated[bool, Meta(description="A member of the repo has a name that looks like it.")]
    permission: HeldPermission
    code: Code
    asked_at: UnixSeconds
    expires_at: UnixSeconds
    status: RequestStatus


class AskView(TypedDict):
    """A request that this user made."""

    repo: Id
    repo_name: str
    lobby: Id
    admin: Annotated[Id, Meta(description="Who made the link.")]
    admin_name: PersonText
    permission: HeldPermission
    code: Code
    expires_at: UnixSeconds
    status: AskStatus
    reason: Annotated[str, Meta(description="Why the link lets this user ask nothing; else empty.")]


class RequestList(TypedDict):
    """Requests to be let into repos."""

    requests: Annotated[list[RequestView], Meta(description="To repos whose admin this user is.")]
    made: Annotated[list[AskView], Meta(description="By this user. Empty where one repo's are listed.")]
