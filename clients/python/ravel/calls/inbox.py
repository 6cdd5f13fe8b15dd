"""Calls: inbox. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.branches import MergeResult
    from ravel.types.inbox import CommentList, OfferAnswer, OfferList, OfferMade, OfferPreview
    from ravel.types.values import Empty

LIST_OFFERS: Final[Operation[OfferList]] = Operation(
    "GET", "/repos/{repo}/offers", "inbox.OfferList", defaults={"limit": 100, "status": ""}
)
MAKE_OFFER: Final[Operation[OfferMade]] = Operation(
    "POST", "/branches/{branch}/offers", "inbox.OfferMade", defaults={"note": "", "pulls": True}
)
ANSWER_OFFER: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/repos/{repo}/offers/{offer}/answers", "inbox.OfferAnswer"
)
FETCH_OFFER: Final[Operation[Empty]] = Operation("PUT", "/repos/{repo}/offers/{offer}/fetch", "values.Empty")
PREVIEW_OFFER: Final[Operation[OfferPreview]] = Operation(
    "GET", "/repos/{repo}/offers/{offer}/preview", "inbox.OfferPreview"
)
MERGE_OFFER: Final[Operation[MergeResult]] = Operation(
    "POST", "/repos/{repo}/offers/{offer}/merges", "branches.MergeResult"
)
WRITE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/branches/{branch}/comments", "inbox.OfferAnswer", defaults={"answers": ""}
)
EDIT_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/branches/{branch}/comments/{comment}/edits", "inbox.OfferAnswer"
)
DELETE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "DELETE", "/branches/{branch}/comments/{comment}", "inbox.OfferAnswer"
)
ASK_TRUST: Final[Operation[OfferMade]] = Operation("POST", "/branches/{branch}/trust", "inbox.OfferMade")
LIST_COMMENTS: Final[Operation[CommentList]] = Operation(
    "GET", "/branches/{branch}/comments", "inbox.CommentList", defaults={"limit": 100, "cursor": ""}
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
