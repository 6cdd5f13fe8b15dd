"""Reads the tables of an analysis with DuckDB, from the Parquet files that an engine has written.

Spark's driver answers so what the page asks of a small analysis: a job takes a hundred times as long as a question to a
few rows.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb


def fetch(database: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query of few."""
    result = database.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def read_files(paths: Sequence[Path], path_column: str = "") -> str:
    """Return a query for all rows of these files, and for the path of each row's file in a column that no file has."""
    # DuckDB takes a path for a pattern; a sign in brackets stands for itself.
    patterns = [quoted(re.sub(r"([*?\[])", r"[\1]", str(path))) for path in paths]
    # A name of its own: DuckDB refuses a file that has such a column, and would take another's for the path.
    named = f", filename = {quoted(path_column)}" if path_column else ""
    return f"SELECT * FROM read_parquet([{', '.join(patterns)}], union_by_name = true{named})"


def quoted(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
