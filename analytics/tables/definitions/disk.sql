-- Rows: repo and author
-- What each author's commits take, and the files that they add. Authors as in `feeds`; void commits are stored too.
--
-- repo_id binary: the repo
-- author binary: the author
-- commits bigint: commits (all)
-- bytes bigint (bytes): size of the commits
-- files bigint: files that they add
-- file_bytes bigint (bytes): their sizes, as the author says (a PiB at most), fetched or not
SELECT
    repo_id,
    coalesce(source_author, author) AS author,
    count(*) AS commits,
    sum(size) AS bytes,
    least(sum(CAST(coalesce(files, 0) AS double)), $sum_max) AS files,
    least(sum(CAST(coalesce(file_bytes, 0) AS double)), $sum_max) AS file_bytes
FROM commits
GROUP BY repo_id, coalesce(source_author, author)
