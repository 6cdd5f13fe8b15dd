"""Commits and publications: what is sealed opens, and every change is found."""

from itertools import pairwise

import pytest

from protocol import signing
from protocol.block import Block, Reference, WrongKey, encrypt_block
from protocol.body import encode_body
from protocol.codec import DecodeError, encode
from protocol.commit import (
    Commit,
    Content,
    HeaderKeys,
    Links,
    TanglePlace,
    UnknownVersion,
    certificate_pool,
    create_commit,
    lipmaa,
    open_commit,
    skip_path,
)
from protocol.content import Post
from protocol.ids import Signature, TopicKey, UserId
from protocol.keys import BlockKey, ConvergenceSecret, GivenKey, ReadKey, TopicSeed, UserSeed
from protocol.limits.formats import PUBLICATION_BLOCK_COUNT_MAX
from protocol.object import build_object
from protocol.publication import (
    Publication,
    WrongReadKey,
    create_publication,
    decode_publication,
    encode_publication,
    open_sealed_key,
)
from tests.support.ids import as_commit_id, as_object_id

SECRET = ConvergenceSecret(b"c" * 32)
READ_KEY = ReadKey(b"r" * 32)
USER, USER_SECRET = signing.key_pair(UserSeed(b"u" * 32))
ACK = as_commit_id(b"a" * 32)
BODY, BODY_BLOCKS = build_object(encode_body(Post("hello")), SECRET)


def _content(**changes: object) -> Content:
    fields: dict[str, object] = {
        "author": USER,
        "branch": b"b" * 32,
        "epoch": b"e" * 32,
        "feed_sequence": 1,
        "feed_previous": None,
        "tangles": (TanglePlace("group", as_commit_id(b"e" * 32), (as_commit_id(b"e" * 32),)),),
        "timestamp": 1_700_000_000_000,
        "metadata": b"",
        "body": BODY,
        "keys": HeaderKeys(acks=(GivenKey(b"k" * 32),)),
    }
    return Content(**(fields | changes))  # type: ignore[arg-type]  # a table of overrides


def _commit(**changes: object) -> tuple[Commit, Block]:
    acks = changes.pop("acks", (ACK,))
    links = changes.pop("links", Links())
    return create_commit(acks, links, _content(**changes), USER_SECRET, SECRET)  # type: ignore[arg-type]  # as above


def _publication() -> Publication:
    commit, block = _commit()
    return create_publication(TopicSeed(b"t" * 32), READ_KEY, commit.key, (block, *BODY_BLOCKS), b"n" * 24)


def _encoded(publication: Publication) -> bytes:
    blocks = tuple(block.encoded for block in publication.blocks)
    return encode_publication(publication.topic, publication.sealed_key, blocks, publication.signature)


def test_a_commit_opens_and_its_signature_holds() -> None:
    commit, block = _commit()
    assert open_commit(block, commit.key, SECRET) == commit
    signing.verify_signature(USER, commit.digest, commit.signature)
    assert _commit()[1].block_id == block.block_id, "equal input, equal id"


def test_the_signature_covers_the_acks() -> None:
    commit, block = _commit()
    plaintext_key = commit.key
    moved, _ = encrypt_block(b"", SECRET)
    other = Block(block.block_id, (), (as_commit_id(b"z" * 32),), block.ciphertext, block.encoded)
    forged = open_commit(other, plaintext_key, SECRET)
    with pytest.raises(signing.BadSignature):
        signing.verify_signature(USER, forged.digest, forged.signature)
    assert moved.block_id != block.block_id


