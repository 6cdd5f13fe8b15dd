"""Rewrites derived data (ranks, heads, counts, void marks) where `check_derived` finds it wrong.

Each function changes the rows that are wrong, gives how many, and belongs to one transaction. The order matters: acks and
authors first (`node.care.repair`), then ranks and heads, evidence of forks, void marks, checkpoints passed, and what counts.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.ids import TopicKey
from storage.check.check_derived import (
    all_commits,
    check_order_of,
    compare_sketches,
    find_rows,
    find_wrong_branch_counts,
    find_wrong_forks,
    find_wrong_heads,
    find_wrong_passed,
    find_wrong_pending,
    find_wrong_topic_counts,
    make_marks,
    mark_acked,
    place_of,
)
from storage.check.check_integrity import CheckFindings
from storage.commits.position_index import FIRST, count_changes
from storage.commits.search_index import clear_index, load_state
from storage.engine.database import Database, reserve_numbers_to
from storage.engine.id_keys import chunks, id_key
from storage.repos.epochs import Topic
from storage.schema.schema import (
    branches,
    commits,
    feed_forks,
    heads,
    order_spans,
    pending,
    pending_causes,
    pending_publications,
    sketches,
    topics,
)


def repair_keys(connection: Connection) -> int:
    """Rewrite wrong keys by which commits are found; return how many."""
    wrong = [
        (row.num, id_key(row.commit_id))
        for part in all_commits(connection)
        for row in part
        if id_key(row.commit_id) != row.id_key
    ]
    for num, key in wrong:
        connection.execute(update(commits).where(commits.c.num == num).values(id_key=key))
    return len(wrong)


def repair_places(connection: Connection) -> int:
    """Rewrite wrong ranks and display times, from acks to commits; return how many."""
    fixed: dict[int, tuple[int, int]] = {}
    for part in all_commits(connection):
        places = find_rows(connection, [ack for row in part for ack in row.acks])
        for row in part:
            here = {}
            for ack in row.acks:
                found = places.get(ack)
                if found is None or found.branch_num != row.branch_num or found.num >= row.num:
                    break  # it cannot be told
                if found.num in fixed:
                    rank, display_time = fixed[found.num]
                    found = found._replace(rank=rank, display_time=display_time)
                here[ack] = found
            else:
                place = place_of(row, here)
                if place != (row.rank, row.display_time):
                    fixed[row.num] = place
    for num, (rank, display_time) in fixed.items():
        values = {"rank": rank, "display_time": display_time}
        connection.execute(update(commits).where(commits.c.num == num).values(values))
    return len(fixed)


def repair_heads(connection: Connection) -> int:
    """Rewrite wrong heads of topics, and whether another topic's commits ack them; return how many."""
    marks = make_marks(connection)
    for part in all_commits(connection):
        places = find_rows(connection, [ack for row in part for ack in row.acks])
        for row in part:
            mark_acked(row, places, marks)
    wrong = list(find_wrong_heads(connection, marks))
    for (topic_num, commit_id), wanted in wrong:
        here = (heads.c.topic_num == topic_num) & (heads.c.commit_id == commit_id)
        connection.execute(delete(heads).where(here))
        if wanted is not None:
            branch_num, rank, is_acked = wanted
            connection.execute(
                insert(heads).values(
                    topic_num=topic_num,
                    commit_id=commit_id,
                    branch_num=branch_num,
                    rank=rank,
                    is_acked=is_acked,
                )
            )
    return len(wrong)


