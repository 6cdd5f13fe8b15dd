-- Rows: node and publication
-- What relays took for others. A commit may have several publications; what several exports of a node tell counts once.
-- Kept: yes
SELECT
    node,
    sequence,
    min(topic) AS topic,
    min(commit_id) AS commit_id,
    min(acks) AS acks,
    min(blocks) AS blocks,
    min(size) AS size,
    min(received_at) AS received_at
FROM relay_commits_by_node
GROUP BY node, sequence
