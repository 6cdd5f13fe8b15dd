"""Splits a plaintext into a Merkle tree of encrypted blocks and reads it back; a reference is root id and key.

Up to LEAF_SIZE bytes the object is one block. Above, its leaves carry LEAF_SIZE bytes each (the last one what remains,
at least one byte), and inner blocks carry the keys of at most INNER_CHILD_COUNT_MAX children, level by level, until one
root is left. The shape follows from the length alone, so equal plaintexts have equal trees, and a reader refuses any
other shape: `ObjectReader` accepts exactly what `ObjectBuilder` makes.

Both stream: they hold a path of the tree and one leaf, whatever the object's size. Blocks are looked up by a function
and given to one, so that this module knows no store. `build_object` and `open_object` do the same in memory.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.formats.block import Block, Reference, decrypt_block, encrypt_block
from protocol.ids import BlockId, ObjectId
from protocol.limits.formats import (
    INNER_CHILD_COUNT_MAX,
    LEAF_SIZE,
    OBJECT_DEPTH_MAX,
    OBJECT_IN_MEMORY_SIZE_MAX,
)

BlockLookup = Callable[[BlockId], Block | None]
BlockSink = Callable[[Block], None]
_Child = tuple[BlockId, BlockKey]  # id and key


class MissingBlocks(Exception):
    """The object is not complete here: `ids` are to be fetched, then it is tried again."""

    def __init__(self, ids: tuple[BlockId, ...]) -> None:
        super().__init__(f"{len(ids)} blocks missing")
        self.ids = ids


class ObjectBuilder:
    """Takes plaintext piece by piece and gives each block to `sink` as it is encrypted, children before parents."""

    def __init__(self, convergence_secret: ConvergenceSecret, sink: BlockSink) -> None:
        self._secret = convergence_secret
        self._sink = sink
        self._rest = bytearray()
        self._levels: list[list[_Child]] = [[]]
        self.size = 0

    def add(self, plaintext: bytes | memoryview) -> None:
        """More of the plaintext; a piece may have any size."""
        self.size += len(plaintext)
        view = memoryview(plaintext)  # slices of it cost no copy
        start = 0
        if self._rest:
            start = min(LEAF_SIZE - len(self._rest), len(view))
            self._rest += view[:start]
            if len(self._rest) == LEAF_SIZE:
                self._encrypt_node(0, bytes(self._rest), ())
                self._rest.clear()
        while len(view) - start >= LEAF_SIZE:
            self._encrypt_node(0, bytes(view[start : start + LEAF_SIZE]), ())
            start += LEAF_SIZE
        self._rest += view[start:]

    def finish(self) -> Reference:
        """Return the reference of the whole; nothing can be added after."""
        if self._rest or not self.size:
            self._encrypt_node(0, bytes(self._rest), ())
        height = 0
        while height < len(self._levels) - 1 or len(self._levels[height]) > 1:
            self._close(height)
            height += 1
        root_id, key = self._levels[height][0]
        return Reference(ObjectId(root_id), key)

    def _encrypt_node(self, height: int, plaintext: bytes, child_ids: tuple[BlockId, ...]) -> None:
        block, key = encrypt_block(plaintext, self._secret, child_ids)
        self._sink(block)
        if height == len(self._levels):
            self._levels.append([])
        level = self._levels[height]
        if len(level) == INNER_CHILD_COUNT_MAX:  # closed only now, when it is known that the tree is higher
            self._close(height)
        level.append((block.block_id, key))

    def _close(self, height: int) -> None:
        children = self._levels[height]
        keys, ids = b"".join(key for _, key in children), tuple(child_id for child_id, _ in children)
        children.clear()
        self._encrypt_node(height + 1, keys, ids)


class ObjectReader:
    """Reads any range of an object. Holds the inner blocks' keys on one path, which is all that reading onwards needs."""

    def __init__(
        self, reference: Reference, lookup: BlockLookup, convergence_secret: ConvergenceSecret
    ) -> None:
        """Find the size, by the right edge of the tree. Raises MissingBlocks, WrongKey, DecodeError `bad_tree`."""
        self._lookup = lookup
        self._secret = convergence_secret
        self._root: _Child = (reference.object_id, reference.key)
        self._path: list[_Inner] = []  # of the leaf that was read last, the root first
        edge = [self._find(reference.object_id)]
        keys = [reference.key]
        while edge[-1].child_ids:
            if len(edge) == OBJECT_DEPTH_MAX:
                raise DecodeError("bad_tree", "too deep")
            child_id, key = self._children(edge[-1], keys[-1], is_last=True, is_root=len(edge) == 1)[-1]
            edge.append(self._find(child_id))
            keys.append(key)
        self._height = len(edge) - 1
        before = sum(
            (len(block.child_ids) - 1) * INNER_CHILD_COUNT_MAX ** (self._height - depth - 1)
            for depth, block in enumerate(edge[:-1])
        )
        self._leaf_count: int = before + 1
        last = self._leaf(edge[-1], keys[-1], is_last=True)
        self._last = (before, last)
        self.size: int = before * LEAF_SIZE + len(last)

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to before `stop` (both within the size), a leaf's worth or less at a time.

        Raises MissingBlocks, WrongKey, or DecodeError `bad_tree` for a tree that no ObjectBuilder would have made.
        """
        position, stop = max(start, 0), min(stop, self.size)
        while position < stop:
            number, offset = divmod(position, LEAF_SIZE)
            leaf = self._read_leaf(number)
            part = leaf[offset : offset + stop - position]
            position += len(part)
            yield part

    def read_held(self, start: int, stop: int) -> bytes | None:
        """Return the bytes if they need no lookup: the last leaf was opened for the size, and a small object is all leaf."""
        first = self._last[0] * LEAF_SIZE
        if start < first:
            return None
        return self._last[1][start - first : max(stop - first, 0)]

    def find_missing(
        self, start: int, stop: int, find_held: Callable[[list[BlockId]], Collection[BlockId]], limit: int
    ) -> list[BlockId]:
        """Ids of blocks that reading this range would lack, the first ones: all above what it knows of, not below.

        So it is to be called again when they have come. `find_held` says which of some leaves are there. Raises as `read`.
        """
        first, stop = max(start, 0) // LEAF_SIZE, -(-min(stop, self.size) // LEAF_SIZE)
        if first >= stop or not self._height:
            return []
        missing: list[BlockId] = []
        ahead = [_Unread(self._root, 0, 0, self._leaf_count)]
        while ahead and len(missing) < limit:
            node = ahead.pop()
            try:
                block = self._find(node.child[0])
            except MissingBlocks as error:
                missing += error.ids
                continue
            span = INNER_CHILD_COUNT_MAX ** (self._height - node.depth - 1)
            children = self._children(
                block, node.child[1], is_last=node.stop == self._leaf_count, is_root=node.depth == 0
            )
            inside = [
                _Unread(child, node.depth + 1, at, min(at + span, node.stop))
                for child, at in zip(children, range(node.first, node.stop, span), strict=False)
                if at < stop and at + span > first
            ]
            if node.depth + 1 < self._height:
                ahead += reversed(inside)
                continue
            ids = [one.child[0] for one in inside]
            held = find_held(ids)
            missing += [one for one in ids if one not in held]
        return list(dict.fromkeys(missing))[:limit]

    def _read_leaf(self, number: int) -> bytes:
        if number == self._last[0]:
            return self._last[1]
        while self._path and not self._path[-1].first <= number < self._path[-1].stop:
            self._path.pop()
        first = self._path[-1].first if self._path else 0
        child_id, key = self._root
        for depth in range(len(self._path), self._height + 1):
            if depth:
                above = self._path[depth - 1]
                index = (number - above.first) // above.span
                first = above.first + index * above.span
                child_id, key = above.children[index]
            block = self._find(child_id)
            if depth == self._height:
                return self._leaf(block, key, is_last=False)
            span = INNER_CHILD_COUNT_MAX ** (self._height - depth - 1)  # leaves below each child
            stop = min(first + span * INNER_CHILD_COUNT_MAX, self._leaf_count)
            children = self._children(block, key, is_last=stop == self._leaf_count, is_root=depth == 0)
            if len(children) != -(-(stop - first) // span):
                raise DecodeError("bad_tree", f"{len(children)} children where another number belongs")
            self._path.append(_Inner(first, stop, span, children))
        raise AssertionError("the loop ends at a leaf")

    def _find(self, block_id: BlockId) -> Block:
        block = self._lookup(block_id)
        if block is None:
            raise MissingBlocks((block_id,))
        if block.is_of_commit:
            raise DecodeError("bad_tree", "a commit's block where an object's belongs")
        return block

    def _children(self, block: Block, key: BlockKey, *, is_last: bool, is_root: bool) -> list[_Child]:
        count = len(block.child_ids)
        if count == 0 or (not is_last and count != INNER_CHILD_COUNT_MAX) or (is_root and count < 2):
            raise DecodeError("bad_tree", f"{count} children where another number belongs")
        keys = decrypt_block(block, key, self._secret)
        if len(keys) != 32 * count:
            raise DecodeError("bad_tree", "not one key for each child")
        return [
            (child_id, BlockKey(keys[32 * index : 32 * index + 32]))
            for index, child_id in enumerate(block.child_ids)
        ]

    def _leaf(self, block: Block, key: BlockKey, *, is_last: bool) -> bytes:
        if block.child_ids:
            raise DecodeError("bad_tree", "children where a leaf belongs")
        leaf = decrypt_block(block, key, self._secret)
        if (not is_last and len(leaf) != LEAF_SIZE) or (not leaf and self._leaf_count > 1):
            raise DecodeError("bad_tree", "a leaf of the wrong size")
        return leaf


@dataclass(frozen=True, slots=True)
class _Unread:
    """A block of the tree, at `depth` below the root, that carries the leaves from `first` to before `stop`."""

    child: _Child
    depth: int
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class _Inner:
    """An inner block on the path: it carries the leaves from `first` to before `stop`, `span` below each child."""

    first: int
    stop: int
    span: int
    children: list[_Child]


def build_object(plaintext: bytes, convergence_secret: ConvergenceSecret) -> tuple[Reference, list[Block]]:
    """Return the reference and the blocks of an object, root last; equal input gives equal output on every platform.

    Raises DecodeError `too_large` above OBJECT_IN_MEMORY_SIZE_MAX bytes.
    """
    if len(plaintext) > OBJECT_IN_MEMORY_SIZE_MAX:
        raise DecodeError("too_large", f"an object of {len(plaintext)} bytes in memory")
    blocks: list[Block] = []
    builder = ObjectBuilder(convergence_secret, blocks.append)
    builder.add(plaintext)
    return builder.finish(), blocks


def open_object(
    reference: Reference, lookup: BlockLookup, convergence_secret: ConvergenceSecret, *, size_max: int
) -> bytes:
    """Return the plaintext of an object.

    Raises MissingBlocks, WrongKey, or DecodeError: `too_large` past `size_max` bytes, `bad_tree` for a tree that
    `build_object` would not have made.
    """
    root = lookup(reference.object_id)
    if root is not None and not (root.child_ids or root.is_of_commit):  # all bodies but few
        leaf = decrypt_block(root, reference.key, convergence_secret)
        if len(leaf) > size_max:
            raise DecodeError("too_large", f"an object of {len(leaf)} bytes")
        return leaf
    reader = ObjectReader(reference, lookup, convergence_secret)
    if reader.size > size_max:
        raise DecodeError("too_large", f"an object of {reader.size} bytes")
    return b"".join(reader.read(0, reader.size))
