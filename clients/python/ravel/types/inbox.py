"""Types of answers: inbox. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.commits import BranchHeads, Mention, Origin, ReplyTo


class OfferList(TypedDict):
    """The offers to a repo."""

    offers: list[OfferView]


class OfferMade(TypedDict):
    """An offer that was made."""

    offer: str
    status: str
    """What became of the offer."""


class OfferAnswer(TypedDict):
    """An offer that was answered, or a comment that was written."""

    offer: str
    status: str
    """What became of the offer."""
    commit: str


class OfferPreview(TypedDict):
    """Content that a merge of an offer would write now."""

    offer: str
    carried: int
    """Count of commits."""
    kinds: list[OfferedKind]
    authors: list[OfferedAuthor]
    """20 at most, the most commits first."""
    posts: list[OfferedPost]
    """The first 20, in their order."""
    left: int
    """Count of commits that are too large, or cannot be read."""
    files_left: list[str]
    """Names of files that would not be carried."""


class CommentList(TypedDict):
    """The accepted comments on a document."""

    items: list[CommentView]
    """The latest to be accepted, by their time."""
    cursor: str | None
    """The cursor of earlier ones. Null: that is all. An answer looks at 256 accepted offers: where most were
    deleted or are still to come, it may have fewer comments than asked for, or none.
    """


class OfferView(TypedDict):
    """An offer."""

    offer: str
    """The id of its commit."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    branch: str
    """The branch that it is for."""
    kind: str
    """Kind of the offer: a comment, all later comments of its author unread, or commits."""
    note: str
    """Note with the offer; a comment's text, which admins and its author alone see until it is accepted."""
    status: str
    """What became of the offer."""
    readable: bool
    """This node knows the form of the offer's link."""
    commits: int
    """How many of its commits are on this node."""
    merged: bool
    """One of the last 100 merges of the document names all heads that the offered branch has here."""


class OfferedKind(TypedDict):
    """Commits of one kind that a merge would write."""

    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    count: int


class OfferedAuthor(TypedDict):
    """A user who wrote commits that a merge would write again, as the offer says."""

    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    count: int


class OfferedPost(TypedDict):
    """A post that a merge would write. That its author wrote it is what the offer says."""

    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    time: int
    """Unix seconds."""
    text: str


class CommentView(TypedDict):
    """A comment."""

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
    offer: str
    """The offer that it came by."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    answers: str
    """The id of the comment that it answers; empty: none."""
    quote: str
    """The beginning of that, where it is shown in this answer."""
