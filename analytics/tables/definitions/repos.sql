-- Rows: repo with exported members
-- Members as the node computed them, and what became of the operations on members.
-- Of: memberships, members
--
-- repo_id binary: the repo
-- members bigint: members now
-- persons bigint: persons; the devices of one count once
-- admins bigint: admins and owners
-- operations bigint: commits of the root branch
-- uncounted bigint: operations that others outrank
-- left_out bigint: operations that an export states inconsistently
-- joins bigint: members that came
-- removals bigint: members that went
-- replayed bigint: members after the last step of `membership`
-- epochs bigint: epochs
WITH told AS (
    SELECT
        repo_id,
        count(*) AS members,
        count(DISTINCT coalesce(person, member)) AS persons,
        count(*) FILTER (WHERE permission IN ($admins)) AS admins
    FROM told_members
    GROUP BY repo_id
), by_commit AS (
    SELECT repo_id, commit_id, min(is_read) AS is_read, min(counts) AS counts
    FROM operations
    GROUP BY repo_id, commit_id
), stated AS (
    SELECT
        repo_id,
        count(*) AS operation_count,
        count(*) FILTER (WHERE NOT counts) AS uncounted,
        count(*) FILTER (WHERE NOT is_read) AS left_out
    FROM by_commit
    GROUP BY repo_id
), steps AS (
    SELECT
        repo_id,
        count(*) FILTER (WHERE step = 1) AS joins,
        count(*) FILTER (WHERE step = -1) AS removals,
        sum(step) AS replayed
    FROM membership
    GROUP BY repo_id
), begun AS (
    SELECT repo_id, count(*) AS epoch_count
    FROM epochs
    GROUP BY repo_id
)
SELECT
    repo_id,
    coalesce(members, 0) AS members,
    coalesce(persons, 0) AS persons,
    coalesce(admins, 0) AS admins,
    coalesce(operation_count, 0) AS operations,
    coalesce(uncounted, 0) AS uncounted,
    coalesce(left_out, 0) AS left_out,
    coalesce(joins, 0) AS joins,
    coalesce(removals, 0) AS removals,
    coalesce(replayed, 0) AS replayed,
    coalesce(epoch_count, 0) AS epochs
FROM told
FULL JOIN stated USING (repo_id)
FULL JOIN steps USING (repo_id)
FULL JOIN begun USING (repo_id)
