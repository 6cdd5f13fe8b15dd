-- Rows: branch with several heads
-- Heads that nothing has merged, and how old they are by the times that authors state.
--
-- branch_id binary: the branch
-- heads bigint: commits that nothing follows
-- oldest bigint (ms since 1970-01-01 UTC): stated time of the oldest
-- newest bigint (ms since 1970-01-01 UTC): stated time of the newest
SELECT branch_id, count(*) AS heads, min(plausible(time)) AS oldest, max(plausible(time)) AS newest
FROM ordered
WHERE acked_count = 0
GROUP BY branch_id
HAVING count(*) > 1
