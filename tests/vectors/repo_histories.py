"""Vectors of whole repos: commits that follow one another, so that a reader can open, judge and order them.

All inputs are fixed. Every secret and every intermediate value that a second implementation could get wrong is said.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from protocol import hashing, signing
from protocol.block import Reference
from protocol.body import (
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
from protocol.codec import encode
from protocol.commit import (
    NO_BRANCH,
    NO_EPOCH,
    Commit,
    Content,
    HeaderKeys,
    Links,
    TanglePlace,
    create_commit,
    lipmaa,
)
from protocol.content import Post
from protocol.declared_kind import declare_kind
from protocol.epochs import BranchTopic, EarlierEpoch, EpochAdd, EpochBox, EpochHistory, EpochInit
from protocol.ids import BranchId, CommitId, EpochId, ObjectId, RepoId, root_branch
from protocol.keys import GivenKey, ReadKey, ReadSecret, RepoSeed, TopicSeed, UserSeed, WriteSecret
from protocol.object import build_object
from protocol.proofs import certify_repo
from protocol.publication import create_publication, encode_publication
from protocol.sealing import seal_secret
from tests.support.ids import as_commit_id
from verifier.ancestry import GraphNode, find_outside

JsonObject = dict[str, Any]

NAME: Final = "demo"
START_MS: Final = 1_790_000_000_000
REPO_SEED: Final = RepoSeed(bytes(range(96, 128)))
WRITE_SECRET: Final = WriteSecret(bytes(range(32, 64)))
LATER_WRITE_SECRET: Final = WriteSecret(bytes(range(33, 65)))
SEEDS: Final = {
    "ann": UserSeed(bytes(range(64, 96))),
    "ben": UserSeed(bytes(range(224, 256))),
    "cat": UserSeed(bytes(range(128, 160))),
}
USERS: Final = {name: signing.public_key(seed) for name, seed in SEEDS.items()}


@dataclass(frozen=True, slots=True)
class Secrets:
    """An epoch's secrets."""

    epoch_id: EpochId
    write_secret: WriteSecret

    @property
    def read_secret(self) -> bytes:
        """What follows from the write secret."""
        return hashing.epoch_read_secret(self.write_secret)


