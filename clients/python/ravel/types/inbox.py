"""Types of answers: inbox."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.commits import BodyKind, ContentFields
from ravel.types.values import Count, Id, PersonText, UnixSeconds, means, one_of

OfferStatus = Annotated[str, one_of("open", "accepted", "refused", description="What became of the offer.")]


class OfferView(TypedDict):
    """An offer."""

    offer: Annotated[Id, means("The id of its commit.")]
    author: Id
    author_name: PersonText
    branch: Annotated[Id, means("The branch that it is for.")]
    kind: Annotated[
        str,
        one_of(
            "comment",
            "trust",
            "pull",
            description="Kind of the offer: a comment, all later comments of its author unread, or commits.",
        ),
    ]
    note: Annotated[
        str,
        means(
            "Note with the offer; a comment's text, which admins and its author alone see until it is accepted."
        ),
    ]
    answers: Annotated[str, means("Of a comment: the id of the one that it answers; empty: none.")]
    status: OfferStatus
    readable: Annotated[bool, means("This node knows the form of the offer's link.")]
    commits: Annotated[Count, means("How many of its commits are on this node.")]
    merged: Annotated[
        bool,
        means("One of the last 100 merges of the document names all heads that the offered branch has here."),
    ]


class OfferList(TypedDict):
    """The offers to a repo."""

    offers: list[OfferView]


class OfferedKind(TypedDict):
    """Commits of one kind that a merge would write."""

    kind: BodyKind
    count: Annotated[int, Meta(ge=1)]


class OfferedPost(TypedDict):
    """A post that a merge would write. That its author wrote it is what the offer says."""

    author: Id
    author_name: PersonText
    time: UnixSeconds
    text: str


class OfferedAuthor(TypedDict):
    """A user who wrote commits that a merge would write again, as the offer says."""

    author: Id
    author_name: PersonText
    count: Annotated[int, Meta(ge=1)]


class OfferedLine(TypedDict):
    """A line of a document, before or after a merge."""

    change: Annotated[
        str,
        one_of(
            "added",
            "removed",
            "same",
            "skipped",
            description="`same`: it stands beside a change; `skipped`: for lines between changes.",
        ),
    ]
    text: Annotated[
        str, means("An item; a key, a colon and its value; or a line: 200 characters of it at most.")
    ]


class OfferedDocument(TypedDict):
    """A document that a merge would change."""

    kind: Annotated[str, one_of("set", "dict", "text", description="What it is.")]
    name: Annotated[str, means("The name of the document; of a text that of its root.")]
    title: Annotated[str, means("Empty: none.")]
    added: Count
    removed: Count
    lines: Annotated[list[OfferedLine], means("The first 100.")]


class OfferPreview(TypedDict):
    """Content that a merge of an offer would write now."""

    offer: Id
    carried: Annotated[Count, means("Count of commits.")]
    kinds: list[OfferedKind]
    authors: Annotated[list[OfferedAuthor], means("20 at most, the most commits first.")]
    posts: Annotated[list[OfferedPost], means("The first 20, in their order.")]
    documents: Annotated[
        list[OfferedDocument],
        means(
            "Lists, tables and texts that would change, without those that cannot be read now. 20 at most."
        ),
    ]
    left: Annotated[Count, means("Count of commits that are too large, or cannot be read.")]
    files_left: Annotated[list[str], means("Names of files that would not be carried.")]


class OfferMade(TypedDict):
    """An offer that was made."""

    offer: Id
    status: OfferStatus


class OfferAnswer(OfferMade):
    """An offer that was answered, or a comment that was written."""

    commit: Id


class CommentView(ContentFields):
    """A comment."""

    commit: Id
    offer: Annotated[Id, means("The offer that it came by.")]
    author: Id
    author_name: PersonText
    kind: BodyKind
    answers: Annotated[str, means("The id of the comment that it answers; empty: none.")]
    quote: Annotated[str, means("The beginning of that, where it is shown in this answer.")]


class CommentList(TypedDict):
    """The accepted comments on a document."""

    items: Annotated[list[CommentView], means("The latest to be accepted, by their time.")]
    cursor: Annotated[
        str | None,
        means(
            "The cursor of earlier ones. Null: that is all. An answer looks at 256 accepted offers: "
            "where most were deleted or are still to come, it may have fewer comments than asked for, or none."
        ),
    ]
