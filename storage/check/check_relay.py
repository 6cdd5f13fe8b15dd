"""Store check of a relay's tables: publications, files and their blocks, sums, and accounts. Nothing of it can be opened."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, func, select

from protocol.codec import DecodeError
from protocol.crypto.hashing import block_id as hash_block
from protocol.formats.block import LEAF_START_SIZE, decode_block, has_children
from protocol.formats.publication import PUBLICATION_ID_COMMIT_SIZE, decode_publication
from protocol.ids import ObjectId
from storage.check.check_integrity import CheckFindings
from storage.engine.id_keys import id_key, pack_ids
from storage.engine.queries import stream_rows, sum_of
from storage.relay.damaged_files import COUNTED_SIZE
from storage.relay.sums import ALL, find_wrong_sums
from storage.schema import relay_schema
from storage.schema.relay_schema import relay_accounts, relay_blocks, relay_file_blocks, relay_files

_BATCH: Final = 500
_BLOCK_BATCH: Final = 16
"""Blocks that are in memory at a time, of 1 MiB at most."""


def inspect_relayed(connection: Connection, findings: CheckFindings) -> None:
    """Check what is kept for others: publications, blocks, files, sums and accounts. Costs O(bytes)."""
    _inspect_commits(connection, findings)
    _inspect_blocks(connection, findings)
    _inspect_files(connection, findings)
    _inspect_accounts(connection, findings)


def _inspect_commits(connection: Connection, findings: CheckFindings) -> None:
    """Check that commits kept for others match their rows and their counts."""
    kept = relay_schema.relay_commits
    counts: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    columns = relay_schema.relay_bare.c
    is_same = (columns.topic_num == kept.c.topic_num) & (columns.commit_num == kept.c.num)
    query = select(
        kept.c.topic_num,
        kept.c.commit_id,
        kept.c.acks,
        kept.c.publication,
        kept.c.publication_id,
        kept.c.publication_key,
        select(columns.commit_num).where(is_same).exists(),
    )
    for topic_num, commit_id, acks, encoded, name, key, is_noted in stream_rows(connection, query, _BATCH):
        findings.checked["relayed"] += 1
        counts[topic_num] += 1
        sizes[topic_num] += len(encoded)
        try:
            publication = decode_publication(encoded)
        except DecodeError as error:
            findings.add("relayed", commit_id.hex(), str(error))
            continue
        block = publication.blocks[0]
        if block.block_id != commit_id or pack_ids(block.acks) != acks:
            findings.add("relayed", commit_id.hex(), "its publication is another commit's, or has other acks")
        elif publication.publication_id != name or id_key(name[PUBLICATION_ID_COMMIT_SIZE:]) != key:
            findings.add("relayed", commit_id.hex(), "its publication has another id")
        elif (publication.body_id is not None) != is_noted:
            state = "lacking" if is_noted else "here"
            findings.add("relayed", commit_id.hex(), f"its body is noted as {state}, and is not")
    firsts = func.count().filter(~kept.c.is_variant)
    for commit_id, count in connection.execute(
        select(kept.c.commit_id, firsts).group_by(kept.c.topic_num, kept.c.commit_id).having(firsts != 1)
    ):
        findings.add("relayed", commit_id.hex(), f"{count} of its publications count as the first")
    topics = relay_schema.relay_topics
    by_topic = select(relay_files.c.topic_num, sum_of(relay_files.c.size)).group_by(relay_files.c.topic_num)
    of_files: dict[int, int] = {row[0]: row[1] for row in connection.execute(by_topic)}
    said = (topics.c.num, topics.c.topic, topics.c.commit_count, topics.c.size, topics.c.file_size)
    for num, topic, count, size, file_size in connection.execute(select(*said)):
        name = f"relayed topic {topic.hex()}"
        if counts[num] != count:
            findings.add("count", name, f"says {count} commits, has {counts[num]}")
        if sizes[num] != size:
            findings.add("count", name, f"says {size} bytes of commits, has {sizes[num]}")
        if of_files.get(num, 0) != file_size:
            findings.add("count", name, f"says {file_size} bytes of files, has {of_files.get(num, 0)}")
    for peer, (summed, true) in find_wrong_sums(connection).items():
        name = "all that is kept for others" if peer == ALL else f"what peer {peer.hex()} brought"
        findings.add(
            "count",
            name,
            f"says {summed.size} bytes and {summed.topic_count} topics, is {true.size} and {true.topic_count}",
        )


def _inspect_blocks(connection: Connection, findings: CheckFindings) -> None:
    """Hash every block of others' files."""
    columns = relay_blocks.c
    query = select(columns.num, columns.id_key, columns.block_id, columns.encoded).order_by(columns.num)
    for num, key, wanted, encoded in stream_rows(connection, query, _BLOCK_BATCH):
        findings.checked["relayed_blocks"] += 1
        if hash_block(encoded) != wanted or id_key(wanted) != key:
            findings.add("relayed", wanted.hex(), "the block of a file: its bytes are not what its id says")
            findings.damage.relayed.add(num)
    is_linked = select(relay_file_blocks.c.block_num).where(relay_file_blocks.c.block_num == columns.num)
    lonely = select(columns.block_id).where(~is_linked.exists()).limit(_BATCH)
    for wanted in connection.execute(lonely).scalars():
        findings.add("relayed", wanted.hex(), "the block of a file that no file has")


