"""Commits: one author's signed statement in one branch.

A commit is an object of one block. Its *header* names other things by id only: acks (in clear in the block, beside the
commit's rank and the branch's mark, so that a relay sees the branch's graph and nothing else), deps, negative deps, files,
negative files and the feed's skip link. Its *content* says who, where, when, which body, and carries the keys of the files
that the header names. One signature covers all of it. The body is an object of its own, so that it can be erased while the
graph stays.

`create_commit` and `open_commit` are the two directions; the commit's id is the id of its block.
"""

from bisect import bisect_left
from functools import lru_cache
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import (
    DecodeError,
    Value,
    Wire,
    decode,
    encode,
    is_other_version,
    peek_tag,
)
from protocol.crypto import hashing, signing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, GivenKey, SigningKey
from protocol.formats.block import Block, Reference, decrypt_block, decrypt_unchecked, encrypt_block
from protocol.ids import (
    BlockId,
    BranchId,
    BranchMark,
    CommitId,
    Digest,
    EpochId,
    ObjectId,
    Signature,
    UserId,
    branch_begun_by,
)
from protocol.limits.formats import (
    ACK_COUNT_MAX,
    COMMIT_SIZE_MAX,
    DEP_COUNT_MAX,
    FEED_SEQUENCE_MAX,
    FILE_COUNT_MAX,
    MARK_SIZE,
    METADATA_SIZE_MAX,
    TANGLE_COUNT_MAX,
    TANGLE_KIND_SIZE_MAX,
    TIMESTAMP_MAX_MS,
)

COMMIT_TAG: Final = "commit2"
NO_EPOCH: Final = EpochId(CommitId(BlockId(bytes(32))))
"""Epoch of the commit that starts the first epoch: it cannot name itself."""
NO_BRANCH: Final = BranchId(bytes(32))
"""Branch of the commit that is a branch's first: the branch's id is its own, which it cannot name."""
NO_MARK: Final = BranchMark(bytes(MARK_SIZE))
"""Mark of such a commit: the mark follows from the branch's id."""

AckIds = Annotated[tuple[CommitId, ...], Meta(max_length=ACK_COUNT_MAX)]
DepIds = Annotated[tuple[CommitId, ...], Meta(max_length=DEP_COUNT_MAX)]
FileIds = Annotated[tuple[ObjectId, ...], Meta(max_length=FILE_COUNT_MAX)]


class UnknownVersion(Exception):
    """The commit is of a format version that this node does not know: to be kept, not interpreted."""


class Links(Wire, frozen=True):
    """The part of a header that only readers see: ids, no keys."""

    deps: DepIds = ()
    ndeps: DepIds = ()
    files: FileIds = ()
    nfiles: FileIds = ()
    lipmaa: CommitId | None = None


class TanglePlace(Wire, frozen=True):
    """Place of a commit in one further tangle: the tangle's kind and root, and the tips that it follows there."""

    kind: Annotated[str, Meta(min_length=1, max_length=TANGLE_KIND_SIZE_MAX, pattern=r"^[a-z][a-z0-9-]*\Z")]
    root: CommitId
    previous: AckIds


class Content(Wire, frozen=True):
    """Header of a commit. `timestamp` is unix milliseconds, asserted by the author and never believed.

    `by_writer` says on which of the epoch's two topics the commit is published: on the writers', or on the other one.
    `whole` says that the author held all of the commit's past, accepted. Feed links, deps and negative deps are the
    author's words: no rule looks at where they lead.
    """

    author: UserId
    branch: BranchId
    epoch: EpochId
    by_writer: bool
    whole: bool
    feed_sequence: Annotated[int, Meta(ge=1, le=FEED_SEQUENCE_MAX)]
    feed_previous: CommitId | None
    tangles: Annotated[tuple[TanglePlace, ...], Meta(max_length=TANGLE_COUNT_MAX)]
    timestamp: Annotated[int, Meta(ge=0, le=TIMESTAMP_MAX_MS)]
    metadata: Annotated[bytes, Meta(max_length=METADATA_SIZE_MAX)]
    body: Reference
    file_keys: Annotated[tuple[GivenKey, ...], Meta(max_length=FILE_COUNT_MAX)] = ()
    """Keys of the header's files, in its order; empty ones where the author gives none."""


class _Signed(Wire, frozen=True):
    acks: AckIds
    rank: int
    mark: bytes
    links: Links
    content: Content


class _CommitEncoding(Wire, frozen=True, tag=COMMIT_TAG):
    links: Links
    content: Content
    signature: Signature


