-- Rows: node that keeps topics for others, and time bucket
-- Accepted publications over time, kept or not, by the relay's clock.
-- Period: relayed.received_at
-- Of: relay_commits, relay_topics
--
-- node string: the node
-- bucket_start bigint (ms since 1970-01-01 UTC): start of the bucket
-- commits bigint: publications
-- bytes bigint (bytes): their size
-- bytes_in_all bigint (bytes): size of all that was taken by its end
WITH received AS (
    SELECT node, received_at - received_at % $bucket AS bucket_start, count(*) AS commits, sum(size) AS bytes
    FROM relayed
    WHERE plausible(received_at) IS NOT NULL
    GROUP BY node, bucket_start
)
SELECT
    node,
    bucket_start,
    commits,
    bytes,
    sum(bytes) OVER (PARTITION BY node ORDER BY bucket_start ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes_in_all
FROM received
