-- Rows: author and time bucket
-- Commits of each author over time, over all branches.
-- Period: ordered.shown_at
--
-- author binary: the author, as in `feeds`
-- bucket_start bigint (ms since 1970-01-01 UTC): null as in `growth`
-- commits bigint: commits
SELECT
    coalesce(source_author, author) AS author,
    CASE
        WHEN shown_at BETWEEN $start AND $end THEN shown_at - shown_at % $bucket
        WHEN received_at BETWEEN $start AND $end THEN received_at - received_at % $bucket
    END AS bucket_start,
    count(*) AS commits
FROM ordered
GROUP BY coalesce(source_author, author), bucket_start
