-- Rows: branch and time bucket with a change
-- How many heads a branch has over time. A commit is a head from its own time to that of the first that follows it. One
-- dated outside of the period, or by a bucket after its receipt, counts from when it was received: else its branch would
-- have no head until another came.
-- Period: ordered.shown(time, received_at)
--
-- branch_id binary: the branch
-- bucket_start bigint (ms since 1970-01-01 UTC): start of the bucket
-- heads bigint: heads at its end
WITH odd AS (
    SELECT
        branch_id,
        commit_id,
        least(greatest(coalesce(plausible(received_at), $start), $start), $end) AS placed_at
    FROM ordered
    WHERE time NOT BETWEEN $start AND $end OR plausible(time) - plausible(received_at) > $bucket
), odd_acks AS (
    SELECT branch_id, explode(acks) AS commit_id, placed_at
    FROM commits
    JOIN odd USING (branch_id, commit_id)
), acked_by_odd AS (
    SELECT branch_id, commit_id, min(placed_at) AS acked_from
    FROM odd_acks
    GROUP BY branch_id, commit_id
), spans AS (
    -- An author's clock may run before that of its cause: the cause then was a head for no time.
    SELECT
        branch_id,
        coalesce(placed_at, time) AS time,
        greatest(coalesce(placed_at, time), least(first_between(acked_at, $start, $end), acked_from)) AS until,
        size(acked_at) > 0 AS is_acked
    FROM ordered
    LEFT JOIN odd USING (branch_id, commit_id)
    LEFT JOIN acked_by_odd USING (branch_id, commit_id)
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
