"""Types of answers: commits."""

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from ravel.types.values import ByteCount, ErrorDetail, Id, PersonText, UnixSeconds, means, one_of

Rank = Annotated[int, means("The length of the longest path from a root.", ge=0)]
BodyKind = Annotated[str, means("The kind of the body: `post`, `imported`, `files`, ...")]
Place = Annotated[
    str, means("A place in the canonical order. As texts, places are ordered as the commits are.")
]


class AuthorFields(TypedDict):
    """Author of a commit."""

    author: Id
    person: Annotated[
        Id,
        means(
            "The author; of a person's device the user of that person. Later device statements may change it."
        ),
    ]
    author_name: PersonText


class Origin(TypedDict):
    """Origin of a commit that a merge carried over."""

    branch: Id
    commit: Id
    author: Id
    author_name: PersonText


class BranchHeads(TypedDict):
    """Commits of another branch."""

    branch: Id
    commits: list[Id]


class BodyFields(TypedDict):
    """Content of a commit."""

    time: Annotated[
        int, means("Unix seconds, as the author states them; of an imported commit, as imported.")
    ]
    text: Annotated[str | None, means("Null where the kind has no text.")]
    imported_author: NotRequired[Annotated[str, means("Of an imported commit: its author there.")]]
    files: NotRequired[Annotated[list[str], means("Names of the files that it adds.")]]
    erased: NotRequired[Annotated[bool, means("True: the body is not on this node.")]]
    not_kept: NotRequired[
        Annotated[
            bool, means("True: its branch or its age is not kept here. Who reads its timeline has it come.")
        ]
    ]
    unreadable: NotRequired[Annotated[bool, means("True: the body is not what the commit states.")]]
    damaged: NotRequired[Annotated[bool, means("True: its blocks are damaged on this node.")]]
    origin: NotRequired[Annotated[Origin, means("Of a commit that a merge wrote again.")]]
    continues: NotRequired[Annotated[BranchHeads, means("Of the first commit of a fork.")]]
    merged: NotRequired[Annotated[BranchHeads, means("Of a merge.")]]


class Mention(TypedDict):
    """A user that a text names."""

    user: Id
    name: PersonText


class ReplyTo(TypedDict):
    """Post that a reply answers."""

    commit: Id
    thread: Annotated[Id, means("The first post of the thread, as the author states it.")]
    state: Annotated[
        str,
        one_of(
            "shown",
            "deleted",
            "hidden",
            "void",
            "erased",
            "not_kept",
            "absent",
            description=(
                "What became of the answered post. `not_kept`: its text comes when it is opened. `absent`: it is not in "
                "this branch, or not here."
            ),
        ),
    ]
    author: NotRequired[Id]
    author_name: NotRequired[PersonText]
    text: NotRequired[
        Annotated[
            str,
            means(
                "First line of what it says now, 120 characters at most, with people's names. "
                "Where it is `shown`."
            ),
        ]
    ]


class AttachedFile(TypedDict):
    """A file of a post. Name and size are as its author states them."""

    file: Annotated[Id, means("The id of the object.")]
    name: str
    size: ByteCount | None


class Attachment(TypedDict):
    """A commit whose files are a post's."""

    commit: Id
    files: Annotated[
        list[AttachedFile], means("Those that the branch still has; of a post that is gone none.")
    ]


class PostFields(TypedDict, total=False):
    """Relations of a commit to others, and to a document."""

    document: Annotated[str, means("Name of the document that it changes, if that has one.")]
    edited_at: Annotated[
        int, means("Unix seconds, as the author states them. `text` is that of the last edit.")
    ]
    deleted: Annotated[bool, means("True: its author has deleted it, so `text` is null.")]
    hidden_by: Annotated[Id, means("The admin who has hidden it, so `text` is null.")]
    hidden_by_name: PersonText
    edits: Annotated[Id, means("Of an edit that counts: the post.")]
    deletes: Annotated[Id, means("Of a deletion that counts: the post.")]
    reply_to: Annotated[ReplyTo, means("Of a reply.")]
    attachments: Annotated[
        list[Attachment],
        means(
            "Of a post with files: who shows it shows these commits in no rows of their own. Of an answer's posts 2,048."
        ),
    ]
    mentions: Annotated[
        list[Mention], means("Users that `text` names, as `@` and an id. The first 64, each once.")
    ]


class ContentFields(BodyFields, PostFields):
    """Content of a commit as it is shown."""


class CommitItem(AuthorFields, ContentFields):
    """A commit in a list."""

    commit: Id
    rank: Rank
    kind: BodyKind
    acks: Annotated[list[Id], means("The commits that it follows.")]


class TimelineItem(CommitItem):
    """A commit in a timeline."""

    position: NotRequired[
        Annotated[int, means("Counted from 0. Only in windows of the canonical order.", ge=0)]
    ]
    place: Place


class EditItem(CommitItem):
    """The commit that an edit inserts."""


class StateItem(CommitItem):
    """A commit of a branch's state."""

    branch: Annotated[Id, means("The branch that it was written in.")]


class VerdictFields(TypedDict):
    """A verdict and what it rests on."""

    verdict: Annotated[
        str,
        one_of("accepted", "void", "pending", "unread", "rejected", description="What became of the commit."),
    ]
    rule: Annotated[str, means("The rule (docs/specification/membership-rules.md) or the code that decides.")]
    reason: Annotated[str, means("The same in words.")]
    by: Annotated[list[Id], means("The commits that decide.")]


class VerdictView(VerdictFields):
    """The verdict on a commit."""

    commit: Id
    branch: Id
    branch_name: str
    author: NotRequired[Annotated[Id, means("Of a commit whose author is known here.")]]
    author_name: NotRequired[PersonText]


class CommitView(VerdictView, PostFields, total=False):
    """A commit with all it states. Of one that was not accepted, the verdict alone."""

    person: Id
    rank: Rank
    feed_sequence: Annotated[int, Meta(ge=1, description="Its number in the author's feed.")]
    feed_previous: Id | None
    acks: list[Id]
    place: Place
    position: Annotated[int | None, means("Its position in the timeline. Null: it is void.")]
    deps: list[Id]
    negative_deps: list[Id]
    files_added: Annotated[list[Id], means("Ids of objects.")]
    files_removed: Annotated[list[Id], means("Ids of objects.")]
    tangles: Annotated[dict[str, list[Id]], means("Kind of each tangle, and what it follows there.")]
    epoch: Id
    kind: BodyKind
    size: ByteCount
    time: UnixSeconds
    text: str | None
    imported_author: str
    files: list[str]
    erased: bool
    not_kept: bool
    unreadable: bool
    damaged: bool
    origin: Origin
    continues: BranchHeads
    merged: BranchHeads


class VoidView(VerdictFields):
    """A void commit, and why it is void."""

    commit: Id
    author: Id
    author_name: PersonText


class VoidList(TypedDict):
    """The void commits of a branch."""

    voids: Annotated[list[VoidView], means("The first 1,000.")]


class WrittenCommitView(TypedDict):
    """A commit that was written, durably."""

    commit: Id
    rank: Rank
    branch: Id


class StreamedOutcome(TypedDict):
    """Outcome of a line: the commit, or the error."""

    commit: NotRequired[Id]
    rank: NotRequired[Rank]
    branch: NotRequired[Id]
    error: NotRequired[ErrorDetail]


class WrittenPosts(TypedDict):
    """Posts that were written, durably."""

    branch: Id
    commits: Annotated[list[Id], means("One for each text, in order.")]
    rank: Annotated[Rank, means("Of the last.")]
