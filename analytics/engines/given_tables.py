"""Tables that a caller gives, as the sources that definitions read: what columns they must have, and what stands on them.

The two engines of `analytics.frames` share this. Each row of one node is taken for a row of one export of that node, of
which nothing else is known.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from analytics.engines.engine import EXPORT_KINDS, Catalog, Engine, tables_below
from analytics.engines.frame_kinds import Columns, word_of
from analytics.order.branch_tasks import CARRIED, placed_schema
from analytics.reading.export_reader import SPARK_SCHEMAS
from analytics.tables.definitions import TABLES, VIEWS
from ravel.exports.schema import SCHEMA_VERSION
from ravel.exports.schema import TABLES as EXPORT_TABLES

FURTHER: Final = (
    "voids",
    "edits",
    "relay_commits",
    "relay_topics",
    "memberships",
    "members",
    "topics",
    "names",
    "tangles",
    "pending",
    "rejections",
)
"""Tables of exports that functions take beside commits, by these names."""
ORDERED: Final = "exported_rank"
"""A column that commits have once they are ordered."""
CARRIED_ON: Final = (*CARRIED, "acks", "feed_sequence", "is_void", "files", "file_bytes")
"""What figures are counted from, beside the order."""
_NODE: Final = "node"
_NODE_CELL: Final = f"coalesce({_NODE}, '')"


_MAY_LACK: Final[Mapping[str, tuple[str, ...]]] = {
    # No figure is counted from the stated position: it only decides between copies that contradict each other.
    "commits": (
        *(
            "position",
            "position_at",
            "feed_sequence",
            "source_author",
            "repo_name",
            "blocks",
            "files",
            "file_bytes",
        ),
        *("time_utc", "received_utc", "shown_utc", "arrival", "arrived_at", "arrived_utc"),
    ),
    "relay_commits": ("received_utc",),
    "relay_topics": ("touched_utc",),
    "topics": ("kind",),
    "memberships": ("kind", "root", "previous"),
}
"""Columns that a given table may lack: few figures need them."""


def _kinds_of(table: str) -> dict[str, str]:
    return {column.split()[0]: column.split()[1] for column in SPARK_SCHEMAS[table].split(",")}


def columns_of(table: str, *, is_ordered: bool = False) -> Columns:
    """Return what a table of exports must have, or commits in their order."""
    kinds = _kinds_of(table)
    if is_ordered:
        placed = placed_schema(CARRIED_ON, with_digests=False)
        kinds = {field.name: word_of(field.type) for field in placed}
        return Columns(
            kinds,
            frozenset(),
            frozenset({"branch_id", "commit_id", "acks", "is_disputed", "is_void"}),
            "give what `order` gave, with all its columns",
        )
    may_lack = frozenset({*_MAY_LACK.get(table, ()), _NODE})
    return Columns(
        kinds | {_NODE: "string"},
        may_lack,
        frozenset(field.name for field in EXPORT_TABLES[table] if not field.nullable) - may_lack,
        f"give ravel.open_export(url).table({table!r}) in this form, or these columns as exports have them",
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A relation that definitions read, as a query of `given_` and the name of a table, if it stands on one."""

    table: str | None
    query: str


def source_of(name: str, *, is_ordered: bool, has_node: bool) -> Source:
    """Return a relation of `analytics.tables.definitions.SOURCES`, but for `placed` and `ordered`.

    `has_node` says whether commits as exported tell of which node they are. Raises ValueError where commits as exported
    are needed, and they are ordered.
    """
    if name == "commits":
        kept = ", ".join(["branch_id", "commit_id", *(column for column in CARRIED_ON if column != ORDERED)])
        return Source(None, f"SELECT {kept}, {ORDERED} AS rank FROM placed")
    if name == "exports":
        return _exports(is_ordered=is_ordered, has_node=has_node)
    table = name.removesuffix("_by_node").removesuffix("_by_export")
    if table == "commits" and is_ordered:
        raise ValueError(
            "this figure is about what each node has: give commits as exported, and not as ordered"
        )
    cells = f"{', '.join(_kinds_of(table))}, {_NODE_CELL} AS node, {_NODE_CELL} AS source"
    return Source(table, f"SELECT {cells}, CAST(0 AS bigint) AS created_at FROM given_{table}")


def _exports(*, is_ordered: bool, has_node: bool) -> Source:
    """Define the relation `exports` as though each node had one export."""
    cells = dict.fromkeys(EXPORT_KINDS, "NULL") | {
        "node": _NODE_CELL if has_node else "''",
        "created_at": "0",
        "schema_version": str(SCHEMA_VERSION),
        "is_latest": "true",
    }
    chosen = ", ".join(f"CAST({cells[name]} AS {kind}) AS {name}" for name, kind in EXPORT_KINDS.items())
    if has_node:
        return Source("commits", f"SELECT DISTINCT {chosen} FROM given_commits")
    return Source(None, f"SELECT {chosen} WHERE {str(not is_ordered).lower()}")


def closure_of(name: str) -> list[str]:
    """Return a table, and all that it is counted from. Raises KeyError."""
    found = {name: None}
    left = [name]
    while left:
        below = tables_below(TABLES[left.pop()], set()) - found.keys()
        found |= dict.fromkeys(sorted(below))
        left += below
    return [*found]


def reads_order(names: Collection[str]) -> bool:
    """Return True if some of these tables are counted from the order."""
    left = {read for name in names for read in TABLES[name].reads}
    found: set[str] = set()
    while left:
        found |= left
        left = {read for name in left & VIEWS.keys() for read in VIEWS[name].reads} - found
    return not found.isdisjoint(("commits", "placed", "ordered", "tangled"))


class GivenCatalog(Catalog):
    """Catalog of a caller's tables, which may be of several nodes."""

    def __init__(self, engine: Engine, given: Collection[str]) -> None:
        super().__init__(engine, ())
        self._filled = set(given)
        self._is_told_once = False  # to look would run a job before rows are asked for
