"""Blocks and objects: equal input, equal ids; every wrong key, tree and size is found."""

from collections.abc import Callable
from functools import partial

import pytest

from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.formats import object as object_module
from protocol.formats.block import (
    Block,
    Reference,
    WrongKey,
    decode_block,
    decrypt_block,
    encrypt_block,
)
from protocol.formats.object import MissingBlocks, ObjectBuilder, ObjectReader, build_object, open_object
from protocol.ids import BlockId, ObjectId
from protocol.limits.formats import (
    ACK_COUNT_MAX,
    BLOCK_SIZE_MAX,
    LEAF_SIZE,
    MARK_SIZE,
    OBJECT_IN_MEMORY_SIZE_MAX,
)
from tests.support.ids import as_commit_id

SECRET = ConvergenceSecret(b"c" * 32)
SIZES = [0, 1, LEAF_SIZE - 1, LEAF_SIZE, LEAF_SIZE + 1, 3 * LEAF_SIZE + 7]


def _data(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(size % 251)


def _lookup(blocks: list[Block]) -> Callable[[BlockId], Block | None]:
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
    first, second = build_object(b"guess", SECRET)[0], build_object(b"guess", ConvergenceSecret(b"d" * 32))[0]
    assert first.object_id != second.object_id
    assert first.key != second.key


def test_a_missing_block_is_named() -> None:
    reference, blocks = build_object(_data(3 * LEAF_SIZE), SECRET)
    for absent in blocks:
        present = [block for block in blocks if block is not absent]
        with pytest.raises(MissingBlocks) as caught:
            open_object(reference, _lookup(present), SECRET, size_max=LEAF_SIZE * 4)
        assert caught.value.ids == (absent.block_id,)


@pytest.fixture
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of several levels that are quick to build: four bytes a leaf, three children an inner block."""
    monkeypatch.setattr(object_module, "LEAF_SIZE", 4)
    monkeypatch.setattr(object_module, "INNER_CHILD_COUNT_MAX", 3)


@pytest.mark.usefixtures("small_trees")
@pytest.mark.parametrize("size", range(109))
def test_trees_of_every_shape_are_read_whole_and_by_any_range(size: int) -> None:
    data = bytes(range(size))
    reference, blocks = build_object(data, SECRET)
    looked_up: list[BlockId] = []

    def look_up(block_id: BlockId) -> Block | None:
        looked_up.append(block_id)
        return found(block_id)

    found = _lookup(blocks)
    reader = ObjectReader(reference, look_up, SECRET)
    assert reader.size == size
    assert b"".join(reader.read(0, size)) == data
    assert len(looked_up) <= len(blocks) + 4, "reading onwards opens each block once"
    for start in range(0, size, 5):
        for stop in (start, start + 1, start + 7, size, size + 9):
            assert b"".join(reader.read(start, stop)) == data[start:stop]
            held = reader.read_held(start, stop)
            assert held == (data[start:stop] if start >= max(size - 1, 0) // 4 * 4 else None)


@pytest.mark.slow
@pytest.mark.usefixtures("small_trees")
@pytest.mark.parametrize("size", [0, 4, 5, 12, 13, 37, 108])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_what_is_missing_for_a_range_is_found_from_the_root_down(size: int, limit: int) -> None:
    data = bytes(range(size))
    reference, blocks = build_object(data, SECRET)
    edge: list[Block] = []
    while True:  # what tells the size comes first
        try:
            reader = ObjectReader(reference, _lookup(edge), SECRET)
            break
        except MissingBlocks as error:
            edge += [block for block in blocks if block.block_id in error.ids]
    for start in range(0, size, 5):
        for stop in (start, start + 1, start + 9, size):
            held = list(edge)
            reader = ObjectReader(reference, partial(_find, held), SECRET)
            while missing := reader.find_missing(start, stop, partial(_find_held, held), limit):
                assert len(missing) <= limit
                came = [block for block in blocks if block.block_id in missing]
                assert len(came) == len(missing)
                assert not _find_held(held, missing), "what is asked for was not there"
                held += came
            assert b"".join(reader.read(start, stop)) == data[start:stop]
            touched = range(start // 4, -(-min(stop, size) // 4))
            assert sum(not block.child_ids for block in held[len(edge) :]) <= len(touched), "no other leaves"


def _find(held: list[Block], wanted: BlockId) -> Block | None:
    return next((block for block in held if block.block_id == wanted), None)


def _find_held(held: list[Block], asked: list[BlockId]) -> set[BlockId]:
    return {block.block_id for block in held}.intersection(asked)


@pytest.mark.usefixtures("small_trees")
@pytest.mark.parametrize("piece", [1, 3, 4, 5, 8, 50, 1000])
def test_the_pieces_in_which_plaintext_comes_do_not_matter(piece: int) -> None:
    data = bytes(range(107))
    blocks: list[Block] = []
    builder = ObjectBuilder(SECRET, blocks.append)
    for start in range(0, len(data), piece):
        builder.add(data[start : start + piece])
    assert (builder.finish(), blocks) == build_object(data, SECRET)
    assert builder.size == len(data)


@pytest.mark.usefixtures("small_trees")
def test_any_change_of_a_trees_shape_is_refused_by_whoever_reads_that_far() -> None:
    def node(*children: tuple[Block, bytes]) -> tuple[Block, bytes]:
        keys = b"".join(key for _, key in children)
        made.append(encrypt_block(keys, SECRET, tuple(block.block_id for block, _ in children)))
        return made[-1]

    def leaf(data: bytes) -> tuple[Block, bytes]:
        made.append(encrypt_block(data, SECRET))
        return made[-1]

    made: list[tuple[Block, bytes]] = []
    full, short = leaf(b"full"), leaf(b"x")
    three = node(full, full, full)
    for top in (
        node(three),  # a root of one child
        node(node(full, full), three),  # an inner block that is not full, before another
        node(full, three, three),  # a leaf where an inner block belongs
        node(three, full),  # the same, at the right edge
        node(three, node(full, three)),  # an inner block where a leaf belongs
        node(three, node(full, short, full)),  # a short leaf before the last
        node(three, node(full, leaf(b""))),  # an empty last leaf
        node(three, node(node(full, full, full), full)),  # a right edge that is too high
    ):
        blocks = [block for block, _ in made]
        with pytest.raises(DecodeError, match="bad_tree"):
            open_object(
                Reference(ObjectId(top[0].block_id), BlockKey(top[1])), _lookup(blocks), SECRET, size_max=1000
            )


@pytest.mark.usefixtures("small_trees")
def test_a_tree_that_repeats_one_block_is_as_large_as_it_says_and_no_larger_than_allowed() -> None:
    blocks: list[Block] = []
    child, key = encrypt_block(b"bomb", SECRET)
    blocks.append(child)
    for _ in range(3):
        child, key = encrypt_block(key * 3, SECRET, (child.block_id,) * 3)
        blocks.append(child)
    reference = Reference(ObjectId(child.block_id), key)
    assert ObjectReader(reference, _lookup(blocks), SECRET).size == 4 * 3**3
    with pytest.raises(DecodeError, match="too_large"):
        open_object(reference, _lookup(blocks), SECRET, size_max=100)


def test_a_wrong_key_or_secret_is_found() -> None:
    reference, blocks = build_object(b"hello", SECRET)
    with pytest.raises(WrongKey):
        decrypt_block(blocks[0], BlockKey(b"k" * 32), SECRET)
    with pytest.raises(WrongKey):
        open_object(reference, _lookup(blocks), ConvergenceSecret(b"d" * 32), size_max=100)


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
    acks = tuple(as_commit_id(number.to_bytes(32, "big")) for number in range(ACK_COUNT_MAX + 1))
    with pytest.raises(DecodeError):
        encrypt_block(b"x", SECRET, acks=acks)


def _tree(leaves: list[bytes]) -> tuple[Reference, list[Block]]:
    sealed = [encrypt_block(leaf, SECRET) for leaf in leaves]
    root, key = encrypt_block(
        b"".join(key for _, key in sealed), SECRET, tuple(block.block_id for block, _ in sealed)
    )
    return Reference(ObjectId(root.block_id), key), [block for block, _ in sealed] + [root]


def test_trees_that_nobody_builds_are_refused() -> None:
    short_leaf = _tree([b"short", b"last"])
    empty_last = _tree([_data(LEAF_SIZE), b""])
    only_child = _tree([b"alone"])
    for reference, blocks in (short_leaf, empty_last, only_child):
        with pytest.raises(DecodeError, match="bad_tree"):
            open_object(reference, _lookup(blocks), SECRET, size_max=10 * LEAF_SIZE)


def test_a_commits_block_is_no_part_of_an_object() -> None:
    """Else an object had two encodings."""
    block, key = encrypt_block(b"content", SECRET, mark=bytes(MARK_SIZE))
    with pytest.raises(DecodeError, match="bad_tree"):
        open_object(Reference(ObjectId(block.block_id), key), _lookup([block]), SECRET, size_max=LEAF_SIZE)


def test_one_key_for_each_child() -> None:
    leaf, key = encrypt_block(_data(LEAF_SIZE), SECRET)
    last, _ = encrypt_block(b"x", SECRET)
    root, root_key = encrypt_block(key, SECRET, (leaf.block_id, last.block_id))
    with pytest.raises(DecodeError, match="bad_tree"):
        open_object(
            Reference(ObjectId(root.block_id), root_key),
            _lookup([leaf, last, root]),
            SECRET,
            size_max=4 * LEAF_SIZE,
        )


def test_depth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, blocks = build_object(_data(2 * LEAF_SIZE), SECRET)
    monkeypatch.setattr(object_module, "OBJECT_DEPTH_MAX", 1)
    with pytest.raises(DecodeError, match="too deep"):
        open_object(reference, _lookup(blocks), SECRET, size_max=4 * LEAF_SIZE)


def test_blocks_are_values() -> None:
    _, (block,) = build_object(b"hello", SECRET)
    assert block == decode_block(block.encoded)
