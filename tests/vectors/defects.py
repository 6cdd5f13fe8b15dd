"""What the parser refuses: each vector is named by its defect, and has the reason code that names it.

Values are put together from MessagePack by hand, since our own encoders would not make them. Each differs from a legal
value in its defect alone. `open_vector` is how a vector is read: what to call with what.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from protocol.codec import DecodeError, encode
from protocol.crypto import hashing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, EpochKey, InvitationSeed
from protocol.formats.block import Reference, WrongKey, decode_block, decrypt_block, encrypt_block
from protocol.formats.body import Permission, decode_body, encode_body
from protocol.formats.commit import UnknownVersion, open_commit
from protocol.formats.content import Post
from protocol.formats.document_kinds import DOCUMENT_KEY_SIZE_MAX, REPLACED_COUNT_MAX
from protocol.formats.links import (
    InvitationLink,
    ReadCapability,
    capability_text,
    invitation_text,
    parse_capability,
    parse_invitation,
)
from protocol.formats.object import open_object
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text, parse_id
from protocol.ids import AnyId, BlockId, CommitId, RepoId, Signature
from protocol.limits.formats import (
    ACK_COUNT_MAX,
    ADDRESS_SIZE_MAX,
    DEP_COUNT_MAX,
    LEAF_SIZE,
    LINK_SIZE_MAX,
    MARK_SIZE,
    NAME_SIZE_MAX,
    OWNER_COUNT_MAX,
    PUBLICATION_BLOCK_COUNT_MAX,
    QUORUM_SIGNER_COUNT_MAX,
    RANK_MAX,
    RECOVERY_FRIEND_COUNT_MAX,
)
from protocol.limits.network import CIRCUIT_DATA_SIZE_MAX, NODES_NAMED_MAX, WIDE_CIRCUIT_WINDOW_SIZE
from protocol.limits.peers import (
    FEATURE_COUNT_MAX,
    FEATURE_NAME_SIZE_MAX,
    FETCHED_COUNT_MAX,
    FILES_DEPOSITED_COUNT_MAX,
    FILES_LISTED_COUNT_MAX,
    INTRODUCED_COUNT_MAX,
    REASON_SIZE_MAX,
    SUMMARY_HEAD_COUNT_MAX,
    SUMMARY_ROUND_MAX,
    WANT_COUNT_MAX,
)
from protocol.session.messages import decode_message
from tests.support.ids import as_commit_id, as_epoch_id, as_object_id

NO_SIGNATURE = Signature(bytes(64))

JsonObject = dict[str, Any]
CONVERGENCE: Final = ConvergenceSecret(bytes(range(200, 232)))
ID: Final = b"\x11" * 32
OTHER: Final = b"\x22" * 32
MARK: Final = b"\x33" * MARK_SIZE
_pack = msgspec.msgpack.encode


def refused() -> list[JsonObject]:
    """All vectors."""
    made = [*_bodies(), *_blocks(), *_commits(), *_objects(), *_publications(), *_messages(), *_texts()]
    assert len({vector["defect"] for vector in made}) == len(made), "a defect has one vector"
    return made


def open_vector(vector: JsonObject) -> str:
    """The reason code with which a vector is refused; "" if it is not."""
    try:
        _READERS[vector["type"]](vector)
    except DecodeError as error:
        return error.reason
    except WrongKey:
        return "wrong_key"
    except UnknownVersion:
        return "unknown_version"
    return ""


def _read_object(vector: JsonObject) -> None:
    blocks = [decode_block(bytes.fromhex(block)) for block in vector["blocks"]]
    found = {block.block_id: block for block in blocks}
    reference = Reference(
        as_object_id(bytes.fromhex(vector["object_id"])), BlockKey(bytes.fromhex(vector["key"]))
    )
    open_object(reference, found.get, CONVERGENCE, size_max=4 * LEAF_SIZE)


def _read_commit(vector: JsonObject) -> None:
    block = decode_block(bytes.fromhex(vector["encoded"]))
    open_commit(block, BlockKey(bytes.fromhex(vector["key"])), CONVERGENCE)


def _read_opened_block(vector: JsonObject) -> None:
    decrypt_block(
        decode_block(bytes.fromhex(vector["encoded"])), BlockKey(bytes.fromhex(vector["key"])), CONVERGENCE
    )


_READERS: Final[dict[str, Callable[[JsonObject], object]]] = {
    "body": lambda vector: decode_body(bytes.fromhex(vector["encoded"])),
    "block": lambda vector: decode_block(bytes.fromhex(vector["encoded"])),
    "opened block": _read_opened_block,
    "commit": _read_commit,
    "object": _read_object,
    "publication": lambda vector: decode_publication(bytes.fromhex(vector["encoded"])),
    "message": lambda vector: decode_message(bytes.fromhex(vector["encoded"])),
    "invitation": lambda vector: parse_invitation(vector["text"]),
    "capability": lambda vector: parse_capability(vector["text"]),
    "id": lambda vector: parse_id(vector["text"]),
}


def _vector(kind: str, defect: str, reason: str, encoded: bytes, **more: str) -> JsonObject:
    name = f"{kind.replace(' ', '_')}_{defect}"
    opening = {"convergence_secret": CONVERGENCE.hex()} if "key" in more else {}
    return {"defect": name, "type": kind, "reason": reason, "encoded": encoded.hex(), **more, **opening}


def _bodies() -> Iterator[JsonObject]:
    good = encode_body(Post("hello"))

    def refuse(defect: str, reason: str, value: object) -> JsonObject:
        return _vector("body", defect, reason, value if isinstance(value, bytes) else _pack(value))

    signature, reference, states = bytes(64), [ID, OTHER], [ID, OTHER, bytes(72)]
    yield refuse("empty", "bad_shape", b"")
    yield refuse("trailing_byte", "bad_shape", good + b"\xc0")
    yield refuse("truncated", "bad_shape", good[:-1])
    yield refuse("long_string_form", "not_canonical", b"\x92\xa5post1\xd9\x05hello")
    yield refuse("long_array_form", "bad_shape", b"\xdc\x00\x02\xa5post1\xa5hello")
    yield refuse("long_integer_form", "not_canonical", _pack(["invite1", ID, 1, 1, 7])[:-1] + b"\xcc\x07")
    yield refuse("float_for_an_integer", "bad_shape", _pack(["invite1", ID, 1, 1, 7.0]))
    yield refuse("text_as_bytes", "bad_shape", _pack(["post1", b"hello"]))
    yield refuse("bytes_as_text", "bad_shape", _pack(["join1", "i" * 32, signature]))
    yield refuse("missing_field", "bad_shape", ["post1"])
    yield refuse("surplus_field", "bad_shape", ["post1", "hello", None])
    yield refuse("nil_field", "bad_shape", ["post1", None])
    yield refuse("not_utf8", "bad_shape", good[:-1] + b"\xff")
    yield refuse("lone_surrogate", "bad_shape", b"\x92\xa5post1\xa3\xed\xa0\x80")
    yield refuse("is_a_map", "bad_shape", b"\x81\xa4text\xa5hello")
    yield refuse("without_a_tag", "bad_shape", _pack([1, "hello"]))
    yield refuse("extension_type", "bad_shape", b"\x92\xa5post1\xd4\x01\x00")
    yield refuse("huge_string_length", "bad_shape", b"\x92\xa5post1\xdb\xff\xff\xff\xff")
    yield refuse("huge_array_length", "bad_shape", b"\x95\xa5init2\xa1n\xdd\xff\xff\xff\xff")
    yield refuse("deep_nesting", "bad_shape", b"\x92\xa5post1" + b"\x91" * 2_000)
    yield refuse("short_id", "bad_shape", ["join1", ID[:31], signature])
    yield refuse("long_id", "bad_shape", ["join1", ID + b"\x11", signature])
    yield refuse("short_signature", "bad_shape", ["join1", ID, signature[:63]])
    yield refuse("unknown_permission", "bad_shape", ["invite1", ID, 6, 1, 7])
    yield refuse("grant_of_a_secret", "bad_shape", ["grant2", ID, 2, None])
    yield refuse("short_stated_topic", "bad_shape", ["init2", "n", [ID], signature, [ID, OTHER, bytes(71)]])
    yield refuse("init_without_writers_boxes", "bad_shape", ["epoch-init3", states, reference, reference])
    yield refuse("opening_of_nothing", "bad_shape", ["epoch-open1", []])
    yield refuse("handed_to_nobody", "bad_shape", ["epoch-hand1", ID, ID, OTHER, []])
    yield refuse("short_box", "bad_shape", ["epoch-hand1", ID, ID, OTHER, [[ID, OTHER[1:], None]]])
    yield refuse("short_prekey", "bad_shape", ["prekey1", ID[1:]])
    yield refuse("long_writers_box", "bad_shape", ["epoch-hand1", ID, ID, OTHER, [[ID, OTHER, ID + b"\0"]]])
    yield refuse("removal_from_the_first_place_0", "bad_shape", ["remove1", ID, None, [[ID, 0, ID]]])
    yield refuse("adoption_of_nothing", "bad_shape", ["adopt1", ID, []])
    yield refuse("no_uses", "bad_shape", ["invite1", ID, 1, 0, 7])
    yield refuse("negative_time", "bad_shape", ["invite1", ID, 1, 1, -1])
    yield refuse("time_beyond_exact_numbers", "bad_shape", ["invite1", ID, 1, 1, 2**53])
    yield refuse("no_owners", "bad_shape", ["init2", "n", [], signature, states])
    yield refuse(
        "too_many_owners", "bad_shape", ["init2", "n", [ID] * (OWNER_COUNT_MAX + 1), signature, states]
    )
    yield refuse("too_many_signers", "bad_shape", ["quorum1", [ID] * (QUORUM_SIGNER_COUNT_MAX + 1), 1, True])
    yield refuse("threshold_of_nobody", "bad_shape", ["quorum1", [ID], 0, True])
    friends = [ID] * (RECOVERY_FRIEND_COUNT_MAX + 1)
    yield refuse("too_many_friends", "bad_shape", ["recovery-friends1", friends, 9])
    yield refuse("too_high_threshold_of_friends", "bad_shape", ["recovery-friends1", [ID], len(friends)])
    signed = [[friend, signature] for friend in friends]
    yield refuse("too_many_friends_sign", "bad_shape", ["recovery-grant1", ID, OTHER, 1, signed])
    founded = ["init3", "n", [ID, OTHER], signature, states]
    yield refuse("council_of_one", "bad_shape", [*founded, 1])
    yield refuse("too_large_council", "bad_shape", [*founded, OWNER_COUNT_MAX + 1])
    yield refuse("council_of_nobody", "bad_shape", founded)
    yield refuse("empty_name", "bad_shape", ["init2", "", [ID], signature, states])
    yield refuse("long_name", "bad_shape", ["init2", "n" * (NAME_SIZE_MAX + 1), [ID], signature, states])
    yield refuse("reference_of_one", "bad_shape", ["branch-add2", ID, "n", reference[:1]])
    yield refuse(
        "replaces_too_many", "bad_shape", ["set1", [], ["i"], [[ID, [0]]] * (REPLACED_COUNT_MAX + 1)]
    )
    yield refuse("replaces_a_short_id", "bad_shape", ["set1", [], ["i"], [[ID[:31], [0]]]])
    yield refuse("dict_value_nil", "bad_shape", ["dict1", [["k", None]], [], []])
    yield refuse("long_dict_key", "bad_shape", ["dict1", [], ["k" * (DOCUMENT_KEY_SIZE_MAX + 1)], []])
    yield refuse("empty_text_update", "bad_shape", ["text1", b"", []])
    yield refuse("snapshot_of_nothing", "bad_shape", ["text-snapshot1", []])
    yield refuse("branch_with_a_topic", "bad_shape", ["branch-add2", ID, "n", 0, ID, reference])


def _blocks() -> Iterator[JsonObject]:
    good = _pack(["block2", [], [], 0, b"", b"ciphertext"])

    def refuse(defect: str, reason: str, value: object) -> JsonObject:
        return _vector("block", defect, reason, value if isinstance(value, bytes) else _pack(value))

    yield refuse("empty", "bad_shape", b"")
    yield refuse("trailing_byte", "bad_shape", good + b"\x00")
    yield refuse("truncated", "bad_shape", good[:-1])
    yield refuse("older_version", "unknown_version", ["block1", [], [], b"ciphertext"])
    yield refuse("other_version", "unknown_version", ["block3", [], [], 0, b"", b"ciphertext"])
    yield refuse("other_tag", "bad_shape", ["post1", [], [], 0, b"", b"ciphertext"])
    yield refuse("short_child_id", "bad_shape", ["block2", [b"a"], [], 0, b"", b""])
    yield refuse("short_ack", "bad_shape", ["block2", [], [ID[:31]], 1, MARK, b""])
    yield refuse("ciphertext_as_text", "bad_shape", ["block2", [], [], 0, b"", "ciphertext"])
    yield refuse("too_many_acks", "bad_shape", ["block2", [], [ID] * (ACK_COUNT_MAX + 1), 1, MARK, b""])
    yield refuse("acks_without_a_mark", "bad_shape", ["block2", [], [ID], 0, b"", b""])
    yield refuse("rank_without_a_mark", "bad_shape", ["block2", [], [], 1, b"", b""])
    yield refuse("short_mark", "bad_shape", ["block2", [], [], 0, MARK[1:], b""])
    yield refuse("long_mark", "bad_shape", ["block2", [], [], 0, MARK + b"\x33", b""])
    yield refuse("rank_below_0", "bad_shape", ["block2", [], [ID], -1, MARK, b""])
    yield refuse("rank_beyond_exact_numbers", "bad_shape", ["block2", [], [ID], RANK_MAX + 1, MARK, b""])
    yield refuse("long_bytes_form", "not_canonical", good.replace(b"\xc4\x0a", b"\xc5\x00\x0a"))
    yield refuse("long_array_form", "not_canonical", b"\xdc\x00\x06" + good[1:])
    yield refuse("long_tag_form", "not_canonical", good.replace(b"\xa6block2", b"\xd9\x06block2"))
    block, key = _encrypted_block(b"hello")
    wrong = bytes([key[0] ^ 1]) + key[1:]
    yield _vector("opened block", "wrong_key", "wrong_key", block, key=wrong.hex())
    elsewhere, other_key = _encrypted_block(b"hello", secret=ConvergenceSecret(ID))
    yield _vector("opened block", "of_another_secret", "wrong_key", elsewhere, key=other_key.hex())
    flipped = block[:-1] + bytes([block[-1] ^ 1])
    yield _vector("opened block", "flipped_bit", "wrong_key", flipped, key=key.hex())


def _commits() -> Iterator[JsonObject]:
    links: list[Any] = [[], [], [], [], None]
    content: list[Any] = [ID, ID, ID, True, True, 1, None, [], 0, b"", [ID, ID], []]

    def refuse(
        defect: str,
        reason: str = "bad_shape",
        *,
        acks: tuple[CommitId, ...] = (),
        mark: bytes = MARK,
        child_ids: tuple[BlockId, ...] = (),
        tag: str = "commit2",
        link: Sequence[tuple[int, object]] = (),
        said: Sequence[tuple[int, object]] = (),
        signature: Signature = NO_SIGNATURE,
        plaintext: bytes | None = None,
    ) -> JsonObject:
        made = _pack([tag, _with(links, link), _with(content, said), signature])
        encoded, key = _encrypted_block(
            made if plaintext is None else plaintext, child_ids=child_ids, acks=acks, mark=mark
        )
        return _vector("commit", defect, reason, encoded, key=key.hex())

    place = ["group", ID, [ID]]
    yield refuse("is_a_body", plaintext=encode_body(Post("hello")))
    yield refuse("is_nothing", plaintext=b"")
    yield refuse("older_version", "unknown_version", tag="commit1")
    yield refuse("other_version", "unknown_version", tag="commit3")
    yield refuse("other_tag", tag="comment2")
    yield refuse("with_children", "bad_tree", child_ids=(BlockId(ID),))
    yield refuse("without_a_mark", "bad_tree", mark=b"")
    yield refuse("trailing_byte", plaintext=_pack(["commit2", links, content, bytes(64)]) + b"\x00")
    yield refuse("short_signature", signature=Signature(bytes(63)))
    yield refuse("surplus_content", plaintext=_pack(["commit2", links, [*content, 1], bytes(64)]))
    yield refuse("duplicate_ack", "duplicate_ids", acks=(as_commit_id(ID), as_commit_id(ID)))
    yield refuse("duplicate_dep", "duplicate_ids", link=[(0, [ID, ID])])
    yield refuse("dep_and_negative_dep", "duplicate_ids", link=[(0, [ID]), (1, [ID])])
    yield refuse("file_and_negative_file", "duplicate_ids", link=[(2, [ID]), (3, [ID])], said=[(11, [b""])])
    yield refuse("duplicate_negative_file", "duplicate_ids", link=[(3, [ID, ID])])
    yield refuse("file_without_its_key_slot", "keys_do_not_match", link=[(2, [ID])])
    yield refuse("key_slot_without_a_file", "keys_do_not_match", said=[(11, [b""])])
    yield refuse("key_of_another_length", "keys_do_not_match", link=[(2, [ID])], said=[(11, [b"k" * 31])])
    yield refuse("key_too_long", link=[(2, [ID])], said=[(11, [b"k" * 33])])
    yield refuse("by_writer_as_a_number", said=[(3, 1)])
    yield refuse("whole_as_nil", said=[(4, None)])
    yield refuse("feed_sequence_zero", said=[(5, 0)])
    yield refuse("first_with_a_previous", "bad_feed_link", said=[(6, ID)])
    yield refuse("second_without_a_previous", "bad_feed_link", said=[(5, 2)])
    yield refuse("skip_link_where_none_belongs", "bad_lipmaa_link", link=[(4, ID)])
    yield refuse("short_author", said=[(0, ID[:31])])
    yield refuse("negative_timestamp", said=[(8, -1)])
    yield refuse("timestamp_beyond_exact_numbers", said=[(8, 2**53)])
    yield refuse("timestamp_as_float", said=[(8, 0.0)])
    yield refuse("body_without_a_key", said=[(10, [ID])])
    yield refuse("tangle_twice", "duplicate_ids", said=[(7, [place, place])])
    yield refuse("tangles_unsorted", "duplicate_ids", said=[(7, [place, ["feed", ID, [ID]]])])
    yield refuse("tangle_previous_twice", "duplicate_ids", said=[(7, [["group", ID, [ID, ID]]])])
    yield refuse("tangle_kind_in_capitals", said=[(7, [["Group", ID, [ID]]])])
    yield refuse("tangle_kind_with_newline", said=[(7, [["group\n", ID, [ID]]])])
    yield refuse("too_many_deps", link=[(0, [ID] * (DEP_COUNT_MAX + 1))])


def _objects() -> Iterator[JsonObject]:
    def refuse(
        defect: str, root: tuple[bytes, bytes], *others: bytes, reason: str = "bad_tree"
    ) -> JsonObject:
        encoded, key = root
        blocks = [block.hex() for block in (encoded, *others)]
        object_id = hashing.block_id(encoded).hex()
        return {
            "defect": f"object_{defect}",
            "type": "object",
            "reason": reason,
            "object_id": object_id,
            "key": key.hex(),
            "convergence_secret": CONVERGENCE.hex(),
            "blocks": blocks,
        }

    a, a_key = _encrypted_block(b"a")
    b, b_key = _encrypted_block(b"b")
    a_id, b_id = hashing.block_id(a), hashing.block_id(b)
    keys = a_key + b_key
    yield refuse("acks_in_a_leaf", _encrypted_block(b"a", acks=(as_commit_id(ID),), mark=MARK))
    yield refuse("mark_of_a_leaf", _encrypted_block(b"a", mark=MARK))
    yield refuse("small_leaves", _encrypted_block(keys, child_ids=(a_id, b_id)), a, b)
    yield refuse("one_child", _encrypted_block(a_key, child_ids=(a_id,)), a)
    yield refuse("same_child_twice", _encrypted_block(a_key + a_key, child_ids=(a_id, a_id)), a)
    yield refuse("too_few_keys", _encrypted_block(a_key, child_ids=(a_id, b_id)), a, b)
    yield refuse("too_many_keys", _encrypted_block(keys + a_key, child_ids=(a_id, b_id)), a, b)
    yield refuse(
        "acks_in_the_root",
        _encrypted_block(keys, child_ids=(a_id, b_id), acks=(as_commit_id(ID),), mark=MARK),
        a,
        b,
    )
    yield refuse(
        "wrong_child_key", _encrypted_block(b_key + a_key, child_ids=(a_id, b_id)), a, b, reason="wrong_key"
    )
    inner, inner_key = _encrypted_block(keys, child_ids=(a_id, b_id))
    inner_id = hashing.block_id(inner)
    yield refuse("uneven_depth", _encrypted_block(inner_key + a_key, child_ids=(inner_id, a_id)), inner, a, b)


def _publications() -> Iterator[JsonObject]:
    block, _ = _encrypted_block(b"hello")
    good = _pack(["publication1", ID, OTHER, [block], bytes(64)])

    def refuse(defect: str, reason: str, value: object) -> JsonObject:
        return _vector("publication", defect, reason, value if isinstance(value, bytes) else _pack(value))

    yield refuse("empty", "bad_shape", b"")
    yield refuse("trailing_byte", "bad_shape", good + b"\x00")
    yield refuse("truncated", "bad_shape", good[:-1])
    yield refuse("without_blocks", "bad_shape", ["publication1", ID, OTHER, [], bytes(64)])
    too_many = [block] * (PUBLICATION_BLOCK_COUNT_MAX + 1)
    yield refuse("too_many_blocks", "bad_shape", ["publication1", ID, OTHER, too_many, bytes(64)])
    yield refuse("broken_block", "bad_shape", ["publication1", ID, OTHER, [block[:-1]], bytes(64)])
    yield refuse("short_hidden_key", "bad_shape", ["publication1", ID, OTHER[1:], [block], bytes(64)])
    yield refuse("bare_of_two_blocks", "bad_shape", ["bare1", ID, OTHER, [block, block], ID, bytes(64)])
    yield refuse("bare_without_the_bodys_id", "bad_shape", ["bare1", ID, OTHER, block, b"", bytes(64)])
    yield refuse("short_topic", "bad_shape", ["publication1", ID[1:], OTHER, [block], bytes(64)])
    yield refuse("other_version", "unknown_version", ["publication2", ID, OTHER, [block], bytes(64)])


def _messages() -> Iterator[JsonObject]:
    def refuse(defect: str, reason: str, value: object) -> JsonObject:
        return _vector("message", defect, reason, value if isinstance(value, bytes) else _pack(value))

    yield refuse("empty", "unknown_message", b"")
    yield refuse("of_unknown_kind", "unknown_message", ["hello1", ID])
    yield refuse("of_other_version", "unknown_message", ["receipt2", ID])
    yield refuse("trailing_byte", "bad_shape", _pack(["receipt1", ID]) + b"\x00")
    good = _pack(["receipt1", ID])
    yield refuse("long_bytes_form", "not_canonical", good.replace(b"\xc4\x20", b"\xc5\x00\x20"))
    yield refuse("batch_of_nothing", "bad_shape", ["publications1", ID, []])
    yield refuse("deposit_of_nothing", "bad_shape", ["deposit1", []])
    yield refuse("refusal_too_long", "bad_shape", ["refused1", ID, "x" * (REASON_SIZE_MAX + 1)])
    names = [f"feature-{number}" for number in range(FEATURE_COUNT_MAX + 1)]
    yield refuse("features_too_many", "bad_shape", ["features1", names])
    yield refuse("feature_too_long", "bad_shape", ["features1", ["x" * (FEATURE_NAME_SIZE_MAX + 1)]])
    yield refuse("feature_with_newline", "bad_shape", ["features1", ["files\n"]])
    yield refuse("feature_of_nothing", "bad_shape", ["features1", [""]])
    yield refuse("summary_of_a_round_too_many", "bad_shape", ["sum3", ID, SUMMARY_ROUND_MAX + 1, [], 0, ID])
    yield refuse("summary_of_a_whole_head", "bad_shape", ["sum3", ID, 0, [ID], 1, ID])
    yield refuse(
        "summary_of_too_many_heads",
        "bad_shape",
        ["sum3", ID, 0, [ID[:16]] * (SUMMARY_HEAD_COUNT_MAX + 1), 1, ID],
    )
    yield refuse("reconcile_of_unknown_kind", "bad_shape", ["reconcile1", ID, 8, b""])
    yield refuse("fetch_of_nothing", "bad_shape", ["fetch1", ID, []])
    yield refuse("fetch_of_too_many", "bad_shape", ["fetch1", ID, [OTHER] * (FETCHED_COUNT_MAX + 1)])
    yield refuse("blocks_too_many", "bad_shape", ["blocks1", ID, [b""] * (FETCHED_COUNT_MAX + 1)])
    deposit = [ID, 7, ID + OTHER]
    yield refuse("files_listed_above_a_whole_id", "bad_shape", ["list-files1", ID, ID])
    yield refuse(
        "files_listed_too_many", "bad_shape", ["listed-files1", ID, [ID[:16]] * (FILES_LISTED_COUNT_MAX + 1)]
    )
    yield refuse("deposit_of_no_file", "bad_shape", ["deposit-files1", ID, []])
    yield refuse(
        "deposit_of_too_many_files",
        "bad_shape",
        ["deposit-files1", ID, [deposit] * (FILES_DEPOSITED_COUNT_MAX + 1)],
    )
    yield refuse("deposit_of_an_empty_file", "bad_shape", ["deposit-files1", ID, [[ID, 0, ID + OTHER]]])
    yield refuse("settled_no_file", "bad_shape", ["settled-files1", ID, [], ""])
    yield refuse("account_token_too_short", "bad_shape", ["join-account1", ID[:31]])
    yield refuse("account_quota_too_large", "bad_shape", ["account-joined1", "", 2**53, 0])
    yield refuse("want_of_nothing", "bad_shape", ["want1", ID, []])
    yield refuse("want_of_too_many", "bad_shape", ["want1", ID, [OTHER] * (WANT_COUNT_MAX + 1)])
    yield refuse("bodies_of_nothing", "bad_shape", ["want-bodies1", ID, []])
    yield refuse("bodies_of_too_many", "bad_shape", ["want-bodies1", ID, [OTHER] * (WANT_COUNT_MAX + 1)])
    yield refuse("more_bodies_than_asked", "bad_shape", ["found-bodies1", ID, WANT_COUNT_MAX + 1])
    at = ["192.0.2.7:7474", OTHER]
    yield refuse("introduction_of_nobody", "bad_shape", ["introduce1", ID, []])
    yield refuse(
        "introduction_of_too_many", "bad_shape", ["introduce1", ID, [at] * (INTRODUCED_COUNT_MAX + 1)]
    )
    yield refuse("seen_address_too_long", "bad_shape", ["seen1", "a" * (ADDRESS_SIZE_MAX + 1)])
    yield refuse("circuit_address_too_short", "bad_shape", ["circuit-open1", 1, ID[:31]])
    yield refuse("circuit_data_of_nothing", "bad_shape", ["circuit-data1", 1, b""])
    yield refuse(
        "circuit_data_too_large", "bad_shape", ["circuit-data1", 1, bytes(CIRCUIT_DATA_SIZE_MAX + 1)]
    )
    yield refuse("nodes_of_nobody", "bad_shape", ["nodes1", ID, []])
    yield refuse("nodes_too_many", "bad_shape", ["nodes1", ID, [OTHER] * (NODES_NAMED_MAX + 1)])
    yield refuse("circuit_credit_of_nothing", "bad_shape", ["circuit-credit1", 1, 0])
    yield refuse(
        "circuit_credit_too_large", "bad_shape", ["circuit-credit1", 1, WIDE_CIRCUIT_WINDOW_SIZE + 1]
    )
    yield refuse("summary_of_negative_count", "bad_shape", ["sum3", ID, 0, [], -1, ID])
    yield refuse("goodbye_too_long", "bad_shape", ["goodbye1", "x" * (REASON_SIZE_MAX + 1)])
    yield refuse("huge_announcement", "bad_shape", b"\x92\xa9announce2\xdd\xff\xff\xff\xff")


def _texts() -> Iterator[JsonObject]:
    def refuse(kind: str, defect: str, reason: str, text: str) -> JsonObject:
        return {"defect": f"{kind}_{defect}", "type": kind, "reason": reason, "text": text}

    full = id_text(AnyId(ID))
    yield refuse("id", "too_short", "bad_id", full[:-1])
    yield refuse("id", "too_long", "bad_id", full + "a")
    yield refuse("id", "in_capitals", "bad_id", full.upper())
    yield refuse("id", "padded", "bad_id", full + "====")
    yield refuse("id", "of_another_alphabet", "bad_id", "1" + full[1:])
    yield refuse(
        "id", "with_loose_bits", "bad_id", full[:-1] + ("b" if full[-1] == "a" else chr(ord(full[-1]) + 1))
    )
    link = InvitationLink(
        RepoId(ID),
        Reference(as_object_id(ID), BlockKey(OTHER)),
        as_epoch_id(ID),
        EpochKey(ID),
        None,
        as_commit_id(OTHER),
        InvitationSeed(ID),
        Permission.READ,
        7,
        (),
        None,
        "a",
        None,
    )
    text = invitation_text(link)
    yield refuse(
        "invitation", "mistyped", "mistyped", text[:40] + ("a" if text[40] != "a" else "b") + text[41:]
    )
    yield refuse("invitation", "swapped_letters", "mistyped", _swap(text))
    yield refuse("invitation", "cut_off", "mistyped", text[:-1])
    yield refuse("invitation", "in_capitals", "mistyped", "ravel:invite:" + text[13:].upper())
    yield refuse("invitation", "of_another_kind", "other_kind", text.replace("invite", "export"))
    yield refuse("invitation", "of_another_scheme", "not_a_link", text.replace("ravel", "https"))
    yield refuse("invitation", "empty", "mistyped", "ravel:invite:")
    yield refuse("invitation", "too_long", "too_large", text + "a" * LINK_SIZE_MAX)
    newer = encode(link).replace(b"invitation5", b"invitation6")
    checked = AnyId(newer + hashing.link_checksum(b"invite" + newer))
    yield refuse("invitation", "of_other_version", "unknown_version", "ravel:invite:" + id_text(checked))
    capability = capability_text(
        ReadCapability(
            RepoId(ID),
            Reference(as_object_id(ID), BlockKey(OTHER)),
            as_epoch_id(ID),
            EpochKey(ID),
            (),
            "a",
        )
    )
    yield refuse("capability", "swapped_letters", "mistyped", _swap(capability))
    yield refuse("capability", "of_another_kind", "other_kind", text)
    yield refuse("capability", "called_an_invitation", "mistyped", text.replace("invite", "read"))


def _swap(text: str) -> str:
    """The text with the first two unlike neighbours of its coded part swapped."""
    at = next(at for at in range(30, len(text) - 1) if text[at] != text[at + 1])
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _encrypted_block(
    plaintext: bytes,
    *,
    child_ids: tuple[BlockId, ...] = (),
    acks: tuple[CommitId, ...] = (),
    mark: bytes = b"",
    secret: ConvergenceSecret = CONVERGENCE,
) -> tuple[bytes, bytes]:
    """A block's encoding and key, whatever its plaintext is."""
    block, key = encrypt_block(plaintext, secret, child_ids, acks, 1 if acks else 0, mark)
    return block.encoded, key


def _with(fields: list[Any], changes: Sequence[tuple[int, object]]) -> list[Any]:
    """The fields with some of them changed."""
    changed = list(fields)
    for index, value in changes:
        changed[index] = value
    return changed
