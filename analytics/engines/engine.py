"""What an analysis asks of an engine, and the catalog that has an engine write tables by their definitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from analytics.order.branch_tasks import BranchDigest
from analytics.tables.definitions import TABLES, VIEWS, Definition
from analytics.tables.periods import Period, find_period
from ravel.exports.checking import Export, latest_exports

NARROWED: Final = ("commits", "commits_by_node", "commits_with_node", "placed", "ordered")
"""Sources that have the commits of changed branches alone, where the rows of others are kept. Those of all branches are then
`all_` and the name."""
CHANGED: Final = "changed_branches"
"""The relation of these branches."""
FIRST: Final = ("branch_names", "linearization")
"""Tables that are written before the order is compared; the others follow."""
KEPT_ORDER: Final = "ordered_commits"
"""What is kept of `ordered` for tables that are not of single branches."""
_KEPT_COLUMNS: Final = (
    "branch_id, repo_id, topic, author, body_kind, size, time, acked_at, commit_id, position"
)
QUERY_OF_KEPT_ORDER: Final = """
SELECT
    branch_id, repo_id, topic, author, body_kind, size, time, acked_at,
    CASE WHEN branch_id = repo_id THEN commit_id END AS commit_id,
    CASE WHEN branch_id = repo_id THEN position END AS position
