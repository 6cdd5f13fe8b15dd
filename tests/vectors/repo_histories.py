"""Vectors of whole repos: commits that follow one another, so that a reader can open, judge and order them.

All inputs are fixed. Every secret and every intermediate value that a second implementation could get wrong is said.
"""

from dataclasses import dataclass, field
from typing import Final

from protocol.codec import encode
from protocol.crypto import hashing, signing
from protocol.crypto.epoch_boxes import Sealer
from protocol.crypto.keys import EpochKey, TopicSeed, UserSeed, WritersSecret
from protocol.formats.block import Block, Reference
from protocol.formats.body import (
    Approve,
    Body,
    BranchAdd,
    BranchRoot,
    Checkpoint,
    FeedEnd,
    Grant,
    Permission,
    ProposeCheckpoint,
    Quorum,
    Remove,
    RepoInit,
    encode_body,
)
from protocol.formats.commit import (
    NO_BRANCH,
    NO_EPOCH,
    NO_MARK,
    Commit,
    Content,
    Links,
    TanglePlace,
    create_commit,
    lipmaa,
)
from protocol.formats.content import Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.epochs import (
    EpochHand,
    EpochInit,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    seal_keys,
    seal_topic,
)
from protocol.formats.object import build_object
from protocol.formats.proofs import certify_repo
from protocol.formats.publication import Publication, create_publication
from protocol.ids import BranchId, BranchMark, CommitId, EpochId, Mark, ObjectId, RepoId, root_branch
from tests.vectors.fixed import EPOCH_KEY, REPO_SEED, WRITERS_SECRET, JsonObject
from verifier.ancestry import GraphNode, find_outside

NAME: Final = "demo"
START_MS: Final = 1_790_000_000_000
LATER_KEY: Final = EpochKey(bytes(range(1, 33)))
LATER_WRITERS_SECRET: Final = WritersSecret(bytes(range(33, 65)))
NONCES: Final = (b"t" * 24, b"k" * 24)
"""With which an init seals its writers' topic, and the keys that it gives."""
SEEDS: Final = {
    "ann": UserSeed(bytes(range(64, 96))),
    "ben": UserSeed(bytes(range(224, 256))),
    "cat": UserSeed(bytes(range(128, 160))),
    "dan": UserSeed(bytes(range(160, 192))),
}
USERS: Final = {name: signing.public_key(seed) for name, seed in SEEDS.items()}


@dataclass(frozen=True, slots=True)
class Secrets:
    """An epoch, its two secrets, and what follows from them."""

    repo_id: RepoId
    epoch_id: EpochId
    key: EpochKey
    writers_secret: WritersSecret

    @property
    def sealer(self) -> Sealer:
        """Of the members' boxes."""
        return Sealer.of_epoch(self.key, self.repo_id)

    @property
    def writers_sealer(self) -> Sealer:
        """Of the writers' boxes."""
        return Sealer.of_writers(self.writers_secret, self.repo_id)

    @property
    def mark(self) -> Mark:
        """By which the key is known to be right."""
        return self.sealer.mark

    def topic_seed(self, *, by_writer: bool) -> TopicSeed:
        """Of the writers' topic, or of the epoch's own."""
        if by_writer:
            return hashing.writers_topic_seed(self.writers_secret, self.repo_id, self.mark)
        return hashing.epoch_topic_seed(self.key, self.repo_id)

    def branch_mark(self, branch_id: BranchId) -> BranchMark:
        """Of a branch in this epoch."""
        return hashing.branch_mark(hashing.branch_secret(self.key, branch_id))

    def states(self) -> EpochStatement:
        """What the epoch's init states."""
        topic = signing.public_key(self.topic_seed(by_writer=True))
        sealed = seal_topic(self.key, self.repo_id, self.mark, topic, NONCES[0])
        return EpochStatement(self.mark, self.writers_sealer.mark, sealed)

    def publish(self, commit: Commit, blocks: tuple[Block, ...], *, by_writer: bool) -> Publication:
        """A commit on one of the epoch's topics."""
        seed = self.topic_seed(by_writer=by_writer)
        return create_publication(seed, hashing.epoch_read_key(self.key), commit.key, blocks)

    def told(self) -> JsonObject:
        """As the vectors spell it."""
        own, writers = (signing.public_key(self.topic_seed(by_writer=by)) for by in (False, True))
        return {
            "epoch": self.epoch_id.hex(),
            "key": self.key.hex(),
            "writers_secret": self.writers_secret.hex(),
            "convergence_secret": hashing.convergence_secret(self.key).hex(),
            "read_key": hashing.epoch_read_key(self.key).hex(),
            "topic": own.hex(),
            "writers_topic": writers.hex(),
            "mark": self.mark.hex(),
            "writers_mark": self.writers_sealer.mark.hex(),
        }


