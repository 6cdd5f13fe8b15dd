-- Rows: commit and node
-- What each node says of each commit, and when it received it. Of what a node tells several times the row of the least
-- sequence stays; what it calls void in one export is void there.
-- Kept: yes
WITH told AS (
    SELECT
        node,
        commit_id,
        repo_id,
        branch_id,
        author,
        size,
        file_bytes,
        received_at,
        row_number() OVER (
            PARTITION BY node, commit_id
            ORDER BY sequence, repo_id, branch_id, author, size, coalesce(file_bytes, 0), received_at
        ) AS telling
    FROM commits_by_node
), marked AS (
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
FROM told
LEFT JOIN marked USING (node, commit_id)
WHERE telling = 1
