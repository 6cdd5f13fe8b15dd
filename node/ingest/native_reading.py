"""`Reader`: reads publications and checks signatures in a compiled library, without the interpreter's lock.

The library (`reading.c`) reads publications of the usual form whose signatures hold. Python reads the others, and all
where the library is not there: slower, with the same result. Ed25519 and ChaCha20 are those of PyNaCl's libsodium, by the
addresses of its functions; no second one is linked.
"""

import ctypes
import hashlib
import os
import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
import structlog
from nacl import _sodium

from node.ingest.publication_reading import Candidate, DecodedCommit, OpeningKeys, ReadBatch, read_batch
from protocol.codec import encode
from protocol.crypto import hashing
from protocol.crypto.signing import SMALL_ORDER_Y, Claim, check_claims, may_sign
from protocol.formats.body import Body, ErasedBody, kind_name
from protocol.formats.declared_kind import (
    EDITS_OF_VALUES,
    KINDS_BY_METADATA,
    declared_kind,
    unopened_body,
)

log = structlog.get_logger()

SOURCE: Final = Path(__file__).with_name("reading.c")
LIBRARY: Final = Path(__file__).with_name("reading.so")
"""Built by `hatch_build.py`, as `make setup` and wheels are; not there where no C compiler was."""
ITEM_SIZE_MAX: Final = 8192
"""Bytes of a publication that is given to the library: as in its source. Python hashes larger ones faster."""
_ANSWER_SIZE_MORE: Final = 640
"""Bytes by which an answer may exceed three times its publication: ids, keys, and what stands for the body."""
_DOCUMENTS_MAX: Final = 64
"""Headers of named documents that the library knows, the latest: it compares each with a commit's."""
_OPENING: Final = struct.Struct(">32s32s32s?32s8sI")
_SIZES: Final = struct.Struct(">?III")
_CLAIM_SIZE: Final = 32 + 32 + 64
_SMALL_ORDER: Final = b"".join(y.to_bytes(32, "little") for y in sorted(SMALL_ORDER_Y))
_CONTEXTS: Final = (
    hashing.COMMIT_SIGNED,
    hashing.PUBLICATION_SIGNED,
    hashing.BRANCH_SECRET,
    hashing.BRANCH_MARK,
)

_answers: Final = msgspec.msgpack.Decoder(list[Candidate | None])


class _Sodium(ctypes.Structure):
    _fields_ = (("verify", ctypes.c_void_p), ("decipher", ctypes.c_void_p))


class Library:
    """The compiled functions, as Python calls them."""

    def __init__(self, path: Path) -> None:
        """Load it. Raises OSError or AttributeError where it cannot be, and where it was built of another source."""
        loaded, sodium = ctypes.CDLL(str(path)), ctypes.CDLL(_sodium.__file__)
        loaded.ravel_source.restype = ctypes.c_char_p
        if loaded.ravel_source().decode() != hashlib.sha256(SOURCE.read_bytes()).hexdigest():
            raise OSError(f"{path} was built of another source")
        self._sodium = _Sodium(
            *(
                ctypes.cast(function, ctypes.c_void_p)
                for function in (sodium.crypto_sign_verify_detached, sodium.crypto_stream_chacha20_ietf_xor)
            )
        )
        self._contexts = (ctypes.c_char_p * len(_CONTEXTS))(*(one.encode() for one in _CONTEXTS))
        self._read = loaded.ravel_read
        self._read.restype = ctypes.c_size_t
        self._read.argtypes = (
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
            *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t),
        )
        self._check = loaded.ravel_check
        self._check.restype = None
        self._check.argtypes = (
            *(ctypes.c_void_p, ctypes.c_char_p),
            *(ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p),
        )

    def read(self, packed: bytes, items: Sequence[bytes]) -> list[Candidate | None]:
        """Read publications with packed keys; None for each that Python is to read."""
        short = [item if len(item) <= ITEM_SIZE_MAX else b"" for item in items]
        joined, sizes = b"".join(short), struct.pack(f"={len(short)}I", *map(len, short))
        room = 5 + 3 * len(joined) + _ANSWER_SIZE_MORE * len(short)
        answer = ctypes.create_string_buffer(room)
        size = self._read(
            *(ctypes.byref(self._sodium), self._contexts, packed, len(packed)),
            *(joined, sizes, len(short), answer, room),
        )
        return _answers.decode(memoryview(answer)[:size])

    def check(self, claims: Sequence[Claim]) -> list[bool]:
        """Check each claim, as `check_claims` does."""
        packed = b"".join(chain.from_iterable(claims))
        assert len(packed) == _CLAIM_SIZE * len(claims), "claims of another shape"
        answer = ctypes.create_string_buffer(len(claims))
        self._check(ctypes.byref(self._sodium), _SMALL_ORDER, packed, len(claims), answer)
        return [byte == 1 and may_sign(claim.key) for byte, claim in zip(answer.raw, claims, strict=True)]


