-- Rows: branch
-- What each branch and its repo are called, by the last commit. Every table of branches has these names.
--
-- repo_id binary: its repo
-- branch_id binary: the branch
-- repo_name string: the repo's name; null where no export tells it: with pseudonyms, or before schema 6
-- branch_name string: the branch's name; each repo has a `root`, and most a `main`
WITH stated AS (
    -- Ids and names cannot be aggregated without sorting, so few rows are left before.
    SELECT branch_id, repo_id, coalesce(repo_name, '') AS repo_name, branch_name, max(sequence) AS sequence
    FROM commits
    GROUP BY branch_id, repo_id, coalesce(repo_name, ''), branch_name
)
SELECT
    min(repo_id) AS repo_id,
    branch_id,
    nullif(max_by(repo_name, (CASE WHEN repo_name = '' THEN 0 ELSE 1 END, sequence, repo_name)), '') AS repo_name,
    max_by(branch_name, (sequence, branch_name)) AS branch_name
FROM stated
GROUP BY branch_id
