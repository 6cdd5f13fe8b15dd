-- Rows: commit and node
-- Of one export the commits are the receipts.
SELECT node, commit_id, repo_id, branch_id, author, size, file_bytes, received_at, is_void
FROM commits_with_node
