"""Types of answers: files. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.commits import Origin


class FileList(TypedDict):
    """A window of a branch's files."""

    files: list[FileView]
    next: int | None
    """The `after` of the next window. Null: there is none."""
    uses_relays: bool
    """True if this node has relays keep all that it follows."""
    refusals: list[FileRefusal]
    """Of connected relays, as they said last."""


class FileView(TypedDict):
    """A file of a branch. Name and size are as its author states them."""

    file: str
    """The id of the object."""
    name: str
    size: int | None
    commit: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    origin: NotRequired[Origin]
    """Author of a file that a merge carried."""
    time: int
    """Unix seconds."""
    relays: int
    """Relays of this node that have said to keep the content. 0: none, as far as is known."""


class AddedFiles(TypedDict):
    """Files that are on the branch, all durable."""

    branch: str
    files: list[AddedFile]
    """In the order of the request."""


class RemovedFile(TypedDict):
    """A file that was removed from a branch."""

    commit: str
    file: str
    names: list[str]


class ImportResult(TypedDict):
    """Result of a batch of files."""

    imported: int
    """How many items became commits."""
    already: int
    """How many items were imported before."""
    heads: int
    """How many heads the branch has now."""


class ImportedWindow(TypedDict):
    """A window of what was imported from a source."""

    items: list[str]
    """Ids, in the order of their import."""
    next: int | None
    """The `after` of the next window. Null: there is none."""


class FileRefusal(TypedDict):
    """A relay takes no more files of a branch."""

    relay: str
    reason: str
    """A code: `account_full`, `peer_full`, `topic_full`, `relay_full`, `not_known`..."""


class AddedFile(TypedDict):
    """A file of a request to add many."""

    file: str
    """The id of the object."""
    name: str
    size: int | None
    commit: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    origin: NotRequired[Origin]
    """Author of a file that a merge carried."""
    time: int
    """Unix seconds."""
    relays: int
    """Relays of this node that have said to keep the content. 0: none, as far as is known."""
    is_new: bool
    """False: the branch had that name with that content already."""
