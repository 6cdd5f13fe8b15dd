"""The pages of an export's columns and of an analysis' tables, made from the schemas that the code reads and writes."""

from pathlib import Path
from typing import Final

import pyarrow as pa

from analytics.tables.definitions import TABLES as ANALYSED
from analytics.tables.definitions import Column
from ravel.exports.schema import SCHEMA_VERSION, STATED, TABLES

FOLDER: Final = Path(__file__).parents[2] / "docs" / "research"


def columns_page(made: str) -> str:
    """Return the page of the tables and columns of an export."""
    lines = [
        "# Columns of exports",
        "",
        made,
        f"`ravel export` writes these tables (schema {SCHEMA_VERSION}) as Parquet. A `manifest.json` lists each part with"
        " its rows and checksum; `views.sql` gives them as views of DuckDB. [How to read them](cookbook.md).",
        "",
        "Ids are binary of 32 bytes. Times are int64, as they were stated. Descriptions and units stand in each field's"
        " metadata.",
    ]
    for name, schema in TABLES.items():
        anew = " Each export states it anew." if name in STATED else ""
        lines += ["", f"## {name}", "", f"`{name}`: {_meta(schema.metadata, 'description')}{anew}", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += map(_row, schema)
    return "\n".join(lines) + "\n"


def _row(field: "pa.Field[pa.DataType]") -> str:
    kind = (
        str(field.type)
        .replace("<element: binary not null>", " of binary")
        .replace("fixed_size_binary[32]", "id")
    )
    unit = _meta(field.metadata, "unit")
    said = [
        _meta(field.metadata, "description") + (f" ({unit})" if unit else ""),
        *(["may be null"] if field.nullable and "null" not in _meta(field.metadata, "description") else []),
    ]
    return f"| `{field.name}` | {kind} | {'; '.join(said)} |"


def _meta(metadata: "dict[bytes, bytes] | None", key: str) -> str:
    return (metadata or {}).get(key.encode(), b"").decode().replace("|", "\\|")


def tables_page(made: str) -> str:
    """Return the page of the tables of an analysis."""
    lines = [
        "# Tables of an analysis",
        "",
        made,
        "`ravel analyze` writes these tables as Parquet under `OUT/tables`. Times are unix milliseconds, durations"
        " milliseconds. Unless stated, tables count commits with a place in the order: neither void nor lacking causes."
        " [Words](methods.md#words).",
        "",
        "| table | one row for each | |",
        "|---|---|---|",
    ]
    lines += [f"| [`{one.name}`](#{one.name}) | {one.rows} | {one.meaning} |" for one in ANALYSED.values()]
    for one in ANALYSED.values():
        source = f"../../analytics/tables/definitions/{one.name}.sql"
        lines += ["", f"## {one.name}", "", f"One row for each {one.rows} ([definition]({source})).", ""]
        lines += [f"- {_column(column)}" for column in one.columns]
    return "\n".join(lines) + "\n"


def _column(column: Column) -> str:
    unit = f", {column.unit}" if column.unit else ""
    return f"`{column.name}` ({column.kind}{unit}): {column.meaning}"
