"""Types of answers: json_documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import Any, TypedDict


class JsonDocumentView(TypedDict):
    """A JSON document."""

    branch: str
    value: Any
    """Maps that are items of a list have their id as `$id`."""
    conflicts: list[JsonConflictView]
    """The first 64."""
    conflict_count: int
    unplaced: list[UnplacedItem]


class JsonEditResult(TypedDict):
    """Result of edits of a JSON document."""

    branch: str
    commits: list[str]
    """Empty: nothing had to be written."""
    value: Any
    """For `preview`: the value. Else null."""
    items: list[str]
    """Ids of the items that `insert` made, in the edits' order."""


class JsonConflictView(TypedDict):
    """A value that was put beside the one that shows."""

    item: str
    """The item that it is in. Empty: none."""
    path: list[str]
    """Map keys from there."""
    place: bool
    """True: another place of the item."""
    value: Any
    commit: str


class UnplacedItem(TypedDict):
    """An item of no list: its list was removed, or it lies in itself. `move` places it."""

    item: str
    value: Any
