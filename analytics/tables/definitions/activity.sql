-- Rows: author and time bucket
-- Commits of each author over time, over all branches.
-- Period: ordered.time
--
-- author binary: the author, as in `feeds`
-- bucket_start bigint (ms since 1970-01-01 UTC): null as in `growth`
-- commits bigint: commits
SELECT
    coalesce(source_author, author) AS author,
    CASE WHEN time BETWEEN $start AND $end THEN time - time % $bucket END AS bucket_start,
    count(*) AS commits
FROM ordered
GROUP BY coalesce(source_author, author), bucket_start
