-- Rows: branch and time bucket with a change
-- How many heads a branch has over time. A commit is a head from its own time to that of the first that follows it.
-- Commits dated outside of the period are not counted; what such commits alone follow is no head.
-- Period: ordered.time
--
-- branch_id binary: the branch
-- bucket_start bigint (ms since 1970-01-01 UTC): start of the bucket
-- heads bigint: heads at its end
WITH spans AS (
    -- An author's clock may run before that of its cause: the cause then was a head for no time.
    SELECT
        branch_id,
        time,
        CASE
            WHEN size(acked_at) > 0 THEN greatest(time, coalesce(first_between(acked_at, $start, $end), time))
        END AS until
    FROM ordered
    WHERE time BETWEEN $start AND $end
), steps AS (
    SELECT branch_id, time - time % $bucket AS bucket_start, 1 AS step
    FROM spans
    UNION ALL
    SELECT branch_id, until - until % $bucket AS bucket_start, -1 AS step
    FROM spans
    WHERE until IS NOT NULL
), changes AS (
    SELECT branch_id, bucket_start, sum(step) AS step
    FROM steps
    GROUP BY branch_id, bucket_start
)
SELECT
    branch_id,
    bucket_start,
    sum(step) OVER (PARTITION BY branch_id ORDER BY bucket_start ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS heads
FROM changes
