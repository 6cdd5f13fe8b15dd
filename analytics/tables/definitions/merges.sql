-- Rows: branch with merges
-- How long merges took. A merge that lacks a plausible time, or whose parents do or are all void, is not timed.
--
-- branch_id binary: the branch
-- merges bigint: commits with several parents
-- timed bigint: merges with a latency
-- backdated bigint: merges dated before a parent
-- waited_p50 bigint (ms): median time from the last parent to the merge
-- waited_p90 bigint (ms): of nine in ten, at most
-- waited_max bigint (ms): the longest
-- apart_p50 bigint (ms): median time from the first parent to the merge
-- apart_p90 bigint (ms): of nine in ten, at most
-- apart_max bigint (ms): the longest
WITH timed_merges AS (
    SELECT
        branch_id,
        plausible(time) AS merged_at,
        plausible(causes_from) AS first_cause,
        plausible(causes_until) AS last_cause
    FROM ordered
    WHERE acks_count > 1
), judged AS (
    SELECT
        branch_id,
        first_cause IS NOT NULL AND merged_at < last_cause AS is_backdated,
        CASE WHEN first_cause IS NOT NULL AND merged_at >= last_cause THEN merged_at - last_cause END AS waited,
        CASE WHEN merged_at >= last_cause THEN merged_at - first_cause END AS apart
    FROM timed_merges
)
SELECT
    branch_id,
    count(*) AS merges,
    count(waited) AS timed,
    count(*) FILTER (WHERE is_backdated) AS backdated,
    percentile_approx(waited, 0.5, $accuracy) AS waited_p50,
    percentile_approx(waited, 0.9, $accuracy) AS waited_p90,
    max(waited) AS waited_max,
    percentile_approx(apart, 0.5, $accuracy) AS apart_p50,
    percentile_approx(apart, 0.9, $accuracy) AS apart_p90,
    max(apart) AS apart_max
FROM judged
GROUP BY branch_id
