"""Some of Ravel's tables in plain SQL of DuckDB, written apart from `analytics/tables/definitions`: their least cost.

They find by joins what the definitions take from the task that orders a branch.

`commits` is the Parquet that both read. `in_period` and `bucket_of` are macros for the period, of anyone who opens a
database.
"""

from collections.abc import Mapping
from typing import Final

from ravel.exports.schema import TIME_END, TIME_MIN

SETUP: Final = (
    f"CREATE MACRO plausible(t) AS CASE WHEN t BETWEEN {TIME_MIN} AND {TIME_END - 1} THEN t END",
    "CREATE MACRO is_merge(acks) AS len(list_distinct(acks)) > 1",
    "CREATE VIEW each_width AS SELECT branch_id, rank, count(*) AS width FROM commits GROUP BY branch_id, rank",
    """
    CREATE VIEW each_merge AS
    WITH merged AS (
      SELECT branch_id, commit_id AS merge_id, plausible(time) AS merged_at, unnest(list_distinct(acks)) AS commit_id
      FROM commits WHERE is_merge(acks)
    ), causes AS (SELECT branch_id, commit_id, plausible(time) AS written_at FROM commits
    ), found AS (
      SELECT branch_id, any_value(merged_at) AS merged_at, min(written_at) AS first, max(written_at) AS last,
        count(*) FILTER (written_at IS NULL) AS timeless
      FROM merged JOIN causes USING (branch_id, commit_id) GROUP BY branch_id, merge_id
    ), judged AS (SELECT *, timeless = 0 AND merged_at IS NOT NULL AS is_timed FROM found)
    SELECT branch_id, is_timed AND merged_at >= last AS is_sound, is_timed AND merged_at < last AS is_backdated,
      CASE WHEN is_timed AND merged_at >= last THEN merged_at - last END AS waited,
      CASE WHEN is_timed AND merged_at >= last THEN merged_at - first END AS apart
    FROM judged
    """,
    """
    CREATE VIEW branch_names AS
    SELECT branch_id, max_by(repo_name, sequence) AS repo_name, max_by(branch_name, sequence) AS branch_name
    FROM commits GROUP BY branch_id
    """,
)
"""What the queries stand on."""

_BRANCHES: Final = """
WITH acked AS (
  SELECT branch_id, commit_id, count(*) AS acked_by
  FROM (SELECT branch_id, unnest(list_distinct(acks)) AS commit_id FROM commits) GROUP BY branch_id, commit_id
), shaped AS (
  SELECT commits.*, len(list_distinct(acks)) AS acks_count, coalesce(acked_by, 0) AS acked_by
  FROM commits LEFT JOIN acked USING (branch_id, commit_id)
), by_branch AS (
  SELECT branch_id, min(repo_id) AS repo_id, count(*) AS commits,
    count(DISTINCT author) AS authors, count(DISTINCT topic) AS topics, max(rank) AS depth,
    count(*) FILTER (acks_count = 0) AS roots, count(*) FILTER (acked_by = 0) AS heads,
    count(*) FILTER (acked_by > 1) AS forks, count(*) FILTER (acks_count > 1) AS merges,
    sum(size)::BIGINT AS bytes, min(plausible(time)) AS first_time, max(plausible(time)) AS last_time
  FROM shaped GROUP BY branch_id
), widest AS (
  SELECT branch_id, max(width) AS width_max, coalesce(sum(width) FILTER (width > 1), 0)::BIGINT AS rank_shared
  FROM each_width GROUP BY branch_id
)
SELECT repo_id, branch_id, repo_name, branch_name, commits, authors, topics, depth, roots, heads, forks, merges, width_max,
  commits / (depth + 1) AS width_mean, rank_shared / commits AS concurrency, bytes, first_time, last_time
FROM by_branch JOIN widest USING (branch_id) JOIN branch_names USING (branch_id)
"""

