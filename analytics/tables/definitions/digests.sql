-- Rows: branch with a commit that has a place
-- BLAKE3 over the ids of each branch's commits in their order, as each node computes it of its own timeline. Two nodes that
-- have the same commits have the same digest.
--
-- branch_id binary: the branch
-- commits bigint: commits that have a place
-- digest string: in hex
SELECT branch_id, position + 1 AS commits, digest
FROM placed
WHERE digest IS NOT NULL