def _founding() -> Secrets:
    return Secrets(signing.public_key(REPO_SEED), NO_EPOCH, EPOCH_KEY, WRITERS_SECRET)


@dataclass(slots=True)
class History:
    """A repo that is written commit by commit. Names stand for commits."""

    epoch: Secrets = field(default_factory=_founding)
    commits: dict[str, Commit] = field(default_factory=dict)
    told: list[JsonObject] = field(default_factory=list)
    _feeds: dict[tuple[bytes, bytes], list[CommitId]] = field(default_factory=dict)

    @property
    def repo_id(self) -> RepoId:
        """The repo."""
        return self.epoch.repo_id

    @property
    def branch_id(self) -> BranchId:
        """The branch `main`."""
        return BranchId(self.commits["main"].commit_id)

    def found(self) -> Commit:
        """The repo's init, by ann; its id is the first epoch's."""
        owners = (USERS["ann"],)
        body = RepoInit(NAME, owners, certify_repo(REPO_SEED, NAME, owners), self.epoch.states())
        init = self.write("init", "ann", body, (), by_writer=False)
        self.epoch = self._with_id(self.epoch, init)
        return init

    def begin_main(self, acks: tuple[str, ...]) -> None:
        """The branch `main`: its first commit, and the one in the root branch that adds it."""
        first = self.write("main", "ann", BranchRoot(), (), seen=acks)
        reference = Reference(ObjectId(first.commit_id), first.key)
        self.write("add main", "ann", BranchAdd(self.branch_id, "main", reference), acks)
        self.told[-2:] = reversed(self.told[-2:])  # it is pending before

    def start_epoch(self, name: str, acks: tuple[str, ...], members: tuple[str, ...]) -> None:
        """An epoch for these members, who may all write. Its init travels on the topics of both epochs."""
        before = self.epoch
        later = Secrets(self.repo_id, NO_EPOCH, LATER_KEY, LATER_WRITERS_SECRET)
        users = sorted(USERS[member] for member in members)
        given = (GivenEpoch(before.epoch_id, before.key),)
        plaintexts = (
            b"".join(map(later.sealer.seal, users)),
            b"".join(map(later.writers_sealer.seal, users)),
            seal_keys(later.key, self.repo_id, later.mark, given, NONCES[1]),
        )
        objects = [build_object(one, hashing.convergence_secret(before.key)) for one in plaintexts]
        boxes, writers_boxes, keys = (reference for reference, _ in objects)
        body = EpochInit(later.states(), boxes, writers_boxes, keys)
        further = tuple(block for _, made in objects for block in made)
        init = self.write(name, "ann", body, acks, further=further)
        self.epoch = self._with_id(later, init)

    def write(
        self,
        name: str,
        author: str,
        body: Body,
        acks: tuple[str, ...],
        seen: tuple[str, ...] | None = None,
        *,
        by_writer: bool = True,
        further: tuple[Block, ...] = (),
        epoch: Secrets | None = None,
    ) -> Commit:
        """A commit: of the root branch, or (with `seen`, root branch commits) of the one that `BranchRoot` began.

        `further` are blocks that the body of an init names. `epoch` is where it is published, if that is not the latest.
        """
        epoch = epoch or self.epoch
        is_first = isinstance(body, BranchRoot)
        branch = root_branch(self.repo_id) if seen is None else NO_BRANCH if is_first else self.branch_id
        acked = [self.commits[ack] for ack in acks]
        convergence = hashing.convergence_secret(epoch.key)
        place = tuple(self.commits[one].commit_id for one in seen or ())
        feed = self._feeds.setdefault((USERS[author], branch), [])
        sequence = len(feed) + 1
        skip = lipmaa(sequence)
        reference, body_blocks = build_object(encode_body(body), convergence)
        content = Content(
            author=USERS[author],
            branch=branch,
            epoch=epoch.epoch_id,
            by_writer=by_writer,
            whole=True,
            feed_sequence=sequence,
            feed_previous=feed[-1] if feed else None,
            tangles=() if seen is None else (TanglePlace("group", self.commits["init"].commit_id, place),),
            timestamp=START_MS + len(self.commits),
            metadata=b"" if seen is None else declare_kind(body),
            body=reference,
        )
        commit, block = create_commit(
            tuple(one.commit_id for one in acked),
            1 + max((one.rank for one in acked), default=-1),
            NO_MARK if is_first else epoch.branch_mark(branch),
            Links(lipmaa=None if skip == sequence - 1 else feed[skip - 1]),
            content,
            signing.key_pair(SEEDS[author])[1],
            convergence,
        )
        self.commits[name] = commit
        if is_first:
            self._feeds[USERS[author], commit.commit_id] = feed
        feed.append(commit.commit_id)
        blocks = (block, *body_blocks, *further)
        publication = epoch.publish(commit, blocks, by_writer=by_writer)
        told = {
            "name": name,
            "author": author,
            "branch": commit.branch_id.hex(),
            "epoch": content.epoch.hex(),
            "by_writer": by_writer,
            "acks": list(acks),
            "seen": list(seen or ()),
            "rank": commit.rank,
            "mark": commit.mark.hex(),
            "body": encode_body(body).hex(),
            "commit_id": commit.commit_id.hex(),
            "commit_key": commit.key.hex(),
            "signed_digest": commit.digest.hex(),
            "publication_id": publication.publication_id.hex(),
            "publication": publication.encoded.hex(),
        }
        if isinstance(body, EpochInit):
            later = Secrets(self.repo_id, EpochId(commit.commit_id), LATER_KEY, LATER_WRITERS_SECRET)
            told["publication_on_its_epochs_topic"] = later.publish(
                commit, blocks, by_writer=False
            ).encoded.hex()
        self.told.append(told)
        return commit

    def told_repo(self) -> JsonObject:
        """Who is who."""
        return {
            "repo_id": self.repo_id.hex(),
            "seeds": {name: seed.hex() for name, seed in SEEDS.items()},
            "users": {name: user.hex() for name, user in USERS.items()},
        }

    def _with_id(self, epoch: Secrets, init: Commit) -> Secrets:
        return Secrets(epoch.repo_id, EpochId(init.commit_id), epoch.key, epoch.writers_secret)


