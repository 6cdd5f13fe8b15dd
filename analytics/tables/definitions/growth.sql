-- Rows: branch and time bucket
-- Commits over time. A bucket is as wide as the period around the bulk of the commits demands.
-- Period: ordered.time
--
-- branch_id binary: the branch
-- bucket_start bigint (ms since 1970-01-01 UTC): null: commits outside of the period
-- commits bigint: commits
SELECT
    branch_id,
    CASE WHEN time BETWEEN $start AND $end THEN time - time % $bucket END AS bucket_start,
    count(*) AS commits
FROM ordered
GROUP BY branch_id, bucket_start
