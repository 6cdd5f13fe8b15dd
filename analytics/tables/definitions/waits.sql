-- Rows: branch and length
-- How many merges took how long: the distribution of what `merges` has percentiles of. Merges that are not timed are left out.
--
-- branch_id binary: the branch
-- waited_until bigint (ms): from the last parent to the merge at most; null: over 365 days
-- merges bigint: merges that took so long, and longer than the next shorter length
SELECT
    branch_id,
    CASE $waits END AS waited_until,
    count(*) AS merges
FROM ordered
WHERE acks_count > 1 AND plausible(time) >= plausible(causes_until) AND plausible(causes_from) IS NOT NULL
GROUP BY branch_id, waited_until
