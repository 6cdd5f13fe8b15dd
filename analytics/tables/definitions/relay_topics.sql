-- Rows: node that keeps topics for others, and topic
-- What was taken of each topic, its heads, and what is kept of it.
-- Of: relay_commits, relay_topics
--
-- node string: the node
-- topic binary: the topic
-- commits bigint: commits taken
-- blocks bigint: their blocks
-- bytes bigint (bytes): their size
-- heads bigint: commits that no other follows
-- first_received bigint (ms since 1970-01-01 UTC): first arrival
-- last_received bigint (ms since 1970-01-01 UTC): last arrival
-- is_kept boolean: whether it is kept, by the latest export
-- is_pinned boolean: whether it is kept whatever comes
-- kept_commits bigint: publications kept
-- kept_bytes bigint (bytes): their size
-- quota_use double: share of the quota of one topic
WITH acked AS (
    SELECT DISTINCT node, topic, explode(acks) AS commit_id
    FROM relayed
), topic_heads AS (
    SELECT node, topic, count(DISTINCT commit_id) AS heads
    FROM relayed
    ANTI JOIN acked USING (node, topic, commit_id)
    GROUP BY node, topic
), taken AS (
    SELECT
        node,
        topic,
        count(DISTINCT commit_id) AS commits,
        sum(blocks) AS blocks,
        sum(size) AS bytes,
        min(plausible(received_at)) AS first_received,
        max(plausible(received_at)) AS last_received
    FROM relayed
    GROUP BY node, topic
), kept AS (
    SELECT node, topic, is_pinned, commits AS kept_commits, size AS kept_bytes
    FROM relay_topics_by_node
), quotas AS (
    SELECT node, topic_quota
    FROM exports
    WHERE is_latest
)
SELECT
    node,
    topic,
    coalesce(commits, 0) AS commits,
    coalesce(blocks, 0) AS blocks,
    coalesce(bytes, 0) AS bytes,
    coalesce(heads, 0) AS heads,
    first_received,
    last_received,
    kept_bytes IS NOT NULL AS is_kept,
    coalesce(is_pinned, false) AS is_pinned,
    coalesce(kept_commits, 0) AS kept_commits,
    coalesce(kept_bytes, 0) AS kept_bytes,
    coalesce(kept_bytes, 0) / nullif(topic_quota, 0) AS quota_use
FROM taken
FULL JOIN kept USING (node, topic)
LEFT JOIN topic_heads USING (node, topic)
LEFT JOIN quotas USING (node)
