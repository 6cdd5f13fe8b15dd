"""Commits and publications: what is hidden opens, and every change is found."""

import pytest
from msgspec import structs

from protocol.codec import DecodeError, encode
from protocol.crypto import signing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, GivenKey, ReadKey, TopicSeed, UserSeed
from protocol.formats.block import Block, Reference, WrongKey, decode_block, encrypt_block
from protocol.formats.body import encode_body
from protocol.formats.commit import (
    Commit,
    Content,
    Links,
    TanglePlace,
    UnknownVersion,
    create_commit,
    lipmaa,
    open_commit,
)
from protocol.formats.content import Post
from protocol.formats.object import build_object
from protocol.formats.publication import (
    PUBLICATION_ID_COMMIT_SIZE,
    Publication,
    create_publication,
    decode_publication,
    encode_publication,
    open_hidden_key,
    publication_id,
)
from protocol.ids import BranchMark, ObjectId, Signature, TopicKey, UserId
from protocol.limits.formats import PUBLICATION_BLOCK_COUNT_MAX
from tests.support.ids import as_commit_id, as_object_id

SECRET = ConvergenceSecret(b"c" * 32)
READ_KEY = ReadKey(b"r" * 32)
USER, USER_SECRET = signing.key_pair(UserSeed(b"u" * 32))
MARK = BranchMark(b"m" * 8)
ACK = as_commit_id(b"a" * 32)
FILE = as_object_id(b"f" * 32)
BODY, BODY_BLOCKS = build_object(encode_body(Post("hello")), SECRET)


def _content(**changes: object) -> Content:
    fields: dict[str, object] = {
        "author": USER,
        "branch": b"b" * 32,
        "epoch": b"e" * 32,
        "by_writer": True,
        "whole": True,
        "feed_sequence": 1,
        "feed_previous": None,
        "tangles": (TanglePlace("group", as_commit_id(b"e" * 32), (as_commit_id(b"e" * 32),)),),
        "timestamp": 1_700_000_000_000,
        "metadata": b"",
        "body": BODY,
    }
    return Content(**(fields | changes))  # type: ignore[arg-type]  # a table of overrides


def _commit(**changes: object) -> tuple[Commit, Block]:
    acks = changes.pop("acks", (ACK,))
    links, rank, mark = changes.pop("links", Links()), changes.pop("rank", 1), changes.pop("mark", MARK)
    return create_commit(acks, rank, mark, links, _content(**changes), USER_SECRET, SECRET)  # type: ignore[arg-type]  # as above


def _publication() -> Publication:
    commit, block = _commit()
    return create_publication(TopicSeed(b"t" * 32), READ_KEY, commit.key, (block, *BODY_BLOCKS))


def _encoded(publication: Publication) -> bytes:
    blocks = tuple(block.encoded for block in publication.blocks)
    return encode_publication(publication.topic, publication.hidden_key, blocks, publication.signature)


def test_a_commit_opens_and_its_signature_holds() -> None:
    commit, block = _commit()
    assert open_commit(block, commit.key, SECRET) == commit
    signing.verify_signature(USER, commit.digest, commit.signature)
    assert _commit()[1].block_id == block.block_id, "equal input, equal id"


@pytest.mark.parametrize("change", [{"acks": (as_commit_id(b"z" * 32),)}, {"rank": 2}, {"mark": b"n" * 8}])
def test_the_signature_covers_what_stands_in_clear(change: dict[str, object]) -> None:
    commit, block = _commit()
    forged = open_commit(structs.replace(block, **change), commit.key, SECRET)
    with pytest.raises(signing.BadSignature):
        signing.verify_signature(USER, forged.digest, forged.signature)


def test_what_stands_in_clear_is_a_commits_alone() -> None:
    """A relay orders and completes what it cannot read: acks, rank and mark are in the block, or none of them."""
    commit, block = _commit(rank=7)
    told = decode_block(block.encoded)
    assert (told.acks, told.rank, told.mark, told.is_of_commit) == (commit.acks, 7, MARK, True)
    assert (BODY_BLOCKS[0].mark, BODY_BLOCKS[0].is_of_commit) == (b"", False)
    for acks, rank, mark in (((ACK,), 0, b""), ((), 1, b""), ((), 0, b"m" * 7), ((ACK,), 1, b"m")):
        with pytest.raises(DecodeError, match="bad_shape"):
            decode_block(encrypt_block(b"x", SECRET, (), acks, rank, mark)[0].encoded)
    block, key = encrypt_block(b"", SECRET, (block.block_id,), (), 0, MARK)
    with pytest.raises(DecodeError, match="bad_tree"):
        open_commit(block, key, SECRET)


