"""Fuzz target of the compiled reader: what it takes, Python reads with the same result, for any bytes.

See `targets` for what a target is. Signatures are not checked, so that what a fuzzer changes comes as far as the fields.
"""

import sys
from pathlib import Path
from random import Random
from typing import Final

from node.ingest import native_reading
from node.ingest.native_reading import _pack_kind, pack_keys
from node.ingest.publication_parsing import NO_REPO, opening_keys
from node.ingest.publication_reading import (
    DecodedCommit,
    Drop,
    OpeningKeys,
    branch_mark_in,
    read_publication,
)
from protocol.codec import encode
from protocol.crypto import hashing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, ReadKey
from protocol.crypto.stream_cipher import encipher
from protocol.formats.commit import Content, Links, lipmaa
from protocol.formats.content import Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.document_kinds import SetEdit, TextUpdate
from protocol.formats.object import build_object
from protocol.formats.publication import hide_key
from protocol.ids import BlockId, BranchId, CommitId, Signature, TopicKey
from tests.fuzz.decoders import _AUTHOR, _EPOCH, _TOPIC, CONVERGENCE, KEY, POST
from tests.support.native import credulous_library

_SIGNATURE: Final = Signature(b"\x02" + bytes(63))
"""In canonical form, and nobody's."""
_BRANCH: Final = BranchId(b"\x22" * 32)
"""No root branch: its commits' bodies count."""
MARK: Final = branch_mark_in(KEY, _BRANCH)
_REFERENCE, (BODY,) = build_object(POST, CONVERGENCE)
_METADATA: Final = declare_kind(Post(""))
_NAMED: Final = declare_kind(TextUpdate(b"", ()), "name")
_DECRYPTED: Final = declare_kind(SetEdit((), (), ()))
_READERS: Final = opening_keys(_TOPIC)
_OPENING: Final = _READERS.openings[0]
_KEYS: Final = (
    _READERS,
    _READERS._replace(
        openings=(_OPENING._replace(read_key=ReadKey(bytes(32))), _OPENING), holds_topic_key=True
    ),
    _READERS._replace(openings=(_OPENING._replace(repo_id=NO_REPO, key=None, mark=MARK),)),
)
"""Of a reader; of a writer, after an epoch that opens nothing; of who follows one branch alone."""


def take_native_reading(data: bytes) -> str:
    """A publication: any bytes, or an honest one with this plaintext of its commit (c; a: bare), with these fields of the
    commit's block (k), or with this block of the body (b). The rest of a publication is honest. Says what a reader finds.
    """
    kind, content = data[:1], data[1:]
    if kind in (b"c", b"a"):
        data = publish(content, is_bare=kind == b"a")
    elif kind == b"k":
        data = publish(honest_commit(), clear=content)
    elif kind == b"b":
        data = publish(honest_commit(BlockId(hashing.block_id(content))), body=content)
    outcomes = [_compare(keys, data) for keys in _KEYS]
    return outcomes[0]


def _compare(keys: OpeningKeys, data: bytes) -> str:
    packed = pack_keys(keys, _pack_kind(_NAMED, TextUpdate), checks_topics=not keys.holds_topic_key)
    (found,) = credulous_library().read(packed, [data])
    try:
        expected = read_publication(keys, data)
    except Drop as error:
        assert found is None, "Python drops it"
        return str(error)
    if found is None:
        return "left to Python"
    assert isinstance(expected.found, DecodedCommit), "Python rejects it"
    assert (found.publication, found.found) == (expected.publication, expected.found)
    assert encode(found.publication) == encode(expected.publication), "in each byte"
    assert encode(found.found) == encode(expected.found), "in each byte"
    return ""


def honest_commit(
    body_id: BlockId | None = None,
    links: object = Links(),
    **changes: object,  # a value
) -> bytes:
    """The plaintext of a commit that the reader takes, but for these fields of its content."""
    body = (_REFERENCE.object_id if body_id is None else body_id, _REFERENCE.key)
    content = Content(_AUTHOR, _BRANCH, _EPOCH.epoch_id, True, True, 1, None, (), 0, _METADATA, _REFERENCE)
    fields = {name: getattr(content, name) for name in Content.__struct_fields__} | {"body": body} | changes
    return encode(["commit2", links, list(fields.values()), _SIGNATURE])


def publish(
    plaintext: bytes,
    clear: bytes | None = None,
    body: bytes | None = None,
    *,
    is_bare: bool = False,
    convergence: ConvergenceSecret = CONVERGENCE,
) -> bytes:
    """The encoding of a publication of any plaintext; `clear` has the acks, the rank and the mark of its block, encoded."""
    key = hashing.block_key(convergence, plaintext)
    if clear is None:
        clear = encode([]) + encode(0) + encode(MARK)
    block = b"\x96" + encode("block2") + encode([]) + clear + encode(encipher(key, plaintext))
    topic, commit_id = TopicKey(_TOPIC.topic), CommitId(hashing.block_id(block))
    hidden = hide_key(_EPOCH.keys.read_key, topic, commit_id, BlockKey(key))
    if is_bare:
        return encode(["bare1", topic, hidden, block, _REFERENCE.object_id, _SIGNATURE])
    blocks = (block, BODY.encoded if body is None else body)
    return encode(["publication1", topic, hidden, blocks, _SIGNATURE])


# --- without a fuzzer, which sees nothing of compiled code: fields of all kinds, and damage to their bytes ---

