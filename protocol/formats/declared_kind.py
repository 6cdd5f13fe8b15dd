"""A commit's signed header declares the kind of its body, so a node can judge the commit without the body.

Of what a document says the header also has the document's name, so that an erased body still counts for its document. A
`carried1` has the name of the document that it carries an edit of, and declares nothing.

A body whose kind is said changes no verdict, so a commit can be judged by who never sees its body. One that cannot be
opened or decoded, or is of another kind than was said, is *unreadable*: it says nothing, to anyone. Any other metadata
means nothing. What follows for verdicts is `verifier.verify`'s (V9).
"""

from functools import lru_cache
from typing import Final, NamedTuple

from protocol.codec import DecodeError, Wire, decode, encode
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import WrongKey
from protocol.formats.body import (
    Body,
    Carried,
    UnknownBody,
    UnopenedBody,
    UnreadableBody,
    decode_body,
    kind_name,
    tag_of,
)
from protocol.formats.commit import Commit
from protocol.formats.content import Imported, Post
from protocol.formats.document_kinds import DOCUMENT_KINDS, ValuesKind
from protocol.formats.document_names import is_document_name
from protocol.formats.object import BlockLookup, MissingBlocks, open_object
from protocol.limits.formats import BODY_SIZE_MAX, METADATA_SIZE_MAX

WORDS: Final[tuple[type[Body], ...]] = tuple(body for kind in DOCUMENT_KINDS for body in kind.declared)
POSTS: Final[tuple[type[Body], ...]] = (Post, Imported)
"""Kinds of bodies on which nothing rests but what is shown of them."""
POST_KINDS: Final = tuple(map(kind_name, POSTS))
EDITS_OF_VALUES: Final[frozenset[type[Body]]] = frozenset(
    kind.edit for kind in DOCUMENT_KINDS if isinstance(kind, ValuesKind)
)
"""Kinds of bodies that are decrypted while a commit is read: rows of documents are made of them when it is accepted."""
ERASABLE: Final[tuple[type[Body], ...]] = (*POSTS, *WORDS)
"""Kinds of bodies that no verdict rests on, and that may be erased. Carried ones stay: they say by which name a word is
known."""


class _SaidKind(Wire, frozen=True, tag="kind1"):
    body_tag: str


class _SaidDocument(Wire, frozen=True, tag="kind2"):
    body_tag: str
    document: str


class _Said(NamedTuple):
    """Meaning of a header's metadata: the kind that it declares, if any, and the document's name."""

    kind: type[Body] | None = None
    document: str = ""


_METADATA: Final[dict[type[Body], bytes]] = {kind: encode(_SaidKind(tag_of(kind))) for kind in ERASABLE}
KINDS_BY_METADATA: Final = {encoded: kind for kind, encoded in _METADATA.items()}
"""Kinds by the metadata that declares each, without a document's name. Every value has one encoding, so to compare bytes is
to decode."""
_KINDS: Final = {encoded: _Said(kind) for encoded, kind in KINDS_BY_METADATA.items()}
_NAMED: Final[dict[str, type[Body]]] = {tag_of(kind): kind for kind in (*WORDS, Carried)}
_NOTHING_SAID: Final = _Said()
_NAMES_REMEMBERED_MAX: Final = 1024
_UNOPENED: Final = {kind: UnopenedBody(kind_name(kind)) for kind in ERASABLE}


def declare_kind(body: Body, document: str = "") -> bytes:
    """Return the metadata of a commit outside the root branch that has this body; empty for bodies that verdicts rest on.

    `document` is the name of the document that the body is of, and empty for the unnamed one.
    """
    if document and tag_of(type(body)) in _NAMED:
        return encode(_SaidDocument(tag_of(type(body)), document))
    return _METADATA.get(type(body), b"")


def declared_kind(commit: Commit, *, is_root_branch: bool) -> type[Body] | None:
    """Return the kind that a commit says its body has. In the root branch, where verdicts rest on bodies, metadata is no
    word.
    """
    return None if is_root_branch else _said(commit.content.metadata).kind


def document_name(commit: Commit, *, is_root_branch: bool) -> str:
    """Return the name of the document that a commit declares; empty for the unnamed one, and without a document."""
    return "" if is_root_branch else _said(commit.content.metadata).document


def _said(metadata: bytes) -> _Said:
    return _KINDS.get(metadata) or (_said_of_document(metadata) if metadata else _NOTHING_SAID)


@lru_cache(_NAMES_REMEMBERED_MAX)  # it is asked for several times for each commit of a document
def _said_of_document(metadata: bytes) -> _Said:
    try:
        said = decode(_SaidDocument, metadata, size_max=METADATA_SIZE_MAX)
    except DecodeError:
        return _NOTHING_SAID
    kind = _NAMED.get(said.body_tag)
    if kind is None or not is_document_name(said.document):
        return _NOTHING_SAID
    return _Said(None if kind is Carried else kind, said.document)


def unopened_body(kind: type[Body], encoded: bytes = b"") -> UnopenedBody:
    """Return a body that has the kind declared by the header. Verdicts look at no more of such a body."""
    return UnopenedBody(kind_name(kind), encoded) if encoded else _UNOPENED[kind]


def decrypt_edit(
    kind: type[Body], commit: Commit, lookup: BlockLookup, convergence_secret: ConvergenceSecret
) -> bytes:
    """Return the bytes of a body of this declared kind; nothing where it is no edit of values, or cannot be decrypted."""
    if kind not in EDITS_OF_VALUES:
        return b""
    try:
        return open_object(commit.content.body, lookup, convergence_secret, size_max=BODY_SIZE_MAX)
    except (MissingBlocks, WrongKey, DecodeError):
        return b""


def read_body(
    commit: Commit, lookup: BlockLookup, convergence_secret: ConvergenceSecret, *, is_root_branch: bool
) -> tuple[Body | UnknownBody, bytes]:
    """Return a commit's body and its encoding. Of a body whose kind is said and that is not so an UnreadableBody, and
    nothing.

    Raises MissingBlocks where the body's block is not found; of bodies whose kind is not said also where another one is
    not, WrongKey, DecodeError.
    """
    said = declared_kind(commit, is_root_branch=is_root_branch)
    if said is not None and lookup(commit.content.body.object_id) is None:
        raise MissingBlocks((commit.content.body.object_id,))
    try:
        encoded = open_object(commit.content.body, lookup, convergence_secret, size_max=BODY_SIZE_MAX)
        body = decode_body(encoded)
    except (MissingBlocks, WrongKey, DecodeError):
        if said is None:
            raise
        return UnreadableBody(kind_name(said)), b""
    if said is not None and type(body) is not said:
        return UnreadableBody(kind_name(said)), b""
    return body, encoded
