"""Store check, part 3: pending commits are well-formed, not accepted already, and count their absent causes."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, func, select

from protocol.codec import DecodeError
from protocol.ids import CommitId
from protocol.publication import decode_publication
from storage.commits.pending import CAUSES
from storage.engine.id_keys import chunks, id_key
from storage.engine.queries import stream_rows
from storage.schema.schema import commits, pending, pending_causes, pending_publications

_BATCH: Final = 500


def find_wrong_pending(connection: Connection) -> Iterator[tuple[int, CommitId, str]]:
    """Yield (number, commit id, what is wrong) of pending commits that are not as they must be."""
    counts = _count_causes(connection)
    accepted = _find_accepted(connection)
    query = select(pending, pending_publications.c.publication).outerjoin(
        pending_publications, pending_publications.c.pending_num == pending.c.num
    )
    for row in stream_rows(connection, query.order_by(pending.c.num), _BATCH):
        fault = _find_fault(row.commit_id, row.publication)
        if not fault and (row.id_key != id_key(row.commit_id) or row.size != len(row.publication)):
            fault = "has a wrong key or size"
        if not fault and row.num in accepted:
            fault = "is accepted already"
        if not fault and (row.lacking != counts[row.num] or (row.reason == CAUSES and not row.lacking)):
            fault = f"lacks {counts[row.num]} causes, and its row says {row.lacking}"
        if fault:
            yield row.num, row.commit_id, fault


def _find_fault(commit_id: CommitId, publication: bytes | None) -> str:
    if publication is None:
        return "has no publication"
    try:
        found = decode_publication(publication).commit_id
    except DecodeError as error:
        return str(error)
    return "" if found == commit_id else f"is the publication of {found.hex()}"


def _count_causes(connection: Connection) -> "Counter[int]":
    query = select(pending_causes.c.pending_num, func.count()).group_by(pending_causes.c.pending_num)
    return Counter({row[0]: row[1] for row in stream_rows(connection, query, _BATCH)})


def _find_accepted(connection: Connection) -> set[int]:
    ids = {row[0]: row[1] for row in connection.execute(select(pending.c.num, pending.c.commit_id))}
    found: set[CommitId] = set()
    for part in chunks([id_key(raw) for raw in ids.values()]):
        found.update(
            connection.execute(select(commits.c.commit_id).where(commits.c.id_key.in_(part))).scalars()
        )
    return {num for num, commit_id in ids.items() if commit_id in found}
