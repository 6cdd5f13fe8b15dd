-- Rows: branch and node that lacks commits of it
-- What each node lacks of a branch that another of these nodes has, and since when. Nodes without any
-- commit of the branch are not listed. An export does not hold what peers have: one node's alone gives no row.
--
-- branch_id binary: the branch
-- node string: the node that lags
-- lacking bigint: commits (all) that it lacks
-- since bigint (ms since 1970-01-01 UTC): first receipt of the earliest of these by another node
WITH lagging AS (
    SELECT branch_id, node
    FROM replication
    WHERE lacking > 0
), held AS (
    -- Of few branches mostly, and of none where one node's export is read alone.
    SELECT branch_id, node, commit_id, first_received
    FROM compared
    SEMI JOIN lagging USING (branch_id)
), known AS (
    SELECT branch_id, commit_id, min(plausible(first_received)) AS first_received
    FROM held
    GROUP BY branch_id, commit_id
), lacked AS (
    SELECT branch_id, node, commit_id, first_received
    FROM lagging
    JOIN known USING (branch_id)
    ANTI JOIN held USING (branch_id, node, commit_id)
)
SELECT branch_id, node, count(*) AS lacking, min(first_received) AS since
FROM lacked
GROUP BY branch_id, node
