"""Bundles, written again from docs/specification/bundles.md."""

from typing import Any

from blake3 import blake3

from tests.vectors import second_reader as reader

START = b"ravel bundle 1\n"
RECORD_SIZE_MAX = 2 * 1024 * 1024
FIELDS = {"bundle-head1": 1, "bundle-batch1": 2, "bundle-end1": 3}


def write(records: list[list[Any]]) -> bytes:
    """The bundle of these records."""
    parts = [reader.pack(record) for record in records]
    content = START + b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return content + blake3(content).digest()


def read(content: bytes) -> list[list[Any]]:
    """The records of a bundle. Raises Refused for anything else."""
    if not content.startswith(START):
        raise reader.Refused
    records: list[list[Any]] = []
    rest = content.removeprefix(START)
    while not records or records[-1][0] != "bundle-end1":
        size = int.from_bytes(rest[:4], "little")
        part, rest = rest[4 : 4 + size], rest[4 + size :]
        if size > RECORD_SIZE_MAX or len(part) < size or not part:
            raise reader.Refused
        record = reader.unpack(part)
        reader.require(FIELDS[record[0]] == len(record) - 1, "its fields")
        if (record[0] == "bundle-head1") != (not records):
            raise reader.Refused
        records.append(record)
    if rest != blake3(content[: len(content) - len(rest)]).digest():
        raise reader.Refused
    return records


def remake(vector: dict[str, Any]) -> dict[str, Any]:
    """The bundle from its parts; what is refused must be."""
    (_, since), *batches, (_, count, left_out, stands_on) = read(bytes.fromhex(vector["bundle"]))
    assert (count, left_out) == (len(batches), 0)
    for one in vector["refused"]:
        try:
            read(bytes.fromhex(one["bundle"]))
        except reader.Refused:
            continue
        raise AssertionError(one["reason"])
    records = [["bundle-head1", since], *batches, ["bundle-end1", count, left_out, stands_on]]
    return vector | {
        "since": since,
        "topics": [topic for _, topic, _ in batches],
        "publications": [one for _, _, items in batches for one in items],
        "stands_on": stands_on,
        "bundle": write(records),
    }
