"""Deletes all rows of a repo. Its blocks stay until garbage collection removes them."""

from typing import Final

from sqlalchemy import Connection, Select, delete, func, select, update

from storage.engine.database import reserve_used_numbers
from storage.engine.id_keys import chunks
from storage.repos.row_changes import row_changes
from storage.schema.document_schema import (
    OF_DOCUMENTS,
    document_index_entries,
    document_indexes,
    documents,
    text_blocks,
    texts,
)
from storage.schema.peer_schema import relayed_files, repo_holders
from storage.schema.schema import (
    awaited_adders,
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
    group_places,
    heads,
    imports,
    late_removals,
    membership_parts,
    order_spans,
    pending,
    pending_causes,
    pending_publications,
    prekeys,
    rejected_givers,
    rejections,
    repos,
    seen_marks,
    sketches,
    spared_files,
    text_sessions,
    topic_inits,
    topics,
    unfetched_files,
)
from storage.schema.search_schema import search_parts, search_texts, search_words

_OF_BRANCHES: Final = (
    pending,
    unfetched_files,
    spared_files,
    files,
    heads,
    feed_forks,
    rejections,
    rejected_givers,
    erasures,
    checkpoints,
    changes,
    order_spans,
    imports,
    search_parts,
    search_texts,
    seen_marks,
    text_sessions,
    membership_parts,
    texts,
    text_blocks,
    documents,
    document_indexes,
    commits,
)
"""Tables whose rows are of one branch."""


def forget_branch(connection: Connection, branch_num: int, root_num: int) -> None:
    """Forget a branch without commits. Commits that wait for its addition are kept under the root branch."""
    row_changes(connection).branches.add(branch_num)
    connection.execute(update(pending).where(pending.c.branch_num == branch_num).values(branch_num=root_num))
    for table in _OF_BRANCHES:
        connection.execute(delete(table).where(table.c.branch_num == branch_num))
    connection.execute(delete(branches).where(branches.c.num == branch_num))


def forget_repo(connection: Connection, repo_num: int) -> None:
    """Forget a repo, its epochs and its branches. Costs O(its rows).

    A file's number is a part of the place that masks its key (`column_encryption`), which must never mask another.
    """
    row_changes(connection).repos.add(repo_num)
    for table in (commits, topics, files):
        reserve_used_numbers(connection, table)
    of_repo = select(branches.c.num).where(branches.c.repo_num == repo_num)
    waiting = select(pending.c.num).where(pending.c.branch_num.in_(of_repo))
    added = select(files.c.num).where(files.c.branch_num.in_(of_repo))
    for table in (pending_causes, pending_publications):
        connection.execute(delete(table).where(table.c.pending_num.in_(waiting)))
    connection.execute(delete(file_removals).where(file_removals.c.file_num.in_(added)))
    indexed = select(search_parts.c.num).where(search_parts.c.branch_num.in_(of_repo))
    connection.execute(delete(search_words).where(search_words.c.part_num.in_(indexed)))
    entered = select(document_indexes.c.num).where(document_indexes.c.branch_num.in_(of_repo))
    connection.execute(delete(document_index_entries).where(document_index_entries.c.index_num.in_(entered)))
    held = select(documents.c.num).where(documents.c.branch_num.in_(of_repo))
    for table in OF_DOCUMENTS:
        connection.execute(delete(table).where(table.c.doc_num.in_(held)))
    of_topics, shared = _find_topics(connection, repo_num)
    of_branches = select(commits.c.num).where(commits.c.branch_num.in_(of_repo))
    for table in (damaged_commits, awaited_adders, late_removals, topic_inits):
        connection.execute(delete(table).where(table.c.commit_num.in_(of_branches)))
    # They name commits of the repo's own root branch, so nobody else's commit has one of them.
    placed = select(commits.c.place_num).where(commits.c.branch_num.in_(of_repo))
    connection.execute(delete(group_places).where(group_places.c.num.in_(placed)))
    for part in chunks([*of_topics, *shared]):
        forget_sketches(connection, select(topics.c.topic).where(topics.c.num.in_(part)))
    for part in chunks(of_topics):
        connection.execute(delete(relayed_files).where(relayed_files.c.topic_num.in_(part)))
    for table in _OF_BRANCHES:
        connection.execute(delete(table).where(table.c.branch_num.in_(of_repo)))
    for table in (epochs, prekeys):
        connection.execute(delete(table).where(table.c.repo_num == repo_num))
    for part in chunks(of_topics):
        connection.execute(delete(topics).where(topics.c.num.in_(part)))
    for part in chunks(shared):
        names = connection.execute(select(topics.c.topic).where(topics.c.num.in_(part))).scalars()
        row_changes(connection).reduced.update(names)
    for num in shared:
        own, as_inits = (
            select(func.count()).where(table.c.topic_num == num).scalar_subquery()
            for table in (commits, topic_inits)
        )
        connection.execute(update(topics).where(topics.c.num == num).values(commit_count=own + as_inits))
    connection.execute(delete(branches).where(branches.c.repo_num == repo_num))
    connection.execute(delete(repo_holders).where(repo_holders.c.repo_num == repo_num))
    connection.execute(delete(repos).where(repos.c.num == repo_num))


