"""What Python refuses for one reason alone, the compiled reader leaves to it: one input for each check of the two."""

from typing import Final

import pytest
from msgspec import Raw

from node.ingest.native_reading import pack_keys
from node.ingest.publication_parsing import opening_keys
from node.ingest.publication_reading import DecodedCommit, Drop, branch_mark_in, read_publication
from protocol.codec import encode
from protocol.crypto import hashing
from protocol.crypto.keys import ConvergenceSecret, UserSeed
from protocol.crypto.signing import _FIELD_PRIME, _GROUP_ORDER, SMALL_ORDER_Y, Claim, key_pair
from protocol.ids import BlockId, BranchId, Digest, Signature, root_branch
from tests.fuzz.decoders import _REPO, _TOPIC, KEY
from tests.fuzz.native import _METADATA, BODY, MARK, honest_commit, publish
from tests.support.native import credulous_library, library

_KEYS: Final = opening_keys(_TOPIC)
_ID: Final = b"\x07" * 32
_ONE_ID: Final = b"\xc4\x20" + _ID
_NO_BRANCH: Final = BranchId(bytes(32))


def _body(*fields: object) -> bytes:
    """A publication whose body's block has these acks, rank and mark."""
    block = encode(["block2", [], *fields, BODY.ciphertext])
    return publish(honest_commit(BlockId(hashing.block_id(block))), body=block)


def _in_branch(branch: BranchId) -> bytes:
    """A publication in a branch, with that one's mark."""
    clear = encode([]) + encode(0) + encode(branch_mark_in(KEY, branch))
    return publish(honest_commit(branch=branch), clear)


def _clear(acks: bytes = b"\x90", rank: bytes = b"\0", mark: bytes = encode(MARK)) -> bytes:
    return publish(honest_commit(), acks + rank + mark)


def _tangles(*kinds: object) -> bytes:
    return publish(honest_commit(tangles=[[kind, _ID, []] for kind in kinds]))


_HONEST: Final = publish(honest_commit())
_MISSES: Final = {
    "number in two bytes": publish(honest_commit(timestamp=Raw(b"\xcc\x7f"))),
    "number in three bytes": publish(honest_commit(timestamp=Raw(b"\xcd\0\xff"))),
    "number in five bytes": publish(honest_commit(timestamp=Raw(b"\xce\0\0\xff\xff"))),
    "number in nine bytes": publish(honest_commit(timestamp=Raw(b"\xcf\0\0\0\0\xff\xff\xff\xff"))),
    "signed number": publish(honest_commit(timestamp=Raw(b"\xd0\x01"))),
    "time over the bound": publish(honest_commit(timestamp=2**53)),
    "rank over the bound": _clear(rank=encode(2**53)),
    "bytes with a long header": publish(
        honest_commit(metadata=Raw(b"\xc5\0" + bytes([len(_METADATA)]) + _METADATA))
    ),
    "list with a long header": _clear(acks=b"\xdc\0\x01" + _ONE_ID),
    "empty list with a long header": _clear(acks=b"\xdc\0\0"),
    "ack twice": _clear(acks=b"\x92" + 2 * _ONE_ID),
    "dep twice": publish(honest_commit(links=[[_ID, _ID], [], [], [], None])),
    "previous twice": publish(honest_commit(tangles=[["a", _ID, [_ID, _ID]]])),
    "mark of another length": _clear(mark=encode(MARK + b"x")),
    "no mark": _clear(mark=encode(b"")),
    "another mark": _clear(mark=encode(b"another!")),
    "same tangle twice": _tangles("a", "a"),
    "tangles in another order": _tangles("ab", "a"),
    "tangle of no letters": _tangles("a_"),
    "tangle that begins with a number": _tangles("1a"),
    "tangle without a name": _tangles(""),
    "long name of a tangle": _tangles("z" * 33),
    "text with a long header": _tangles(Raw(b"\xd9\x01a")),
    "flag that is a number": publish(honest_commit(by_writer=Raw(b"\x01"))),
    "flag that is nil": publish(honest_commit(whole=Raw(b"\xc0"))),
    "no place in the feed": publish(
        honest_commit(links=[[], [], [], [], _ID], feed_sequence=0, feed_previous=_ID)
    ),
    "first with a commit before": publish(honest_commit(feed_previous=_ID)),
    "second without one": publish(honest_commit(feed_sequence=2)),
    "skip link where none is": publish(honest_commit(links=[[], [], [], [], _ID])),
    "no skip link where one is": publish(honest_commit(feed_sequence=4, feed_previous=_ID)),
    "another epoch": publish(honest_commit(epoch=_ID)),
    "no epoch": publish(honest_commit(epoch=bytes(32))),
    "root branch": _in_branch(root_branch(_REPO)),
    "no branch, and a mark": _in_branch(_NO_BRANCH),
    "bytes after the commit": publish(honest_commit() + b"\0"),
    "bytes after the publication": _HONEST + b"\0",
    "bytes after the body's block": publish(
        honest_commit(BlockId(hashing.block_id(BODY.encoded + b"\0"))), body=BODY.encoded + b"\0"
    ),
    "body that has acks": _body([_ID], 0, b""),
    "body that has a rank": _body([], 1, b""),
    "body that has a short mark": _body([], 0, b"x"),
    "another body": publish(honest_commit(BlockId(_ID))),
    "another topic": _HONEST.replace(_KEYS.topic, _ID),
    "key that is not the hash": publish(honest_commit(), convergence=ConvergenceSecret(_ID)),
}


@pytest.mark.parametrize("item", _MISSES.values(), ids=_MISSES)
def test_a_near_miss_is_left_to_python_which_refuses_it(item: bytes) -> None:
    packed = pack_keys(_KEYS, b"", checks_topics=True)
    assert [one is None for one in credulous_library().read(packed, [_HONEST, item])] == [False, True]
    try:
        found = read_publication(_KEYS, item).found
    except Drop:
        return
    if item is _MISSES["root branch"]:  # where metadata is no word, so that the body is opened
        assert isinstance(found, DecodedCommit)
    else:
        assert not isinstance(found, DecodedCommit)


def test_signatures_in_another_form_are_refused_before_libsodium_sees_them() -> None:
    user, _ = key_pair(UserSeed(b"k" * 32))
    good, ends = b"\x02" + bytes(31), [_FIELD_PRIME, _FIELD_PRIME + 2, 2**255 - 1, *SMALL_ORDER_Y]
    points = [(y | sign << 255).to_bytes(32, "little") for y in ends for sign in (0, 1)]
    numbers = [one.to_bytes(32, "little") for one in (_GROUP_ORDER, _GROUP_ORDER + 1, 2**256 - 1)]
    signatures = [good + good, *(one + good for one in points), *(good + one for one in numbers)]
    signatures.append(good + (_GROUP_ORDER - 1).to_bytes(32, "little"))
    claims = [Claim(user, Digest(_ID), Signature(one)) for one in signatures]
    expected = [True] + [False] * (len(points) + len(numbers)) + [True]
    assert credulous_library().check(claims) == expected


@pytest.mark.parametrize("checks_topics", [False, True])
def test_a_commit_that_its_author_did_not_sign_is_left_to_python(checks_topics: bool) -> None:
    packed = pack_keys(_KEYS, b"", checks_topics=checks_topics)
    assert library().read(packed, [_HONEST]) == [None]
