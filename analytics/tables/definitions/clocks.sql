-- Rows: clock that went back, of a node, or of an author in a branch
-- Whose clock jumped or was set: a node received later commits at earlier times, or an author dated a commit before their
-- one before it. Steps of less than a second are left out, and imported or carried commits, whose times came with them.
--
-- node string: the node whose clock it is; null: an author's
-- branch_id binary: the branch; null of nodes
-- author binary: the author; null of nodes
-- steps bigint: times that it went back
-- back_max bigint (ms): the farthest
-- first_at bigint (ms since 1970-01-01 UTC): earliest time that it went back to
WITH fed AS (
    SELECT branch_id, author, feed_sequence, time, hash_of(branch_id, author, CAST(0 AS bigint)) AS feed_hash
    FROM commits
    WHERE feed_sequence >= 1 AND body_kind NOT IN ('imported', 'carried') AND plausible(time) IS NOT NULL
), hashed AS (
    -- Nearly no feed has one: they are sorted out by eight bytes each, and what is left is looked at whole.
    SELECT feed_hash, time, lag(time) OVER (PARTITION BY feed_hash ORDER BY feed_sequence, time) AS before
    FROM fed
), suspects AS (
    SELECT DISTINCT feed_hash
    FROM hashed
    WHERE before - time >= $clock_step
), stated AS (
    SELECT
        branch_id,
        author,
        time,
        lag(time) OVER (PARTITION BY branch_id, author ORDER BY feed_sequence, time) AS before
    FROM fed
    SEMI JOIN suspects USING (feed_hash)
), received AS (
    -- In parts, as one task could not sort all that a node has.
    SELECT node, sequence, sequence - sequence % 100000 AS part, received_at
    FROM commits_by_node
    WHERE plausible(received_at) IS NOT NULL
), ends AS (
    SELECT
        node,
        part,
        min_by(received_at, (sequence, received_at)) AS first_at,
        max_by(received_at, (sequence, received_at)) AS last_at
    FROM received
    GROUP BY node, part
), read_off AS (
    SELECT
        node,
        received_at AS time,
        lag(received_at) OVER (PARTITION BY node, part ORDER BY sequence, received_at) AS before
    FROM received
    UNION ALL
    SELECT node, first_at AS time, lag(last_at) OVER (PARTITION BY node ORDER BY part) AS before
    FROM ends
), steps AS (
    SELECT CAST(NULL AS string) AS node, branch_id, author, time, before
    FROM stated
    UNION ALL
    SELECT node, CAST(NULL AS binary) AS branch_id, CAST(NULL AS binary) AS author, time, before
    FROM read_off
)
SELECT
    node,
    branch_id,
    author,
    count(*) AS steps,
    max(before - time) AS back_max,
    min(time) AS first_at
FROM steps
WHERE before - time >= $clock_step
GROUP BY node, branch_id, author
