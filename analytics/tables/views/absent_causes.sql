-- Rows: branch with an absent parent
-- Distinct absent parents. One that several commits name is missing once.
WITH named AS (
    SELECT DISTINCT branch_id, explode(acks) AS commit_id
    FROM commits
)
SELECT branch_id, count(*) AS causes_missing
FROM named
ANTI JOIN commits USING (commit_id, branch_id)
GROUP BY branch_id
