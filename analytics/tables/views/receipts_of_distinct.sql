-- Rows: commit and node
-- Where no node tells a commit twice, each row is a receipt.
-- Kept: yes
WITH marked AS (
    SELECT DISTINCT node, commit_id, true AS is_marked
    FROM voids_by_node
)
SELECT
    node,
    commit_id,
    repo_id,
    branch_id,
    author,
    size,
    file_bytes,
    received_at,
    coalesce(is_marked, false) AS is_void
FROM commits_by_node
LEFT JOIN marked USING (node, commit_id)
