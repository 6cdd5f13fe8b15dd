"""Interface of an engine, and the catalog that has an engine write tables by their definitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from string import Template
from typing import Any, Final, Protocol

from analytics.tables.definitions import TABLES, VIEWS, Definition
from analytics.tables.periods import Period, find_period
from ravel.exports.checking import Export, latest_exports

OF_LATEST: Final = ("relay_topics_by_node", "pending_by_node", "rejections_by_node")
"""Relations of which only a node's last export counts, if it has several."""
LINEARIZATION: Final = "linearization"
"""Table of the order alone."""
FIRST: Final = ("branch_names", LINEARIZATION, "digests")
"""Tables that are written before the order is compared; the others follow."""


class Engine(Protocol):
    """Runs queries on exports. Relations have names, which later queries read. Raises OSError, and errors of the engine."""

    with_every_tangle: bool
    """True to order feeds and groups among tangles, which costs as much as all branches twice more."""

    def define_source(self, name: str) -> None:
        """Bring a relation of `analytics.tables.definitions.SOURCES`, but for `placed` and `ordered`."""
        ...

    def order(self, giant_from: int | None) -> None:
        """Order every branch of `commits`, as `placed` and `ordered`. Raises LargeBranchRefused."""
        ...

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """Name a query. One that is kept is computed once."""
        ...

    def write(self, queries: Mapping[str, str]) -> None:
        """Write tables that do not depend on one another. After that their names mean the written tables."""
        ...

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query of few."""
        ...

    @property
    def rows_elsewhere(self) -> Mapping[str, int]:
        """Rows of tables that were written at a URL, and not below the folder of results."""
        ...

    def close(self) -> None:
        """Let go of all that was named, and end what was started."""
        ...


class Catalog:
    """Tables of one run: defines what they stand on when the first one needs it, and writes them in an order that works."""

    def __init__(self, engine: Engine, exports: Sequence[Export]) -> None:
        self._engine = engine
        self._is_alone = len(exports) == 1
        self._filled = {
            table
            for export in exports
            for table, parts in export.tables.items()
            if any(part.rows for part in parts)
        }
        """Tables of exports that have rows."""
        self._defined = {"placed", "ordered"}
        self._periods: dict[tuple[str, str], Period | None] = {}
        self.is_complete = False
        """True if no cause is missing: set before tables are written, it spares a look at all parents."""
        self._is_told_once: bool | None = None

    def write(self, names: Iterable[str]) -> None:
        """Write these tables, and what they read first."""
        left = dict.fromkeys(names)
        while left:
            ready = [name for name in left if not tables_below(TABLES[name], set()) & left.keys()]
            assert ready, f"tables {', '.join(left)} read one another"
            self._engine.write({name: self._query(TABLES[name]) for name in ready})
            self._defined.update(ready)
            for name in ready:
                del left[name]

    def has_rows_of(self, tables: Collection[str]) -> bool:
        """Return True if any export has rows of one of these tables of exports."""
        return not self._filled.isdisjoint(tables)

    def period(self, relation: str, column: str) -> Period | None:
        """Return the period of a relation's times, which is looked for once."""
        key = (relation, column)
        if key not in self._periods:
            self.need(relation)
            self._periods[key] = find_period(self._engine.rows, relation, column)
        return self._periods[key]

    def need(self, name: str) -> None:
        """Define a source or a view, and what it stands on, unless that is done."""
        if name in self._defined:
            return
        assert name not in TABLES, f"{name} is read before it is written"
        self._defined.add(name)
        view = self._view(name)
        if view is None:
            self._engine.define_source(name)
            return
        for other in sorted(view.reads):
            self.need(other)
        self._engine.define(name, view.fill(), is_kept=view.is_kept)

    def _view(self, name: str) -> Definition | None:
        variants = [f"{name}_of_one"] if self._is_alone else []
        if not self._is_alone and f"{name}_of_distinct" in VIEWS and self._tells_once():
            variants.append(f"{name}_of_distinct")
        variants += [f"{name}_of_complete"] if self.is_complete else []
        return next((VIEWS[one] for one in (*variants, name) if one in VIEWS), None)

    def _tells_once(self) -> bool:
        """Return True if no node tells a commit twice: looked up once."""
        if self._is_told_once is None:
            self.need("commits_by_node")
            (found,) = self._engine.rows(
                "SELECT count(*) AS repeated FROM (SELECT node, commit_id FROM commits_by_node "
                "GROUP BY node, commit_id HAVING count(*) > 1) AS told"
            )
            self._is_told_once = found["repeated"] == 0
        return self._is_told_once

    def _query(self, table: Definition) -> str:
        if table.of and not self.has_rows_of(table.of):
            return table.nothing()  # most exports: nothing to count, and no wait for that
        period = None
        if table.period is not None:
            period = self.period(*table.period)
            if period is None:
                return table.nothing()
        for name in sorted(table.reads):
            self.need(name)
        return table.fill(period.values() if period else None)


def tables_below(definition: Definition, seen: set[str]) -> set[str]:
    """Return the tables that a definition reads, also through views."""
    found = set()
    for name in definition.reads - seen:
        seen.add(name)
        if name in TABLES:
            found.add(name)
        elif name in VIEWS:
            found |= tables_below(VIEWS[name], seen)
    return found


