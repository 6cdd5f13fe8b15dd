-- Rows: repo and member
-- Members as the export that speaks for a repo states them.
WITH numbered AS (
    SELECT
        repo_id,
        member,
        permission,
        person,
        row_number() OVER (PARTITION BY repo_id, member ORDER BY permission, person NULLS FIRST) AS telling
    FROM members_by_export
    SEMI JOIN speakers USING (repo_id, source)
    WHERE permission IN ($permissions)
)
SELECT repo_id, member, permission, person
FROM numbered
WHERE telling = 1