class Commit(Value, frozen=True):
    """A decoded commit: its shape holds, its signature and its meaning are not verified yet."""

    commit_id: CommitId
    key: BlockKey
    acks: tuple[CommitId, ...]
    rank: int
    """As the author states it; `verifier.verify` holds it to the acks."""
    mark: BranchMark
    links: Links
    content: Content
    signature: Signature

    @property
    def digest(self) -> Digest:
        """Bytes that the author signed."""
        return hashing.commit_digest(
            encode(_Signed(self.acks, self.rank, self.mark, self.links, self.content))
        )

    @property
    def branch_id(self) -> BranchId:
        """The branch that the commit says, or begins."""
        return branch_begun_by(self.commit_id) if self.content.branch == NO_BRANCH else self.content.branch

    def place(self, kind: str) -> TanglePlace | None:
        """Return the commit's place in the further tangle of that kind, or None."""
        for place in self.content.tangles:
            if place.kind == kind:
                return place
        return None


def create_commit(
    acks: tuple[CommitId, ...],
    rank: int,
    mark: BranchMark,
    links: Links,
    content: Content,
    author_secret: SigningKey,
    convergence_secret: ConvergenceSecret,
) -> tuple[Commit, Block]:
    """Sign a commit and encrypt it into its block. Raises DecodeError when it would not be a legal commit."""
    digest = hashing.commit_digest(encode(_Signed(acks, rank, mark, links, content)))
    plaintext = encode(_CommitEncoding(links, content, signing.sign(author_secret, digest)))
    block, key = encrypt_block(plaintext, convergence_secret, (), acks, rank, mark)
    # Parsed like a stranger's commit: an illegal value must not leave this node.
    return _parse_commit(block, key, plaintext), block


def open_commit(block: Block, key: BlockKey, convergence_secret: ConvergenceSecret) -> Commit:
    """Open the commit in a block.

    Raises WrongKey, UnknownVersion, or DecodeError when the plaintext is not a commit of consistent shape.
    """
    return _parse_commit(block, key, decrypt_block(block, key, convergence_secret))


def open_unchecked(block: Block, key: BlockKey) -> Commit:
    """Open a commit by its key alone, where the convergence secret of its epoch is not known yet.

    What it gives may be read for keys, and must be opened by `open_commit` before it is believed. Raises as that does.
    """
    return _parse_commit(block, key, decrypt_unchecked(block, key))


def _parse_commit(block: Block, key: BlockKey, plaintext: bytes) -> Commit:
    if is_other_version(peek_tag(plaintext), COMMIT_TAG):
        raise UnknownVersion(peek_tag(plaintext))
    if block.child_ids or not block.is_of_commit:
        raise DecodeError("bad_tree", "a commit is one block, with a mark")
    wire = decode(_CommitEncoding, plaintext, size_max=COMMIT_SIZE_MAX)
    _check_shape(block.acks, wire.links, wire.content)
    return Commit(
        CommitId(block.block_id),
        key,
        block.acks,
        block.rank,
        BranchMark(block.mark),
        wire.links,
        wire.content,
        wire.signature,
    )


def _check_shape(acks: tuple[CommitId, ...], links: Links, content: Content) -> None:
    _check_unique("acks", acks)
    _check_unique("deps", links.deps + links.ndeps)
    _check_unique("files", links.files + links.nfiles)
    if len(content.file_keys) != len(links.files):
        raise DecodeError("keys_do_not_match")
    for key in content.file_keys:
        if len(key) not in (0, 32):
            raise DecodeError("keys_do_not_match", "a key of another length")
    sequence = content.feed_sequence
    if (sequence == 1) != (content.feed_previous is None):
        raise DecodeError("bad_feed_link")
    if (lipmaa(sequence) == sequence - 1) != (links.lipmaa is None):
        raise DecodeError("bad_lipmaa_link")
    kind = ""
    for place in content.tangles:
        if place.kind <= kind:
            raise DecodeError("duplicate_ids", "tangles are not sorted by kind, each once")
        kind = place.kind
        _check_unique("previous", place.previous)


def _check_unique(name: str, ids: tuple[CommitId | ObjectId, ...]) -> None:
    if len(ids) > 1 and len(set(ids)) != len(ids):
        raise DecodeError("duplicate_ids", name)


_LIPMAA_ENDS: Final[list[int]] = [(3**k - 1) // 2 for k in range(36)]
"""Sequences from which a skip link leads farthest, beyond the last sequence that there may be; the first is none."""
assert _LIPMAA_ENDS[-1] > FEED_SEQUENCE_MAX, "each sequence is below one of them"


@lru_cache(maxsize=1024)  # each is asked for by who writes, reads and judges a commit
def lipmaa(sequence: int) -> int:
    """Return the sequence that a feed's skip link at `sequence` points to; `sequence - 1` where there is no link of its own.

    The ternary function of Lipmaa's simply verifiable anti-monotone graphs (Buldas and Lipmaa 1998), as Bamboo uses it:
    any earlier entry is reached over O(log n) links. `lipmaa(1)` is 0.
    """
    if sequence == 1:
        return 0
    k = bisect_left(_LIPMAA_ENDS, sequence)
    if _LIPMAA_ENDS[k] == sequence:
        return _LIPMAA_ENDS[k - 1]
    rest = sequence
    while rest:
        k -= 1
        rest %= _LIPMAA_ENDS[k]
    return sequence - _LIPMAA_ENDS[k]