def root_commit() -> JsonObject:
    """A repo's init, the first commit of its root branch, with every value on the way to its publication."""
    history = History()
    init = history.found()
    owners = (USERS["ann"],)
    certified = encode([history.repo_id, NAME, owners])
    signed = encode([init.acks, init.rank, init.mark, init.links, init.content])
    plaintext = encode(["commit2", init.links, init.content, init.signature])
    return history.told_repo() | {
        "repo_seed": REPO_SEED.hex(),
        "name": NAME,
        "certified": certified.hex(),
        "repo_digest": hashing.repo_digest(certified).hex(),
        "certificate": certify_repo(REPO_SEED, NAME, owners).hex(),
        "founding_epoch": history.epoch.told(),
        "topic_seed": history.epoch.topic_seed(by_writer=False).hex(),
        "writers_topic_seed": history.epoch.topic_seed(by_writer=True).hex(),
        "branch_secret": hashing.branch_secret(history.epoch.key, root_branch(history.repo_id)).hex(),
        "body_reference": [init.content.body.object_id.hex(), init.content.body.key.hex()],
        "signed": signed.hex(),
        "signature": init.signature.hex(),
        "plaintext": plaintext.hex(),
        "commits": history.told,
    }


def epoch_change() -> JsonObject:
    """Ann excludes ben: a new epoch for ann and cat. Dan, who follows by a link, comes in and is handed it."""
    history = History()
    history.found()
    history.write("grant ben", "ann", Grant(USERS["ben"], Permission.WRITE), ("init",))
    history.write("grant cat", "ann", Grant(USERS["cat"], Permission.WRITE), ("grant ben",))
    history.begin_main(("grant cat",))
    history.write("kept", "ben", Post("before"), ("main",), seen=("add main",))
    ends = (FeedEnd(history.branch_id, 1, history.commits["kept"].commit_id),)
    history.write("remove ben", "ann", Remove(USERS["ben"], None, ends), ("add main",))
    history.write("void", "ben", Post("not seen by ann"), ("kept",), seen=("add main",))
    first = history.epoch
    history.start_epoch("epoch", ("remove ben",), ("ann", "cat"))
    later = history.epoch
    history.write("grant dan", "ann", Grant(USERS["dan"], Permission.READ), ("epoch",))
    box = HandedBox(USERS["dan"], later.sealer.seal(USERS["dan"]), None)
    hand = EpochHand(later.epoch_id, later.mark, later.writers_sealer.mark, (box,))
    history.write("hand dan", "ann", hand, ("grant dan",), epoch=first)
    history.write("after", "cat", Post("after"), ("kept",), seen=("hand dan",))
    return history.told_repo() | {
        "branch": history.branch_id.hex(),
        "epochs": [first.told(), later.told()],
        "commits": history.told,
        "members": ["ann", "cat", "dan"],
        "void": ["void"],
        "timeline": _timeline(history, ["main", "kept", "after"], {}),
    }


