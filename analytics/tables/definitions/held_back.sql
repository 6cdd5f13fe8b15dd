-- Rows: node, branch, state and reason
-- Commits without a place at a node, by its latest export: those that wait, and for what, and those that it refused, and
-- why. A node keeps a bounded number of what it refused.
-- Of: pending, rejections
--
-- node string: the node
-- branch_id binary: the branch; null: the node cannot tell
-- state string: waiting or refused
-- reason string: what they wait for, or the code of the broken rule
-- commits bigint: commits
-- bytes bigint (bytes): size of those that wait
-- oldest_at bigint (ms since 1970-01-01 UTC): earliest arrival of those that wait, by the node's clock
SELECT
    node,
    branch_id,
    'waiting' AS state,
    reason,
    count(*) AS commits,
    least(sum(CAST(size AS double)), $sum_max) AS bytes,
    min(plausible(arrived_at)) AS oldest_at
FROM pending_by_node
GROUP BY node, branch_id, reason
UNION ALL
SELECT
    node,
    branch_id,
    'refused' AS state,
    code AS reason,
    count(*) AS commits,
    CAST(NULL AS double) AS bytes,
    CAST(NULL AS bigint) AS oldest_at
FROM rejections_by_node
GROUP BY node, branch_id, code