FROM ordered
"""
"""Ids are most of its bytes, and asked of root branches alone."""


class Engine(Protocol):
    """Runs queries on exports. Relations have names, which later queries read. Raises OSError, and errors of the engine."""

    def define_source(self, name: str) -> None:
        """Bring a relation of `analytics.tables.definitions.SOURCES`, but for `placed` and `ordered`.

        Of those in NARROWED also the one that is called `all_` and its name. `all_commits` and `all_commits_with_node` of
        one export are told as though it had each id once.
        """
        ...

    def define_commits(self, name: str, within: str | None = None) -> None:
        """Name each commit of all exports once, of the rows that state a branch of the relation `within`, or of all."""
        ...

    def name_files(self, name: str, paths: Sequence[Path]) -> None:
        """Name the rows of some Parquet files, at least one, of the same columns."""
        ...

    def order(self, giant_from: int | None) -> None:
        """Order every branch of `commits`, as `placed` and `ordered`. Raises LargeBranchRefused."""
        ...

    def digests(self) -> list[BranchDigest]:
        """The digest of each branch with a commit that has a place."""
        ...

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """Name a query. One that is kept is computed once."""
        ...

    def write(self, queries: Mapping[str, str], folder: str = "tables") -> None:
        """Write tables that do not need one another below a folder of the results.

        From then on a name stands for what was written.
        """
        ...

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query of few."""
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
        """Whether no cause is missing: set before tables are written, it spares a look at all parents."""
        self._is_narrow = False
        self._is_told_once: bool | None = None

    def narrow(self) -> None:
        """Order and count anew only the branches of the relation CHANGED. `keep` then says where the rows of others are.

        One export must have each id once. Of several no commit may be stated in a branch that is CHANGED and in another.
        """
        self._is_narrow = True
        narrowed = "commits" if self._is_alone else "commits_by_node"
        self.need(f"all_{narrowed}")
        of_changed = f"SELECT * FROM all_{narrowed} SEMI JOIN {CHANGED} USING (branch_id)"
        self._engine.define(narrowed, of_changed, is_kept=False)
        if not self._is_alone:
            self._engine.define_commits("commits", CHANGED)
        self._defined |= {"commits", narrowed}

    def keep(self, files: Mapping[str, Sequence[Path]]) -> None:
        """Take rows of unchanged branches from these files of an earlier analysis, once the changed ones are ordered.

        `files` has all tables of branches, and KEPT_ORDER.
        """
        for name, paths in files.items():
            self._engine.name_files(f"earlier_{name}", paths)
        both = f"{_kept(KEPT_ORDER, _KEPT_COLUMNS)} UNION ALL SELECT {_KEPT_COLUMNS} FROM ({QUERY_OF_KEPT_ORDER}) AS told"
        self._engine.define("all_ordered", both, is_kept=False)
        self._defined.add("all_ordered")

    def write(self, names: Iterable[str]) -> None:
        """Write these tables, and what they read first."""
        left = dict.fromkeys(names)
        while left:
            ready = [name for name in left if not tables_below(TABLES[name], set()) & left.keys()]
            assert ready, f"tables {', '.join(left)} read one another"
            queries = {name: self._query(TABLES[name]) for name in ready}
            if self._is_narrow:
                queries |= {
                    name: self._with_kept(name, queries[name]) for name in ready if TABLES[name].is_by_branch
                }
            self._engine.write(queries)
            self._defined.update(ready)
            for name in ready:
                del left[name]

    def has_rows_of(self, tables: Collection[str]) -> bool:
        """Whether any export has rows of one of these tables of exports."""
        return not self._filled.isdisjoint(tables)

    def period(self, relation: str, column: str) -> Period | None:
        """The period of a relation's times, which is looked for once."""
        key = (relation, column)
        if key not in self._periods:
            whole = self.whole(relation)
            self.need(whole)
            self._periods[key] = find_period(self._engine.rows, whole, column)
        return self._periods[key]

    def commits_of(self, branch_id: bytes) -> str:
        """The name of a relation that has all commits of a branch, and perhaps others."""
        if not self._is_narrow or self._is_alone:
            return self.whole("commits")
        # Not `all_commits`: to tell copies of all commits apart is what an analysis of branches with news spares.
        self._engine.define("one_branch", f"SELECT X'{branch_id.hex()}' AS branch_id", is_kept=False)
        self._engine.define_commits("commits_of_one", "one_branch")
        return "commits_of_one"

    def whole(self, name: str) -> str:
        """The name by which a relation has the rows of all branches."""
        return f"all_{name}" if self._is_narrow and (name in NARROWED or self._view(name)) else name

    def need(self, name: str) -> None:
        """Define a source or a view, and what it stands on, unless that is done."""
        if name in self._defined:
            return
        assert name not in TABLES, f"{name} is read before it is written"
        self._defined.add(name)
        is_whole = self._is_narrow and name.startswith("all_")
        view = self._view(name.removeprefix("all_") if is_whole else name)
        if view is None:
            self._engine.define_source(name)
            return
        renamed = self.whole if is_whole else self._of_changed
        for other in sorted(map(renamed, view.reads)):
            self.need(other)
        self._engine.define(name, view.fill(renamed=renamed), is_kept=view.is_kept)

    def _of_changed(self, name: str) -> str:
        """The name by which a relation has the rows of changed branches, for what is counted by branch."""
        return f"new_{name}" if self._is_narrow and name in TABLES else name

    def _with_kept(self, name: str, query: str) -> str:
        """The rows of a table of branches: those that a query gives of changed ones, and those that others had."""
        self._engine.define(f"new_{name}", query, is_kept=False)
        self._defined.add(f"new_{name}")
        columns = ", ".join(column.name for column in TABLES[name].columns)
        return f"{_kept(name, columns)} UNION ALL SELECT {columns} FROM new_{name}"

    def _view(self, name: str) -> Definition | None:
        variants = [f"{name}_of_one"] if self._is_alone else []
        if not self._is_alone and f"{name}_of_distinct" in VIEWS and self._tells_once():
            variants.append(f"{name}_of_distinct")
        variants += [f"{name}_of_complete"] if self.is_complete else []
        return next((VIEWS[one] for one in (*variants, name) if one in VIEWS), None)

    def _tells_once(self) -> bool:
        """Whether no node tells a commit twice: looked up once."""
        if self._is_told_once is None:
            every = self.whole("commits_by_node")
            self.need(every)
            (found,) = self._engine.rows(
                f"SELECT count(*) AS repeated FROM (SELECT node, commit_id FROM {every} "
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
        renamed = self._of_changed if table.is_by_branch else self.whole
        for name in sorted(map(renamed, table.reads)):
            self.need(name)
        return table.fill(period.values() if period else None, renamed)


def _kept(name: str, columns: str) -> str:
    """A query for the rows that an earlier analysis has of unchanged branches."""
    return f"SELECT {columns} FROM earlier_{name} ANTI JOIN {CHANGED} USING (branch_id)"


def tables_below(definition: Definition, seen: set[str]) -> set[str]:
    """The tables that a definition reads, also through views."""
    found = set()
    for name in definition.reads - seen:
        seen.add(name)
        if name in TABLES:
            found.add(name)
        elif name in VIEWS:
            found |= tables_below(VIEWS[name], seen)
    return found


DIGESTS: Final = "SELECT branch_id, position + 1 AS commits, digest FROM placed WHERE digest IS NOT NULL"
"""The digests of branches that one task ordered."""

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
    """Its rows: one for each export. What a node's latest export does not say is null, whatever older ones said."""
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
