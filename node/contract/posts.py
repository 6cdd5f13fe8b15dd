"""Endpoints for posts beside writing them: replies, edits, deletions, hiding; versions of a post, threads."""

from typing import Annotated, Final, NotRequired, TypedDict

from msgspec import Meta

from node.contract.access import ADMIN_COMMIT, READ_COMMIT, WRITE_COMMIT
from node.contract.commits import (
    AuthorFields,
    ContentFields,
    PostRequest,
    TimelineItem,
    WrittenCommitView,
)
from node.contract.endpoint import WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.values import Id, Request, one_of
from protocol.limits.users import TIMELINE_WINDOW_MAX


class HideRequest(Request, frozen=True):
    """Hides a post, or shows it again."""

    hidden: bool


class WrittenPost(WrittenCommitView):
    """A commit about a post, written durably."""

    post: Annotated[Id, Meta(description="The post that it answers, edits or deletes.")]


class HiddenPost(TypedDict):
    """A post that was hidden, or shown again."""

    post: Id
    hidden: bool
    commit: Annotated[Id | None, Meta(description="The root branch commit. Null: nothing had to be written.")]


class PostVersion(AuthorFields, ContentFields):
    """Text of a post in one version."""

    commit: Id
    version: Annotated[str, one_of("original", "edit", "deletion", description="What this commit is.")]


class PostVersions(TypedDict):
    """The versions of a post, in canonical order. The last edit counts; a deletion is final."""

    post: Id
    branch: Id
    deleted: bool
    hidden_by: NotRequired[Id]
    versions: Annotated[list[PostVersion], Meta(description="The original is the first of the first window.")]
    previous: Annotated[
        Id | None, Meta(description="The `before` of the window before this one. Null: there is none.")
    ]


class Thread(TypedDict):
    """A post and the replies that state to be of its thread, in canonical order."""

    first: Annotated[Id, Meta(description="The first post, which may be absent.")]
    branch: Id
    items: Annotated[list[TimelineItem], Meta(description="The first post is the first of the first window.")]
    next: Annotated[Id | None, Meta(description="The `after` of the next window. Null: there is none.")]


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
    request=PostRequest,
    answer=WrittenPost,
    errors=WRITE_ERRORS,
)
DELETE_POST: Final = Endpoint(
    name="delete_post",
    method="DELETE",
    path="/commits/{commit}",
    scopes=WRITE_COMMIT,
    summary="Delete a post of one's own for good. What it said stays readable until it is erased.",
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