def checkpoint_order() -> JsonObject:
    """A branch with one checkpoint: what it does not have in its past stands behind it, whatever its rank."""
    history = History()
    history.found()
    history.write("quorum", "ann", Quorum((USERS["ann"],), 1, removals=False), ("init",))
    history.begin_main(("quorum",))
    main = ["main"]

    def post(name: str, *acks: str, seen: str = "add main") -> None:
        history.write(name, "ann", Post(name), acks, seen=(seen,))
        main.append(name)

    post("a", "main")
    post("b", "a")
    post("c", "main")
    merged = (history.commits["b"].commit_id,)
    history.write("propose", "ann", ProposeCheckpoint(history.branch_id, merged), ("add main",))
    proposal = history.commits["propose"].commit_id
    history.write("approve", "ann", Approve(proposal), ("propose",))
    history.write("checkpoint", "ann", Checkpoint(proposal), ("b",), seen=("approve",))
    main.append("checkpoint")
    post("d", "c")
    post("e", "checkpoint", "d", seen="approve")
    return history.told_repo() | {
        "branch": history.branch_id.hex(),
        "epochs": [history.epoch.told()],
        "commits": history.told,
        "members": ["ann"],
        "checkpoints": ["checkpoint"],
        "timeline": _timeline(history, main, {"checkpoint": ("b",)}),
    }


def _timeline(history: History, names: list[str], checkpoints: dict[str, tuple[str, ...]]) -> JsonObject:
    """The order by (checkpoints passed, rank, id), and the digest of it. `checkpoints` say what each merges."""
    commits = [history.commits[name] for name in names]
    ids = {name: history.commits[name].commit_id for name in names}
    ranks = {commit.commit_id: commit.rank for commit in commits}
    places = {commit.commit_id: GraphNode(commit.rank, commit.acks) for commit in commits}
    passed = dict.fromkeys(ids.values(), 0)
    for name, merged in checkpoints.items():
        inside = [ids[one] for one in merged]
        for one in _outside(places, inside) - {ids[name]}:
            passed[one] += 1
    keys = sorted((passed[one], ranks[one], one) for one in ids.values())
    by_id = {one: name for name, one in ids.items()}
    hasher = hashing.timeline_digest()
    for *_, one in keys:
        hasher.update(one)
    return {
        "order": [
            {
                "name": by_id[one],
                "passed": behind,
                "rank": rank,
                "place": f"{behind:016x}{rank:016x}{one.hex()}",
            }
            for behind, rank, one in keys
        ],
        "digest": hasher.hexdigest(),
    }


def _outside(places: dict[CommitId, GraphNode], inside: list[CommitId]) -> set[CommitId]:
    acked = {ack for place in places.values() for ack in place.acks}
    return find_outside(places.keys() - acked, inside, lambda wanted: {one: places[one] for one in wanted})
