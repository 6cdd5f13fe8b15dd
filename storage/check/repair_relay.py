"""Rewrites what a relay keeps for others where `check_relay` finds it wrong.

Each function changes the rows that are wrong, gives how many, and belongs to one transaction.
"""

from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.codec import DecodeError
from protocol.formats.publication import PUBLICATION_ID_COMMIT_SIZE, decode_publication
from protocol.ids import CommitId
from storage.check.check_relay import find_incomplete
from storage.engine.id_keys import chunks, id_key, pack_ids, unpack_ids
from storage.engine.queries import stream_rows, sum_of
from storage.relay.damaged_files import break_files, drop_blocks, repair_sizes
from storage.relay.sums import repair_sums
from storage.schema.relay_schema import (
    relay_account_links,
    relay_account_nodes,
    relay_accounts,
    relay_bare,
    relay_blocks,
    relay_commits,
    relay_file_blocks,
    relay_files,
    relay_heads,
    relay_topics,
)

_BATCH: Final = 500


def repair_relayed(connection: Connection) -> int:
    """Rewrite what is kept for others as publications say; damaged ones go, and come again. Return how many."""
    kept = relay_commits.c
    found = connection.execute(select(relay_topics.c.num, relay_topics.c.topic))
    names: dict[int, bytes] = {row.num: row.topic for row in found}
    wrong: dict[int, dict[str, object] | None] = {}
    touched: set[int] = set()
    bare: set[tuple[int, int]] = set()
    columns = ("id_key", "commit_id", "acks", "publication_id", "publication_key")
    query = select(kept.num, kept.topic_num, kept.publication, *(kept[name] for name in columns))
    for num, topic_num, encoded, *said in stream_rows(connection, query, _BATCH):
        values: dict[str, object] | None = None
        try:
            publication = decode_publication(encoded)
        except DecodeError:
            publication = None
        if publication is not None and publication.topic == names.get(topic_num):
            block, name = publication.blocks[0], publication.publication_id
            values = {
                "id_key": id_key(block.block_id),
                "commit_id": block.block_id,
                "acks": pack_ids(block.acks),
                "publication_id": name,
                "publication_key": id_key(name[PUBLICATION_ID_COMMIT_SIZE:]),
            }
            if publication.body_id is not None:
                bare.add((topic_num, num))
        if values is None or [*values.values()] != said:
            wrong[num] = values
            touched.add(topic_num)
    for num, values in wrong.items():
        if values is None:
            connection.execute(delete(relay_commits).where(kept.num == num))
        else:
            connection.execute(update(relay_commits).where(kept.num == num).values(values))
    changed = len(wrong) + _choose_firsts(connection) + _repair_bare(connection, bare)
    for topic_num in names:
        size = select(func.count(), sum_of(func.length(kept.publication))).where(kept.topic_num == topic_num)
        count, total = connection.execute(size).one()
        is_other = (relay_topics.c.commit_count != count) | (relay_topics.c.size != total)
        is_wrong = (relay_topics.c.num == topic_num) & is_other
        if connection.execute(select(relay_topics.c.num).where(is_wrong)).first() is not None:
            touched.add(topic_num)
            changed += 1
        if topic_num in touched:
            here = relay_topics.c.num == topic_num
            connection.execute(update(relay_topics).where(here).values(commit_count=count, size=total))
            _repair_relayed_heads(connection, topic_num)
    return changed


def _repair_bare(connection: Connection, bare: set[tuple[int, int]]) -> int:
    """Rewrite which publications (topic's number, own number) have no body; return how many changed."""
    columns = relay_bare.c
    noted = {(row[0], row[1]) for row in connection.execute(select(columns.topic_num, columns.commit_num))}
    for topic_num, num in noted - bare:
        here = (columns.topic_num == topic_num) & (columns.commit_num == num)
        connection.execute(delete(relay_bare).where(here))
    rows = [{"topic_num": topic_num, "commit_num": num} for topic_num, num in sorted(bare - noted)]
    for part in chunks(rows):
        connection.execute(insert(relay_bare), list(part))
    return len(noted ^ bare)


def _choose_firsts(connection: Connection) -> int:
    """Mark the first publication of each commit as the first, the others as variants; return how many changed."""
    kept = relay_commits.c
    firsts = func.count().filter(~kept.is_variant)
    query = select(kept.topic_num, kept.commit_id, func.min(kept.num)).group_by(
        kept.topic_num, kept.commit_id
    )
    wrong = connection.execute(query.having(firsts != 1)).all()
    for topic_num, commit_id, first in wrong:
        here = (
            (kept.topic_num == topic_num) & (kept.id_key == id_key(commit_id)) & (kept.commit_id == commit_id)
        )
        connection.execute(update(relay_commits).where(here, kept.num != first).values(is_variant=True))
        connection.execute(update(relay_commits).where(kept.num == first).values(is_variant=False))
    return len(wrong)


def _repair_relayed_heads(connection: Connection, topic_num: int) -> None:
    kept = relay_commits.c
    ranks: dict[CommitId, int] = {}
    acked: set[CommitId] = set()
    query = select(kept.commit_id, kept.acks, kept.rank).where(kept.topic_num == topic_num)
    for commit_id, acks, rank in stream_rows(connection, query.order_by(kept.num), _BATCH):
        ranks.setdefault(commit_id, rank)
        acked.update(unpack_ids(acks))
    connection.execute(delete(relay_heads).where(relay_heads.c.topic_num == topic_num))
    rows = [
        {"topic_num": topic_num, "commit_id": raw, "rank": rank}
        for raw, rank in ranks.items()
        if raw not in acked
    ]
    for part in chunks(rows):
        connection.execute(insert(relay_heads), list(part))


def repair_relayed_files(connection: Connection, damaged: set[int], now_ms: int) -> int:
    """Rewrite files that are kept for others, without `damaged` blocks; return how many changed.

    `now_ms` is when files that are not whole begin to wait for what they lack.
    """
    columns = relay_files.c
    changed = len(damaged)
    drop_blocks(connection, damaged, now_ms)
    linked = select(relay_file_blocks.c.block_num)
    lonely = delete(relay_blocks).where(relay_blocks.c.num.not_in(linked))
    changed += connection.execute(lonely).rowcount
    incomplete = [num for num, _ in find_incomplete(connection)]
    break_files(connection, incomplete, now_ms)
    changed += len(incomplete)
    changed += repair_sizes(connection, list(connection.execute(select(columns.num)).scalars()))
    topics = relay_topics.c
    of_topic = select(sum_of(columns.size)).where(columns.topic_num == topics.num).scalar_subquery()
    wrong = update(relay_topics).where(topics.file_size != of_topic).values(file_size=of_topic)
    changed += connection.execute(wrong).rowcount
    return changed + repair_sums(connection)


def drop_wrong_accounts(connection: Connection) -> int:
    """Forget accounts without a name or a quota: nobody knows what was promised. Return how many."""
    columns = relay_accounts.c
    wrong = list(
        connection.execute(select(columns.num).where((columns.quota < 1) | (columns.name == ""))).scalars()
    )
    for part in chunks(wrong):
        for table in (relay_account_nodes, relay_account_links):
            connection.execute(delete(table).where(table.c.account_num.in_(part)))
        connection.execute(delete(relay_accounts).where(columns.num.in_(part)))
    return len(wrong)
