-- Rows: branch and author
-- What each author did in each branch. Of imported commits, which one user signs, authors are those where they came from.
--
-- branch_id binary: the branch
-- author binary: the author; of imported commits `source_author`, a hash of their author's name
-- commits bigint: commits
-- merges bigint: commits with several parents
-- bytes bigint (bytes): size of the commits
-- first_rank bigint: least rank
-- last_rank bigint: largest rank
-- first_time bigint (ms since 1970-01-01 UTC): first stated time
-- last_time bigint (ms since 1970-01-01 UTC): latest `shown_at`
SELECT
    branch_id,
    coalesce(source_author, author) AS author,
    count(*) AS commits,
    count(*) FILTER (WHERE acks_count > 1) AS merges,
    sum(size) AS bytes,
    min(rank) AS first_rank,
    max(rank) AS last_rank,
    min(plausible(time)) AS first_time,
    max(plausible(shown_at)) AS last_time
FROM ordered
GROUP BY branch_id, coalesce(source_author, author)
