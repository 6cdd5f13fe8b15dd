-- Rows: branch and node
-- The edits by which a timeline came about. Every commit was inserted once when it was accepted.
--
-- branch_id binary: the branch
-- node string: the node
-- commits bigint: commits (all), each inserted once
-- returns bigint: inserts of what had left
-- moves bigint: moves
-- removes bigint: removals
-- edits_per_commit double: all of these by commit
WITH told AS (
    SELECT node, sequence, min(branch_id) AS branch_id, min(kind) AS kind
    FROM edits_by_node
    GROUP BY node, sequence
), edit_kinds AS (
    SELECT
        branch_id,
        node,
        count(*) FILTER (WHERE kind = 'insert') AS returns,
        count(*) FILTER (WHERE kind = 'move') AS moves,
        count(*) FILTER (WHERE kind = 'remove') AS removes
    FROM told
    GROUP BY branch_id, node
), inserted AS (
    SELECT branch_id, node, count(*) AS commits
    FROM receipts
    GROUP BY branch_id, node
), counted AS (
    SELECT
        branch_id,
        node,
        commits,
        coalesce(returns, 0) AS returns,
        coalesce(moves, 0) AS moves,
        coalesce(removes, 0) AS removes
    FROM inserted
    LEFT JOIN edit_kinds USING (branch_id, node)
)
SELECT
    branch_id,
    node,
    commits,
    returns,
    moves,
    removes,
    (commits + returns + moves + removes) / commits AS edits_per_commit
FROM counted
