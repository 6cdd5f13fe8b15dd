-- Rows: tangle
-- Shape, people and pace of each tangle: threads of replies, edits, applications' own; what starts a repo's epochs, and who
-- comes and goes in each. Feeds and groups (root branch commits, and what was written knowing them) have every commit once
-- more: they are here after `ravel analyze --every-tangle`. Branches have tables of their own.
-- Of: tangles, memberships
--
-- branch_id binary: branch of its root
-- kind string: reply, edit, delete, epoch, members, feed, group, or an application's
-- root binary: its first commit
-- commits bigint: commits with a place, the root among them
-- waiting bigint: commits that follow one which is not there
-- authors bigint: authors, as in `feeds`
-- depth bigint: largest rank
-- width_max bigint: commits of the widest rank
-- heads bigint: commits that nothing follows there
-- forks bigint: commits that several others follow there
-- merges bigint: commits that follow several
-- latency_p50 bigint (ms): median time from what a commit follows to it
-- latency_p90 bigint (ms): of nine in ten, at most
-- first_time bigint (ms since 1970-01-01 UTC): first stated time
-- last_time bigint (ms since 1970-01-01 UTC): latest `shown_at`
WITH of_ranks AS (
    SELECT
        kind,
        root,
        rank,
        count(*) AS width,
        count(*) FILTER (WHERE acked_count = 0) AS heads,
        count(*) FILTER (WHERE acked_count > 1) AS forks,
        count(*) FILTER (WHERE acks_count > 1) AS merges,
        min(plausible(time)) AS first_time,
        max(plausible(shown_at)) AS last_time
    FROM tangled
    WHERE fault IS NULL
    GROUP BY kind, root, rank
), shaped AS (
    SELECT
        kind,
        root,
        sum(width) AS commits,
        max(rank) AS depth,
        max(width) AS width_max,
        sum(heads) AS heads,
        sum(forks) AS forks,
        sum(merges) AS merges,
        min(first_time) AS first_time,
        max(last_time) AS last_time
    FROM of_ranks
    GROUP BY kind, root
), peopled AS (
    SELECT
        kind,
        root,
        count(*) FILTER (WHERE fault <> 'void') AS waiting,
        count(DISTINCT CASE WHEN fault IS NULL THEN author END) AS authors
    FROM tangled
    GROUP BY kind, root
), paced AS (
    SELECT
        kind,
        root,
        percentile_approx(latency, 0.5, $accuracy) AS latency_p50,
        percentile_approx(latency, 0.9, $accuracy) AS latency_p90
    FROM answers
    GROUP BY kind, root
), roots AS (
    SELECT commit_id AS root, branch_id
    FROM commits
)
SELECT
    branch_id,
    kind,
    root,
    coalesce(commits, 0) AS commits,
    waiting,
    authors,
    depth,
    width_max,
    coalesce(heads, 0) AS heads,
    coalesce(forks, 0) AS forks,
    coalesce(merges, 0) AS merges,
    latency_p50,
    latency_p90,
    first_time,
    last_time
FROM peopled
LEFT JOIN shaped USING (kind, root)
LEFT JOIN paced USING (kind, root)
LEFT JOIN roots USING (root)
