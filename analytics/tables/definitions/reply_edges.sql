-- Rows: author, answered author, kind of tangle, repo and month
-- Edges of the graph of answers; its nodes are `reply_nodes`. networkx and Gephi read it as it is. For
-- GraphFrames rename `source` to `src` and `target` to `dst`. Edits, deletions and operations on members are no answers.
-- Of: tangles
--
-- source binary: who answers, as in `feeds`
-- target binary: who is answered
-- kind string: reply, or an application's
-- repo_id binary: the repo
-- month_start bigint (ms since 1970-01-01 UTC): start of the month in UTC; null: the answer states no plausible time
-- weight bigint: answers
-- latency_p50 bigint (ms): median time to the answer
-- latency_p90 bigint (ms): of nine in ten, at most
SELECT
    author AS source,
    answered AS target,
    kind,
    repo_id,
    month_of(plausible(time)) AS month_start,
    count(*) AS weight,
    percentile_approx(latency, 0.5, $accuracy) AS latency_p50,
    percentile_approx(latency, 0.9, $accuracy) AS latency_p90
FROM answers
WHERE kind NOT IN ('edit', 'delete', 'epoch', 'members', 'feed', 'group')
GROUP BY author, answered, kind, repo_id, month_start
