"""Reads the tables of an analysis with DuckDB, from the Parquet files that an engine has written.

Spark's driver answers so what the page asks of a small analysis: a job takes a hundred times as long as a question to a
few rows.

In a CSV ids are hex, and a text that a spreadsheet would take for a formula has an apostrophe before it: branch names
are chosen by anybody.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb


def fetch(database: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """The rows of a query of few."""
    result = database.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def read_files(paths: Sequence[Path]) -> str:
    """A query for all rows of these files."""
    # DuckDB takes a path for a pattern; a sign in brackets stands for itself.
    patterns = [quoted(re.sub(r"([*?\[])", r"[\1]", str(path))) for path in paths]
    return f"SELECT * FROM read_parquet([{', '.join(patterns)}], union_by_name = true)"


def write_csv(database: duckdb.DuckDBPyConnection, name: str, kinds: Mapping[str, str], target: Path) -> None:
    """Write a table as CSV. `kinds` are its columns with their types in Spark's words."""
    target.parent.mkdir(exist_ok=True)
    plain = {
        "binary": "lower(hex({0})) AS {0}",
        "string": r"regexp_replace({0}, '^([=+\-@\t\r])', '''\1') AS {0}",
    }
    cells = ", ".join(plain.get(kind, "{0}").format(column) for column, kind in kinds.items())
    database.execute(f"COPY (SELECT {cells} FROM {name}) TO {quoted(str(target))} (FORMAT csv, HEADER)")


def quoted(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
