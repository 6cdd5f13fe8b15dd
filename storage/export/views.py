"""Writes `views.sql`: an export's tables as views of DuckDB, each also with its ids as text.

The file says nothing of an export's contents but which tables have rows: a pattern that finds nothing is an error there.
"""

from collections.abc import Collection
from typing import Final

import pyarrow as pa

from ravel.exports.schema import TABLES

VIEWS_NAME: Final = "views.sql"
VIEWS_SIZE_MAX: Final = 1 << 20
"""Bytes of the file. It has some ten thousand."""

_HEAD: Final = """\
-- Views of a Ravel export for DuckDB. Either in the export's folder: duckdb -init views.sql
-- or from anywhere, with its path or URL: SET VARIABLE export = '/path/of/export';  .read /path/of/export/views.sql
-- NAME is a table as it is exported; NAME_text has ids as `ravel` writes them (base32) instead of bytes.
-- Timelines sort ids by their bytes: sort rows of NAME, and show ravel_id(commit_id). Texts sort otherwise.
-- Times are UTC: date_trunc and casts to dates would otherwise take the time zone of the session.
SET TimeZone = 'UTC';
CREATE OR REPLACE MACRO ravel_id_part(id, start, digits) AS
    to_base(CAST('0x' || substr(hex(id) || '0', start, digits) AS BIGINT), 32, digits * 4 // 5);
CREATE OR REPLACE MACRO ravel_id(id) AS translate(
    ravel_id_part(id, 1, 15) || ravel_id_part(id, 16, 15) || ravel_id_part(id, 31, 15) || ravel_id_part(id, 46, 15)
        || ravel_id_part(id, 61, 5),
    '0123456789ABCDEFGHIJKLMNOPQRSTUV', 'abcdefghijklmnopqrstuvwxyz234567');
"""
_FOLDER: Final = r"coalesce(regexp_replace(getvariable('export'), '([*?\[])', '[\1]', 'g'), '.')"
"""The folder as a pattern, in which it stands for itself."""


def write_views(filled: Collection[str]) -> str:
    """Return the text of the file, for an export in which these tables have rows."""
    return _HEAD + "".join(_views_of(table, is_filled=table in filled) for table in TABLES)


def _views_of(table: str, *, is_filled: bool) -> str:
    schema = TABLES[table]
    if is_filled:
        rows = f"FROM read_parquet({_FOLDER} || '/{table}/*.parquet')"
    else:
        columns = ", ".join(f"CAST(NULL AS {_type_of(field.type)}) AS {field.name}" for field in schema)
        rows = f"SELECT {columns} WHERE false"
    texts = [text for field in schema if (text := _text_of(field.name, field.type))]
    lines = [
        f"\nCREATE OR REPLACE VIEW {table} AS {rows};",
        f"CREATE OR REPLACE VIEW {table}_text AS SELECT * REPLACE ({', '.join(texts)}) FROM {table};",  # noqa: S608  # names of ours
        *(
            f"COMMENT ON COLUMN {name}.{field.name} IS {_quoted(_description_of(field))};"
            for name in (table, f"{table}_text")
            for field in schema
        ),
    ]
    return "\n".join(lines) + "\n"


def _text_of(name: str, kind: pa.DataType) -> str:
    if pa.types.is_fixed_size_binary(kind):
        return f"ravel_id({name}) AS {name}"
    return f"[ravel_id(id) FOR id IN {name}] AS {name}" if pa.types.is_list(kind) else ""


def _type_of(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "BLOB[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ"
    return {"int64": "BIGINT", "string": "VARCHAR", "bool": "BOOLEAN"}.get(str(kind), "BLOB")


def _description_of(field: "pa.Field[pa.DataType]") -> str:
    said = field.metadata or {}
    description, unit = (said.get(key, b"").decode() for key in (b"description", b"unit"))
    return f"{description} ({unit})" if unit else description


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