def repair_forks(connection: Connection) -> int:
    """Rewrite wrong evidence of forked feeds; return how many places.

    It is all commits that use a place but the first that came.
    """
    wrong = find_wrong_forks(connection)
    for branch_num, author_num, sequence in wrong:
        kept, used = feed_forks.c, commits.c
        connection.execute(
            delete(feed_forks).where(
                kept.branch_num == branch_num,
                kept.author_num == author_num,
                kept.feed_sequence == sequence,
            )
        )
        query = select(used.commit_id).where(
            used.branch_num == branch_num, used.author_num == author_num, used.feed_sequence == sequence
        )
        ids = list(connection.execute(query.order_by(used.num)).scalars())[1:]
        for part in chunks(ids):
            # A row of the same commit may say another place.
            connection.execute(
                delete(feed_forks).where(kept.branch_num == branch_num, kept.commit_id.in_(part))
            )
        rows = [
            {"branch_num": branch_num, "commit_id": raw, "author_num": author_num, "feed_sequence": sequence}
            for raw in ids
        ]
        if rows:
            connection.execute(insert(feed_forks), rows)
    return len(wrong)


def repair_passed(connection: Connection) -> dict[int, int]:
    """Rewrite wrong counts of checkpoints passed; return how many changed, by branch."""
    wrong = list(find_wrong_passed(connection))
    changed: dict[int, int] = {}
    for num, (_, found) in wrong:
        here = commits.c.num == num
        connection.execute(update(commits).where(here).values(passed=found))
        branch_num = connection.execute(select(commits.c.branch_num).where(here)).scalar_one()
        changed[branch_num] = changed.get(branch_num, 0) + 1
    return changed


def repair_sums(connection: Connection) -> int:
    """Rewrite wrong counts of commits and void ones; return how many."""
    changed = 0
    for num, _, _, (count, void_count) in find_wrong_branch_counts(connection):
        values = {"commit_count": count, "void_count": void_count}
        connection.execute(update(branches).where(branches.c.num == num).values(values))
        changed += 1
    for num, _, _, count in find_wrong_topic_counts(connection):
        connection.execute(update(topics).where(topics.c.num == num).values(commit_count=count))
        changed += 1
    return changed


def repair_order(connection: Connection) -> int:
    """Count the order of branches again whose counts are wrong; return how many."""
    changed = 0
    for (branch_num,) in connection.execute(select(branches.c.num)).all():
        findings = CheckFindings()
        check_order_of(connection, branch_num, "", findings)
        if not findings.kinds:
            continue
        changed += 1
        connection.execute(delete(order_spans).where(order_spans.c.branch_num == branch_num))
        here = commits.c.branch_num == branch_num
        size, shown = connection.execute(
            select(func.count(), func.count().filter(~commits.c.is_void)).where(here)
        ).one()
        if size:
            count_changes(connection, branch_num, [(FIRST, size, shown)])
    return changed


def reset_edits(database: Database, connection: Connection, branch_nums: Iterable[int]) -> None:
    """Let followers of these timelines read them from the start: their edits no longer lead to them."""
    for branch_num in branch_nums:
        last = database.next_nums(connection, commits, 1)[0]
        reserve_numbers_to(connection, commits, last)
        connection.execute(update(branches).where(branches.c.num == branch_num).values(changes_from=last))


def drop_wrong_sketches(connection: Connection, opened: Mapping[TopicKey, Topic]) -> int:
    """Forget what is not the sketch of its topic; return how many. It is made again when asked for."""
    wrong = [(topic, place) for topic, place, fault in compare_sketches(connection, opened) if fault]
    for topic, place in wrong:
        here = (sketches.c.topic == topic) & (sketches.c.place == place)
        connection.execute(delete(sketches).where(here))
    return len(wrong)


def drop_wrong_pending(connection: Connection) -> int:
    """Forget pending commits that are not as they must be; return how many. They come again."""
    wrong = {num for num, _, _ in find_wrong_pending(connection)}
    for part in chunks(sorted(wrong)):
        for table in (pending_causes, pending_publications):
            connection.execute(delete(table).where(table.c.pending_num.in_(part)))
        connection.execute(delete(pending).where(pending.c.num.in_(part)))
    return len(wrong)


def drop_index(connection: Connection) -> bool:
    """Remove the index, for the daemon to make it again; return True if there was one."""
    found = load_state(connection) is not None
    while clear_index(connection):
        pass
    return found
