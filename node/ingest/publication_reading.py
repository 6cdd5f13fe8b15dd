"""Ingest, step 1: decodes and decrypts publications, and gathers what their signatures claim.

Pure, and without the store's modules: a worker process runs this too, and shall start and stay small.
`publication_parsing` goes on where the claims have been checked.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from protocol.block import Block, WrongKey
from protocol.body import Body, ErasedBody, UnknownBody, kind_name
from protocol.codec import DecodeError, Value
from protocol.commit import Commit, UnknownVersion, open_commit
from protocol.declared_kind import declared_kind, read_body
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


class Readable(Value, frozen=True):
    """A commit and its body, decoded; signatures not checked yet."""

    commit: Commit
    body: Body | UnknownBody


class Unread(Value, frozen=True):
    """A commit of a format that is not known here."""

    commit_id: CommitId


class Candidate(Value, frozen=True):
    """A decoded publication, and what was found in it."""

    encoded: bytes
    publication: Publication
    found: Readable | Unread | Rejected


class Drop(Exception):
    """The publication is at fault, not its commit."""


@dataclass(slots=True)
class ReadBatch:
    """Publications that could be read, and the claims of their signatures."""

    checks_topics: bool
    """Whether each topic's signature is checked, and not only of what no author is known to have signed."""
    candidates: list[Candidate] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def read_batch(
    keys: OpeningKeys, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> ReadBatch:
    """Decode and open publications. Each readable candidate claims its author's signature, and the others their topic's.

    Of bare ones those whose header says the body's kind, as no verdict rests on it; `with_bare` the others, too.
    A holder of the topic's key makes the topic's signature itself when it sends on what it accepted, and believes that by
    its author's: it checks the topic's of what it keeps without accepting it (`prove_topics`). The others check each.
    """
    batch = ReadBatch(checks_topics=checks_topics or not keys.holds_topic_key)
    for encoded in items:
        try:
            candidate = read_publication(keys, encoded, with_bare=with_bare)
        except Drop as error:
            batch.dropped[str(error)] += 1
            continue
        publication = candidate.publication
        batch.candidates.append(candidate)
        if checks_topic(batch, candidate):
            batch.claims.append(topic_claim(publication))
        if isinstance(candidate.found, Readable):
            batch.claims.append(author_claim(candidate.found.commit))
    return batch


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
    return Candidate(encoded, publication, _read_commit(keys, publication, with_bare=with_bare))


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
    is_root_branch = keys.is_root_branch
    said = declared_kind(commit, is_root_branch=is_root_branch)
    if publication.body_id is not None:
        if publication.body_id != commit.content.body.object_id:
            raise Drop("missing_body")
        if said is None and not with_bare:
            raise Drop("bare")  # a verdict needs the body, which others may have
        return ErasedBody("" if said is None else kind_name(said))
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    used: set[bytes] = set()

    def look_up(block_id: BlockId) -> Block | None:
        used.add(block_id)
        return blocks.get(block_id)

    body, _ = read_body(commit, look_up, keys.convergence_secret, is_root_branch=is_root_branch)
    # A body whose kind is said travels as its one block, whatever that may be: it cannot be told what else belongs to it.
    if len(publication.blocks) - 1 != (len(used) if said is None else 1):
        raise Drop("surplus_blocks")
    return body
