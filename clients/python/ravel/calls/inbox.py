"""Calls: inbox. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.branches import MergeResult
    from ravel.types.inbox import CommentList, OfferAnswer, OfferList, OfferMade

LIST_OFFERS: Final[Operation[OfferList]] = Operation(
    name="list_offers", method="GET", path="/repos/{repo}/offers", answer="inbox.OfferList"
)
MAKE_OFFER: Final[Operation[OfferMade]] = Operation(
    name="make_offer",
    method="POST",
    path="/branches/{branch}/offers",
    answer="inbox.OfferMade",
    body=("source", "note", "pulls"),
    defaults={"note": "", "pulls": True},
)
ANSWER_OFFER: Final[Operation[OfferAnswer]] = Operation(
    name="answer_offer",
    method="POST",
    path="/repos/{repo}/offers/{offer}/answers",
    answer="inbox.OfferAnswer",
    body=("accepts",),
)
MERGE_OFFER: Final[Operation[MergeResult]] = Operation(
    name="merge_offer",
    method="POST",
    path="/repos/{repo}/offers/{offer}/merges",
    answer="branches.MergeResult",
)
WRITE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    name="write_comment",
    method="POST",
    path="/branches/{branch}/comments",
    answer="inbox.OfferAnswer",
    body=("text",),
)
LIST_COMMENTS: Final[Operation[CommentList]] = Operation(
    name="list_comments",
    method="GET",
    path="/branches/{branch}/comments",
    answer="inbox.CommentList",
    query=("limit",),
    defaults={"limit": 100},
)


class InboxCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_offers(self, repo: str) -> OfferList:
        """List what was offered to a repo."""
        return self._call(LIST_OFFERS, {"repo": repo})

    def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""
        return self._call(MAKE_OFFER, {"branch": branch, "source": source, "note": note, "pulls": pulls})

    def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        return self._call(ANSWER_OFFER, {"repo": repo, "offer": offer, "accepts": accepts})

    def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""
        return self._call(MERGE_OFFER, {"repo": repo, "offer": offer})

    def write_comment(self, branch: str, text: str) -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""
        return self._call(WRITE_COMMENT, {"branch": branch, "text": text})

    def list_comments(self, branch: str, *, limit: int = 100) -> CommentList:
        """List the accepted comments on a document."""
        return self._call(LIST_COMMENTS, {"branch": branch, "limit": limit})


class AsyncInboxCalls(AsyncCaller):
    """Methods to await."""

    async def list_offers(self, repo: str) -> OfferList:
        """List what was offered to a repo."""
        return await self._call(LIST_OFFERS, {"repo": repo})

    async def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""
        return await self._call(
            MAKE_OFFER, {"branch": branch, "source": source, "note": note, "pulls": pulls}
        )

    async def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        return await self._call(ANSWER_OFFER, {"repo": repo, "offer": offer, "accepts": accepts})

    async def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""
        return await self._call(MERGE_OFFER, {"repo": repo, "offer": offer})

    async def write_comment(self, branch: str, text: str) -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""
        return await self._call(WRITE_COMMENT, {"branch": branch, "text": text})

    async def list_comments(self, branch: str, *, limit: int = 100) -> CommentList:
        """List the accepted comments on a document."""
        return await self._call(LIST_COMMENTS, {"branch": branch, "limit": limit})
