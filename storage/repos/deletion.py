"""Deletes all rows of a repo. Its blocks stay until garbage collection removes them."""

from sqlalchemy import Connection, Select, delete, select

from storage.engine.database import keep_last_number
from storage.repos.row_changes import row_changes
from storage.schema.peer_schema import relayed_files, repo_holders
from storage.schema.schema import (
    branches,
    changes,
    checkpoints,
    commits,
    damaged_commits,
    epochs,
    erasures,
    feed_forks,
    file_removals,
    files,
    heads,
    imports,
    order_spans,
    pending,
    pending_causes,
    pending_publications,
    rejections,
    repos,
    seen_marks,
    sketches,
    text_sessions,
    topics,
    unfetched_files,
)
from storage.schema.search_schema import search_parts, search_texts, search_words


def forget_repo(connection: Connection, repo_num: int) -> None:
    """Forget a repo, its epochs and its branches. Numbers of its commits, topics and files are not given again.

    A file's number is a part of the place that masks its key (`column_encryption`), which must never mask another.
    """
    row_changes(connection).repos.add(repo_num)
    for table in (commits, topics, files):
        keep_last_number(connection, table)
    of_repo = select(branches.c.num).where(branches.c.repo_num == repo_num)
    waiting = select(pending.c.num).where(pending.c.branch_num.in_(of_repo))
    added = select(files.c.num).where(files.c.branch_num.in_(of_repo))
    for table in (pending_causes, pending_publications):
        connection.execute(delete(table).where(table.c.pending_num.in_(waiting)))
    connection.execute(delete(file_removals).where(file_removals.c.file_num.in_(added)))
    forget_sketches(connection, select(topics.c.topic).where(topics.c.branch_num.in_(of_repo)))
    indexed = select(search_parts.c.num).where(search_parts.c.branch_num.in_(of_repo))
    connection.execute(delete(search_words).where(search_words.c.part_num.in_(indexed)))
    of_topics = select(topics.c.num).where(topics.c.branch_num.in_(of_repo))
    for by_topic in (damaged_commits, relayed_files):
        connection.execute(delete(by_topic).where(by_topic.c.topic_num.in_(of_topics)))
    for table in (
        pending,
        unfetched_files,
        files,
        heads,
        feed_forks,
        rejections,
        erasures,
        checkpoints,
        changes,
        order_spans,
        imports,
        search_parts,
        search_texts,
        seen_marks,
        text_sessions,
        commits,
        topics,
    ):
        connection.execute(delete(table).where(table.c.branch_num.in_(of_repo)))
    connection.execute(delete(branches).where(branches.c.repo_num == repo_num))
    connection.execute(delete(epochs).where(epochs.c.repo_num == repo_num))
    connection.execute(delete(repo_holders).where(repo_holders.c.repo_num == repo_num))
    connection.execute(delete(repos).where(repos.c.num == repo_num))


def forget_sketches(connection: Connection, of_topics: "Select[tuple[bytes]]") -> None:
    """Forget what is kept to compare topics that are about to be forgotten."""
    connection.execute(delete(sketches).where(sketches.c.topic.in_(of_topics)))