PLACES_CARRIED: Final = ("kind", "root", "repo_id", "author", "time", "shown_at", "acks")
"""Columns of places in tangles that are counted besides their order."""
_PLACES: Final = """
WITH $more all_told AS (
    SELECT commit_id, kind, root, previous
    FROM tangles_by_node
    WHERE kind NOT IN ('group', 'feed', 'epoch', 'members')
    UNION ALL
    SELECT commit_id, kind, root, previous
    FROM memberships_by_export
    WHERE kind IN ('epoch', 'members') AND root IS NOT NULL AND previous IS NOT NULL
    $also
), told AS (
    -- Of a commit that states what no commit states, two places of a kind, one is taken.
    SELECT
        commit_id,
        kind,
        root,
        previous,
        row_number() OVER (PARTITION BY commit_id, kind ORDER BY root, previous) AS telling
    FROM all_told
), stated AS (
    SELECT kind, root, commit_id, previous
    FROM told
    WHERE telling = 1 AND size(previous) > 0 AND root <> commit_id
    UNION ALL
    SELECT DISTINCT kind, root, root AS commit_id, no_ids() AS previous
    FROM told
)
SELECT
    tangle_of(kind, root) AS branch_id,
    kind,
    root,
    commit_id,
    previous AS acks,
    CAST(0 AS bigint) AS rank,
    sequence,
    time,
    shown_at,
    repo_id,
    coalesce(source_author, author) AS author,
    is_void,
    '' AS body_kind
FROM stated
JOIN commits USING (commit_id)
"""
_FEEDS_AND_GROUPS: Final = """
fed AS (
    SELECT branch_id, author, feed_sequence, commit_id
    FROM commits
    WHERE feed_sequence >= 1
), begun AS (
    SELECT branch_id, author, min(commit_id) AS root
    FROM fed
    WHERE feed_sequence = 1
    GROUP BY branch_id, author
), next_places AS (
    SELECT branch_id, author, feed_sequence + 1 AS feed_sequence, commit_id AS previous_id
    FROM fed
), founded AS (
    SELECT repo_id, min(commit_id) AS root
    FROM commits
    WHERE branch_id = repo_id AND size(acks) = 0
    GROUP BY repo_id
),
"""
_ALSO_FEEDS_AND_GROUPS: Final = """
    UNION ALL
    SELECT commit_id, kind, root, previous
    FROM tangles_by_node
    WHERE kind = 'group'
    UNION ALL
    SELECT commit_id, 'group' AS kind, root, acks AS previous
    FROM commits
    JOIN founded USING (repo_id)
    WHERE branch_id = repo_id
    UNION ALL
    SELECT root AS commit_id, 'feed' AS kind, root, no_ids() AS previous
    FROM begun
    UNION ALL
    SELECT commit_id, 'feed' AS kind, root, collect_list(previous_id) AS previous
    FROM fed
    JOIN next_places USING (branch_id, author, feed_sequence)
    JOIN begun USING (branch_id, author)
    GROUP BY commit_id, root
"""


def places(*, with_every_tangle: bool) -> str:
    """Return a query for places in tangles in the form of commits, so that a tangle is ordered as a branch is.

    As in `verifier.tangle`, a place that follows nothing of its tangle is no part of it, unless it is the root. Tangles of
    epochs and members have the places that nodes found, and not those that applications state. Feeds and groups have every
    commit once more. In a feed a commit follows the one a place before it; in a group a commit of the root branch follows
    its acks there.
    """
    more, also = (_FEEDS_AND_GROUPS, _ALSO_FEEDS_AND_GROUPS) if with_every_tangle else ("", "")
    return Template(_PLACES).substitute(more=more, also=also)


EXPORT_KINDS: Final[Mapping[str, str]] = {
    "node": "string",
    "created_at": "bigint",
    "schema_version": "bigint",
    "is_latest": "boolean",
    "total_quota": "bigint",
    "topic_quota": "bigint",
    "blocks": "bigint",
    "block_bytes": "bigint",
    "referenced_blocks": "bigint",
    "referenced_bytes": "bigint",
}
"""Columns of the relation `exports`."""
EXPORTS_SCHEMA: Final = ", ".join(f"{name} {kind}" for name, kind in EXPORT_KINDS.items())
"""The same in SQL."""


def export_rows(exports: Sequence[Export]) -> list[tuple[object, ...]]:
    """Return the rows of `exports`, one for each export. A value that a node's latest export lacks is null."""
    latest = latest_exports(exports)
    rows: list[tuple[object, ...]] = []
    for export in exports:
        quotas, held = export.quotas, export.holdings
        rows.append(
            (
                export.node,
                export.created_at,
                export.schema_version,
                any(export is one for one in latest),
                *((quotas.total, quotas.topic) if quotas else (None, None)),
                *(
                    (held.blocks, held.bytes, held.referenced_blocks, held.referenced_bytes)
                    if held
                    else (None, None, None, None)
                ),
            )
        )
    return rows
