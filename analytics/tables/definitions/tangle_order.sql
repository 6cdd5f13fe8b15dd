-- Rows: tangle, and commit that has a place in it
-- The canonical order of every tangle of `tangles`, computed from what commits follow there.
-- Of: tangles, memberships
--
-- kind string: reply, edit, delete, epoch, members, feed, group, or an application's
-- root binary: the tangle's first commit
-- commit_id binary: the commit
-- rank bigint: longest path to the root; null: it has no place
-- position bigint: place in the order, from 0; likewise
-- fault string: why it has no place: missing cause, behind a missing cause, void
SELECT kind, root, commit_id, rank, position, fault
FROM tangled
