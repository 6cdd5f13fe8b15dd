-- Rows: repo and topic
-- The epoch of each topic, as the export that speaks for a repo states it.
SELECT repo_id, topic, min(epoch) AS epoch
FROM topics_by_export
SEMI JOIN speakers USING (repo_id, source)
WHERE epoch IS NOT NULL
GROUP BY repo_id, topic
