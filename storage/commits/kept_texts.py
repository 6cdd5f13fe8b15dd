"""Texts of branches as they stand, kept so that reading one costs its size and no commit is opened for it.

A text is written here when it is read, not when commits come: merging it takes what the commits say, opened, and most
branches have no reader of texts. Updates that came since are added then, at their own cost. When a commit that a text is
made of becomes void, comes back or moves, or its body comes or goes, what is kept of the text is dropped in the same
transaction, and its *token* grows: nobody goes on from what was read before, and no copy of an erased body stays.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from protocol.formats.body import Carried, kind_name
from protocol.formats.content import Compaction
from protocol.formats.document_kinds import TEXT
from storage.engine.column_encryption import BadSecret, cipher_of, text_block_place, text_place
from storage.engine.id_keys import PackedNums, chunks, unpack_nums
from storage.schema.document_schema import text_blocks, texts
from storage.schema.schema import branches, commits

_KINDS: Final = frozenset({kind_name(Carried), kind_name(Compaction), *map(kind_name, TEXT.bodies)})
"""Kinds of bodies that decide what a text is."""

TextBlock = tuple[int, int, bytes]
"""Client id, first clock, and content."""


@dataclass(frozen=True, slots=True)
class KeptText:
    """Text as it is kept. `summary` is None where nothing is, or it cannot be read."""

    token: int
    upto: int
    summary: bytes | None


def begin_text(connection: Connection, branch_num: int, sources: PackedNums) -> int:
    """Drop a cached text, and record the branches that it is made of; return its new token."""
    query = select(texts.c.token).where(texts.c.branch_num == branch_num)
    known: int | None = connection.execute(query).scalar()
    connection.execute(delete(text_blocks).where(text_blocks.c.branch_num == branch_num))
    if known is None:
        is_here = select(branches.c.num).where(branches.c.num == branch_num)
        if connection.execute(is_here).first() is not None:
            values = {"branch_num": branch_num, "token": 1, "sources": sources, "upto": 0}
            connection.execute(insert(texts).values(values))
        return 1
    values = {"token": known + 1, "sources": sources, "upto": 0, "summary": None}
    connection.execute(update(texts).where(texts.c.branch_num == branch_num).values(values))
    return known + 1


def load_text(connection: Connection, branch_num: int) -> KeptText | None:
    """Load the cached summary of a text, without its blocks; None if it was never read. Costs O(its summary)."""
    query = select(texts.c.token, texts.c.upto, texts.c.summary).where(texts.c.branch_num == branch_num)
    row = connection.execute(query).first()
    if row is None:
        return None
    token, upto, sealed = row
    try:
        summary = None if sealed is None else cipher_of(connection).open(text_place(branch_num), sealed)
    except BadSecret:
        summary = None
    return KeptText(token, upto, summary)


def load_kept_branches(connection: Connection) -> list[int]:
    """Load the numbers of the branches whose texts are kept. Costs O(texts)."""
    query = select(texts.c.branch_num).where(texts.c.summary.is_not(None)).order_by(texts.c.branch_num)
    return list(connection.execute(query).scalars())


def load_text_blocks(connection: Connection, branch_num: int) -> Iterator[TextBlock]:
    """Yield the blocks of a text by client id and clock. Raises BadSecret if one is not as it was written."""
    cipher = cipher_of(connection)
    query = select(text_blocks.c.client, text_blocks.c.clock, text_blocks.c.content)
    query = query.where(text_blocks.c.branch_num == branch_num)
    for client, clock, sealed in connection.execute(
        query.order_by(text_blocks.c.client, text_blocks.c.clock)
    ):
        yield client, clock, cipher.open(text_block_place(branch_num, client, clock), sealed)


def keep_text(connection: Connection, branch_num: int, text: KeptText, blocks: Iterable[TextBlock]) -> bool:
    """Keep a text, with the blocks that are new or changed; return False, and keep nothing, if its token grew since."""
    cipher = cipher_of(connection)
    assert text.summary is not None, "it is to be kept"
    sealed = cipher.seal(text_place(branch_num), text.summary)
    is_same = (texts.c.branch_num == branch_num) & (texts.c.token == text.token)
    kept = connection.execute(update(texts).where(is_same).values(upto=text.upto, summary=sealed))
    if kept.rowcount != 1:
        return False
    rows = [
        {
            "branch_num": branch_num,
            "client": client,
            "clock": clock,
            "content": cipher.seal(text_block_place(branch_num, client, clock), content),
        }
        for client, clock, content in blocks
    ]
    for row in rows:
        connection.execute(
            delete(text_blocks).where(
                text_blocks.c.branch_num == branch_num,
                text_blocks.c.client == row["client"],
                text_blocks.c.clock == row["clock"],
            )
        )
    if rows:
        connection.execute(insert(text_blocks), rows)
    return True


def drop_kept_texts(connection: Connection, nums: Collection[int]) -> None:
    """Drop the cached texts that these commits may be part of: the commits have become void, valid again, or moved.

    Costs O(nums, and texts of their repos).
    """
    changed: set[int] = set()
    for some in chunks(sorted(nums)):
        query = select(commits.c.branch_num).where(commits.c.num.in_(some), commits.c.body_kind.in_(_KINDS))
        changed.update(connection.execute(query.distinct()).scalars())
    for some in chunks(sorted(changed)):
        repo_nums = select(branches.c.repo_num).where(branches.c.num.in_(some))
        query = select(texts.c.branch_num, texts.c.sources).join(
            branches, branches.c.num == texts.c.branch_num
        )
        rows = connection.execute(query.where(branches.c.repo_num.in_(repo_nums))).all()
        _drop(connection, [num for num, sources in rows if not changed.isdisjoint(unpack_nums(sources))])


def drop_all_texts(connection: Connection) -> bool:
    """Drop what is kept of all texts; return True if anything was."""
    found = load_kept_branches(connection)
    _drop(connection, list(connection.execute(select(texts.c.branch_num)).scalars()))
    connection.execute(delete(text_blocks))  # of texts that damage has removed
    return bool(found)


def _drop(connection: Connection, branch_nums: Sequence[int]) -> None:
    for some in chunks(branch_nums):
        connection.execute(delete(text_blocks).where(text_blocks.c.branch_num.in_(some)))
        values = {"token": texts.c.token + 1, "upto": 0, "summary": None}
        connection.execute(update(texts).where(texts.c.branch_num.in_(some)).values(values))
