"""Commits as answers show them: items of timelines, one commit whole, verdicts; and the endpoints about one commit."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from node.contract.access import READ_BRANCH, READ_COMMIT, WRITE_BRANCH
from node.contract.endpoint import KEY_ERRORS, LONG_WRITE_SECONDS, WRITE_ERRORS, Endpoint
from node.contract.values import IdText, Request, Text
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.limits.users import (
    BODY_WAIT_SECONDS,
    IDEMPOTENCY_KEY_SIZE_MAX,
    POSTS_COUNT_MAX,
    WRITE_STREAM_COUNT_MAX,
    WRITE_STREAM_KEYS_MAX,
)
from ravel.types.commits import (
    CommitView,
    StreamedOutcome,
    VerdictView,
    VoidList,
    WrittenCommitView,
    WrittenPosts,
)


class PostTextRequest(Request, frozen=True):
    """Says what a post says."""

    text: Text
    resolve_mentions: Annotated[
        bool,
        Meta(
            description=(
                "Replace `@NAME` by `@` and the id, where NAME is a member. `@[NAME]` also takes names with spaces, and "
                "must be a member. False: the text stays as it is."
            )
        ),
    ] = False


class PostRequest(PostTextRequest, frozen=True):
    """Writes a post, with files or without."""

    attachments: Annotated[
        list[IdText],
        Meta(
            max_length=ACK_COUNT_MAX,
            description="Commits of yours in this branch that added the post's files, as `add_file` answered.",
        ),
    ] = msgspec.field(default_factory=list)


class PostsRequest(Request, frozen=True):
    """Writes posts, one after the other."""

    texts: Annotated[list[Text], Meta(min_length=1, max_length=POSTS_COUNT_MAX)]


class StreamedPost(Request, frozen=True):
    """Line of a stream of posts."""

    text: Text
    key: Annotated[
        str,
        Meta(
            pattern=f"^[!-~]{{0,{IDEMPOTENCY_KEY_SIZE_MAX}}}$",
            description="As `Idempotency-Key`: a line that comes again with the same key is written once.",
        ),
    ] = ""


WRITE_POST: Final = Endpoint(
    name="write_post",
    method="POST",
    path="/branches/{branch}/commits",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Write a post on the heads of a branch. It is durable when the answer comes.",
    request=PostRequest,
    answer=WrittenCommitView,
    errors=WRITE_ERRORS,
)
WRITE_POSTS: Final = Endpoint(
    name="write_posts",
    method="POST",
    path="/branches/{branch}/commits/batch",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Write many posts, each following the one before it. All are durable when the answer comes.",
    request=PostsRequest,
    answer=WrittenPosts,
    errors=WRITE_ERRORS,
    details=(
        "They are stored some hundred at a time. Where that fails in between, the error says how many are written: "
        "these are the first, and they stay."
    ),
    seconds_max=LONG_WRITE_SECONDS,
)
STREAM_POSTS: Final = Endpoint(
    name="stream_posts",
    method="POST",
    path="/branches/{branch}/commits/stream",
    scopes=WRITE_BRANCH,
    summary="Write posts, a line of JSON each. Each is durable when its line of the answer comes.",
    takes_bytes=True,
    line=StreamedPost,
    answer=StreamedOutcome,
    errors=(*WRITE_ERRORS, *KEY_ERRORS),
    details=(
        "Answers have the order of the lines, and come while more lines may be sent. A line that is refused ends nothing. "
        f"The node reads on while it owes fewer than {WRITE_STREAM_COUNT_MAX} answers, so read them. A pause of "
        f"{BODY_WAIT_SECONDS} s ends the stream. It knows keys of the last {WRITE_STREAM_KEYS_MAX} lines."
    ),
    seconds_max=LONG_WRITE_SECONDS,
)
SHOW_COMMIT: Final = Endpoint(
    name="show_commit",
    method="GET",
    path="/commits/{commit}",
    stability="stable",
    scopes=READ_COMMIT,
    summary="Show a commit with all it states.",
    answer=CommitView,
)
EXPLAIN_VERDICT: Final = Endpoint(
    name="explain_verdict",
    method="GET",
    path="/commits/{commit}/verdict",
    stability="stable",
    scopes=READ_COMMIT,
    summary="Explain the verdict on a commit: the rule and the commits that decide it.",
    answer=VerdictView,
)
LIST_VOIDS: Final = Endpoint(
    name="list_voids",
    method="GET",
    path="/branches/{branch}/voids",
    stability="stable",
    scopes=READ_BRANCH,
    summary="List the void commits of a branch, and why they are void.",
    answer=VoidList,
    errors=("not_permitted",),
)