@dataclass(slots=True)
class History:
    """A repo that is written commit by commit. Names stand for commits."""

    repo_id: RepoId = field(default_factory=lambda: signing.public_key(REPO_SEED))
    epoch: Secrets = Secrets(NO_EPOCH, WRITE_SECRET)
    commits: dict[str, Commit] = field(default_factory=dict)
    told: list[JsonObject] = field(default_factory=list)
    _feeds: dict[tuple[bytes, bytes], list[bytes]] = field(default_factory=dict)

    def found(self) -> Commit:
        """The repo's init, by ann; its id is the first epoch's."""
        owners = (USERS["ann"],)
        init = self.write("init", "ann", RepoInit(NAME, owners, certify_repo(REPO_SEED, NAME, owners)), ())
        self.epoch = Secrets(EpochId(init.commit_id), WRITE_SECRET)
        return init

    def write(
        self, name: str, author: str, body: Body, acks: tuple[str, ...], seen: tuple[str, ...] | None = None
    ) -> Commit:
        """A commit: of the root branch, or (with `seen`, root branch commits) of the one that `BranchRoot` began."""
        is_first = isinstance(body, BranchRoot)
        branch = (
            root_branch(self.repo_id) if seen is None else NO_BRANCH if is_first else BranchId(self.branch_id)
        )
        acked = [self.commits[ack] for ack in acks]
        read = ReadSecret(self.epoch.read_secret)
        convergence = hashing.convergence_secret(read)
        # Who holds this epoch's secrets alone is given no key of an earlier one's.
        keys = tuple(
            GivenKey(one.key if self._epoch_of(one) == self.epoch.epoch_id else b"") for one in acked
        )
        place = (
            ()
            if seen is None
            else (
                TanglePlace(
                    "group",
                    self.commits["init"].commit_id,
                    tuple(self.commits[one].commit_id for one in seen),
                ),
            )
        )
        feed = self._feeds.setdefault((USERS[author], branch), [])
        sequence = len(feed) + 1
        skip = lipmaa(sequence)
        reference, body_blocks = build_object(encode_body(body), convergence)
        content = Content(
            USERS[author],
            branch,
            self.epoch.epoch_id,
            sequence,
            as_commit_id(feed[-1]) if feed else None,
            place,
            START_MS + len(self.commits),
            b"" if seen is None else declare_kind(body),
            reference,
            HeaderKeys(acks=keys),
        )
        links = Links(lipmaa=None if skip == sequence - 1 else as_commit_id(feed[skip - 1]))
        ids = tuple(one.commit_id for one in acked)
        secret = signing.key_pair(SEEDS[author])[1]
        commit, block = create_commit(ids, links, content, secret, convergence)
        self.commits[name] = commit
        if is_first:
            self._feeds[USERS[author], commit.commit_id] = feed
        feed.append(commit.commit_id)
        seed = self.topic_seed(commit.branch_id)
        nonce = len(self.commits).to_bytes(24, "little")
        publication = create_publication(
            seed, ReadKey(self.read_key(commit.branch_id)), commit.key, (block, *body_blocks), nonce
        )
        blocks = tuple(one.encoded for one in publication.blocks)
        self.told.append(
            {
                "name": name,
                "author": author,
                "branch": commit.branch_id.hex(),
                "epoch": content.epoch.hex(),
                "acks": list(acks),
                "seen": list(seen or ()),
                "body": encode_body(body).hex(),
                "commit_id": commit.commit_id.hex(),
                "commit_key": commit.key.hex(),
                "signed_digest": commit.digest.hex(),
                "publication_id": publication.publication_id.hex(),
                "publication": encode_publication(
                    publication.topic, publication.sealed_key, blocks, publication.signature
                ).hex(),
            }
        )
        return commit

    @property
    def branch_id(self) -> bytes:
        """The branch `main`."""
        return self.commits["main"].commit_id

    def begin_main(self, acks: tuple[str, ...]) -> None:
        """The branch `main`: its first commit, and the one in the root branch that adds it."""
        first = self.write("main", "ann", BranchRoot(), (), seen=acks)
        topic = signing.public_key(self.topic_seed(BranchId(first.commit_id)))
        reference = Reference(ObjectId(first.commit_id), first.key)
        self.write("add main", "ann", BranchAdd(BranchId(first.commit_id), "main", 0, topic, reference), acks)
        self.told[-2:] = reversed(self.told[-2:])  # nobody knows the branch's topic before it is added

    def topic_seed(self, branch_id: BranchId) -> TopicSeed:
        """Of a branch in the epoch that is written in."""
        if branch_id == root_branch(self.repo_id):
            return hashing.root_topic_seed(ReadSecret(self.epoch.read_secret), self.repo_id)
        return hashing.branch_topic_seed(self.epoch.write_secret, branch_id, 0)

    def read_key(self, branch_id: BranchId) -> bytes:
        """Of a branch in the epoch that is written in."""
        return hashing.branch_read_key(
            hashing.branch_secret(ReadSecret(self.epoch.read_secret), branch_id, 0)
        )

    def seal(self, author: str, user: str, secret: ReadSecret | WriteSecret, number: int) -> bytes:
        """A secret of the repo for a member."""
        nonce = bytes([number]) * 24
        return seal_secret(signing.key_pair(SEEDS[author])[1], USERS[user], self.repo_id, secret, nonce)

    def told_epoch(self) -> JsonObject:
        """The epoch's secrets, and what follows from them."""
        read = ReadSecret(self.epoch.read_secret)
        root_topic = signing.public_key(self.topic_seed(root_branch(self.repo_id)))
        return {
            "epoch": self.epoch.epoch_id.hex(),
            "write_secret": self.epoch.write_secret.hex(),
            "read_secret": read.hex(),
            "convergence_secret": hashing.convergence_secret(read).hex(),
            "root_topic": root_topic.hex(),
            "mark": hashing.epoch_mark(root_topic).hex(),
            "root_read_key": self.read_key(root_branch(self.repo_id)).hex(),
        } | (
            {
                "main_topic": signing.public_key(self.topic_seed(BranchId(self.branch_id))).hex(),
                "main_read_key": self.read_key(BranchId(self.branch_id)).hex(),
            }
            if "main" in self.commits
            else {}
        )

    def told_repo(self) -> JsonObject:
        """Who is who."""
        return {
            "repo_id": self.repo_id.hex(),
            "seeds": {name: seed.hex() for name, seed in SEEDS.items()},
            "users": {name: user.hex() for name, user in USERS.items()},
        }

    def _epoch_of(self, commit: Commit) -> bytes:
        """In which it was published: the init is of the epoch that it starts."""
        return commit.commit_id if commit.content.epoch == NO_EPOCH else commit.content.epoch


