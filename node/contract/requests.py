"""Requests to join: links that ask, who asked by them, and what this user asked for."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import ADMIN_ALL, ADMIN_REPO, NODE, READ_REPO
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint
from node.contract.made import Makes
from node.contract.values import DemandedReach, Request, among
from protocol.limits.users import ASK_LINK_USE_COUNT_MAX
from ravel.types.requests import AskLinkList, AskLinkMade, RequestList, RequestView


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
