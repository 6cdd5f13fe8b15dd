-- Rows: repo
-- Of several exports that tell of one repo, the one that has most of its operations speaks for it. What is invented
-- lets no export speak.
WITH counted AS (
    SELECT
        repo_id,
        created_at,
        source,
        count(DISTINCT CASE WHEN position IS NOT NULL THEN commit_id END) AS operation_count
    FROM stated_operations
    GROUP BY repo_id, created_at, source
    UNION ALL
    SELECT DISTINCT repo_id, created_at, source, 0 AS operation_count
    FROM members_by_export
)
SELECT repo_id, max_by(source, (operation_count, created_at, source)) AS source
FROM counted
GROUP BY repo_id
