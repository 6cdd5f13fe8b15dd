-- Rows: branch and author with a feed place used twice
-- An author who keeps one key in one place never uses a place twice. Void commits, and those without a place in the
-- order, count too: a fork is evidence.
--
-- branch_id binary: the branch
-- author binary: the author
-- places bigint: places that several commits claim
-- commits bigint: commits (all) there
-- first_place bigint: the first such place
WITH told AS (
    SELECT branch_id, author, feed_sequence, hash_of(branch_id, author, feed_sequence) AS place_hash
    FROM commits
    WHERE feed_sequence >= 1
), suspects AS (
    -- Nearly no place is used twice: they are sorted out by eight bytes each, and what is left is looked at whole.
    SELECT place_hash
    FROM told
    GROUP BY place_hash
    HAVING count(*) > 1
), forked AS (
    SELECT branch_id, author, feed_sequence, count(*) AS commits
    FROM told
    SEMI JOIN suspects USING (place_hash)
    GROUP BY branch_id, author, feed_sequence
    HAVING count(*) > 1
)
SELECT
    branch_id,
    author,
    count(*) AS places,
    sum(commits) AS commits,
    min(feed_sequence) AS first_place
FROM forked
GROUP BY branch_id, author
