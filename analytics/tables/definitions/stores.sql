-- Rows: exporting node
-- What each node holds.
--
-- node string: the node
-- commits bigint: commits (all)
-- void bigint: void ones
-- repos bigint: repos
-- branches bigint: branches
-- authors bigint: authors
-- bytes bigint (bytes): size of the commits
-- first_received bigint (ms since 1970-01-01 UTC): first receipt
-- last_received bigint (ms since 1970-01-01 UTC): last receipt
-- blocks bigint: blocks held, by its latest export
-- block_bytes bigint (bytes): their size
-- referenced_blocks bigint: blocks named, each as often as it is
-- referenced_bytes bigint (bytes): their size
-- deduplication double: named by held bytes
WITH by_feed AS (
    -- What is told apart is told apart among feeds, which are far fewer than commits.
    SELECT
        node,
        repo_id,
        branch_id,
        author,
        count(*) AS commits,
        count(*) FILTER (WHERE is_void) AS void,
        sum(size) AS bytes,
        min(plausible(received_at)) AS first_received,
        max(plausible(received_at)) AS last_received
    FROM receipts
    GROUP BY node, repo_id, branch_id, author
), by_node AS (
    SELECT
        node,
        sum(commits) AS commits,
        sum(void) AS void,
        count(DISTINCT repo_id) AS repos,
        count(DISTINCT branch_id) AS branches,
        count(DISTINCT author) AS authors,
        sum(bytes) AS bytes,
        min(first_received) AS first_received,
        max(last_received) AS last_received
    FROM by_feed
    GROUP BY node
), holdings AS (
    SELECT node, blocks, block_bytes, referenced_blocks, referenced_bytes
    FROM exports
    WHERE is_latest
)
SELECT
    node,
    commits,
    void,
    repos,
    branches,
    authors,
    bytes,
    first_received,
    last_received,
    blocks,
    block_bytes,
    referenced_blocks,
    referenced_bytes,
    referenced_bytes / nullif(block_bytes, 0) AS deduplication
FROM by_node
LEFT JOIN holdings USING (node)