SHAPE_DEFECTS: dict[str, tuple[dict[str, object], str]] = {
    "duplicate_ack": (
        {"acks": (ACK, ACK), "keys": HeaderKeys(acks=(GivenKey(b"k" * 32), GivenKey(b"k" * 32)))},
        "duplicate_ids",
    ),
    "dep_and_negative_dep": (
        {
            "links": Links(deps=(ACK,), ndeps=(ACK,)),
            "keys": HeaderKeys(acks=(GivenKey(b""),), deps=(GivenKey(b""),)),
        },
        "duplicate_ids",
    ),
    "a_key_too_few": ({"keys": HeaderKeys()}, "keys_do_not_match"),
    "a_short_key": ({"keys": HeaderKeys(acks=(GivenKey(b"k" * 31),))}, "keys_do_not_match"),
    "first_of_a_feed_with_previous": ({"feed_previous": ACK}, "bad_feed_link"),
    "later_in_a_feed_without_previous": ({"feed_sequence": 2}, "bad_feed_link"),
    "no_skip_link": ({"feed_sequence": 4, "feed_previous": ACK}, "bad_lipmaa_link"),
    "a_skip_link_too_many": (
        {"feed_sequence": 2, "feed_previous": ACK, "links": Links(lipmaa=ACK)},
        "bad_lipmaa_link",
    ),
    "tangles_unsorted": (
        {"tangles": (TanglePlace("thread", ACK, ()), TanglePlace("group", ACK, ()))},
        "duplicate_ids",
    ),
    "tangle_twice": (
        {"tangles": (TanglePlace("group", ACK, ()), TanglePlace("group", ACK, ()))},
        "duplicate_ids",
    ),
    "previous_twice": ({"tangles": (TanglePlace("group", ACK, (ACK, ACK)),)}, "duplicate_ids"),
    "metadata_over_its_bound": ({"metadata": bytes(4097)}, "bad_shape"),
    "feed_sequence_zero": ({"feed_sequence": 0}, "bad_shape"),
    "tangle_kind_of_capitals": ({"tangles": (TanglePlace("Group", ACK, ()),)}, "bad_shape"),
    "author_of_31_bytes": ({"author": USER[:31]}, "bad_shape"),
}


@pytest.mark.parametrize("defect", SHAPE_DEFECTS)
def test_a_commit_of_inconsistent_shape_is_refused(defect: str) -> None:
    changes, reason = SHAPE_DEFECTS[defect]
    with pytest.raises(DecodeError) as caught:
        _commit(**changes)
    assert caught.value.reason == reason


def test_a_version_that_is_not_known_is_told_apart() -> None:
    block, key = encrypt_block(b"\x92\xa7commit2\xc0", SECRET)
    with pytest.raises(UnknownVersion):
        open_commit(block, key, SECRET)


def test_a_commit_is_not_a_body_and_a_body_is_no_commit() -> None:
    with pytest.raises(DecodeError):
        open_commit(BODY_BLOCKS[0], BODY.key, SECRET)


def test_a_publication_opens_for_readers_of_the_branch() -> None:
    publication = _publication()
    decoded = decode_publication(_encoded(publication))
    assert decoded == publication
    commit = open_commit(decoded.blocks[0], open_sealed_key(decoded, READ_KEY), SECRET)
    assert commit.content.author == USER
    signing.verify_signature(decoded.topic, decoded.digest, decoded.signature)


def test_a_sealed_key_is_bound_to_its_commit_topic_and_read_key() -> None:
    publication = _publication()
    other_commit, other_block = _commit(timestamp=1)
    moved = Publication(publication.topic, publication.sealed_key, (other_block,), publication.signature)
    other_topic = Publication(
        TopicKey(b"x" * 32), publication.sealed_key, publication.blocks, publication.signature
    )
    for wrong in (moved, other_topic):
        with pytest.raises(WrongReadKey):
            open_sealed_key(wrong, READ_KEY)
    with pytest.raises(WrongReadKey):
        open_sealed_key(publication, ReadKey(b"x" * 32))
    with pytest.raises(WrongKey):
        open_commit(publication.blocks[0], other_commit.key, SECRET)


def test_the_topic_signature_covers_blocks_and_seal() -> None:
    publication = _publication()
    _, other_block = _commit(timestamp=1)
    for changed in (
        Publication(publication.topic, publication.sealed_key, (other_block,), publication.signature),
        Publication(publication.topic, bytes(72), publication.blocks, publication.signature),
    ):
        with pytest.raises(signing.BadSignature):
            signing.verify_signature(changed.topic, changed.digest, changed.signature)


