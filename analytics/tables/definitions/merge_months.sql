-- Rows: repo and month with merges
-- How long merges took, month by month: as `merges`, by the month of the merge.
--
-- repo_id binary: the repo
-- month_start bigint (ms since 1970-01-01 UTC): start of the month in UTC
-- merges bigint: commits with several parents
-- waited_p50 bigint (ms): median time from the last parent to the merge
-- waited_p90 bigint (ms): of nine in ten, at most
SELECT
    repo_id,
    month_of(plausible(time)) AS month_start,
    count(*) AS merges,
    percentile_approx(
        CASE WHEN time >= plausible(causes_until) THEN time - causes_until END, 0.5, $accuracy
    ) AS waited_p50,
    percentile_approx(
        CASE WHEN time >= plausible(causes_until) THEN time - causes_until END, 0.9, $accuracy
    ) AS waited_p90
FROM ordered
WHERE acks_count > 1 AND plausible(time) IS NOT NULL
GROUP BY repo_id, month_start
