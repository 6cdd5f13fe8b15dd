-- Rows: pair of nodes, and month
-- How long commits took from the first of these nodes that had them to another, month by month, each by its own clock. What
-- was there before a node had anything of the branch is left out, as in `replication`. One node's export gives no row.
--
-- first_node string: the node that had them first
-- node string: the node that had them later
-- month_start bigint (ms since 1970-01-01 UTC): start of the month in UTC in which the first had them
-- commits bigint: commits
-- delay_p50 bigint (ms): median delay
-- delay_p90 bigint (ms): of nine in ten, at most
WITH joined AS (
    SELECT branch_id, node, min(received_at) AS joined_at
    FROM compared
    GROUP BY branch_id, node
)
SELECT
    first_node,
    node,
    month_of(plausible(first_received)) AS month_start,
    count(*) AS commits,
    percentile_approx(received_at - first_received, 0.5, $accuracy) AS delay_p50,
    percentile_approx(received_at - first_received, 0.9, $accuracy) AS delay_p90
FROM compared
JOIN joined USING (branch_id, node)
WHERE received_at > first_received AND first_received >= joined_at AND plausible(first_received) IS NOT NULL
GROUP BY first_node, node, month_start