SHAPE_DEFECTS: dict[str, tuple[dict[str, object], str]] = {
    "duplicate_ack": ({"acks": (ACK, ACK)}, "duplicate_ids"),
    "dep_and_negative_dep": ({"links": Links(deps=(ACK,), ndeps=(ACK,))}, "duplicate_ids"),
    "a_key_too_few": ({"links": Links(files=(FILE,))}, "keys_do_not_match"),
    "a_key_too_many": ({"file_keys": (GivenKey(b"k" * 32),)}, "keys_do_not_match"),
    "a_short_key": (
        {"links": Links(files=(FILE,)), "file_keys": (GivenKey(b"k" * 31),)},
        "keys_do_not_match",
    ),
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
    block, key = encrypt_block(b"\x92\xa7commit3\xc0", SECRET, mark=MARK)
    with pytest.raises(UnknownVersion):
        open_commit(block, key, SECRET)


def test_a_commit_is_not_a_body_and_a_body_is_no_commit() -> None:
    with pytest.raises(DecodeError):
        open_commit(BODY_BLOCKS[0], BODY.key, SECRET)


def test_a_publication_opens_for_readers_of_the_branch() -> None:
    publication = _publication()
    decoded = decode_publication(_encoded(publication))
    assert decoded == publication
    commit = open_commit(decoded.blocks[0], open_hidden_key(decoded, READ_KEY), SECRET)
    assert commit.content.author == USER
    signing.verify_signature(decoded.topic, decoded.digest, decoded.signature)


def test_a_hidden_key_is_bound_to_its_commit_topic_and_read_key() -> None:
    publication = _publication()
    other_commit, other_block = _commit(timestamp=1)
    moved = structs.replace(publication, blocks=(other_block,))
    other_topic = structs.replace(publication, topic=TopicKey(b"x" * 32))
    for one, read_key in (
        (moved, READ_KEY),
        (other_topic, READ_KEY),
        (publication, ReadKey(b"x" * 32)),
    ):
        with pytest.raises(WrongKey):
            open_commit(one.blocks[0], open_hidden_key(one, read_key), SECRET)
    with pytest.raises(WrongKey):
        open_commit(publication.blocks[0], other_commit.key, SECRET)


def test_a_publication_follows_from_the_commit_and_the_topics_keys() -> None:
    """Whoever makes it: so two nodes that send one commit send the same bytes, and a relay keeps them once."""
    first, second = _publication(), _publication()
    assert first.encoded == second.encoded
    commit, block = _commit()
    elsewhere = create_publication(TopicSeed(b"v" * 32), READ_KEY, commit.key, (block, *BODY_BLOCKS))
    assert elsewhere.hidden_key != first.hidden_key, "no key is hidden twice by the same bytes"
    assert elsewhere.publication_id != first.publication_id


def test_the_topic_signature_covers_blocks_and_seal() -> None:
    publication = _publication()
    _, other_block = _commit(timestamp=1)
    for changed in (
        Publication(publication.topic, publication.hidden_key, (other_block,), publication.signature),
        Publication(publication.topic, bytes(32), publication.blocks, publication.signature),
    ):
        with pytest.raises(signing.BadSignature):
            signing.verify_signature(changed.topic, changed.digest, changed.signature)


def test_a_publications_id_follows_from_its_parts_whether_its_body_is_there_or_not() -> None:
    whole = _publication()
    own, body = whole.blocks
    bare = Publication(whole.topic, whole.hidden_key, (own,), whole.signature, ObjectId(body.block_id))
    assert whole.publication_id[:PUBLICATION_ID_COMMIT_SIZE] == whole.commit_id[:PUBLICATION_ID_COMMIT_SIZE]
    assert bare.publication_id == whole.publication_id, "the signature holds for both"
    parts = (own.encoded, body.encoded)
    assert publication_id(whole.topic, whole.hidden_key, parts) == whole.publication_id
    erased = publication_id(whole.topic, whole.hidden_key, parts[:1], ObjectId(body.block_id))
    assert erased == whole.publication_id
    others = {
        publication_id(TopicKey(b"o" * 32), whole.hidden_key, parts),
        publication_id(whole.topic, b"o" * 32, parts),
        publication_id(whole.topic, whole.hidden_key, parts[:1]),
    }
    assert len({whole.publication_id, *others}) == 4


def test_a_publication_of_too_many_blocks_is_refused() -> None:
    publication = _publication()
    blocks = (publication.blocks[0].encoded,) * (PUBLICATION_BLOCK_COUNT_MAX + 1)
    with pytest.raises(DecodeError, match="too_large"):
        encode_publication(publication.topic, publication.hidden_key, blocks, publication.signature)


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
