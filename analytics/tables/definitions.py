"""Reads the definitions of tables: one file of SQL for each, in the words that Spark and DuckDB share.

`definitions/NAME.sql` defines the table NAME that an analysis writes; `views/NAME.sql` what definitions stand on. A file
begins with comments:

    -- Rows: branch and author                      what a row is for
    -- What each author did in each branch.         what it says, in one line or more
    -- Period: ordered.time                         optional: a relation and its column of times, see below
    -- Of: memberships, members                     optional: without rows of any of these tables of exports it is empty
    -- Kept: yes                                    optional, of views: computed once, for several tables read it
    --
    -- branch_id binary: the branch                 of tables: name, type, unit in brackets, meaning of each column
    SELECT ...

A table with a column `branch_id` also gets the columns of NAMES, which the query leaves out: they are those of the table
`branch_names`.

The query reads other tables and views by their names, and these relations that engines bring (`SOURCES`). With a period it
gets $start, $end and $bucket (`analytics.tables.periods`); CONSTANTS and the functions of `analytics.tables.functions` are
there for all.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from analytics.reading.limits import PERCENTILE_ACCURACY
from analytics.tables.periods import WAITS
from ravel.exports.checking import SUM_MAX
from ravel.exports.schema import PERMISSIONS, REASONS

SOURCES: Final[Mapping[str, str]] = {
    "commits": "each commit of all exports once, with `is_disputed` and `is_void`",
    "placed": "each commit with its order, how it hangs together, and what is counted of it",
    "ordered": "those of `placed` with a place in the order: neither void nor lacking causes",
    "exports": "each export: `node`, `created_at`, `schema_version`, `is_latest` of its node, quotas and holdings",
    "commits_with_node": "`commits` of one export, with `node`",
    "commits_by_node": "commits as they stand in all exports, with `node`",
    "voids_by_node": "voids likewise",
    "edits_by_node": "edits likewise",
    "relay_commits_by_node": "publications that relays took likewise",
    "relay_topics_by_node": "topics that relays kept, of each node's latest export",
    "pending_by_node": "commits that waited likewise",
    "rejections_by_node": "commits that were refused likewise",
    "memberships_by_export": "memberships with `source`, the number of the export, and its `created_at`",
    "members_by_export": "members likewise",
    "topics_by_export": "topics likewise",
    "names_by_export": "names likewise",
    "tangles_by_node": "places in tangles, as they stand in all exports",
    "tangled": "each place in a tangle of `tangles` once, and each root, with the order there and what is counted",
}

_KINDS: Final = ("bigint", "binary", "boolean", "double", "int", "string")
_COLUMN: Final = re.compile(r"-- (\w+) (\w+)(?: \(([^)]+)\))?: (.+)")
_FACT: Final = re.compile(r"-- (Rows|Period|Of|Kept): (.+)")
_READ: Final = re.compile(r"\b(FROM|JOIN)(\s+)(\w+)")
_NAMED: Final = re.compile(r"(?:\bWITH|,)\s+(\w+) AS \(")


def _texts(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


CONSTANTS: Final[Mapping[str, str]] = {
    "accuracy": str(PERCENTILE_ACCURACY),
    "clock_step": "1000",  # milliseconds: clocks that are kept right step by less
    "sum_max": str(SUM_MAX),
    "permissions": _texts(PERMISSIONS),
    "admins": _texts(PERMISSIONS[-2:]),
    "reasons": _texts(REASONS),
    "waits": " ".join(
        f"WHEN plausible(time) - plausible(causes_until) <= {most} THEN {most}" for most in WAITS
    ),
}


class BadDefinition(Exception):
    """A file does not define a table as it must; the message names it."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    kind: str  # in SQL's words, which both engines know
    unit: str  # "" where it has none
    meaning: str


