"""Store check, part 4: the search index: whether its rows agree with one another, and with the commits that are here.

Whether it has the words of posts is `node.care.fsck`'s to say, which opens some.
"""

from sqlalchemy import Connection, func, select

from storage.check.check_integrity import CheckFindings
from storage.commits.search_index import (
    PLACE_SIZE,
    RULES_UNREADABLE,
    clear_index,
    find_index_fault,
    load_state,
)
from storage.commits.search_texts import load_content
from storage.engine.queries import sum_of
from storage.schema.schema import branches
from storage.schema.search_schema import search_parts, search_texts, search_words


def inspect_search(connection: Connection, findings: CheckFindings) -> None:
    """Compare parts of the index with their words; report what is sealed and cannot be read."""
    state = load_state(connection)
    if state is None:  # there is none, or its removal was interrupted, which the daemon ends
        return
    if state.rules == RULES_UNREADABLE:
        findings.add("search", "the index", "its key cannot be read")
    fault = find_index_fault(connection)
    if fault:
        findings.add("search", "the index", fault)
    size = sum_of(func.length(search_words.c.places))
    by_part = select(search_words.c.part_num, size).group_by(search_words.c.part_num)
    sizes: dict[int, int] = dict(map(tuple, connection.execute(by_part)))
    here = set(connection.execute(select(branches.c.num)).scalars())
    parts = select(search_parts.c.num, search_parts.c.branch_num, search_parts.c.size)
    for num, branch_num, said in connection.execute(parts):
        findings.checked["search_parts"] += 1
        found = sizes.pop(num, 0)
        if found != said * PLACE_SIZE:
            detail = f"says that it has {said} entries, and has {found // PLACE_SIZE}"
            findings.add("search", f"part {num}", detail)
        if branch_num not in here or (num < 0 and num != -branch_num):
            findings.add("search", f"part {num}", "is that of a branch that is not here")
    for num in sizes:
        findings.add("search", f"part {num}", "has words, and is not there")
    for (branch_num,) in connection.execute(
        select(search_texts.c.branch_num).where(search_texts.c.content.is_not(None))
    ).all():
        findings.checked["search_texts"] += 1
        if branch_num not in here or load_content(connection, branch_num) is None:
            findings.add(
                "search", f"text of branch {branch_num}", "cannot be read, or its branch is not here"
            )


def drop_index(connection: Connection) -> bool:
    """Remove the index, for the daemon to make it again; return True if there was one."""
    found = load_state(connection) is not None
    while clear_index(connection):
        pass
    return found
