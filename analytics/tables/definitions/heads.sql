-- Rows: branch and time bucket with a change
-- How many heads a branch has over time. A commit is a head from when the node shows it to when it shows the first that
-- follows it: an author's clock leaves no branch without a head, and adds none.
-- Period: ordered.shown_at
--
-- branch_id binary: the branch
-- bucket_start bigint (ms since 1970-01-01 UTC): start of the bucket
-- heads bigint: heads at its end
WITH spans AS (
    -- What is shown outside of the period counts from its border: no commit then is before its causes either.
    SELECT
        branch_id,
        least(greatest(shown_at, $start), $end) AS time,
        least(greatest(shown_at, acked_from, $start), $end) AS until,
        acked_count > 0 AS is_acked
    FROM ordered
), steps AS (
    SELECT branch_id, time - time % $bucket AS bucket_start, 1 AS step
    FROM spans
    UNION ALL
    SELECT branch_id, until - until % $bucket AS bucket_start, -1 AS step
    FROM spans
    WHERE is_acked
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
