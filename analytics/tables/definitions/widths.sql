-- Rows: branch and rank
-- How many commits share each rank: these were written without knowing of one another.
--
-- branch_id binary: the branch
-- rank bigint: longest path to the root
-- width bigint: commits that share it
SELECT branch_id, rank, count(*) AS width
FROM ordered
GROUP BY branch_id, rank
