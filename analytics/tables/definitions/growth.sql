-- Rows: branch and time bucket
-- Commits over time. A bucket is as wide as the period around the bulk of the commits demands. A commit that is shown outside
-- of the period counts from its receipt.
-- Period: ordered.shown_at
--
-- branch_id binary: the branch
-- bucket_start bigint (ms since 1970-01-01 UTC): null: commits dated and received outside of the period
-- commits bigint: commits
SELECT
    branch_id,
    CASE
        WHEN shown_at BETWEEN $start AND $end THEN shown_at - shown_at % $bucket
        WHEN received_at BETWEEN $start AND $end THEN received_at - received_at % $bucket
    END AS bucket_start,
    count(*) AS commits
FROM ordered
GROUP BY branch_id, bucket_start
