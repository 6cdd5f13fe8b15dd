-- Rows: branch
-- Size, shape, people and times of each branch.
--
-- repo_id binary: its repo
-- branch_id binary: the branch
-- commits bigint: commits
-- authors bigint: authors
-- topics bigint: topics by which commits came
-- depth bigint: largest rank
-- roots bigint: commits without parents
-- heads bigint: commits that nothing follows
-- forks bigint: commits that several others follow
-- merges bigint: commits with several parents
-- width_max bigint: commits of the widest rank
-- width_mean double: commits by rank on average
-- concurrency double: share of commits whose rank another shares
-- bytes bigint (bytes): size of the commits
-- first_time bigint (ms since 1970-01-01 UTC): first stated time
-- last_time bigint (ms since 1970-01-01 UTC): latest `shown_at`
WITH of_feeds AS (
    SELECT
        branch_id,
        sum(commits) AS commits,
        count(*) AS authors,
        max(last_rank) AS depth,
        sum(merges) AS merges,
        sum(bytes) AS bytes,
        min(first_time) AS first_time,
        max(last_time) AS last_time
    FROM feeds
    GROUP BY branch_id
), by_topic AS (
    -- Ids cannot be aggregated without sorting, so few rows are left before.
    SELECT
        branch_id,
        topic,
        repo_id,
        count(*) FILTER (WHERE acks_count = 0) AS roots,
        count(*) FILTER (WHERE acked_count = 0) AS heads,
        count(*) FILTER (WHERE acked_count > 1) AS forks
    FROM ordered
    GROUP BY branch_id, topic, repo_id
), of_topics AS (
    SELECT
        branch_id,
        min(repo_id) AS repo_id,
        count(DISTINCT topic) AS topics,
        sum(roots) AS roots,
        sum(heads) AS heads,
        sum(forks) AS forks
    FROM by_topic
    GROUP BY branch_id
), widest AS (
    SELECT
        branch_id,
        max(width) AS width_max,
        coalesce(sum(CASE WHEN width > 1 THEN width END), 0) AS rank_shared
    FROM widths
    GROUP BY branch_id
)
SELECT
    repo_id,
    branch_id,
    commits,
    authors,
    topics,
    depth,
    roots,
    heads,
    forks,
    merges,
    width_max,
    commits / (depth + 1) AS width_mean,
    rank_shared / commits AS concurrency,
    bytes,
    first_time,
    last_time
FROM of_feeds
JOIN of_topics USING (branch_id)
JOIN widest USING (branch_id)
