"""Blocks, commits and publications of sections 3, 4 and 7: writing and reading."""

import re

from . import bodies, crypto
from .codec import Refused, decode, encode, fields, flag, identity, listed, maybe, number, raw
from .crypto import ZEROS, derive

MIB = 1024 * 1024


def lipmaa(n):
    """The feed sequence that a lipmaa link of number n leads to."""

    def s(k):
        return (3**k - 1) // 2

    k = 0
    while s(k + 1) <= n:
        k += 1
    if s(k) == n:
        return n - 3 ** (k - 1)
    x = n
    while True:
        d = s(k)
        x %= d
        k -= 1
        if x == 0:
            return n - d


# Blocks.


class Block:
    """A decoded block with its id."""

    def __init__(self, data):
        if len(data) > MIB:
            raise Refused("too_large")
        value = decode(data)
        if type(value) is not list or not value or value[0] != "block2":
            raise Refused("unknown_version")
        fields(*_BLOCK)(value[1:])
        self.id = crypto.digest(data)
        self.children, self.acks, self.rank, self.mark, self.ciphertext = value[1:]
        if len(self.mark) != 8 and (self.mark or self.acks or self.rank):
            raise Refused("bad_shape")

    def open(self, key, secret=None):
        """The plaintext; refused where the key is not that of the plaintext under the convergence secret."""
        plain = crypto.chacha(key, self.ciphertext)
        if secret is not None and crypto.keyed(secret, plain) != key:
            raise Refused("wrong_key")
        return plain

    def object(self, key, secret=None):
        """The plaintext of an object of one block, which is no commit's and has no children."""
        if self.mark or self.children:
            raise Refused("bad_tree")
        return self.open(key, secret)


_BLOCK = (listed(identity, 0, 15887), listed(identity, 0, 128), number(), raw(0, 8), raw(0, MIB))


def make_block(secret, plain, acks=(), rank=0, mark=b"", children=()):
    """Make a block; return its encoding, its id and its key."""
    key = crypto.keyed(secret, plain)
    data = encode(["block2", list(children), list(acks), rank, mark, crypto.chacha(key, plain)])
    return data, crypto.digest(data), key


# Commits.


def distinct(values):
    """Refuse a list that names something twice."""
    if len(set(values)) != len(values):
        raise Refused("duplicate_ids")


def _kind(value):
    if type(value) is not str or len(value) > 32 or not bodies.KIND.match(value):
        raise Refused("bad_shape")


_ids = listed(identity, 0, 128)
_LINKS = fields(_ids, _ids, _ids, _ids, maybe(identity))
_CONTENT = fields(
    identity,
    identity,
    identity,
    flag,
    flag,
    number(1),
    maybe(identity),
    listed(fields(_kind, identity, _ids), 0, 16),
    number(),
    raw(0, 4096),
    fields(identity, identity),
    listed(raw(0, 32), 0, 128),
)
_VERSION = re.compile(r"commit[0-9]{1,4}\Z")


class Commit:
    """A commit as it was opened: the fields of its block and of its plaintext.

    `body` is set where the body was read, `given` where the keys are known that an init seals.
    """

    header = None  # what a ledger found wrong in its header alone
    body = None
    given = None
    boxes = None
    writers_boxes = None
    keys = None

    def __init__(self, block, plain):
        self.id = block.id
        self.acks = block.acks
        self.rank = block.rank
        self.mark = block.mark
        tag = bodies.tag_of(plain)
        if tag != "commit2":
            raise Refused("unknown_version" if _VERSION.match(tag) else "bad_shape")
        if len(plain) > 64 * 1024:
            raise Refused("too_large")
        value = decode(plain)
        if block.children:
            raise Refused("bad_tree")
        fields(_LINKS, _CONTENT, raw(64))(value[1:])
        self.links, self.content, self.signature = value[1:]
        self.signed = plain[
            9:-66
        ]  # there is one encoding, so links and content stand between tag and signature
        self._read()

    def _read(self):
        self.deps, self.ndeps, self.files, self.nfiles, self.lipmaa = self.links
        (
            self.author,
            self.branch,
            self.epoch,
            self.by_writer,
            self.whole,
            self.sequence,
            self.feed_previous,
            tangles,
            self.timestamp,
            self.metadata,
            self.reference,
            self.file_keys,
        ) = self.content
        for values in (self.acks, self.deps, self.ndeps, self.files, self.nfiles):
            distinct(values)
        if set(self.deps) & set(self.ndeps) or set(self.files) & set(self.nfiles):
            raise Refused("duplicate_ids")
        kinds = [kind for kind, _, _ in tangles]
        if kinds != sorted(set(kinds)):
            raise Refused("duplicate_ids")
        for _, _, previous in tangles:
            distinct(previous)
        if len(self.file_keys) != len(self.files) or any(len(key) not in (0, 32) for key in self.file_keys):
            raise Refused("keys_do_not_match")
        if (self.feed_previous is None) != (self.sequence == 1):
            raise Refused("bad_feed_link")
        if (self.lipmaa is None) != (lipmaa(self.sequence) == self.sequence - 1):
            raise Refused("bad_lipmaa_link")
        self.place = None
        for kind, root, previous in tangles:
            if kind == "group":
                self.place = (root, previous)
        self.said = bodies.said_kind(self.metadata)

    @classmethod
    def made(cls, one, acks, rank, mark, links, content, signature):
        """A commit that was made here, without encoding it and decoding it again."""
        commit = cls.__new__(cls)
        commit.id, commit.acks, commit.rank, commit.mark = one, list(acks), rank, mark
        commit.links, commit.content, commit.signature = links, content, signature
        commit._read()
        return commit

    @property
    def says_first(self):
        """Whether it says zeros for its branch, as the first commit of a branch does."""
        return self.branch == ZEROS

    @property
    def of_branch(self):
        """The id of its branch, whichever commit of it this is."""
        return self.id if self.says_first else self.branch

    @property
    def digest(self):
        """What the author's signature is over."""
        return commit_digest(self.acks, self.rank, self.mark, self.signed)