NAMES_TABLE: Final = "branch_names"
"""The table that says what branches are called."""
NAMES: Final = (
    Column("repo_name", "string", "", "its repo's name, as `branch_names` has it"),
    Column("branch_name", "string", "", "its name, likewise"),
)
"""Columns of names that follow `branch_id` in every other table with it, so that figures are read without a join."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One table, or a view that tables stand on."""

    name: str
    rows: str  # what there is a row for
    meaning: str
    columns: tuple[Column, ...]  # none of a view
    query: str  # a template
    reads: frozenset[str]  # tables, views and sources
    period: tuple[str, str] | None  # a relation, and its column of times
    of: tuple[str, ...]  # tables of exports
    is_kept: bool
    is_named: bool = False  # whether it has NAMES

    def fill(self, period: Mapping[str, str] | None = None) -> str:
        """Return the query, with the types that are declared."""
        query = Template(self.query).substitute({**CONSTANTS, **(period or {})})
        if not self.columns:
            return query
        cells = ", ".join(f"CAST({column.name} AS {column.kind}) AS {column.name}" for column in self.columns)
        if not self.is_named:
            return f"SELECT {cells} FROM (\n{query}\n) AS counted"
        names = ", ".join(column.name for column in NAMES)
        told = f"SELECT branch_id, {names} FROM {NAMES_TABLE}"
        return f"SELECT {cells} FROM (\n{query}\n) AS counted LEFT JOIN ({told}) AS named USING (branch_id)"

    def nothing(self) -> str:
        """Return a query for the table without rows."""
        cells = ", ".join(f"CAST(NULL AS {column.kind}) AS {column.name}" for column in self.columns)
        return f"SELECT {cells} WHERE false"


def parse(name: str, text: str, *, is_view: bool = False) -> Definition:
    """Return a definition from its file. Raises BadDefinition."""
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    facts: dict[str, str] = {}
    meaning: list[str] = []
    columns: list[Column] = []
    is_over = False  # the prose
    for line in lines[:end]:
        fact, column = _FACT.fullmatch(line), _COLUMN.fullmatch(line)
        if line == "--":
            is_over = True
        elif is_over and column and column[2] in _KINDS:
            columns.append(Column(column[1], column[2], column[3] or "", column[4]))
        elif is_over:
            raise BadDefinition(f"{name}.sql: {line!r} is not `-- name type (unit): meaning`")
        elif fact:
            facts[fact[1]] = fact[2]
        else:
            meaning.append(line.removeprefix("--").strip())
    query = "\n".join(lines[end:]).strip()
    if "Rows" not in facts or not meaning or not query or is_view is bool(columns):
        raise BadDefinition(f"{name}.sql lacks what its rows are, what they mean, columns or a query")
    named = set(_NAMED.findall(query))
    reads = frozenset(name for _, _, name in _READ.findall(query)) - named
    place = next((at for at, column in enumerate(columns, 1) if column.name == "branch_id"), None)
    is_named = place is not None and name != NAMES_TABLE
    if is_named:
        columns[place:place] = NAMES
        reads |= {NAMES_TABLE}
    relation, _, column_of_times = facts.get("Period", "").partition(".")
    return Definition(
        name,
        facts["Rows"],
        " ".join(meaning),
        tuple(columns),
        query,
        reads,
        (relation, column_of_times) if relation else None,
        tuple(facts["Of"].split(", ")) if "Of" in facts else (),
        facts.get("Kept") == "yes",
        is_named,
    )


def _load(folder: str, *, is_view: bool) -> dict[str, Definition]:
    files = sorted(Path(__file__).with_name(folder).glob("*.sql"))
    return {file.stem: parse(file.stem, file.read_text(encoding="utf-8"), is_view=is_view) for file in files}


TABLES: Final[Mapping[str, Definition]] = _load("definitions", is_view=False)
"""The tables that an analysis writes, by name."""
VIEWS: Final[Mapping[str, Definition]] = _load("views", is_view=True)
"""What they stand on. NAME_of_one is for one export, NAME_of_complete for exports where no cause is missing,
NAME_of_distinct for several of which no node tells a commit twice."""
