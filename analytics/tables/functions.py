"""The functions of definitions that engines spell differently. All else is SQL that both understand alike.

`plausible(time)` is the time, or null where it is none. `hash_of(branch, author, number)` is 64 bits. `month_of(time)` is
the start of its month in UTC, whatever time zone the session has. `tangle_of(kind, root)` is an id for a tangle, `no_ids()`
an empty list. DuckDB gets Spark's names for what both have: `explode`, `size`, `collect_list`, and `percentile_approx`,
which is exact there.
"""

from typing import Final

from ravel.exports.schema import TIME_END, TIME_MIN

_PLAUSIBLE: Final = f"CASE WHEN t BETWEEN {TIME_MIN} AND {TIME_END - 1} THEN t END"

SPARK: Final = (
    f"CREATE OR REPLACE TEMPORARY FUNCTION plausible(t BIGINT) RETURNS BIGINT RETURN {_PLAUSIBLE}",
    """
    CREATE OR REPLACE TEMPORARY FUNCTION hash_of(branch BINARY, author BINARY, number BIGINT) RETURNS BIGINT
    RETURN xxhash64(branch, author, number)
    """,
    """
    CREATE OR REPLACE TEMPORARY FUNCTION month_of(t BIGINT) RETURNS BIGINT
    RETURN unix_date(trunc(date_from_unix_date(CAST(t DIV 86400000 AS INT)), 'MM')) * 86400000L
    """,
    """
    CREATE OR REPLACE TEMPORARY FUNCTION tangle_of(kind STRING, root BINARY) RETURNS BINARY
    RETURN unhex(sha2(concat(CAST(kind AS BINARY), root), 256))
    """,
    """
    CREATE OR REPLACE TEMPORARY FUNCTION no_ids() RETURNS ARRAY<BINARY> RETURN CAST(array() AS ARRAY<BINARY>)
    """,
)
DUCKDB: Final = (
    f"CREATE MACRO plausible(t) AS {_PLAUSIBLE}",
    "CREATE MACRO hash_of(branch, author, number) AS hash(branch, author, number)",
    "CREATE MACRO month_of(t) AS epoch_ms(date_trunc('month', make_timestamp(t * 1000)))",
    "CREATE MACRO tangle_of(kind, root) AS unhex(sha256(encode(kind) || root))",
    "CREATE MACRO no_ids() AS CAST([] AS BLOB[])",
    "CREATE MACRO explode(items) AS unnest(items)",
    "CREATE MACRO size(items) AS len(items)",
    "CREATE MACRO collect_list(item) AS list(item)",
    "CREATE MACRO percentile_approx(number, share, accuracy) AS quantile_disc(number, share)",
)
