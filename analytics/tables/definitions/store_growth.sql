-- Rows: node and time bucket
-- What each node received over time, by its own clock.
-- Period: receipts.received_at
--
-- node string: the node
-- bucket_start bigint (ms since 1970-01-01 UTC): start of the bucket
-- commits bigint: commits received
-- bytes bigint (bytes): their size
-- bytes_in_all bigint (bytes): size of all that was received by its end
-- file_bytes bigint (bytes): size of the files that these commits add, as their authors say (a PiB at most), fetched or not
WITH received AS (
    SELECT node, received_at - received_at % $bucket AS bucket_start, count(*) AS commits, sum(size) AS bytes,
        -- As real numbers, whose sum is never too large: authors may state TiB in millions of commits.
        least(sum(CAST(coalesce(file_bytes, 0) AS double)), $sum_max) AS file_bytes
    FROM receipts
    WHERE plausible(received_at) IS NOT NULL
    GROUP BY node, bucket_start
)
SELECT
    node,
    bucket_start,
    commits,
    bytes,
    sum(bytes) OVER (PARTITION BY node ORDER BY bucket_start ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes_in_all,
    file_bytes
FROM received
