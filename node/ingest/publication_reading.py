"""Ingest, step 1: decodes and decrypts publications, and gathers what their signatures claim.

Pure, and without the store's modules: a worker process runs this too, and shall start and stay small.
`publication_parsing` goes on where the claims have been checked.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from protocol.block import Block, WrongKey
from protocol.body import AnyBody, Body, ErasedBody, UnknownBody, kind_name
from protocol.codec import DecodeError, Value
from protocol.commit import Commit, UnknownVersion, open_commit
from protocol.declared_kind import declared_kind, read_body, unopened_body
from protocol.ids import BlockId, CommitId, TopicKey
from protocol.keys import ConvergenceSecret, ReadKey
from protocol.object import MissingBlocks
from protocol.publication import Publication, WrongReadKey, decode_publication, open_sealed_key
from protocol.signing import Claim
from verifier.verify import Rejected, author_claim


class OpeningKeys(NamedTuple):
    """What opens the commits of one branch on one topic."""

    topic: TopicKey
    read_key: ReadKey
    convergence_secret: ConvergenceSecret
    is_root_branch: bool
    holds_topic_key: bool
    """Whether this node can make the topic's signature itself."""

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"OpeningKeys(topic={self.topic.hex()})"


class Readable(Value, frozen=True, tag="readable"):
    """A commit and its body, decoded; signatures not checked yet. No more of the body is read than a verdict rests on."""

    commit: Commit
    body: AnyBody


class Unread(Value, frozen=True, tag="unread"):
    """A commit of a format that is not known here."""

    commit_id: CommitId


class Candidate(Value, frozen=True):
    """A decoded publication, and what was found in it."""

    publication: Publication
    found: Readable | Unread | Rejected


class Drop(Exception):
    """The publication is at fault, not its commit."""


class ReadBatch(Value, frozen=True):
    """Publications that could be read, and how many were dropped for which reason."""

    checks_topics: bool
    """Whether each topic's signature is checked, and not only of what no author is known to have signed."""
    candidates: list[Candidate]
    dropped: dict[str, int]


def read_batch(
    keys: OpeningKeys, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> ReadBatch:
    """Decode and open publications.

    Of bare ones those whose header says the body's kind, as no verdict rests on it; `with_bare` the others, too.
    """
    candidates: list[Candidate] = []
    dropped: Counter[str] = Counter()
    for encoded in items:
        try:
            candidates.append(read_publication(keys, encoded, with_bare=with_bare))
        except Drop as error:
            dropped[str(error)] += 1
    return ReadBatch(checks_topics or not keys.holds_topic_key, candidates, dropped)


def gather_claims(batch: ReadBatch) -> list[Claim]:
    """What is to be checked: each readable candidate claims its author's signature, and the others their topic's.

    A holder of the topic's key makes the topic's signature itself when it sends on what it accepted, and believes that by
    its author's: it checks the topic's of what it keeps without accepting it (`prove_topics`). The others check each.
    """
    claims: list[Claim] = []
    for candidate in batch.candidates:
        if checks_topic(batch, candidate):
            claims.append(topic_claim(candidate.publication))
        if isinstance(candidate.found, Readable):
            claims.append(author_claim(candidate.found.commit))
    return claims


def checks_topic(batch: ReadBatch, candidate: Candidate) -> bool:
    """Whether the topic's signature of a candidate is among the claims of its batch."""
    return batch.checks_topics or not isinstance(candidate.found, Readable)


def topic_claim(publication: Publication) -> Claim:
    """That the holder of the topic's key signed a publication."""
    return Claim(publication.topic, publication.digest, publication.signature)


def read_publication(keys: OpeningKeys, encoded: bytes, *, with_bare: bool = False) -> Candidate:
    """One publication and what is in it. Raises Drop where the publication is at fault."""
    try:
        publication = decode_publication(encoded)
    except DecodeError as error:
        raise Drop(f"bad_publication:{error.reason}") from None
    if publication.topic != keys.topic:
        raise Drop("other_topic")
    return Candidate(publication, _read_commit(keys, publication, with_bare=with_bare))


def _read_commit(
    keys: OpeningKeys, publication: Publication, *, with_bare: bool
) -> Readable | Unread | Rejected:
    """Raises Drop where the publication is at fault."""
    commit_id = publication.commit_id
    try:
        key = open_sealed_key(publication, keys.read_key)
        commit = open_commit(publication.blocks[0], key, keys.convergence_secret)
    except WrongReadKey:
        raise Drop("seal_broken") from None
    except WrongKey:
        raise Drop("wrong_key") from None
    except UnknownVersion:
        if publication.body_id is not None:
            raise Drop("bare") from None  # anyone who can read it may need the body
        return Unread(commit_id)
    except DecodeError as error:
        return Rejected(commit_id, "bad_commit", str(error))
    try:
        return Readable(commit, _read_body(keys, commit, publication, with_bare=with_bare))
    except MissingBlocks:
        raise Drop("missing_body") from None
    except WrongKey:
        return Rejected(commit_id, "bad_body", "the commit gives a wrong key for its body")
    except DecodeError as error:
        return Rejected(commit_id, "bad_body", str(error))


def _read_body(
    keys: OpeningKeys, commit: Commit, publication: Publication, *, with_bare: bool
) -> Body | UnknownBody:
    """Raises Drop where the publication is at fault, and as `read_body`."""
    body_id = commit.content.body.object_id
    said = declared_kind(commit, is_root_branch=keys.is_root_branch)
    if publication.body_id is not None:
        if publication.body_id != body_id:
            raise Drop("missing_body")
        if said is None and not with_bare:
            raise Drop("bare")  # a verdict needs the body, which others may have
        return ErasedBody("" if said is None else kind_name(said))
    if said is not None:
        # It travels as its one block, whatever that may be: it cannot be told what else belongs to it. No verdict rests on
        # what it says, so nobody opens it before it is asked for: that would be a quarter of all reading.
        if all(block.block_id != body_id for block in publication.blocks[1:]):
            raise Drop("missing_body")
        if len(publication.blocks) != 2:
            raise Drop("surplus_blocks")
        return unopened_body(said)
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    used: set[bytes] = set()

    def look_up(block_id: BlockId) -> Block | None:
        used.add(block_id)
        return blocks.get(block_id)

    body, _ = read_body(commit, look_up, keys.convergence_secret, is_root_branch=keys.is_root_branch)
    if len(publication.blocks) - 1 != len(used):
        raise Drop("surplus_blocks")
    return body
