-- Rows: author
-- What each author did over all branches.
--
-- author binary: the author, as in `feeds`
-- commits bigint: commits
-- branches bigint: branches written to
-- merges bigint: commits with several parents
-- bytes bigint (bytes): size of the commits
-- first_time bigint (ms since 1970-01-01 UTC): first stated time
-- last_time bigint (ms since 1970-01-01 UTC): latest `shown_at`
SELECT
    author,
    sum(commits) AS commits,
    count(*) AS branches,
    sum(merges) AS merges,
    sum(bytes) AS bytes,
    min(first_time) AS first_time,
    max(last_time) AS last_time
FROM feeds
GROUP BY author
