-- Rows: commit and node
-- Receipts beside the first one of each commit.
WITH first_ones AS (
    SELECT
        commit_id,
        min(received_at) AS first_received,
        min_by(node, (received_at, node)) AS first_node,
        count(*) AS copies
    FROM receipts
    GROUP BY commit_id
)
SELECT node, branch_id, commit_id, received_at, first_received, first_node, copies
FROM receipts
JOIN first_ones USING (commit_id)
