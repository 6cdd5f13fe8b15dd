-- Rows: branch and node
-- How each branch came to each node. A delay is the time from the first node that received a commit to this one. What another
-- had before this one had anything of the branch is no delay: it was there before the node joined.
--
-- branch_id binary: the branch
-- node string: the node
-- commits bigint: commits (all) that it has
-- lacking bigint: commits that another node has
-- first_here bigint: commits that no other node had before
-- only_here bigint: commits that no other node has
-- delay_p50 bigint (ms): median delay of what another node had first
-- delay_p90 bigint (ms): of nine in ten, at most
-- delay_max bigint (ms): the longest
WITH totals AS (
    SELECT
        branch_id,
        count(*) FILTER (WHERE copies = 1)
            + count(DISTINCT CASE WHEN copies > 1 THEN commit_id END) AS total
    FROM compared
    GROUP BY branch_id
), joined AS (
    SELECT branch_id, node, min(received_at) AS joined_at
    FROM compared
    GROUP BY branch_id, node
), delays AS (
    SELECT
        branch_id,
        node,
        copies,
        received_at = first_received AS is_first,
        CASE
            WHEN received_at > first_received AND first_received >= joined_at THEN received_at - first_received
        END AS delay
    FROM compared
    JOIN joined USING (branch_id, node)
), counted AS (
    SELECT
        branch_id,
        node,
        count(*) AS commits,
        count(*) FILTER (WHERE is_first) AS first_here,
        count(*) FILTER (WHERE copies = 1) AS only_here,
        percentile_approx(delay, 0.5, $accuracy) AS delay_p50,
        percentile_approx(delay, 0.9, $accuracy) AS delay_p90,
        max(delay) AS delay_max
    FROM delays
    GROUP BY branch_id, node
)
SELECT
    branch_id,
    node,
    commits,
    total - commits AS lacking,
    first_here,
    only_here,
    delay_p50,
    delay_p90,
    delay_max
FROM counted
JOIN totals USING (branch_id)