_TOKENS: Final = [
    *(
        bytes([one])
        for one in b"\x00\x01\x7f\x80\x8f\x90\x91\x92\x93\x95\x9c\x9f\xa0\xa1\xbf\xc0\xc1\xc2\xc3\xe0\xff"
    ),
    *(
        bytes.fromhex(one)
        for one in ("c400", "c40100", "c500ff", "c50100", "d90161", "d920", "da0001", "db00000001")
    ),
    *(bytes.fromhex(one) for one in ("cc7f", "cc80", "ccff", "cd00ff", "cd0100", "ce0000ffff", "ce00010000")),
    *(
        bytes.fromhex("cf" + one)
        for one in ("00000000ffffffff", "0000000100000000", "001fffffffffffff", "0020000000000000")
    ),
    *(bytes.fromhex(one) for one in ("d0ff", "ca00000000", "cb0000000000000000", "c700", "d400")),
    *(bytes.fromhex(one) for one in ("dc0000", "dc000f", "dc0010", "dd00000010")),
]
"""Starts of values, in their one form and in others."""
_NUMBERS: Final = (0, 1, 2, 3, 4, 5, 12, 13, 14, 40, 41, 127, 128, 255, 256, 364, 65535, 65536, 2**32 - 1)
_LARGE: Final = (2**32, 2**53 - 2, 2**53 - 1, 2**53, 2**63, 2**64 - 1)
_TANGLES: Final = ("a", "group", "group-2", "replies", "z" * 31, "z" * 32)
_NO_TANGLES: Final = ("z" * 33, "", "Group", "g_", "-", "é", "a\n")


def make_input(random: Random) -> bytes:
    """Return an input of the target: fields that are mostly legal, then damaged or not."""
    kind = random.choice("ccckkbpa")
    if kind == "k":
        mark = random.choice([MARK, MARK, MARK, b"", MARK + b"x", bytes(8)])
        content = encode(_ids(random)) + encode(_number(random)) + encode(mark)
    elif kind == "b":
        acks, rank, mark = random.choice([([], 0, b"")] * 9 + [([_id(random)], 1, MARK), ([], 1, b"")])
        ciphertext = random.randbytes(random.choice(_NUMBERS[:16]))
        content = encode(["block2", _rarely(random, []), acks, rank, mark, ciphertext])
    else:
        content = _make_commit(random)
    if kind == "p":
        kind, content = "", publish(content, is_bare=random.random() < 0.3)
    if random.random() < 0.5:
        content = _damage(random, content)
    return kind.encode() + content


def _make_commit(random: Random) -> bytes:
    sequence = random.choice([1, 2, 3, 4, 5, 13, 14, 40, _number(random), 2**53 - 1])
    has_skip = 0 < sequence < 2**53 and lipmaa(sequence) != sequence - 1
    if random.random() < 0.05:
        has_skip = not has_skip
    links = [
        _ids(random),
        _rarely(random, []),
        _rarely(random, []),
        _rarely(random, []),
        _id(random) if has_skip else None,
    ]
    kinds = random.sample(_TANGLES, random.choice([0, 1, 1, 2, 3]))
    if random.random() < 0.9:
        kinds.sort()
    if random.random() < 0.1:
        kinds.append(random.choice(_TANGLES + _NO_TANGLES))
    content = [
        _AUTHOR if random.random() < 0.9 else random.randbytes(32),
        _BRANCH if random.random() < 0.95 else random.choice([bytes(32), _id(random)]),
        _EPOCH.epoch_id if random.random() < 0.95 else random.choice([bytes(32), _id(random)]),
        random.random() < 0.5,
        random.random() < 0.5,
        sequence,
        None if (sequence == 1) == (random.random() < 0.97) else _id(random),
        [[kind, _id(random), _ids(random)] for kind in kinds],
        _number(random),
        random.choice(
            [_METADATA] * 6 + [_NAMED, *[_DECRYPTED] * 3, random.randbytes(random.choice([0, 1, 4096, 4097]))]
        ),
        [
            _REFERENCE.object_id if random.random() < 0.97 else _id(random),
            _REFERENCE.key if random.random() < 0.8 else random.randbytes(32),
        ],
        _rarely(random, []),
    ]
    signature = _SIGNATURE if random.random() < 0.95 else random.randbytes(64)
    return encode([random.choice(["commit2"] * 40 + ["commit3", "commit"]), links, content, signature])


def _id(random: Random) -> bytes:
    return bytes([random.randrange(30)]) * random.choice([32] * 50 + [31, 33])


def _ids(random: Random) -> list[bytes]:
    return [_id(random) for _ in range(random.choice([0, 0, 1, 1, 2, 3, 15, 16, 17]))]


def _number(random: Random) -> int:
    return random.choice(_NUMBERS if random.random() < 0.8 else _LARGE)


def _rarely(random: Random, usual: list[bytes]) -> list[bytes]:
    return usual if random.random() < 0.97 else [_id(random)]


def _damage(random: Random, content: bytes) -> bytes:
    """Change some bytes, often so that what was one value is another form of it."""
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        place = random.randrange(len(changed) + 1)
        match random.randrange(5):
            case 0:
                changed[place : place + 1] = random.choice(_TOKENS)
            case 1:
                changed[place:place] = random.choice(_TOKENS)
            case 2:
                del changed[place : place + random.choice([1, 1, 2, 33, 34])]
            case 3:
                changed[place:place] = changed[place : place + random.choice([1, 34, 68])]
            case _:
                changed[place : place + 1] = random.randbytes(1)
    return bytes(changed)


def compare(seed: int, count: int) -> int:
    """Have both readers read so many inputs; return how many the compiled one took."""
    random = Random(seed)
    return sum(not take_native_reading(make_input(random)) for _ in range(count))


if __name__ == "__main__":
    # python -m tests.fuzz.native SEED COUNT [LIBRARY]: another than the product's, such as one that checks its memory.
    if sys.argv[3:]:
        native_reading.LIBRARY = Path(sys.argv[3])  # type: ignore[misc]  # of this process alone
    print(compare(int(sys.argv[1]), int(sys.argv[2])))
