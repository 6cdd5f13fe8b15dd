"""Calls: requests. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.requests import AskLinkList, AskLinkMade, RequestList, RequestView

MAKE_ASK_LINK: Final[Operation[AskLinkMade]] = Operation(
    "POST",
    "/repos/{repo}/lobbies",
    "requests.AskLinkMade",
    defaults={"permission": "write", "expires_seconds": 604800, "uses": 16, "reach": "machine"},
)
LIST_ASK_LINKS: Final[Operation[AskLinkList]] = Operation(
    "GET", "/repos/{repo}/lobbies", "requests.AskLinkList"
)
CLOSE_ASK_LINK: Final[Operation[AskLinkList]] = Operation(
    "DELETE", "/repos/{repo}/lobbies/{lobby}", "requests.AskLinkList"
)
LIST_REQUESTS: Final[Operation[RequestList]] = Operation(
    "GET", "/repos/{repo}/requests", "requests.RequestList"
)
LIST_ALL_REQUESTS: Final[Operation[RequestList]] = Operation("GET", "/requests", "requests.RequestList")
ANSWER_REQUEST: Final[Operation[RequestView]] = Operation(
    "POST", "/repos/{repo}/requests/{request}/answers", "requests.RequestView", defaults={"permission": ""}
)
CANCEL_REQUEST: Final[Operation[RequestList]] = Operation(
    "DELETE", "/requests/{request}", "requests.RequestList"
)


class RequestsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def make_ask_link(
        self,
        repo: str,
        *,
        permission: str = "write",
        expires_seconds: int = 604800,
        uses: int = 16,
        reach: str = "machine",
    ) -> AskLinkMade:
        """Make a link by which users ask to be let into a repo. It has no secret of the repo."""
        return self._call(
            MAKE_ASK_LINK,
            {
                "repo": repo,
                "permission": permission,
                "expires_seconds": expires_seconds,
                "uses": uses,
                "reach": reach,
            },
        )

    def list_ask_links(self, repo: str) -> AskLinkList:
        """List the links by which users ask to be let into a repo."""
        return self._call(LIST_ASK_LINKS, {"repo": repo})

    def close_ask_link(self, repo: str, lobby: str) -> AskLinkList:
        """End a link by which users ask. Who asked by it and has no answer is not accepted any more."""
        return self._call(CLOSE_ASK_LINK, {"repo": repo, "lobby": lobby})

    def list_requests(self, repo: str) -> RequestList:
        """List who asks to be let into a repo."""
        return self._call(LIST_REQUESTS, {"repo": repo})

    def list_all_requests(self) -> RequestList:
        """List who asks to be let into any repo, and what this user asked for."""
        return self._call(LIST_ALL_REQUESTS, {})

    def answer_request(self, repo: str, request: str, accepts: bool, *, permission: str = "") -> RequestView:
        """Accept a request, which makes the user a member, or refuse it."""
        return self._call(
            ANSWER_REQUEST, {"repo": repo, "request": request, "accepts": accepts, "permission": permission}
        )

    def cancel_request(self, request: str) -> RequestList:
        """Take back a request of this user, named by its repo."""
        return self._call(CANCEL_REQUEST, {"request": request})
