-- Rows: commit of a root branch and member
-- What the export that speaks for a repo states. Of rows that contradict each other the first one stays. A row is read
-- if its commit has a place, and of a member says what such a commit does.
-- Kept: yes
WITH numbered AS (
    SELECT
        commit_id,
        repo_id,
        operation,
        member,
        permission,
        reason,
        sealed_to,
        counts,
        position,
        time,
        author,
        row_number() OVER (
            PARTITION BY repo_id, commit_id, member
            ORDER BY
                sequence NULLS FIRST,
                operation NULLS FIRST,
                permission NULLS FIRST,
                epoch NULLS FIRST,
                reason NULLS FIRST,
                sealed_to NULLS FIRST,
                counts NULLS FIRST,
                position NULLS FIRST,
                time NULLS FIRST,
                author NULLS FIRST
        ) AS telling
    FROM stated_operations
    SEMI JOIN speakers USING (repo_id, source)
)
SELECT
    commit_id,
    repo_id,
    operation,
    member,
    permission,
    reason,
    sealed_to,
    counts,
    position,
    time,
    author,
    position IS NOT NULL AND CASE
        WHEN operation IN ('init', 'grant', 'device-grant', 'join', 'remove') THEN coalesce(
            member IS NOT NULL
            AND (permission IN ($permissions) OR (permission IS NULL AND operation = 'remove')),
            false
        )
        ELSE true
    END AS is_read
FROM numbered
WHERE telling = 1