def make_commit(seed, acks, rank, mark, links, content, tag="commit2"):
    """Sign a commit and encode its plaintext."""
    signed = encode(links) + encode(content)
    signature = crypto.sign(seed, commit_digest(acks, rank, mark, signed))
    return b"\x94" + encode(tag) + signed + encode(signature)


def commit_digest(acks, rank, mark, signed):
    """What the author of a commit signs; `signed` are links and content, encoded one after another."""
    return derive("commit signature v1", b"\x95" + encode(acks) + encode(rank) + encode(mark) + signed)


# Publications.


class Publication:
    """A decoded publication, whole or bare."""

    def __init__(self, data):
        if len(data) > MIB:
            raise Refused("too_large")
        value = decode(data)
        if type(value) is not list or not value:
            raise Refused("bad_shape")
        self.bare = value[0] == "bare1"
        if self.bare:
            fields(identity, identity, raw(0, MIB), identity, raw(64))(value[1:])
            self.topic, self.hidden, block, self.body_id, self.signature = value[1:]
            blocks = [block]
        elif value[0] == "publication1":
            fields(identity, identity, listed(raw(0, MIB), 1, 8), raw(64))(value[1:])
            self.topic, self.hidden, blocks, self.signature = value[1:]
        else:
            raise Refused("unknown_version")
        self.blocks = [Block(block) for block in blocks]
        head = self.blocks[0]
        if not head.mark:
            raise Refused("bad_shape")
        ids = [block.id for block in self.blocks] + ([self.body_id] if self.bare else [])
        self.digest = crypto.publication_digest(self.topic, self.hidden, ids)


def topic_of(data):
    """The topic that a publication says, also where the rest does not decode; None where there is none."""
    for tag in ("publication1", "bare1"):
        head = encode(tag)
        for size in (4, 5, 6):
            start = bytes((0x90 | size,)) + head + b"\xc4\x20"
            if data.startswith(start) and len(data) >= len(start) + 32:
                return data[len(start) : len(start) + 32]
    return None


def hide(read_key, topic, commit_id, key):
    """Hide a commit's key under a read key, or open it."""
    return crypto.mix(key, crypto.keyed(read_key, topic + commit_id))


def make_publication(topic_seed, read_key, commit_id, key, blocks, topic=None):
    """Make the publication of a commit on a topic."""
    topic = topic or crypto.public(topic_seed)
    hidden = hide(read_key, topic, commit_id, key)
    ids = [crypto.digest(block) for block in blocks]
    signature = crypto.sign(topic_seed, crypto.publication_digest(topic, hidden, ids))
    return encode(["publication1", topic, hidden, list(blocks), signature])


def make_bare(topic_seed, read_key, commit_id, key, block, body_id):
    """Make the bare publication of a commit on a topic."""
    topic = crypto.public(topic_seed)
    hidden = hide(read_key, topic, commit_id, key)
    signature = crypto.sign(topic_seed, crypto.publication_digest(topic, hidden, [commit_id, body_id]))
    return encode(["bare1", topic, hidden, block, body_id, signature])
