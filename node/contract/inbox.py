"""The inbox of a repo: comments on its documents, and commits that others offer."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import ADMIN_REPO, READ_BRANCH, READ_REPO, WRITE_BRANCH, WRITE_REPO, TokenScope
from node.contract.endpoint import WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.values import Name, Request
from protocol.limits.formats import OFFER_NOTE_SIZE_MAX
from protocol.limits.users import COMMENT_SIZE_MAX, TIMELINE_WINDOW_MAX
from ravel.types.branches import MergeResult
from ravel.types.inbox import CommentList, OfferAnswer, OfferList, OfferMade, OfferPreview
from ravel.types.values import Empty

OFFERED_POSTS_SHOWN_MAX: Final = 20
"""Posts of an offer that a look shows: one reads some, and decides; all stand in the offered branch."""
OFFERED_AUTHORS_SHOWN_MAX: Final = 20
"""Authors of an offer that a look names, those of the most commits."""
OFFERED_DOCUMENTS_SHOWN_MAX: Final = 20
"""Lists, tables and texts of which a look shows the lines that change."""
OFFERED_LINES_SHOWN_MAX: Final = 100
"""Lines of one document that a look shows: three screens."""


CommentText = Annotated[str, Meta(max_length=COMMENT_SIZE_MAX)]


class CommentRequest(Request, frozen=True):
    """Writes a comment."""

    text: CommentText
    answers: Annotated[
        str, Meta(max_length=64, description="The id of the comment that it answers; empty: none.")
    ] = ""


class CommentEditRequest(Request, frozen=True):
    """Gives a comment another text."""

    text: CommentText


class OfferRequest(Request, frozen=True):
    """Offers a branch to a document's inbox."""

    source: Annotated[Name, Meta(description="A branch of another repo.")]
    note: Annotated[str, Meta(max_length=OFFER_NOTE_SIZE_MAX)] = ""
    pulls: Annotated[bool, Meta(description="Offer commits to be merged. False: comments.")] = True


class OfferAnswerRequest(Request, frozen=True):
    """Answers an offer."""

    accepts: bool


LIST_OFFERS: Final = Endpoint(
    name="list_offers",
    method="GET",
    path="/repos/{repo}/offers",
    scopes=READ_REPO,
    summary="List what was offered to a repo last.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(
            name="status", type=str, default="", description="Only `open`, `accepted` or `refused` ones."
        ),
    ),
    answer=OfferList,
    errors=("not_permitted", "bad_request"),
)
MAKE_OFFER: Final = Endpoint(
    name="make_offer",
    method="POST",
    path="/branches/{branch}/offers",
    scopes=(*WRITE_BRANCH, TokenScope("admin", "branch", "source")),
    summary="Offer a branch of another repo to this branch.",
    request=OfferRequest,
    answer=OfferMade,
    errors=WRITE_ERRORS,
)
ANSWER_OFFER: Final = Endpoint(
    name="answer_offer",
    method="POST",
    path="/repos/{repo}/offers/{offer}/answers",
    scopes=ADMIN_REPO,
    summary="Accept an offer, refuse it, or withdraw it.",
    request=OfferAnswerRequest,
    answer=OfferAnswer,
    errors=WRITE_ERRORS,
)
FETCH_OFFER: Final = Endpoint(
    name="fetch_offer",
    method="PUT",
    path="/repos/{repo}/offers/{offer}/fetch",
    scopes=ADMIN_REPO,
    summary="Have this node alone follow the branch of an offer of commits, to look at it before it is answered.",
    answer=Empty,
    errors=("not_permitted", "bad_request"),
)
PREVIEW_OFFER: Final = Endpoint(
    name="preview_offer",
    method="GET",
    path="/repos/{repo}/offers/{offer}/preview",
    scopes=READ_REPO,
    summary="Show what a merge of an offer would write, once it is accepted and as far as it is here.",
    answer=OfferPreview,
    errors=("not_permitted", "bad_request", "incomplete", "too_large"),
)
MERGE_OFFER: Final = Endpoint(
    name="merge_offer",
    method="POST",
    path="/repos/{repo}/offers/{offer}/merges",
    scopes=WRITE_REPO,
    summary="Write again in its branch what an accepted offer has and the branch has not.",
    answer=MergeResult,
    errors=(*WRITE_ERRORS, "too_large"),
)
WRITE_COMMENT: Final = Endpoint(
    name="write_comment",
    method="POST",
    path="/branches/{branch}/comments",
    scopes=WRITE_BRANCH,
    summary="Comment on a document, and offer the comment to its inbox.",
    request=CommentRequest,
    answer=OfferAnswer,
    errors=WRITE_ERRORS,
)
EDIT_COMMENT: Final = Endpoint(
    name="edit_comment",
    method="POST",
    path="/branches/{branch}/comments/{comment}/edits",
    scopes=WRITE_BRANCH,
    summary="Give a comment of this user another text, and offer that.",
    request=CommentEditRequest,
    answer=OfferAnswer,
    errors=WRITE_ERRORS,
)
DELETE_COMMENT: Final = Endpoint(
    name="delete_comment",
    method="DELETE",
    path="/branches/{branch}/comments/{comment}",
    scopes=WRITE_BRANCH,
    summary="Delete a comment of this user.",
    answer=OfferAnswer,
    errors=WRITE_ERRORS,
)
ASK_TRUST: Final = Endpoint(
    name="ask_trust",
    method="POST",
    path="/branches/{branch}/trust",
    scopes=WRITE_BRANCH,
    summary="Ask that this user's comments on a document are shown at once.",
    answer=OfferMade,
    errors=WRITE_ERRORS,
)
LIST_COMMENTS: Final = Endpoint(
    name="list_comments",
    method="GET",
    path="/branches/{branch}/comments",
    scopes=READ_BRANCH,
    summary="List the accepted comments on a document.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(name="cursor", type=str, default="", description="Where another answer ended."),
    ),
    answer=CommentList,
    errors=("not_permitted", "bad_request"),
)