def root_commit() -> JsonObject:
    """A repo's init, the first commit of its root branch, with every value on the way to its publication."""
    history = History()
    init = history.found()
    owners = (USERS["ann"],)
    certified = encode([history.repo_id, NAME, owners])
    signed = encode([init.acks, init.links, init.content])
    plaintext = encode(["commit1", init.links, init.content, init.signature])
    return history.told_repo() | {
        "repo_seed": REPO_SEED.hex(),
        "name": NAME,
        "certified": certified.hex(),
        "repo_digest": hashing.repo_digest(certified).hex(),
        "certificate": certify_repo(REPO_SEED, NAME, owners).hex(),
        "founding_epoch": history.told_epoch(),
        "root_topic_seed": history.topic_seed(root_branch(history.repo_id)).hex(),
        "branch_secret": hashing.branch_secret(
            ReadSecret(history.epoch.read_secret), root_branch(history.repo_id), 0
        ).hex(),
        "body_reference": [init.content.body.object_id.hex(), init.content.body.key.hex()],
        "signed": signed.hex(),
        "signature": init.signature.hex(),
        "plaintext": plaintext.hex(),
        "commits": history.told,
    }


def epoch_change() -> JsonObject:
    """Ann excludes ben: a new epoch for ann and cat, its history and topics, and a commit that follows an older one."""
    history = History()
    history.found()
    for number, user in enumerate(("ben", "cat"), 1):
        sealed = history.seal("ann", user, WRITE_SECRET, number)
        acks = ("init",) if number == 1 else ("grant ben",)
        history.write(f"grant {user}", "ann", Grant(USERS[user], Permission.WRITE, sealed), acks)
    history.begin_main(("grant cat",))
    history.write("kept", "ben", Post("before"), ("main",), seen=("add main",))
    ends = (FeedEnd(BranchId(history.branch_id), 1, history.commits["kept"].commit_id),)
    history.write("remove ben", "ann", Remove(USERS["ben"], None, ends), ("add main",))
    history.write("void", "ben", Post("not seen by ann"), ("kept",), seen=("add main",))
    first = history.epoch
    before = history.told_epoch()
    later = Secrets(NO_EPOCH, LATER_WRITE_SECRET)
    members = sorted((USERS[name], name) for name in ("ann", "cat"))
    boxes = tuple(
        EpochBox(user, history.seal("ann", name, LATER_WRITE_SECRET, number))
        for number, (user, name) in enumerate(members, 3)
    )
    root_topic = signing.public_key(hashing.root_topic_seed(ReadSecret(later.read_secret), history.repo_id))
    mark = hashing.epoch_mark(root_topic)
    init = history.write("epoch", "ann", EpochInit((first.epoch_id,), mark, boxes), ("remove ben",))
    history.epoch = Secrets(EpochId(init.commit_id), LATER_WRITE_SECRET)
    earlier = EarlierEpoch(first.epoch_id, USERS["ann"], ReadSecret(first.read_secret))
    history.write("history", "ann", EpochHistory((earlier,)), ("epoch",))
    main_topic = signing.public_key(history.topic_seed(BranchId(history.branch_id)))
    topics = (BranchTopic(BranchId(history.branch_id), main_topic),)
    history.write(
        "topics", "ann", EpochAdd(EpochId(init.commit_id), USERS["ann"], mark, topics, ()), ("history",)
    )
    history.write("after", "cat", Post("after"), ("kept",), seen=("topics",))
    return history.told_repo() | {
        "branch": history.branch_id.hex(),
        "epochs": [before, history.told_epoch()],
        "commits": history.told,
        "members": ["ann", "cat"],
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
    history.write("propose", "ann", ProposeCheckpoint(BranchId(history.branch_id), merged), ("add main",))
    proposal = history.commits["propose"].commit_id
    history.write("approve", "ann", Approve(proposal), ("propose",))
    history.write("checkpoint", "ann", Checkpoint(proposal), ("b",), seen=("approve",))
    main.append("checkpoint")
    post("d", "c")
    post("e", "checkpoint", "d", seen="approve")
    return history.told_repo() | {
        "branch": history.branch_id.hex(),
        "epochs": [history.told_epoch()],
        "commits": history.told,
        "members": ["ann"],
        "checkpoints": ["checkpoint"],
        "timeline": _timeline(history, main, {"checkpoint": ("b",)}),
    }


def _timeline(history: History, names: list[str], checkpoints: dict[str, tuple[str, ...]]) -> JsonObject:
    """The order by (checkpoints passed, rank, id), and the digest of it. `checkpoints` say what each merges."""
    ids = {name: history.commits[name].commit_id for name in names}
    ranks: dict[CommitId, int] = {}
    places: dict[CommitId, GraphNode] = {}
    for name in names:  # causes come first
        commit = history.commits[name]
        ranks[ids[name]] = 1 + max((ranks[ack] for ack in commit.acks), default=-1)
        places[ids[name]] = GraphNode(ranks[ids[name]], commit.acks)
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
