-- Views of a Ravel export for DuckDB. Either in the export's folder: duckdb -init views.sql
-- or from anywhere, with its path or URL: SET VARIABLE export = '/path/of/export';  .read /path/of/export/views.sql
-- NAME is a table as it is exported; NAME_text has ids as `ravel` writes them (base32) instead of bytes.
-- Timelines sort ids by their bytes: sort rows of NAME, and show ravel_id(commit_id). Texts sort otherwise.
-- Times are UTC: date_trunc and casts to dates would otherwise take the time zone of the session.
SET TimeZone = 'UTC';
CREATE OR REPLACE MACRO ravel_id_part(id, start, digits) AS
    to_base(CAST('0x' || substr(hex(id) || '0', start, digits) AS BIGINT), 32, digits * 4 // 5);
CREATE OR REPLACE MACRO ravel_id(id) AS translate(
    ravel_id_part(id, 1, 15) || ravel_id_part(id, 16, 15) || ravel_id_part(id, 31, 15) || ravel_id_part(id, 46, 15)
        || ravel_id_part(id, 61, 5),
    '0123456789ABCDEFGHIJKLMNOPQRSTUV', 'abcdefghijklmnopqrstuvwxyz234567');

CREATE OR REPLACE VIEW commits AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/commits/*.parquet');
CREATE OR REPLACE VIEW commits_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id, ravel_id(topic) AS topic, ravel_id(repo_id) AS repo_id, ravel_id(branch_id) AS branch_id, ravel_id(author) AS author, ravel_id(source_author) AS source_author, [ravel_id(id) FOR id IN acks] AS acks) FROM commits;
COMMENT ON COLUMN commits.sequence IS 'acceptance order at this node, from 1, with gaps';
COMMENT ON COLUMN commits.commit_id IS 'the commit''s id';
COMMENT ON COLUMN commits.topic IS 'topic by which it came';
COMMENT ON COLUMN commits.repo_id IS 'its repo: the id of the repo''s root branch';
COMMENT ON COLUMN commits.branch_id IS 'its branch';
COMMENT ON COLUMN commits.repo_name IS 'the repo''s name at this node; null where the manifest names pseudonyms';
COMMENT ON COLUMN commits.branch_name IS 'the branch''s name at this node; each repo has a branch `root`, and most a `main`';
COMMENT ON COLUMN commits.author IS 'the author''s key, or what stands for it where the manifest names pseudonyms';
COMMENT ON COLUMN commits.source_author IS 'of an imported commit: a hash of its author''s name in the system that it came from; keyed as pseudonyms are';
COMMENT ON COLUMN commits.acks IS 'ids of its parents';
COMMENT ON COLUMN commits.rank IS 'longest path to the branch''s root, as the node computed it (commits)';
COMMENT ON COLUMN commits.position IS 'index in the branch''s timeline at the watermark `position_at`; -1: void';
COMMENT ON COLUMN commits.body_kind IS 'kind of the body: post, imported, files, ...';
COMMENT ON COLUMN commits.size IS 'ciphertext of the commit''s blocks and its body''s (bytes)';
COMMENT ON COLUMN commits.time IS 'asserted by the author; anything is possible (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits.time_utc IS '`time` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits.received_at IS 'acceptance, by this node''s clock (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits.received_utc IS '`received_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits.arrived_at IS 'arrival, by this node''s clock, of a commit that then waited for its causes; null of any other (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits.arrived_utc IS '`arrived_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits.feed_sequence IS 'place in the author''s feed in this branch, from 1, as the author says';
COMMENT ON COLUMN commits.blocks IS 'blocks of the commit and its body (blocks)';
COMMENT ON COLUMN commits.position_at IS 'watermark of the export that stated `position`';
COMMENT ON COLUMN commits_text.sequence IS 'acceptance order at this node, from 1, with gaps';
COMMENT ON COLUMN commits_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN commits_text.topic IS 'topic by which it came';
COMMENT ON COLUMN commits_text.repo_id IS 'its repo: the id of the repo''s root branch';
COMMENT ON COLUMN commits_text.branch_id IS 'its branch';
COMMENT ON COLUMN commits_text.repo_name IS 'the repo''s name at this node; null where the manifest names pseudonyms';
COMMENT ON COLUMN commits_text.branch_name IS 'the branch''s name at this node; each repo has a branch `root`, and most a `main`';
COMMENT ON COLUMN commits_text.author IS 'the author''s key, or what stands for it where the manifest names pseudonyms';
COMMENT ON COLUMN commits_text.source_author IS 'of an imported commit: a hash of its author''s name in the system that it came from; keyed as pseudonyms are';
COMMENT ON COLUMN commits_text.acks IS 'ids of its parents';
COMMENT ON COLUMN commits_text.rank IS 'longest path to the branch''s root, as the node computed it (commits)';
COMMENT ON COLUMN commits_text.position IS 'index in the branch''s timeline at the watermark `position_at`; -1: void';
COMMENT ON COLUMN commits_text.body_kind IS 'kind of the body: post, imported, files, ...';
COMMENT ON COLUMN commits_text.size IS 'ciphertext of the commit''s blocks and its body''s (bytes)';
COMMENT ON COLUMN commits_text.time IS 'asserted by the author; anything is possible (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits_text.time_utc IS '`time` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits_text.received_at IS 'acceptance, by this node''s clock (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits_text.received_utc IS '`received_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits_text.arrived_at IS 'arrival, by this node''s clock, of a commit that then waited for its causes; null of any other (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN commits_text.arrived_utc IS '`arrived_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN commits_text.feed_sequence IS 'place in the author''s feed in this branch, from 1, as the author says';
COMMENT ON COLUMN commits_text.blocks IS 'blocks of the commit and its body (blocks)';
COMMENT ON COLUMN commits_text.position_at IS 'watermark of the export that stated `position`';

CREATE OR REPLACE VIEW voids AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/voids/*.parquet');
CREATE OR REPLACE VIEW voids_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id) FROM voids;
COMMENT ON COLUMN voids.commit_id IS 'the commit''s id';
COMMENT ON COLUMN voids_text.commit_id IS 'the commit''s id';

CREATE OR REPLACE VIEW edits AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/edits/*.parquet');
CREATE OR REPLACE VIEW edits_text AS SELECT * REPLACE (ravel_id(branch_id) AS branch_id, ravel_id(commit_id) AS commit_id) FROM edits;
COMMENT ON COLUMN edits.sequence IS 'of the numbers of `commits.sequence`: both together are the history of a timeline';
COMMENT ON COLUMN edits.branch_id IS 'the branch';
COMMENT ON COLUMN edits.commit_id IS 'the commit that left, came back or moved';
COMMENT ON COLUMN edits.kind IS 'insert (it came back), remove, move';
COMMENT ON COLUMN edits.passed_before IS 'checkpoints before it until then; null where it did not stand in the timeline';
COMMENT ON COLUMN edits.passed_after IS 'the same from then on';
COMMENT ON COLUMN edits_text.sequence IS 'of the numbers of `commits.sequence`: both together are the history of a timeline';
COMMENT ON COLUMN edits_text.branch_id IS 'the branch';
COMMENT ON COLUMN edits_text.commit_id IS 'the commit that left, came back or moved';
COMMENT ON COLUMN edits_text.kind IS 'insert (it came back), remove, move';
COMMENT ON COLUMN edits_text.passed_before IS 'checkpoints before it until then; null where it did not stand in the timeline';
COMMENT ON COLUMN edits_text.passed_after IS 'the same from then on';

CREATE OR REPLACE VIEW bodies AS SELECT CAST(NULL AS BIGINT) AS sequence, CAST(NULL AS BLOB) AS commit_id, CAST(NULL AS VARCHAR) AS body_kind, CAST(NULL AS BLOB) AS body WHERE false;
CREATE OR REPLACE VIEW bodies_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id) FROM bodies;
COMMENT ON COLUMN bodies.sequence IS 'of the commit, as in `commits`';
COMMENT ON COLUMN bodies.commit_id IS 'the commit''s id';
COMMENT ON COLUMN bodies.body_kind IS 'kind of the body';
COMMENT ON COLUMN bodies.body IS 'its encoding, see docs/protocol.md';
COMMENT ON COLUMN bodies_text.sequence IS 'of the commit, as in `commits`';
COMMENT ON COLUMN bodies_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN bodies_text.body_kind IS 'kind of the body';
COMMENT ON COLUMN bodies_text.body IS 'its encoding, see docs/protocol.md';

CREATE OR REPLACE VIEW relay_commits AS SELECT CAST(NULL AS BIGINT) AS sequence, CAST(NULL AS BLOB) AS topic, CAST(NULL AS BLOB) AS commit_id, CAST(NULL AS BLOB[]) AS acks, CAST(NULL AS BIGINT) AS blocks, CAST(NULL AS BIGINT) AS size, CAST(NULL AS BIGINT) AS received_at, CAST(NULL AS TIMESTAMPTZ) AS received_utc WHERE false;
CREATE OR REPLACE VIEW relay_commits_text AS SELECT * REPLACE (ravel_id(topic) AS topic, ravel_id(commit_id) AS commit_id, [ravel_id(id) FOR id IN acks] AS acks) FROM relay_commits;
COMMENT ON COLUMN relay_commits.sequence IS 'order of arrival, from 1, with gaps; a commit may come more than once';
COMMENT ON COLUMN relay_commits.topic IS 'topic by which it came';
COMMENT ON COLUMN relay_commits.commit_id IS 'the commit''s id';
COMMENT ON COLUMN relay_commits.acks IS 'ids of its parents';
COMMENT ON COLUMN relay_commits.blocks IS 'blocks of the publication (blocks)';
COMMENT ON COLUMN relay_commits.size IS 'the whole publication (bytes)';
COMMENT ON COLUMN relay_commits.received_at IS 'arrival, by this node''s clock; 0: taken before it was written down (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN relay_commits.received_utc IS '`received_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN relay_commits_text.sequence IS 'order of arrival, from 1, with gaps; a commit may come more than once';
COMMENT ON COLUMN relay_commits_text.topic IS 'topic by which it came';
COMMENT ON COLUMN relay_commits_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN relay_commits_text.acks IS 'ids of its parents';
COMMENT ON COLUMN relay_commits_text.blocks IS 'blocks of the publication (blocks)';
COMMENT ON COLUMN relay_commits_text.size IS 'the whole publication (bytes)';
COMMENT ON COLUMN relay_commits_text.received_at IS 'arrival, by this node''s clock; 0: taken before it was written down (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN relay_commits_text.received_utc IS '`received_at` as a timestamp; null outside of the years 1970 to 2199';

CREATE OR REPLACE VIEW relay_topics AS SELECT CAST(NULL AS BLOB) AS topic, CAST(NULL AS BOOLEAN) AS is_pinned, CAST(NULL AS BIGINT) AS commits, CAST(NULL AS BIGINT) AS size, CAST(NULL AS BIGINT) AS touched_at, CAST(NULL AS TIMESTAMPTZ) AS touched_utc WHERE false;
CREATE OR REPLACE VIEW relay_topics_text AS SELECT * REPLACE (ravel_id(topic) AS topic) FROM relay_topics;
COMMENT ON COLUMN relay_topics.topic IS 'the topic';
COMMENT ON COLUMN relay_topics.is_pinned IS 'whether it is kept whatever comes';
COMMENT ON COLUMN relay_topics.commits IS 'publications kept (publications)';
COMMENT ON COLUMN relay_topics.size IS 'its publications (bytes)';
COMMENT ON COLUMN relay_topics.touched_at IS 'last asked for or added to (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN relay_topics.touched_utc IS '`touched_at` as a timestamp; null outside of the years 1970 to 2199';
COMMENT ON COLUMN relay_topics_text.topic IS 'the topic';
COMMENT ON COLUMN relay_topics_text.is_pinned IS 'whether it is kept whatever comes';
COMMENT ON COLUMN relay_topics_text.commits IS 'publications kept (publications)';
COMMENT ON COLUMN relay_topics_text.size IS 'its publications (bytes)';
COMMENT ON COLUMN relay_topics_text.touched_at IS 'last asked for or added to (ms since 1970-01-01 UTC)';
COMMENT ON COLUMN relay_topics_text.touched_utc IS '`touched_at` as a timestamp; null outside of the years 1970 to 2199';

CREATE OR REPLACE VIEW blocks AS SELECT CAST(NULL AS BIGINT) AS sequence, CAST(NULL AS BLOB) AS commit_id, CAST(NULL AS BLOB) AS block_id, CAST(NULL AS BIGINT) AS size, CAST(NULL AS BLOB[]) AS child_ids, CAST(NULL AS BLOB) AS content WHERE false;
CREATE OR REPLACE VIEW blocks_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id, ravel_id(block_id) AS block_id, [ravel_id(id) FOR id IN child_ids] AS child_ids) FROM blocks;
COMMENT ON COLUMN blocks.sequence IS 'of the commit, or of the publication';
COMMENT ON COLUMN blocks.commit_id IS 'the commit''s id';
COMMENT ON COLUMN blocks.block_id IS 'the block''s id; the commit''s own block has the commit''s id';
COMMENT ON COLUMN blocks.size IS 'its encoding; null: the node knows that there is such a block, and has not got it (bytes)';
COMMENT ON COLUMN blocks.child_ids IS 'ids of its children';
COMMENT ON COLUMN blocks.content IS 'the encoding of the commit''s own block; null of others';
COMMENT ON COLUMN blocks_text.sequence IS 'of the commit, or of the publication';
COMMENT ON COLUMN blocks_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN blocks_text.block_id IS 'the block''s id; the commit''s own block has the commit''s id';
COMMENT ON COLUMN blocks_text.size IS 'its encoding; null: the node knows that there is such a block, and has not got it (bytes)';
COMMENT ON COLUMN blocks_text.child_ids IS 'ids of its children';
COMMENT ON COLUMN blocks_text.content IS 'the encoding of the commit''s own block; null of others';

CREATE OR REPLACE VIEW relay_blocks AS SELECT CAST(NULL AS BIGINT) AS sequence, CAST(NULL AS BLOB) AS commit_id, CAST(NULL AS BLOB) AS block_id, CAST(NULL AS BIGINT) AS size, CAST(NULL AS BLOB[]) AS child_ids, CAST(NULL AS BLOB) AS content WHERE false;
CREATE OR REPLACE VIEW relay_blocks_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id, ravel_id(block_id) AS block_id, [ravel_id(id) FOR id IN child_ids] AS child_ids) FROM relay_blocks;
COMMENT ON COLUMN relay_blocks.sequence IS 'of the commit, or of the publication';
COMMENT ON COLUMN relay_blocks.commit_id IS 'the commit''s id';
COMMENT ON COLUMN relay_blocks.block_id IS 'the block''s id; the commit''s own block has the commit''s id';
COMMENT ON COLUMN relay_blocks.size IS 'its encoding; null: the node knows that there is such a block, and has not got it (bytes)';
COMMENT ON COLUMN relay_blocks.child_ids IS 'ids of its children';
COMMENT ON COLUMN relay_blocks.content IS 'the encoding of the commit''s own block; null of others';
COMMENT ON COLUMN relay_blocks_text.sequence IS 'of the commit, or of the publication';
COMMENT ON COLUMN relay_blocks_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN relay_blocks_text.block_id IS 'the block''s id; the commit''s own block has the commit''s id';
COMMENT ON COLUMN relay_blocks_text.size IS 'its encoding; null: the node knows that there is such a block, and has not got it (bytes)';
COMMENT ON COLUMN relay_blocks_text.child_ids IS 'ids of its children';
COMMENT ON COLUMN relay_blocks_text.content IS 'the encoding of the commit''s own block; null of others';

CREATE OR REPLACE VIEW memberships AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/memberships/*.parquet');
CREATE OR REPLACE VIEW memberships_text AS SELECT * REPLACE (ravel_id(commit_id) AS commit_id, ravel_id(repo_id) AS repo_id, ravel_id(member) AS member, ravel_id(epoch) AS epoch) FROM memberships;
COMMENT ON COLUMN memberships.sequence IS 'of the commit, as in `commits`';
COMMENT ON COLUMN memberships.commit_id IS 'the commit''s id';
COMMENT ON COLUMN memberships.repo_id IS 'the repo';
COMMENT ON COLUMN memberships.operation IS 'the commit''s body_kind';
COMMENT ON COLUMN memberships.member IS 'whom it makes a member, raises or removes, as `author` is told';
COMMENT ON COLUMN memberships.permission IS 'that it gives, or that a removal leaves';
COMMENT ON COLUMN memberships.epoch IS 'epoch that it starts (its own id), or adds to';
COMMENT ON COLUMN memberships.reason IS 'why the epoch began';
COMMENT ON COLUMN memberships.sealed_to IS 'members to which it seals an epoch''s secrets (members)';
COMMENT ON COLUMN memberships.counts IS 'whether it counted, by all that the node had of the root branch';
COMMENT ON COLUMN memberships_text.sequence IS 'of the commit, as in `commits`';
COMMENT ON COLUMN memberships_text.commit_id IS 'the commit''s id';
COMMENT ON COLUMN memberships_text.repo_id IS 'the repo';
COMMENT ON COLUMN memberships_text.operation IS 'the commit''s body_kind';
COMMENT ON COLUMN memberships_text.member IS 'whom it makes a member, raises or removes, as `author` is told';
COMMENT ON COLUMN memberships_text.permission IS 'that it gives, or that a removal leaves';
COMMENT ON COLUMN memberships_text.epoch IS 'epoch that it starts (its own id), or adds to';
COMMENT ON COLUMN memberships_text.reason IS 'why the epoch began';
COMMENT ON COLUMN memberships_text.sealed_to IS 'members to which it seals an epoch''s secrets (members)';
COMMENT ON COLUMN memberships_text.counts IS 'whether it counted, by all that the node had of the root branch';

CREATE OR REPLACE VIEW members AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/members/*.parquet');
CREATE OR REPLACE VIEW members_text AS SELECT * REPLACE (ravel_id(repo_id) AS repo_id, ravel_id(member) AS member, ravel_id(person) AS person) FROM members;
COMMENT ON COLUMN members.repo_id IS 'the repo';
COMMENT ON COLUMN members.member IS 'the member, as `author` is told';
COMMENT ON COLUMN members.permission IS 'read, write, manage, admin or owner';
COMMENT ON COLUMN members.person IS 'the member whose device this one is';
COMMENT ON COLUMN members_text.repo_id IS 'the repo';
COMMENT ON COLUMN members_text.member IS 'the member, as `author` is told';
COMMENT ON COLUMN members_text.permission IS 'read, write, manage, admin or owner';
COMMENT ON COLUMN members_text.person IS 'the member whose device this one is';

CREATE OR REPLACE VIEW topics AS FROM read_parquet(coalesce(getvariable('export'), '.') || '/topics/*.parquet');
CREATE OR REPLACE VIEW topics_text AS SELECT * REPLACE (ravel_id(topic) AS topic, ravel_id(repo_id) AS repo_id, ravel_id(branch_id) AS branch_id, ravel_id(epoch) AS epoch) FROM topics;
COMMENT ON COLUMN topics.topic IS 'the topic';
COMMENT ON COLUMN topics.repo_id IS 'the repo';
COMMENT ON COLUMN topics.kind IS 'epoch (its own), writers (its writers'' topic), branch (of one branch in it)';
COMMENT ON COLUMN topics.branch_id IS 'the branch of a topic of one branch; else null';
COMMENT ON COLUMN topics.epoch IS 'what started it; null: a branch that is followed by itself';
COMMENT ON COLUMN topics_text.topic IS 'the topic';
COMMENT ON COLUMN topics_text.repo_id IS 'the repo';
COMMENT ON COLUMN topics_text.kind IS 'epoch (its own), writers (its writers'' topic), branch (of one branch in it)';
COMMENT ON COLUMN topics_text.branch_id IS 'the branch of a topic of one branch; else null';
COMMENT ON COLUMN topics_text.epoch IS 'what started it; null: a branch that is followed by itself';