def forget_claim(connection: Connection, epoch_num: int) -> None:
    """Forget a claimed key of an epoch with its topic, and what waits there unless another claim names that.

    Costs O(what waits there).
    """
    is_claim = (epochs.c.claimed_by.is_not(None)) & (epochs.c.writers_topic_num.is_(None))
    found = connection.execute(
        select(epochs.c.repo_num, epochs.c.topic_num).where(epochs.c.num == epoch_num, is_claim)
    ).first()
    if found is None:
        return  # its init was accepted meanwhile, or it is gone
    repo_num, topic_num = found
    row_changes(connection).repos.add(repo_num)
    connection.execute(delete(epochs).where(epochs.c.num == epoch_num))
    is_named = (epochs.c.topic_num == topic_num) | (epochs.c.writers_topic_num == topic_num)
    is_alone = (topics.c.num == topic_num) & (topics.c.commit_count == 0) & (topics.c.branch_num.is_(None))
    name = connection.execute(select(topics.c.topic).where(is_alone)).scalar()
    if name is None or connection.execute(select(epochs.c.num).where(is_named)).first() is not None:
        return
    waiting = select(pending.c.num).where(pending.c.topic_num == topic_num)
    for table in (pending_causes, pending_publications):
        connection.execute(delete(table).where(table.c.pending_num.in_(waiting)))
    connection.execute(delete(pending).where(pending.c.topic_num == topic_num))
    forget_sketches(connection, select(topics.c.topic).where(is_alone))
    reserve_used_numbers(connection, topics)
    connection.execute(delete(topics).where(is_alone))


def _find_topics(connection: Connection, repo_num: int) -> tuple[list[int], list[int]]:
    """Return the topics that no epoch of another repo names, and those that one does."""
    of_repo = select(branches.c.num).where(branches.c.repo_num == repo_num)
    links = connection.execute(select(topics.c.num).where(topics.c.branch_num.in_(of_repo))).scalars()
    columns = epochs.c
    named: dict[int, set[int]] = {num: {repo_num} for num in links}
    own = select(columns.topic_num).where(columns.repo_num == repo_num)
    mine = own.union(select(columns.writers_topic_num).where(columns.repo_num == repo_num))
    query = select(columns.repo_num, columns.topic_num, columns.writers_topic_num).where(
        columns.topic_num.in_(mine) | columns.writers_topic_num.in_(mine)
    )
    for user, *nums in connection.execute(query):
        for num in nums:
            named.setdefault(num, set()).add(user)
    nums = sorted(num for num in named if num is not None)
    return [num for num in nums if named[num] == {repo_num}], [
        num for num in nums if named[num] != {repo_num}
    ]


def forget_sketches(connection: Connection, of_topics: "Select[tuple[bytes]]") -> None:
    """Forget what is kept to compare topics that are about to be forgotten."""
    connection.execute(delete(sketches).where(sketches.c.topic.in_(of_topics)))
