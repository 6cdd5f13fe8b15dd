"""Blocks and objects: equal input, equal ids; every wrong key, tree and size is found."""

from collections.abc import Callable

import pytest

from protocol import object as object_module
from protocol.block import (
    Block,
    Reference,
    WrongKey,
    decode_block,
    open_block,
    seal_block,
)
from protocol.codec import DecodeError
from protocol.limits import (
    ACK_COUNT_MAX,
    BLOCK_SIZE_MAX,
    LEAF_SIZE,
    OBJECT_IN_MEMORY_SIZE_MAX,
)
from protocol.object import MissingBlocks, build_object, open_object

SECRET = b"c" * 32
SIZES = [0, 1, LEAF_SIZE - 1, LEAF_SIZE, LEAF_SIZE + 1, 3 * LEAF_SIZE + 7]


def _data(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(size % 251)


def _lookup(blocks: list[Block]) -> Callable[[bytes], Block | None]:
    return {block.block_id: decode_block(block.encoded) for block in blocks}.get


@pytest.mark.parametrize("size", SIZES)
def test_an_object_opens_to_what_was_put_in(size: int) -> None:
    data = _data(size)
    reference, blocks = build_object(data, SECRET)
    assert open_object(reference, _lookup(blocks), SECRET, size_max=size) == data
    assert build_object(data, SECRET)[0] == reference
    assert all(len(block.encoded) <= BLOCK_SIZE_MAX for block in blocks)


def test_small_objects_are_one_block_and_equal_chunks_share_theirs() -> None:
    assert len(build_object(_data(LEAF_SIZE), SECRET)[1]) == 1
    _, blocks = build_object(bytes(2 * LEAF_SIZE), SECRET)
    assert len({block.block_id for block in blocks}) == 2, (
        "two equal leaves are one block, and there is the root"
    )


def test_another_convergence_secret_gives_other_blocks() -> None:
    first, second = build_object(b"guess", SECRET)[0], build_object(b"guess", b"d" * 32)[0]
    assert first.object_id != second.object_id
    assert first.key != second.key


def test_missing_blocks_are_all_named() -> None:
    reference, blocks = build_object(_data(3 * LEAF_SIZE), SECRET)
    root = blocks[-1]
    with pytest.raises(MissingBlocks) as caught:
        open_object(reference, _lookup([root]), SECRET, size_max=LEAF_SIZE * 4)
    assert caught.value.ids == root.child_ids


def test_a_wrong_key_or_secret_is_found() -> None:
    reference, blocks = build_object(b"hello", SECRET)
    with pytest.raises(WrongKey):
        open_block(blocks[0], b"k" * 32, SECRET)
    with pytest.raises(WrongKey):
        open_object(reference, _lookup(blocks), b"d" * 32, size_max=100)


def test_a_flipped_bit_is_another_block() -> None:
    _, blocks = build_object(b"hello", SECRET)
    flipped = bytearray(blocks[0].encoded)
    flipped[-1] ^= 1
    assert decode_block(bytes(flipped)).block_id != blocks[0].block_id


def test_size_max_is_a_bound_one_over() -> None:
    reference, blocks = build_object(_data(3 * LEAF_SIZE), SECRET)
    with pytest.raises(DecodeError, match="too_large"):
        open_object(reference, _lookup(blocks), SECRET, size_max=LEAF_SIZE)


def test_an_object_too_large_for_memory_is_refused() -> None:
    with pytest.raises(DecodeError, match="too_large"):
        build_object(bytes(OBJECT_IN_MEMORY_SIZE_MAX + 1), SECRET)


def test_too_many_acks_are_refused() -> None:
    acks = tuple(number.to_bytes(32, "big") for number in range(ACK_COUNT_MAX + 1))
    with pytest.raises(DecodeError):
        seal_block(b"x", SECRET, acks=acks)


def _tree(leaves: list[bytes]) -> tuple[Reference, list[Block]]:
    sealed = [seal_block(leaf, SECRET) for leaf in leaves]
    root, key = seal_block(
        b"".join(key for _, key in sealed), SECRET, tuple(block.block_id for block, _ in sealed)
    )
    return Reference(root.block_id, key), [block for block, _ in sealed] + [root]


def test_trees_that_nobody_builds_are_refused() -> None:
    short_leaf = _tree([b"short", b"last"])
    empty_last = _tree([_data(LEAF_SIZE), b""])
    only_child = _tree([b"alone"])
    for reference, blocks in (short_leaf, empty_last, only_child):
        with pytest.raises(DecodeError, match="bad_tree"):
            open_object(reference, _lookup(blocks), SECRET, size_max=10 * LEAF_SIZE)


def test_one_key_for_each_child() -> None:
    leaf, key = seal_block(_data(LEAF_SIZE), SECRET)
    last, _ = seal_block(b"x", SECRET)
    root, root_key = seal_block(key, SECRET, (leaf.block_id, last.block_id))
    with pytest.raises(DecodeError, match="bad_tree"):
        open_object(
            Reference(root.block_id, root_key), _lookup([leaf, last, root]), SECRET, size_max=4 * LEAF_SIZE
        )


def test_depth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, blocks = build_object(_data(2 * LEAF_SIZE), SECRET)
    monkeypatch.setattr(object_module, "OBJECT_DEPTH_MAX", 1)
    with pytest.raises(DecodeError, match="too deep"):
        open_object(reference, _lookup(blocks), SECRET, size_max=4 * LEAF_SIZE)


def test_blocks_are_values() -> None:
    _, (block,) = build_object(b"hello", SECRET)
    assert block == decode_block(block.encoded)
