"""Types of answers: search. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.commits import Mention, Origin


class SearchResult(TypedDict):
    """Result of a search."""

    hits: list[SearchHit]
    """The latest first, by the time at which they are shown."""
    names: list[NameHit]
    """At most 20, found in 0.25 s. Of the first window alone, and where no author and no time is given."""
    next: str | None
    """The `after` of the next window. Null: all was looked at. A window may have fewer hits than `limit`, or none,
    where a search takes long.
    """
    index: SearchIndexView


class SearchIndexView(TypedDict):
    """Progress of the index; in a search, for the searched branches. Posts that are not indexed yet are not found."""

    state: str
    """`off`: `search.enabled` is false."""
    percent: int
    """Of the stored commits, those that were looked at."""
    texts_due: int
    """Texts that are to be read anew. They are found by what they said when they were read last, or not at all."""


class SearchHit(TypedDict):
    """A commit that fits. Of a text it is the last commit that the text is made of, with its time and its author."""

    author: str
    person: str
    """The author; of a person's device the user of that person. Later device statements may change it."""
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    repo: str
    repo_name: str
    branch: str
    branch_name: str
    commit: str
    kind: str
    """The kind of the body: `post`, `imported`, `files`; `text`: see `texts`."""
    time: int
    """Unix seconds, as the author states them."""
    text: str | None
    """At most 300 characters of the text as it is shown now, around the first word."""
    files: list[str]
    """Names that fit, of the files that it adds."""
    texts: NotRequired[list[TextRoot]]
    """Of a text: those of the branch that fit, one at least."""
    imported_author: NotRequired[str]
    """Of an imported commit: its author there."""
    origin: NotRequired[Origin]
    """Of a commit that a merge wrote again: whose it is, and where."""
    edited_at: NotRequired[int]
    """Unix seconds of the last edit."""
    mentions: NotRequired[list[Mention]]
    """Users that the whole text names."""


class NameHit(TypedDict):
    """A branch or a tag whose name fits."""

    kind: str
    """What has the name."""
    name: str
    repo: str
    repo_name: str
    branch: str
    """The branch; of a tag that of its commit."""
    commit: NotRequired[str]
    """Of a tag: its commit."""


class TextRoot(TypedDict):
    """One of the texts that a branch has."""

    root: str
    """The name of its root type: the `root` of `GET /branches/{branch}/text`."""
    title: str
    """As the page calls it; empty: it has none."""
