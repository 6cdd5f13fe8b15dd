"""Objects: plaintext carried by a tree of blocks, named by an object reference (id and key of the root block).

Up to LEAF_SIZE bytes the object is one block. Above, its leaves carry LEAF_SIZE bytes each (the last one what remains,
at least one byte), and inner blocks carry the keys of at most INNER_CHILD_COUNT_MAX children, level by level, until one
root is left. The shape follows from the length alone, so equal plaintexts have equal trees, and a reader refuses any
other shape: `open_object` accepts exactly what `build_object` makes.

This module works on objects that fit in memory; blocks are looked up by a function, so that it knows no store.
"""

from collections.abc import Callable, Iterator

from protocol.block import Block, Reference, open_block, seal_block
from protocol.codec import DecodeError
from protocol.limits import INNER_CHILD_COUNT_MAX, LEAF_SIZE, OBJECT_DEPTH_MAX, OBJECT_IN_MEMORY_SIZE_MAX

BlockLookup = Callable[[bytes], Block | None]


class MissingBlocks(Exception):
    """The object is not complete here: `ids` are to be fetched, then it is tried again."""

    def __init__(self, ids: tuple[bytes, ...]) -> None:
        super().__init__(f"{len(ids)} blocks missing")
        self.ids = ids


def build_object(plaintext: bytes, convergence_secret: bytes) -> tuple[Reference, list[Block]]:
    """The reference and the blocks of an object, root last; equal input gives equal output on every platform.

    Raises DecodeError `too_large` above OBJECT_IN_MEMORY_SIZE_MAX bytes.
    """
    if len(plaintext) > OBJECT_IN_MEMORY_SIZE_MAX:
        raise DecodeError("too_large", f"an object of {len(plaintext)} bytes in memory")
    blocks: list[Block] = []
    level: list[tuple[bytes, bytes]] = []
    for start in range(0, max(len(plaintext), 1), LEAF_SIZE):
        block, key = seal_block(plaintext[start : start + LEAF_SIZE], convergence_secret)
        blocks.append(block)
        level.append((block.block_id, key))
    while len(level) > 1:
        above: list[tuple[bytes, bytes]] = []
        for start in range(0, len(level), INNER_CHILD_COUNT_MAX):
            children = level[start : start + INNER_CHILD_COUNT_MAX]
            keys = b"".join(key for _, key in children)
            block, key = seal_block(keys, convergence_secret, tuple(child_id for child_id, _ in children))
            blocks.append(block)
            above.append((block.block_id, key))
        level = above
    return Reference(*level[0]), blocks


def open_object(
    reference: Reference, lookup: BlockLookup, convergence_secret: bytes, *, size_max: int
) -> bytes:
    """The plaintext of an object.

    Raises MissingBlocks with all absent ids of the first incomplete level, WrongKey, or DecodeError: `too_large` past
    `size_max` bytes, `bad_tree` for a tree that `build_object` would not have made.
    """
    root = lookup(reference.object_id)
    if root is not None and not root.child_ids:  # most objects are one block
        if root.acks:
            raise DecodeError("bad_tree", "acks in a block that is not a commit's")
        return open_block(root, reference.key, convergence_secret)
    level = [(reference.object_id, reference.key)]
    for depth in range(OBJECT_DEPTH_MAX):
        blocks = _look_up(level, lookup)
        if not any(block.child_ids for block in blocks):
            leaves = [
                open_block(block, key, convergence_secret)
                for block, (_, key) in zip(blocks, level, strict=True)
            ]
            if any(block.acks for block in blocks):
                raise DecodeError("bad_tree", "acks in a block that is not a commit's")
            _check_leaf_sizes(leaves)
            return b"".join(leaves)
        level = list(_children(level, blocks, convergence_secret, is_root=depth == 0))
        if len(level) > size_max // LEAF_SIZE + 1:
            raise DecodeError("too_large", f"an object of {len(level)} leaves or more")
    raise DecodeError("bad_tree", "too deep")


def _look_up(level: list[tuple[bytes, bytes]], lookup: BlockLookup) -> list[Block]:
    found = {block_id: lookup(block_id) for block_id, _ in level}
    missing = tuple(block_id for block_id, block in found.items() if block is None)
    if missing:
        raise MissingBlocks(missing)
    return [block for block_id, _ in level if (block := found[block_id]) is not None]


def _children(
    level: list[tuple[bytes, bytes]], blocks: list[Block], convergence_secret: bytes, *, is_root: bool
) -> Iterator[tuple[bytes, bytes]]:
    for number, ((_, key), block) in enumerate(zip(level, blocks, strict=True)):
        count = len(block.child_ids)
        is_last = number == len(blocks) - 1
        if (
            count == 0
            or block.acks
            or (not is_last and count != INNER_CHILD_COUNT_MAX)
            or (is_root and count < 2)
        ):
            raise DecodeError("bad_tree", f"{count} children where another number belongs")
        keys = open_block(block, key, convergence_secret)
        if len(keys) != 32 * count:
            raise DecodeError("bad_tree", "not one key for each child")
        for index, child_id in enumerate(block.child_ids):
            yield child_id, keys[32 * index : 32 * index + 32]


def _check_leaf_sizes(leaves: list[bytes]) -> None:
    if any(len(leaf) != LEAF_SIZE for leaf in leaves[:-1]) or (len(leaves) > 1 and not leaves[-1]):
        raise DecodeError("bad_tree", "a leaf of the wrong size")
