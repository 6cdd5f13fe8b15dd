-- Rows: export, commit of a root branch and member
-- What exports state of members, with the place of the commit: null where it has none, or is of another kind.
WITH places AS (
    SELECT repo_id, commit_id, body_kind AS operation, position, time, author
    FROM ordered
    WHERE branch_id = repo_id
)
SELECT
    source,
    created_at,
    sequence,
    commit_id,
    repo_id,
    operation,
    member,
    permission,
    epoch,
    reason,
    sealed_to,
    counts,
    position,
    time,
    author
FROM memberships_by_export
LEFT JOIN places USING (repo_id, commit_id, operation)
