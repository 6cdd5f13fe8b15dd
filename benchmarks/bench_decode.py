"""Decoding a small commit by the strict parser, against bare msgspec decoding of the same bytes; one thread.

python benchmarks/bench_decode.py [commits]

- *Decode*: from the encoded block, `decode_block` (bounds, types, the one encoding, the id by BLAKE3), and from the commit's
  plaintext `decode` (the same, but for the id) and the check of the commit's shape (no id twice, a key for each id, feed and
  skip links where they belong). Decryption is not in it.
- *Open*: `decode_block` and `open_commit`, which is all of this and decryption: ChaCha20, and the keyed BLAKE3 by which the
  key is checked. No signatures.
- *Bare*: `msgspec.msgpack.Decoder` of the same two types over the same two inputs, with their bounds, and nothing else.

Commits differ, so that no step is spared by a cache. Ravel and msgspec take turns; the best of five rounds counts for both.
"""

import os
import sys
from collections.abc import Callable

from msgspec.msgpack import Decoder

from benchmarks.common import figure, timed
from node.runtime.blocking import tune_interpreter
from protocol.codec import decode
from protocol.crypto.keys import BlockKey, ConvergenceSecret, SigningKey, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats import block as blocks
from protocol.formats import commit as commits
from protocol.formats.block import Block, Reference, decode_block, decrypt_block
from protocol.formats.commit import Commit, Content, Links, create_commit, open_commit
from protocol.ids import BranchId, BranchMark, UserId
from protocol.limits.formats import COMMIT_SIZE_MAX, MARK_SIZE
from tests.support.ids import as_commit_id, as_epoch_id, as_object_id

_ROUNDS = 5
_SECRET = ConvergenceSecret(os.urandom(32))
_MARK = BranchMark(bytes(MARK_SIZE))
# The types on the wire are no one else's business; here msgspec alone must be given the same.
_BLOCK = blocks._BlockEncoding
_COMMIT = commits._CommitEncoding


def _make(number: int, user: UserId, secret: SigningKey) -> tuple[Commit, Block]:
    """Return a commit that acks another: the first of its author, since a feed has no links there."""
    content = Content(
        author=user,
        branch=BranchId(_SECRET),
        epoch=as_epoch_id(_SECRET),
        by_writer=True,
        whole=True,
        feed_sequence=1,
        feed_previous=None,
        tangles=(),
        timestamp=1_700_000_000_000 + number,
        metadata=b"",
        body=Reference(as_object_id(os.urandom(32)), BlockKey(os.urandom(32))),
    )
    acks = (as_commit_id(os.urandom(32)),)
    return create_commit(acks, 1, _MARK, Links(), content, secret, _SECRET)


def _decode(encoded: bytes, plaintext: bytes) -> None:
    block = decode_block(encoded)
    wire = decode(_COMMIT, plaintext, size_max=COMMIT_SIZE_MAX)
    commits._check_shape(block.acks, wire.links, wire.content)


def _best(count: int, *runs: Callable[[], None]) -> list[float]:
    """Commits per second of runs that take turns."""
    seconds = [[timed(run) for run in runs] for _ in range(_ROUNDS)]
    return [count / min(taken) for taken in zip(*seconds, strict=True)]


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    user, secret = key_pair(UserSeed(b"b" * 32))
    made = [_make(number, user, secret) for number in range(count)]
    sealed = [(block.encoded, commit.key) for commit, block in made]
    opened = [(block.encoded, decrypt_block(block, commit.key, _SECRET)) for commit, block in made]
    bare_block, bare_commit = Decoder(_BLOCK), Decoder(_COMMIT)

    def run_bare() -> None:
        for encoded, plaintext in opened:
            bare_block.decode(encoded)
            bare_commit.decode(plaintext)

    def run_decode() -> None:
        for encoded, plaintext in opened:
            _decode(encoded, plaintext)

    def run_open() -> None:
        for encoded, key in sealed:
            open_commit(decode_block(encoded), key, _SECRET)

    bare, decoded, whole = _best(count, run_bare, run_decode, run_open)
    size = len(opened[0][0])
    figure("bare_decode", bare, "commits/s", block_bytes=size)
    figure("decode", decoded, "commits/s", block_bytes=size)
    figure("decode_to_bare", decoded / bare, "ratio", goal=0.1)
    figure("open", whole, "commits/s", block_bytes=size)
    figure("open_to_bare", whole / bare, "ratio")


if __name__ == "__main__":
    main()