def _inspect_files(connection: Connection, findings: CheckFindings) -> None:
    """Check that a file's size is that of its blocks, and that a file marked as whole has all blocks."""
    columns = relay_files.c
    findings.checked["relayed_files"] += connection.execute(
        select(func.count()).select_from(relay_files)
    ).scalar_one()
    counted = COUNTED_SIZE.label("counted")
    for file_id, size, real in connection.execute(select(columns.file_id, columns.size, counted)):
        if size != real:
            findings.add("count", f"relayed file {file_id.hex()}", f"counts {size} bytes, has {real}")
    for _, file_id in find_incomplete(connection):
        findings.add("relayed", file_id.hex(), "the file is kept as whole, and lacks blocks")


def find_incomplete(connection: Connection) -> Iterator[tuple[int, ObjectId]]:
    """Yield numbers and ids of files that are kept as whole, and lack blocks."""
    columns = relay_files.c
    whole = select(columns.num, columns.file_id).where(columns.is_whole).order_by(columns.num)
    for num, file_id in connection.execute(whole).all():
        if not _has_all(connection, num, file_id):
            yield num, file_id


def _has_all(connection: Connection, file_num: int, root: ObjectId) -> bool:
    """Return True if a file has its root block, and all children of each block that it has."""
    here: set[int] = set()
    inner: list[int] = []
    start = func.substr(relay_blocks.c.encoded, 1, LEAF_START_SIZE)
    query = (
        select(relay_blocks.c.num, relay_blocks.c.id_key, start)
        .join(relay_file_blocks, relay_file_blocks.c.block_num == relay_blocks.c.num)
        .where(relay_file_blocks.c.file_num == file_num)
    )
    for num, key, first in stream_rows(connection, query, _BATCH):
        here.add(key)
        if has_children(first):
            inner.append(num)
    if id_key(root) not in here:
        return False
    for num in inner:
        encoded = connection.execute(select(relay_blocks.c.encoded).where(relay_blocks.c.num == num)).scalar()
        try:
            children = decode_block(encoded or b"").child_ids
        except DecodeError:
            return False
        if not here.issuperset(map(id_key, children)):
            return False
    return True


def _inspect_accounts(connection: Connection, findings: CheckFindings) -> None:
    """Report accounts without a name or a quota; references have been looked at."""
    columns = relay_accounts.c
    for num, name, quota in connection.execute(select(columns.num, columns.name, columns.quota)):
        findings.checked["relay_accounts"] += 1
        if not name or quota < 1:
            findings.add("account", name or f"row {num}", f"has a quota of {quota} bytes")
