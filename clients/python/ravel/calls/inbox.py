"""Calls: inbox. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.branches import MergeResult
    from ravel.types.inbox import CommentList, OfferAnswer, OfferList, OfferMade, OfferPreview
    from ravel.types.values import Empty

LIST_OFFERS: Final[Operation[OfferList]] = Operation(
    name="list_offers",
    method="GET",
    path="/repos/{repo}/offers",
    answer="inbox.OfferList",
    query=("limit", "status"),
    defaults={"limit": 100, "status": ""},
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
FETCH_OFFER: Final[Operation[Empty]] = Operation(
    name="fetch_offer", method="PUT", path="/repos/{repo}/offers/{offer}/fetch", answer="values.Empty"
)
PREVIEW_OFFER: Final[Operation[OfferPreview]] = Operation(
    name="preview_offer",
    method="GET",
    path="/repos/{repo}/offers/{offer}/preview",
    answer="inbox.OfferPreview",
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
    body=("text", "answers"),
    defaults={"answers": ""},
)
EDIT_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    name="edit_comment",
    method="POST",
    path="/branches/{branch}/comments/{comment}/edits",
    answer="inbox.OfferAnswer",
    body=("text",),
)
DELETE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    name="delete_comment",
    method="DELETE",
    path="/branches/{branch}/comments/{comment}",
    answer="inbox.OfferAnswer",
)
ASK_TRUST: Final[Operation[OfferMade]] = Operation(
    name="ask_trust", method="POST", path="/branches/{branch}/trust", answer="inbox.OfferMade"
)
LIST_COMMENTS: Final[Operation[CommentList]] = Operation(
    name="list_comments",
    method="GET",
    path="/branches/{branch}/comments",
    answer="inbox.CommentList",
    query=("limit", "cursor"),
    defaults={"limit": 100, "cursor": ""},
)


class InboxCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_offers(self, repo: str, *, limit: int = 100, status: str = "") -> OfferList:
        """List what was offered to a repo last."""
        return self._call(LIST_OFFERS, {"repo": repo, "limit": limit, "status": status})

    def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""
        return self._call(MAKE_OFFER, {"branch": branch, "source": source, "note": note, "pulls": pulls})

    def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        return self._call(ANSWER_OFFER, {"repo": repo, "offer": offer, "accepts": accepts})

    def fetch_offer(self, repo: str, offer: str) -> Empty:
        """Have this node alone follow the branch of an offer of commits, to look at it before it is answered."""
        return self._call(FETCH_OFFER, {"repo": repo, "offer": offer})

    def preview_offer(self, repo: str, offer: str) -> OfferPreview:
        """Show what a merge of an offer would write, once it is accepted and as far as it is here."""
        return self._call(PREVIEW_OFFER, {"repo": repo, "offer": offer})

    def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""
        return self._call(MERGE_OFFER, {"repo": repo, "offer": offer})

    def write_comment(self, branch: str, text: str, *, answers: str = "") -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""
        return self._call(WRITE_COMMENT, {"branch": branch, "text": text, "answers": answers})

    def edit_comment(self, branch: str, comment: str, text: str) -> OfferAnswer:
        """Give a comment of this user another text, and offer that."""
        return self._call(EDIT_COMMENT, {"branch": branch, "comment": comment, "text": text})

    def delete_comment(self, branch: str, comment: str) -> OfferAnswer:
        """Delete a comment of this user."""
        return self._call(DELETE_COMMENT, {"branch": branch, "comment": comment})

    def ask_trust(self, branch: str) -> OfferMade:
        """Ask that this user's comments on a document are shown unread."""
        return self._call(ASK_TRUST, {"branch": branch})

    def list_comments(self, branch: str, *, limit: int = 100, cursor: str = "") -> CommentList:
        """List the accepted comments on a document."""
        return self._call(LIST_COMMENTS, {"branch": branch, "limit": limit, "cursor": cursor})


class AsyncInboxCalls(AsyncCaller):
    """Methods to await."""

    async def list_offers(self, repo: str, *, limit: int = 100, status: str = "") -> OfferList:
        """List what was offered to a repo last."""
        return await self._call(LIST_OFFERS, {"repo": repo, "limit": limit, "status": status})

    async def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""
        return await self._call(
            MAKE_OFFER, {"branch": branch, "source": source, "note": note, "pulls": pulls}
        )

    async def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        return await self._call(ANSWER_OFFER, {"repo": repo, "offer": offer, "accepts": accepts})

    async def fetch_offer(self, repo: str, offer: str) -> Empty:
        """Have this node alone follow the branch of an offer of commits, to look at it before it is answered."""
        return await self._call(FETCH_OFFER, {"repo": repo, "offer": offer})

    async def preview_offer(self, repo: str, offer: str) -> OfferPreview:
        """Show what a merge of an offer would write, once it is accepted and as far as it is here."""
        return await self._call(PREVIEW_OFFER, {"repo": repo, "offer": offer})

    async def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""
        return await self._call(MERGE_OFFER, {"repo": repo, "offer": offer})

    async def write_comment(self, branch: str, text: str, *, answers: str = "") -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""
        return await self._call(WRITE_COMMENT, {"branch": branch, "text": text, "answers": answers})

    async def edit_comment(self, branch: str, comment: str, text: str) -> OfferAnswer:
        """Give a comment of this user another text, and offer that."""
        return await self._call(EDIT_COMMENT, {"branch": branch, "comment": comment, "text": text})

    async def delete_comment(self, branch: str, comment: str) -> OfferAnswer:
        """Delete a comment of this user."""
        return await self._call(DELETE_COMMENT, {"branch": branch, "comment": comment})

    async def ask_trust(self, branch: str) -> OfferMade:
        """Ask that this user's comments on a document are shown unread."""
        return await self._call(ASK_TRUST, {"branch": branch})

    async def list_comments(self, branch: str, *, limit: int = 100, cursor: str = "") -> CommentList:
        """List the accepted comments on a document."""
        return await self._call(LIST_COMMENTS, {"branch": branch, "limit": limit, "cursor": cursor})
