-- Rows: branch
-- What each branch and its repo are called: now, or by the last commit where no export tells that. Every table of branches
-- has these names.
--
-- repo_id binary: its repo
-- branch_id binary: the branch
-- repo_name string: the repo's name; null where no export tells it: with pseudonyms
-- branch_name string: the branch's name; each repo has a `root`, and most a `main`
WITH stated AS (
    -- Ids and names cannot be aggregated without sorting, so few rows are left before.
    SELECT branch_id, repo_id, coalesce(repo_name, '') AS repo_name, branch_name, max(sequence) AS sequence
    FROM commits
    GROUP BY branch_id, repo_id, coalesce(repo_name, ''), branch_name
), by_commits AS (
    SELECT
        min(repo_id) AS repo_id,
        branch_id,
        max_by(repo_name, (CASE WHEN repo_name = '' THEN 0 ELSE 1 END, sequence, repo_name)) AS repo_name,
        max_by(branch_name, (sequence, branch_name)) AS branch_name
    FROM stated
    GROUP BY branch_id
), told AS (
    SELECT branch_id, coalesce(repo_name, '') AS repo_name, branch_name, created_at, source
    FROM names_by_export
), named_now AS (
    SELECT
        branch_id,
        max_by(repo_name, (CASE WHEN repo_name = '' THEN 0 ELSE 1 END, created_at, source, repo_name)) AS repo_now,
        max_by(branch_name, (created_at, source, branch_name)) AS branch_now
    FROM told
    GROUP BY branch_id
)
SELECT
    repo_id,
    branch_id,
    nullif(coalesce(nullif(repo_now, ''), repo_name), '') AS repo_name,
    coalesce(branch_now, branch_name) AS branch_name
FROM by_commits
LEFT JOIN named_now USING (branch_id)