_HEADS: Final = """
WITH acked AS (
  SELECT branch_id, commit_id, min(acked_at) AS acked_at, true AS is_acked
  FROM (
    SELECT branch_id, unnest(list_distinct(acks)) AS commit_id,
      CASE WHEN in_period(time) THEN time END AS acked_at
    FROM commits
  ) GROUP BY branch_id, commit_id
), spans AS (
  SELECT branch_id, time, CASE WHEN is_acked THEN greatest(time, coalesce(acked_at, time)) END AS until
  FROM (SELECT branch_id, commit_id, time FROM commits WHERE in_period(time))
  LEFT JOIN acked USING (branch_id, commit_id)
), steps AS (
  SELECT branch_id, bucket_of(time) AS bucket_start, 1 AS step FROM spans
  UNION ALL SELECT branch_id, bucket_of(until), -1 FROM spans WHERE until IS NOT NULL
), summed AS (SELECT branch_id, bucket_start, sum(step) AS step FROM steps GROUP BY branch_id, bucket_start)
SELECT branch_id, bucket_start,
  sum(step) OVER (PARTITION BY branch_id ORDER BY bucket_start ROWS UNBOUNDED PRECEDING)::BIGINT AS heads
FROM summed
"""

_MERGES: Final = """
SELECT branch_id, count(*) AS merges, count(*) FILTER (is_sound) AS timed, count(*) FILTER (is_backdated) AS backdated,
  quantile_disc(waited, 0.5) AS waited_p50, quantile_disc(waited, 0.9) AS waited_p90, max(waited) AS waited_max,
  quantile_disc(apart, 0.5) AS apart_p50, quantile_disc(apart, 0.9) AS apart_p90, max(apart) AS apart_max
FROM each_merge GROUP BY branch_id
"""

_QUERIES: Final[Mapping[str, str]] = {
    "branches": _BRANCHES,
    "widths": "FROM each_width",
    "authors": """
        SELECT author, count(*) AS commits, count(DISTINCT branch_id) AS branches,
          count(*) FILTER (is_merge(acks)) AS merges, sum(size)::BIGINT AS bytes,
          min(plausible(time)) AS first_time, max(plausible(time)) AS last_time
        FROM commits GROUP BY author""",
    "merges": _MERGES,
    "feeds": """
        SELECT branch_id, author, count(*) AS commits, count(*) FILTER (is_merge(acks)) AS merges,
          sum(size)::BIGINT AS bytes, min(rank) AS first_rank, max(rank) AS last_rank,
          min(plausible(time)) AS first_time, max(plausible(time)) AS last_time
        FROM commits GROUP BY branch_id, author""",
    "kinds": """
        SELECT repo_id, body_kind, count(*) AS commits, sum(size)::BIGINT AS bytes
        FROM commits GROUP BY repo_id, body_kind""",
    "activity": """
        SELECT author, CASE WHEN in_period(time) THEN bucket_of(time) END AS bucket_start, count(*) AS commits
        FROM commits GROUP BY author, bucket_start""",
    "growth": """
        SELECT branch_id, CASE WHEN in_period(time) THEN bucket_of(time) END AS bucket_start, count(*) AS commits
        FROM commits GROUP BY branch_id, bucket_start""",
    "heads": _HEADS,
}
_NAMED: Final = ("widths", "merges", "feeds", "growth", "heads")
"""Tables that get the names of branches after `branch_id`; `branches` has them by itself."""


def _with_names(query: str) -> str:
    return f"""
        SELECT branch_id, repo_name, branch_name, counted.* EXCLUDE (branch_id)
        FROM ({query}) AS counted LEFT JOIN branch_names USING (branch_id)"""  # noqa: S608  # queries of this file


TABLES: Final[Mapping[str, str]] = {
    name: _with_names(query) if name in _NAMED else query for name, query in _QUERIES.items()
}
"""Table -> its query, in the order in which an analysis writes them."""
