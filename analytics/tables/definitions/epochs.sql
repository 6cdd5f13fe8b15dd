-- Rows: repo and epoch
-- How each epoch began, and what was written on its topics.
-- Of: memberships, members
--
-- repo_id binary: the repo
-- epoch binary: the epoch: the commit that started it
-- number int: from 1, in root branch order
-- started_at bigint (ms since 1970-01-01 UTC): stated time of its start
-- author binary: who started it
-- reason string: why it began
-- sealed_to bigint: members to which its secrets were sealed
-- counts boolean: whether the operation counted
-- topics bigint: topics with commits
-- commits bigint: commits
-- authors bigint: authors
-- first_time bigint (ms since 1970-01-01 UTC): first stated time
-- last_time bigint (ms since 1970-01-01 UTC): latest `shown_at`
WITH by_author AS (
    SELECT
        repo_id,
        topic,
        author,
        count(*) AS commits,
        min(plausible(time)) AS first_time,
        max(plausible(shown_at)) AS last_time
    FROM ordered
    GROUP BY repo_id, topic, author
), written AS (
    SELECT
        repo_id,
        epoch,
        count(DISTINCT topic) AS topics,
        sum(commits) AS commits,
        count(DISTINCT author) AS authors,
        min(first_time) AS first_time,
        max(last_time) AS last_time
    FROM by_author
    JOIN told_topics USING (repo_id, topic)
    GROUP BY repo_id, epoch
), starts AS (
    -- An init has a row for each founder.
    SELECT
        repo_id,
        commit_id AS epoch,
        position,
        plausible(time) AS started_at,
        author AS starter,
        CASE WHEN reason IN ($reasons) THEN reason END AS reason,
        sealed_to,
        counts,
        row_number() OVER (
            PARTITION BY repo_id, commit_id
            ORDER BY
                position NULLS FIRST,
                time NULLS FIRST,
                author NULLS FIRST,
                CASE WHEN reason IN ($reasons) THEN reason END NULLS FIRST,
                sealed_to NULLS FIRST,
                counts NULLS FIRST
        ) AS telling
    FROM operations
    WHERE is_read AND operation IN ('init', 'epoch-init')
), begun AS (
    SELECT
        repo_id,
        epoch,
        row_number() OVER (PARTITION BY repo_id ORDER BY position) AS number,
        started_at,
        starter,
        reason,
        sealed_to,
        counts
    FROM starts
    WHERE telling = 1
)
SELECT
    repo_id,
    epoch,
    number,
    started_at,
    starter AS author,
    reason,
    sealed_to,
    counts,
    coalesce(topics, 0) AS topics,
    coalesce(commits, 0) AS commits,
    coalesce(authors, 0) AS authors,
    first_time,
    last_time
FROM begun
LEFT JOIN written USING (repo_id, epoch)
