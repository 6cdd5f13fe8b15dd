"""Endpoints for posts beside writing them: replies, edits, deletions, hiding; versions of a post, threads."""

from typing import Final

from node.contract.access import ADMIN_COMMIT, READ_COMMIT, WRITE_COMMIT
from node.contract.commits import PostRequest, PostTextRequest
from node.contract.endpoint import WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.values import Request
from protocol.limits.users import TIMELINE_WINDOW_MAX
from ravel.types.posts import HiddenPost, PostVersions, Thread, WrittenPost


class HideRequest(Request, frozen=True):
    """Hides a post, or shows it again."""

    hidden: bool


REPLY_TO_POST: Final = Endpoint(
    name="reply_to_post",
    method="POST",
    path="/commits/{commit}/replies",
    scopes=WRITE_COMMIT,
    summary="Write a reply to a post, in its branch.",
    request=PostRequest,
    answer=WrittenPost,
    errors=WRITE_ERRORS,
)
EDIT_POST: Final = Endpoint(
    name="edit_post",
    method="PUT",
    path="/commits/{commit}/text",
    scopes=WRITE_COMMIT,
    summary="Give a post of one's own another text. Earlier ones stay readable until they are erased.",
    request=PostTextRequest,
    answer=WrittenPost,
    errors=WRITE_ERRORS,
)
DELETE_POST: Final = Endpoint(
    name="delete_post",
    method="DELETE",
    path="/commits/{commit}",
    scopes=WRITE_COMMIT,
    summary="Delete a post of one's own for good, and remove its files. What it said stays readable until it is erased.",
    answer=WrittenPost,
    errors=WRITE_ERRORS,
)
HIDE_POST: Final = Endpoint(
    name="hide_post",
    method="PUT",
    path="/commits/{commit}/hidden",
    scopes=ADMIN_COMMIT,
    summary="Hide a post from the timelines of all members, or show it again.",
    request=HideRequest,
    answer=HiddenPost,
    errors=WRITE_ERRORS,
)
SHOW_VERSIONS: Final = Endpoint(
    name="show_versions",
    method="GET",
    path="/commits/{commit}/versions",
    scopes=READ_COMMIT,
    summary="Show what a post said over time: the last versions that count, also of a deleted or hidden post.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(name="before", type=str, default="", description="Only versions before this commit."),
    ),
    answer=PostVersions,
    errors=("bad_request",),
)
SHOW_THREAD: Final = Endpoint(
    name="show_thread",
    method="GET",
    path="/commits/{commit}/thread",
    scopes=READ_COMMIT,
    summary="Show the thread of a post: the first post, and the replies.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(name="after", type=str, default="", description="Only replies after this commit."),
    ),
    answer=Thread,
    errors=("bad_request",),
)