def load_library() -> Library | None:
    """Load the compiled library. None, with the reason in the log, where it is not there, was built of another source or
    finds no libsodium.
    """
    try:
        return Library(LIBRARY)
    except (OSError, AttributeError) as error:
        log.warning("Python reads what peers send, which takes longer", error=str(error))
        return None


def make_reader(most: int) -> "Reader":
    """Make a reader with the library, if it is there: of at most so many batches at a time, and one core is left to others.

    0: Python reads all.
    """
    library = load_library() if most else None
    return Reader(library, max(1, min(most, len(os.sched_getaffinity(0)) - 1)))


def pack_keys(keys: OpeningKeys, documents: bytes, *, checks_topics: bool) -> bytes:
    """Encode what opens a batch for the library: fixed sizes one after the other, then kinds by metadata."""
    openings = b"".join(
        _OPENING.pack(
            one.repo_id,
            one.read_key,
            one.convergence_secret,
            one.key is not None,
            one.key or b"",
            one.mark,
            len(one.epoch_ids),
        )
        + b"".join(one.epoch_ids)
        for one in keys.openings
    )
    start = _SMALL_ORDER + keys.topic + struct.pack(">?I", checks_topics, len(openings))
    return start + openings + _KINDS + documents


def _pack_kind(metadata: bytes, kind: type[Body]) -> bytes:
    here, absent = encode(unopened_body(kind)), encode(ErasedBody(kind_name(kind)))
    is_decrypted = kind in EDITS_OF_VALUES
    if is_decrypted:
        here = here.removesuffix(encode(b""))  # the library writes the body's bytes behind it
    return _SIZES.pack(is_decrypted, len(metadata), len(here), len(absent)) + metadata + here + absent


_KINDS: Final = b"".join(_pack_kind(*one) for one in KINDS_BY_METADATA.items())


class Reader:
    """Reader of batches. Thread-safe."""

    def __init__(self, library: Library | None = None, count: int = 0) -> None:
        """`count`: batches that are read at a time; without a library all is read by Python, one at a time."""
        self._library = library
        self.count = count if library is not None else 0
        self._lock = threading.Lock()
        self._documents: OrderedDict[bytes, bytes] = OrderedDict()  # packed, by metadata; the latest last

    def read(
        self, keys: OpeningKeys, items: Sequence[bytes], turn: AbstractContextManager[object] | None = None
    ) -> ReadBatch:
        """Read publications, of bare ones as `read_batch` does. `turn` is held while Python reads some of them."""
        may_prove = keys.holds_topic_key or may_sign(keys.topic)  # the library does not look at keys
        if self._library is None or not may_prove:
            with turn or nullcontext():
                return read_batch(keys, items)
        with self._lock:
            documents = b"".join(self._documents.values())
        packed = pack_keys(keys, documents, checks_topics=not keys.holds_topic_key)
        known = [
            one if one is not None and _may_author(one) else None for one in self._library.read(packed, items)
        ]
        with turn if turn is not None and None in known else nullcontext():
            batch = read_batch(keys, items, known=known)
        self._note_documents(batch)
        return batch

    def check(self, claims: Sequence[Claim]) -> Sequence[bool]:
        """Say of each claim whether it holds."""
        return check_claims(claims) if self._library is None else self._library.check(claims)

    def _note_documents(self, batch: ReadBatch) -> None:
        """Let the library read further commits of the documents of which Python has just read some."""
        for one in batch.candidates:
            if one.is_checked or not isinstance(one.found, DecodedCommit):
                continue
            metadata = one.found.commit.content.metadata
            # A commit of the root branch says no kind, whatever its metadata; the library leaves it.
            kind = declared_kind(one.found.commit, is_root_branch=False)
            if kind is None or metadata in KINDS_BY_METADATA:
                continue
            with self._lock:
                self._documents[metadata] = _pack_kind(metadata, kind)
                self._documents.move_to_end(metadata)
                while len(self._documents) > _DOCUMENTS_MAX:
                    self._documents.popitem(last=False)


def _may_author(candidate: Candidate) -> bool:
    assert isinstance(candidate.found, DecodedCommit), "the library reads no other"
    return may_sign(candidate.found.commit.content.author)
