"""Texts of branches as the search index keeps them: the clear text of each, sealed, and whether it is to be read anew.

A text is what many commits come to, and only a process of its own can tell that. So its clear text is kept, and a search
compares that. What the index has of it is a part of its own (`search_index.replace_text`), and one entry: the text's last
commit. When a commit that a text is made of becomes void, or its body goes, the clear text is removed in the same
transaction: a search finds nothing in it until it was read anew. What was added changes nothing until then.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, or_, select, update

from protocol.formats.body import Carried, kind_name
from protocol.formats.document_kinds import TEXT
from storage.engine.column_encryption import BadSecret, cipher_of, search_text_place
from storage.engine.id_keys import PackedNums, chunks, unpack_nums
from storage.schema.schema import branches, commits
from storage.schema.search_schema import search_texts

TEXT_KINDS: Final = frozenset({kind_name(Carried), *map(kind_name, TEXT.bodies)})
"""Kinds of bodies that a text may be made of."""


@dataclass(frozen=True, slots=True)
class DueText:
    """Branch whose text must be read again. `due` counts how often that was noted.

    0: it was read without all of what the branch continues, which may have come since.
    """

    branch_num: int
    due: int


def mark_texts_due(connection: Connection, branch_nums: Iterable[int]) -> None:
    """Note that something was added to the texts of these branches. Costs O(branches)."""
    for some in chunks(sorted(set(branch_nums))):
        known = select(search_texts.c.branch_num).where(search_texts.c.branch_num.in_(some))
        here = set(connection.execute(known).scalars())
        connection.execute(
            update(search_texts).where(search_texts.c.branch_num.in_(some)).values(due=search_texts.c.due + 1)
        )
        exists = select(branches.c.num).where(branches.c.num.in_(some), branches.c.num.not_in(here))
        new = [{"branch_num": num, "due": 1, "sources": b""} for num in connection.execute(exists).scalars()]
        if new:
            connection.execute(insert(search_texts), new)


def invalidate_texts(connection: Connection, nums: Sequence[int], *, is_gone: bool) -> None:
    """Note that these commits count, or their bodies are here, otherwise than before. Costs O(branches of their repos).

    Where something `is_gone`, the clear text of each text that they may be a part of is removed.
    """
    changed: set[int] = set()
    for some in chunks(nums):
        query = select(commits.c.branch_num).where(
            commits.c.num.in_(some), commits.c.body_kind.in_(TEXT_KINDS)
        )
        changed.update(connection.execute(query.distinct()).scalars())
    for some in chunks(sorted(changed)):
        repo_nums = select(branches.c.repo_num).where(branches.c.num.in_(some))
        query = select(search_texts.c.branch_num, search_texts.c.sources).join(
            branches, branches.c.num == search_texts.c.branch_num
        )
        rows = connection.execute(query.where(branches.c.repo_num.in_(repo_nums))).all()
        # One that was never read may be read just now.
        wanted = [num for num, sources in rows if not sources or not changed.isdisjoint(unpack_nums(sources))]
        for part in chunks(wanted):
            values = {"due": search_texts.c.due + 1, **({"content": None} if is_gone else {})}
            connection.execute(update(search_texts).where(search_texts.c.branch_num.in_(part)).values(values))


def load_due(connection: Connection, after: int) -> DueText | None:
    """Load the next text to read again, or that was read in part, of a branch above this number."""
    query = select(search_texts.c.branch_num, search_texts.c.due).where(
        or_(search_texts.c.due > 0, search_texts.c.sources == b""), search_texts.c.branch_num > after
    )
    row = connection.execute(query.order_by(search_texts.c.branch_num).limit(1)).first()
    return None if row is None else DueText(*row)


def count_due(connection: Connection, branch_nums: Collection[int] | None = None) -> int:
    """Count the texts to be read again, of these branches or of all. Costs O(those)."""
    due = connection.execute(select(search_texts.c.branch_num).where(search_texts.c.due > 0)).scalars().all()
    return len(due if branch_nums is None else set(due).intersection(branch_nums))


def load_content(connection: Connection, branch_num: int) -> bytes | None:
    """Load the clear text of a branch as it was kept. None: there is none, it must be read again, or is damaged."""
    query = select(search_texts.c.content).where(search_texts.c.branch_num == branch_num)
    sealed = connection.execute(query).scalar()
    if sealed is None:
        return None
    try:
        return cipher_of(connection).open(search_text_place(branch_num), sealed)
    except BadSecret:
        return None


def keep_content(connection: Connection, text: DueText, sources: PackedNums, content: bytes | None) -> bool:
    """Store what a text was read as; return False, and store nothing, if it was noted again since then.

    `sources`: the packed numbers of the branches that it is made of; none where not all of them was here.
    """
    place = search_text_place(text.branch_num)
    sealed = None if content is None else cipher_of(connection).seal(place, content)
    changed = connection.execute(
        update(search_texts)
        .where(search_texts.c.branch_num == text.branch_num, search_texts.c.due == text.due)
        .values(due=0, sources=sources, content=sealed)
    )
    return changed.rowcount == 1


def clear_texts(connection: Connection) -> None:
    """Forget the texts of all branches."""
    connection.execute(delete(search_texts))
