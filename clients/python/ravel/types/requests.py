"""Types of answers: requests."""

from typing import Annotated, TypedDict

from ravel.types.values import Count, HeldPermission, Id, LinkReach, PersonText, UnixSeconds, means, one_of

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
Code = Annotated[str, means("Six words that both sides compare. They differ if an impostor asks.")]


class AskLinkMade(TypedDict):
    """A new link that asks."""

    link: Annotated[str, means("The link. It has no secret of the repo.")]
    lobby: Annotated[Id, means("By which the link is known afterwards.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], means("Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class AskLinkView(TypedDict):
    """A link that asks."""

    lobby: Id
    author: Id
    author_name: PersonText
    permission: HeldPermission
    expires_at: UnixSeconds
    here: Annotated[bool, means("This node takes requests by it.")]
    requests: Count
    closed: bool
    full: Annotated[bool, means("It has taken as much as a link may: make another one.")]


class AskLinkList(TypedDict):
    """The links that ask of a repo."""

    links: Annotated[list[AskLinkView], means("The latest first.")]


class RequestView(TypedDict):
    """A request to be let into a repo."""

    request: Annotated[Id, means("The id of its commit.")]
    repo: Id
    repo_name: str
    lobby: Annotated[Id, means("The link by which the user asked.")]
    user: Id
    name: Annotated[PersonText, means("This user's name for the user, else what the user states.")]
    looks_alike: Annotated[bool, means("A member of the repo has a name that looks like it.")]
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
    admin: Annotated[Id, means("Who made the link.")]
    admin_name: PersonText
    permission: HeldPermission
    code: Code
    expires_at: UnixSeconds
    status: AskStatus
    reason: Annotated[str, means("Why the link lets this user ask nothing; else empty.")]


class RequestList(TypedDict):
    """Requests to be let into repos."""

    requests: Annotated[list[RequestView], means("To repos whose admin this user is.")]
    made: Annotated[list[AskView], means("By this user. Empty where one repo's are listed.")]
