-- Rows: commit and node
-- Of one export no commit has another copy to be looked for.
SELECT node, branch_id, commit_id, received_at, received_at AS first_received, node AS first_node, 1 AS copies
FROM receipts
