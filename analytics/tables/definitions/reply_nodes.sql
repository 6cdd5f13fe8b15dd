-- Rows: author who answers or is answered
-- The nodes of the graph of `reply_edges`.
-- Of: tangles
--
-- id binary: the author, as in `feeds`
-- given bigint: answers given
-- received bigint: answers received
-- answers_to bigint: others whom they answer
-- answered_by bigint: others who answer them
WITH sides AS (
    SELECT source AS id, target AS other, weight AS given, 0 AS received
    FROM reply_edges
    UNION ALL
    SELECT target AS id, source AS other, 0 AS given, weight AS received
    FROM reply_edges
)
SELECT
    id,
    sum(given) AS given,
    sum(received) AS received,
    count(DISTINCT CASE WHEN given > 0 AND other <> id THEN other END) AS answers_to,
    count(DISTINCT CASE WHEN received > 0 AND other <> id THEN other END) AS answered_by
FROM sides
GROUP BY id
