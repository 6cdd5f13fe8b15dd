"""Types of answers: posts."""

from typing import Annotated, NotRequired, TypedDict

from ravel.types.commits import AuthorFields, ContentFields, TimelineItem, WrittenCommitView
from ravel.types.values import Id, means, one_of


class WrittenPost(WrittenCommitView):
    """A commit about a post, written durably."""

    post: Annotated[Id, means("The post that it answers, edits or deletes.")]


class HiddenPost(TypedDict):
    """A post that was hidden, or shown again."""

    post: Id
    hidden: bool
    commit: Annotated[Id | None, means("The root branch commit. Null: nothing had to be written.")]


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
    versions: Annotated[list[PostVersion], means("The original is the first of the first window.")]
    previous: Annotated[Id | None, means("The `before` of the window before this one. Null: there is none.")]


class Thread(TypedDict):
    """A post and the replies that state to be of its thread, in canonical order."""

    first: Annotated[Id, means("The first post, which may be absent.")]
    branch: Id
    items: Annotated[list[TimelineItem], means("The first post is the first of the first window.")]
    next: Annotated[Id | None, means("The `after` of the next window. Null: there is none.")]
