-- Rows: commit
-- The canonical order of every branch, computed from parents alone.
--
-- branch_id binary: the branch
-- commit_id binary: the commit
-- passed bigint: checkpoints before it
-- rank bigint: longest path to the root
-- position bigint: index in the timeline
-- fault string: null, or why it has no place
SELECT branch_id, commit_id, passed, rank, position, fault
FROM placed
