-- Rows: counting operation and its member
-- Who came and went. Which operations count is the node's to say; what counts is replayed in the order of the root branch.
-- That is no second resolution: of concurrent operations the one that stands later in the order is taken for the later.
-- Of: memberships, members
--
-- repo_id binary: the repo
-- position bigint: place in the root branch
-- commit_id binary: the commit
-- time bigint (ms since 1970-01-01 UTC): its stated time
-- author binary: its author
-- operation string: init, grant, device-grant, join or remove
-- member binary: the member
-- permission string: what it gives, or a removal leaves
-- step int: 1: came, -1: went, 0: neither
-- members bigint: members after it
WITH counting AS (
    -- A removal that leaves something lets a member stay, and makes nobody one.
    SELECT
        repo_id,
        position,
        commit_id,
        time,
        author,
        operation,
        member,
        permission,
        CASE WHEN operation IN ('init', 'grant', 'device-grant', 'join') THEN 1 WHEN permission IS NULL THEN 0 END AS said
    FROM operations
    WHERE is_read AND counts AND operation IN ('init', 'grant', 'device-grant', 'join', 'remove')
), following AS (
    SELECT
        repo_id,
        position,
        commit_id,
        time,
        author,
        operation,
        member,
        permission,
        said,
        coalesce(
            max_by(said, CASE WHEN said IS NOT NULL THEN position END) OVER (
                PARTITION BY repo_id, member
                ORDER BY position
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS was
    FROM counting
), stepped AS (
    SELECT
        repo_id,
        position,
        commit_id,
        time,
        author,
        operation,
        member,
        permission,
        coalesce(said, was) - was AS step
    FROM following
)
SELECT
    repo_id,
    position,
    commit_id,
    plausible(time) AS time,
    author,
    operation,
    member,
    permission,
    step,
    sum(step) OVER (PARTITION BY repo_id ORDER BY position, member ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS members
FROM stepped
