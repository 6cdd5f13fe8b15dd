-- Rows: branch
-- How many commits have a place in the order, why others have none, and how many parents are absent.
--
-- branch_id binary: the branch
-- commits bigint: all commits
-- placed bigint: with a place
-- missing_cause bigint: with an absent parent
-- behind_a_missing_cause bigint: with an absent ancestor
-- cycle bigint: on a cycle, or behind one
-- void bigint: void
-- causes_missing bigint: distinct absent parents
WITH by_fault AS (
    SELECT
        branch_id,
        count(*) AS commits,
        count(*) FILTER (WHERE fault IS NULL) AS placed,
        count(*) FILTER (WHERE fault = 'missing cause') AS missing_cause,
        count(*) FILTER (WHERE fault = 'behind a missing cause') AS behind_a_missing_cause,
        count(*) FILTER (WHERE fault = 'cycle') AS cycle,
        count(*) FILTER (WHERE fault = 'void') AS void
    FROM linearization
    GROUP BY branch_id
)
SELECT
    branch_id,
    commits,
    placed,
    missing_cause,
    behind_a_missing_cause,
    cycle,
    void,
    coalesce(causes_missing, 0) AS causes_missing
FROM by_fault
LEFT JOIN absent_causes USING (branch_id)
