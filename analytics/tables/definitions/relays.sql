-- Rows: node that keeps topics for others
-- All of its topics, and the part of its quota in use.
-- Of: relay_commits, relay_topics
--
-- node string: the node
-- topics bigint: topics
-- kept_topics bigint: topics that are kept
-- pinned_topics bigint: topics that are kept whatever comes
-- commits bigint: commits taken
-- kept_commits bigint: publications kept
-- blocks bigint: blocks taken
-- bytes bigint (bytes): size of what was taken
-- kept_bytes bigint (bytes): size of what is kept
-- quota bigint (bytes): what it keeps at most
-- quota_use double: share of the quota
-- first_received bigint (ms since 1970-01-01 UTC): first arrival
-- last_received bigint (ms since 1970-01-01 UTC): last arrival
WITH by_node AS (
    SELECT
        node,
        count(*) AS topics,
        count(*) FILTER (WHERE is_kept) AS kept_topics,
        count(*) FILTER (WHERE is_pinned) AS pinned_topics,
        sum(commits) AS commits,
        sum(kept_commits) AS kept_commits,
        sum(blocks) AS blocks,
        sum(bytes) AS bytes,
        sum(kept_bytes) AS kept_bytes,
        min(first_received) AS first_received,
        max(last_received) AS last_received
    FROM relay_topics
    GROUP BY node
), quotas AS (
    SELECT node, total_quota
    FROM exports
    WHERE is_latest
)
SELECT
    node,
    topics,
    kept_topics,
    pinned_topics,
    commits,
    kept_commits,
    blocks,
    bytes,
    kept_bytes,
    total_quota AS quota,
    kept_bytes / nullif(total_quota, 0) AS quota_use,
    first_received,
    last_received
FROM by_node
LEFT JOIN quotas USING (node)
