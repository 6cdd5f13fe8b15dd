"""Types of answers: posts. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.commits import BranchHeads, Mention, Origin, ReplyTo, TimelineItem


class WrittenPost(TypedDict):
    """A commit about a post, written durably."""

    commit: str
    rank: int
    """The length of the longest path from a root."""
    branch: str
    post: str
    """The post that it answers, edits or deletes."""


class HiddenPost(TypedDict):
    """A post that was hidden, or shown again."""

    post: str
    hidden: bool
    commit: str | None
    """The root branch commit. Null: nothing had to be written."""


class PostVersions(TypedDict):
    """The versions of a post, in canonical order. The last edit counts; a deletion is final."""

    post: str
    branch: str
    deleted: bool
    hidden_by: NotRequired[str]
    versions: list[PostVersion]
    """The original is the first of the first window."""
    previous: str | None
    """The `before` of the window before this one. Null: there is none."""


class Thread(TypedDict):
    """A post and the replies that state to be of its thread, in canonical order."""

    first: str
    """The first post, which may be absent."""
    branch: str
    items: list[TimelineItem]
    """The first post is the first of the first window."""
    next: str | None
    """The `after` of the next window. Null: there is none."""


class PostVersion(TypedDict):
    """Text of a post in one version."""

    author: str
    person: str
    """The author; of a person's device the user of that person. Later device statements may change it."""
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    time: int
    """Unix seconds, as the author states them; of an imported commit, as imported."""
    text: str | None
    """Null where the kind has no text."""
    imported_author: NotRequired[str]
    """Of an imported commit: its author there."""
    files: NotRequired[list[str]]
    """Names of the files that it adds."""
    erased: NotRequired[bool]
    """True: the body is not on this node."""
    unreadable: NotRequired[bool]
    """True: the body is not what the commit states."""
    damaged: NotRequired[bool]
    """True: its blocks are damaged on this node."""
    origin: NotRequired[Origin]
    """Of a commit that a merge wrote again."""
    continues: NotRequired[BranchHeads]
    """Of the first commit of a fork."""
    merged: NotRequired[BranchHeads]
    """Of a merge."""
    document: NotRequired[str]
    """Name of the document that it changes, if that has one."""
    edited_at: NotRequired[int]
    """Unix seconds, as the author states them. `text` is that of the last edit."""
    deleted: NotRequired[bool]
    """True: its author has deleted it, so `text` is null."""
    hidden_by: NotRequired[str]
    """The admin who has hidden it, so `text` is null."""
    hidden_by_name: NotRequired[str]
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    edits: NotRequired[str]
    """Of an edit that counts: the post."""
    deletes: NotRequired[str]
    """Of a deletion that counts: the post."""
    reply_to: NotRequired[ReplyTo]
    """Of a reply."""
    mentions: NotRequired[list[Mention]]
    """Users that `text` names, as `@` and an id. The first 64, each once."""
    commit: str
    version: str
    """What this commit is."""
