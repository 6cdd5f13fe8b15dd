"""Types of answers: json documents."""

from typing import Annotated, Any, TypedDict

from ravel.types.document_values import Commits
from ravel.types.values import Count, Id, means


class JsonConflictView(TypedDict):
    """A value that was put beside the one that shows."""

    item: Annotated[str, means("The item that it is in. Empty: none.")]
    path: Annotated[list[str], means("Map keys from there.")]
    place: Annotated[bool, means("True: another place of the item.")]
    value: Any
    commit: Annotated[Id | None, means("Null: a sum of increments.")]


class UnplacedItem(TypedDict):
    """An item of no list: its list was removed, or it lies in itself. `move` places it."""

    item: str
    value: Any


class JsonDocumentView(TypedDict):
    """A JSON document."""

    branch: Id
    value: Annotated[Any, means("Maps that are items of a list have their id as `$id`.")]
    conflicts: Annotated[list[JsonConflictView], means("The first 64.")]
    conflict_count: Count
    unplaced: list[UnplacedItem]


class JsonEditResult(TypedDict):
    """Result of edits of a JSON document."""

    branch: Id
    commits: Commits
    value: Annotated[Any, means("For `preview`: the value. Else null.")]
    items: Annotated[list[str], means("Ids of the items that `insert` made, in the edits' order.")]
