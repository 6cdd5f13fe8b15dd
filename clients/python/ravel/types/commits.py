"""Types of answers: commits. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.values import ErrorDetail


class WrittenCommitView(TypedDict):
    """A commit that was written, durably."""

    commit: str
    rank: int
    """The length of the longest path from a root."""
    branch: str


class WrittenPosts(TypedDict):
    """Posts that were written, durably."""

    branch: str
    commits: list[str]
    """One for each text, in order."""
    rank: int
    """Of the last."""


class StreamedOutcome(TypedDict):
    """Outcome of a line: the commit, or the error."""

    commit: NotRequired[str]
    rank: NotRequired[int]
    """The length of the longest path from a root."""
    branch: NotRequired[str]
    error: NotRequired[ErrorDetail]


class CommitView(TypedDict):
    """A commit with all it states. Of one that was not accepted, the verdict alone."""

    verdict: str
    """What became of the commit."""
    rule: str
    """The rule (docs/specification/membership-rules.md) or the code that decides."""
    reason: str
    """The same in words."""
    by: list[str]
    """The commits that decide."""
    commit: str
    branch: str
    branch_name: str
    author: NotRequired[str]
    """Of a commit whose author is known here."""
    author_name: NotRequired[str]
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
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
    person: NotRequired[str]
    rank: NotRequired[int]
    """The length of the longest path from a root."""
    feed_sequence: NotRequired[int]
    """Its number in the author's feed."""
    feed_previous: NotRequired[str | None]
    acks: NotRequired[list[str]]
    place: NotRequired[str]
    """A place in the canonical order. As texts, places are ordered as the commits are."""
    position: NotRequired[int | None]
    """Its position in the timeline. Null: it is void."""
    deps: NotRequired[list[str]]
    negative_deps: NotRequired[list[str]]
    files_added: NotRequired[list[str]]
    """Ids of objects."""
    files_removed: NotRequired[list[str]]
    """Ids of objects."""
    tangles: NotRequired[dict[str, list[str]]]
    """Kind of each tangle, and what it follows there."""
    epoch: NotRequired[str]
    kind: NotRequired[str]
    """The kind of the body: `post`, `imported`, `files`, ..."""
    size: NotRequired[int]
    """Bytes."""
    time: NotRequired[int]
    """Unix seconds."""
    text: NotRequired[str | None]
    imported_author: NotRequired[str]
    files: NotRequired[list[str]]
    erased: NotRequired[bool]
    unreadable: NotRequired[bool]
    damaged: NotRequired[bool]
    origin: NotRequired[Origin]
    continues: NotRequired[BranchHeads]
    merged: NotRequired[BranchHeads]


class VerdictView(TypedDict):
    """The verdict on a commit."""

    verdict: str
    """What became of the commit."""
    rule: str
    """The rule (docs/specification/membership-rules.md) or the code that decides."""
    reason: str
    """The same in words."""
    by: list[str]
    """The commits that decide."""
    commit: str
    branch: str
    branch_name: str
    author: NotRequired[str]
    """Of a commit whose author is known here."""
    author_name: NotRequired[str]
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """


class VoidList(TypedDict):
    """The void commits of a branch."""

    voids: list[VoidView]
    """The first 1,000."""


class ReplyTo(TypedDict):
    """Post that a reply answers."""

    commit: str
    thread: str
    """The first post of the thread, as the author states it."""
    state: str
    """What became of the answered post. `absent`: it is not in this branch, or not here."""
    author: NotRequired[str]
    author_name: NotRequired[str]
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    text: NotRequired[str]
    """First line of what it says now, 120 characters at most, with people's names. Where it is `shown`."""


class Mention(TypedDict):
    """A user that a text names."""

    user: str
    name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """


class Origin(TypedDict):
    """Origin of a commit that a merge carried over."""

    branch: str
    commit: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """


class BranchHeads(TypedDict):
    """Commits of another branch."""

    branch: str
    commits: list[str]


class VoidView(TypedDict):
    """A void commit, and why it is void."""

    verdict: str
    """What became of the commit."""
    rule: str
    """The rule (docs/specification/membership-rules.md) or the code that decides."""
    reason: str
    """The same in words."""
    by: list[str]
    """The commits that decide."""
    commit: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """


class TimelineItem(TypedDict):
    """A commit in a timeline."""

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
    rank: int
    """The length of the longest path from a root."""
    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    acks: list[str]
    """The commits that it follows."""
    position: NotRequired[int]
    """Counted from 0. Only in windows of the canonical order."""
    place: str
    """A place in the canonical order. As texts, places are ordered as the commits are."""


class EditItem(TypedDict):
    """The commit that an edit inserts."""

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
    rank: int
    """The length of the longest path from a root."""
    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    acks: list[str]
    """The commits that it follows."""


class StateItem(TypedDict):
    """A commit of a branch's state."""

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
    rank: int
    """The length of the longest path from a root."""
    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    acks: list[str]
    """The commits that it follows."""
    branch: str
    """The branch that it was written in."""


class CommitItem(TypedDict):
    """A commit in a list."""

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
    rank: int
    """The length of the longest path from a root."""
    kind: str
    """The kind of the body: `post`, `imported`, `files`, ..."""
    acks: list[str]
    """The commits that it follows."""
