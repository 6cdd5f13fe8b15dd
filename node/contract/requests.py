"""Requests to join: links that ask, who asked by them, and what this user asked for."""

from typing import Annotated, Final, TypedDict

from msgspec import Meta

from node.contract.access import ADMIN_ALL, ADMIN_REPO, NODE, READ_REPO
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint
from node.contract.made import Makes
from node.contract.values import (
    Count,
    DemandedReach,
    HeldPermission,
    Id,
    LinkReach,
    PersonText,
    Request,
    UnixSeconds,
    among,
    one_of,
)
from protocol.limits.users import ASK_LINK_USE_COUNT_MAX

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


class AskLinkRequest(Request, frozen=True):
    """Makes a link that asks."""

    permission: Annotated[
        str,
        among(
            "read",
            "write",
            description="`read` or `write`: what an acceptance gives, if nothing else is said.",
        ),
    ] = "write"
    expires_seconds: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 7 * 86_400
    uses: Annotated[
        int, Meta(ge=1, le=ASK_LINK_USE_COUNT_MAX, description="How many users may ask by it.")
    ] = 16
    reach: DemandedReach = "machine"


class RequestAnswerRequest(Request, frozen=True):
    """Answers a request."""

    accepts: bool
    permission: Annotated[
        str,
        among("", "read", "write", description="`read` or `write`. Empty: what the link says."),
    ] = ""


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


MAKE_ASK_LINK: Final = Endpoint(
    name="make_ask_link",
    method="POST",
    path="/repos/{repo}/lobbies",
    scopes=ADMIN_REPO,
    summary="Make a link by which users ask to be let into a repo. It has no secret of the repo.",
    request=AskLinkRequest,
    answer=AskLinkMade,
    makes=Makes(kind="ask_link", repo="repo", what="lobby", until="expires_at"),
    errors=(*WRITE_ERRORS, *LINK_ERRORS),
)
LIST_ASK_LINKS: Final = Endpoint(
    name="list_ask_links",
    method="GET",
    path="/repos/{repo}/lobbies",
    scopes=READ_REPO,
    summary="List the links by which users ask to be let into a repo.",
    answer=AskLinkList,
    errors=("not_permitted",),
)
CLOSE_ASK_LINK: Final = Endpoint(
    name="close_ask_link",
    method="DELETE",
    path="/repos/{repo}/lobbies/{lobby}",
    scopes=ADMIN_REPO,
    summary="End a link by which users ask. Who asked by it and has no answer is not accepted any more.",
    answer=AskLinkList,
    errors=WRITE_ERRORS,
)
LIST_REQUESTS: Final = Endpoint(
    name="list_requests",
    method="GET",
    path="/repos/{repo}/requests",
    scopes=READ_REPO,
    summary="List who asks to be let into a repo.",
    answer=RequestList,
    errors=("not_permitted",),
)
LIST_ALL_REQUESTS: Final = Endpoint(
    name="list_all_requests",
    method="GET",
    path="/requests",
    scopes=NODE,
    summary="List who asks to be let into any repo, and what this user asked for.",
    answer=RequestList,
)
ANSWER_REQUEST: Final = Endpoint(
    name="answer_request",
    method="POST",
    path="/repos/{repo}/requests/{request}/answers",
    scopes=ADMIN_REPO,
    summary="Accept a request, which makes the user a member, or refuse it.",
    request=RequestAnswerRequest,
    answer=RequestView,
    makes=Makes(kind="member", repo="repo", what="user", only_if="accepts"),
    errors=(*WRITE_ERRORS, "expired"),
)
CANCEL_REQUEST: Final = Endpoint(
    name="cancel_request",
    method="DELETE",
    path="/requests/{request}",
    scopes=ADMIN_ALL,
    summary="Take back a request of this user, named by its repo.",
    answer=RequestList,
    errors=WRITE_ERRORS,
)