def test_a_publication_of_too_many_blocks_is_refused() -> None:
    publication = _publication()
    blocks = (publication.blocks[0].encoded,) * (PUBLICATION_BLOCK_COUNT_MAX + 1)
    with pytest.raises(DecodeError, match="too_large"):
        encode_publication(publication.topic, publication.sealed_key, blocks, publication.signature)


def test_a_truncated_publication_is_refused_at_every_byte() -> None:
    encoded = _encoded(_publication())
    for size in range(len(encoded)):
        with pytest.raises(DecodeError):
            decode_publication(encoded[:size])


def test_lipmaa_links_of_the_published_function() -> None:
    # The non-trivial jumps as PZP's specification lists them, there counted from 0.
    jumps = {
        3: 0,
        7: 3,
        11: 7,
        12: 3,
        16: 12,
        20: 16,
        24: 20,
        25: 12,
        29: 25,
        33: 29,
        37: 33,
        38: 25,
        39: 12,
        43: 39,
    }
    for depth in range(44):
        assert lipmaa(depth + 1) - 1 == jumps.get(depth, depth - 1)


def _links(sequence: int) -> set[int]:
    return {sequence - 1, lipmaa(sequence)}


@pytest.mark.slow
def test_no_path_over_links_is_shorter() -> None:
    for later in range(1, 150):
        distances, reached = {later: 0}, [later]
        for sequence in reached:
            for link in _links(sequence) - distances.keys() - {0}:
                distances[link] = distances[sequence] + 1
                reached.append(link)
        for earlier in range(1, later + 1):
            path = skip_path(later, earlier)
            assert (path[0], path[-1], len(path) - 1) == (later, earlier, distances[earlier])
            assert all(low in _links(high) for high, low in pairwise(path))
    for pair in ((3, 0), (3, 4)):
        with pytest.raises(ValueError, match="no path"):
            skip_path(*pair)


@pytest.mark.slow
def test_two_certificate_pools_always_tie_the_two_places() -> None:
    pools = {sequence: certificate_pool(sequence) for sequence in range(1, 370)}
    for later, pool in pools.items():
        assert pool == sorted(set(pool), reverse=True)
        for earlier in range(1, later):
            held, reached = {*pool, *pools[earlier]}, [later]
            while reached[-1] > earlier:
                links = _links(reached[-1]) & held
                reached.append(min(link for link in links if link >= earlier))
            assert reached[-1] == earlier
    assert len(certificate_pool(2**53 - 1)) < 250
    with pytest.raises(ValueError, match="no path"):
        certificate_pool(0)


def test_signatures_of_small_order_are_refused_whatever_the_library_says() -> None:
    identity = (1).to_bytes(32, "little")
    for key, signature in (
        (identity, identity + bytes(32)),
        (USER, identity + bytes(32)),
        (USER, bytes(32) + bytes(32)),
        (USER, b"\xff" * 64),
    ):
        with pytest.raises(signing.BadSignature):
            signing.verify_signature(UserId(key), b"m" * 32, Signature(signature))
    for key in (identity, bytes(32), b"\xff" * 32, b"\x02" + bytes(31), USER[:31]):
        with pytest.raises(signing.BadSignature):
            signing.verify_public_key(UserId(key))


def test_an_unreduced_s_is_refused() -> None:
    signature = signing.sign(USER_SECRET, b"m" * 32)
    order = 2**252 + 27742317777372353535851937790883648493
    unreduced = int.from_bytes(signature[32:], "little") + order
    with pytest.raises(signing.BadSignature):
        signing.verify_signature(
            USER, b"m" * 32, Signature(signature[:32] + unreduced.to_bytes(32, "little"))
        )


def test_encodings_are_pinned_by_their_first_bytes() -> None:
    assert (
        encode(Reference(as_object_id(b"\x01" * 32), BlockKey(b"\x02" * 32))).hex().startswith("92c4200101")
    )
