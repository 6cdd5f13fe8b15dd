-- Rows: repo and `body_kind`
-- How many commits are of each kind, and how large they are.
--
-- repo_id binary: the repo
-- body_kind string: kind of the body
-- commits bigint: commits
-- bytes bigint (bytes): size of the commits
SELECT repo_id, body_kind, count(*) AS commits, sum(size) AS bytes
FROM ordered
GROUP BY repo_id, body_kind
