-- Rows: place in a tangle, and commit that it follows there
-- Who followed whom in tangles that commits state, and after how long.
WITH followed AS (
    SELECT kind, root, commit_id, repo_id, author, time, explode(acks) AS answered_id
    FROM tangled
    WHERE fault IS NULL
), sound AS (
    SELECT kind, root, commit_id AS answered_id, author AS answered, time AS answered_at
    FROM tangled
    WHERE fault IS NULL
)
SELECT
    kind,
    root,
    commit_id,
    repo_id,
    author,
    time,
    answered,
    CASE WHEN plausible(time) >= plausible(answered_at) THEN time - answered_at END AS latency
FROM followed
JOIN sound USING (kind, root, answered_id)
