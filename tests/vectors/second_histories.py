"""Whole repos, read a second time: their commits are opened, followed from epoch to epoch, ordered, and made again.

From docs/protocol.md, membership.md and order.md, with `second_reader` and public libraries. Rights are not judged, but
for what the vectors hold: removals void what does not have them in its past and is not among the feeds' ends (N2).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from blake3 import blake3
from nacl import bindings

from tests.vectors import second_reader as reader

Vector = Any  # whatever a file holds
ZEROS = bytes(32)


class Epoch:
    """An epoch's write secret, and what follows from it."""

    def __init__(self, epoch_id: bytes, write_secret: bytes, repo: bytes) -> None:
        self.epoch_id = epoch_id
        self.write_secret = write_secret
        self.repo = repo
        self.read_secret = reader.epoch_read_secret(write_secret)
        self.convergence = reader.convergence_secret(self.read_secret)
        self.root_topic = self.topic(repo)
        self.mark = reader.epoch_mark(self.root_topic)

    def topic(self, branch: bytes) -> bytes:
        """A branch's topic, of generation 0."""
        if branch == self.repo:
            return reader.public_key(reader.root_topic_seed(self.read_secret, self.repo))
        return reader.public_key(reader.branch_topic_seed(self.write_secret, branch, 0))

    def read_key(self, branch: bytes) -> bytes:
        """What opens a branch's sealed keys."""
        return reader.branch_read_key(reader.branch_secret(self.read_secret, branch, 0))

    def told(self, branch: bytes | None) -> Vector:
        """As the vectors spell it."""
        said = {
            "epoch": self.epoch_id,
            "write_secret": self.write_secret,
            "read_secret": self.read_secret,
            "convergence_secret": self.convergence,
            "root_topic": self.root_topic,
            "mark": self.mark,
            "root_read_key": self.read_key(self.repo),
        }
        if branch is not None:
            said |= {"main_topic": self.topic(branch), "main_read_key": self.read_key(branch)}
        return said


class Reader:
    """One who holds the founding epoch's write secret and the seeds of all users, and reads commits in their order."""

    def __init__(self, vector: Vector, write_secret: bytes) -> None:
        self.repo = bytes.fromhex(vector["repo_id"])
        self.users = {name: reader.public_key(bytes.fromhex(seed)) for name, seed in vector["seeds"].items()}
        self.epochs = [Epoch(ZEROS, write_secret, self.repo)]
        self.branch: bytes | None = None
        self.commits: dict[bytes, dict[str, Any]] = {}  # by id: fields, and `tag` and `said` of the body
        self.names: dict[bytes, str] = {}
        self._seeds = {name: bytes.fromhex(seed) for name, seed in vector["seeds"].items()}
        self.told = [self._read(told) for told in vector["commits"]]

    def _read(self, told: Vector) -> Vector:
        publication = bytes.fromhex(told["publication"])
        topic = reader.read_publication(publication)["topic"]
        branches = [self.repo, *([] if self.branch is None else [self.branch])]
        epoch, branch = next(
            (epoch, branch) for epoch in self.epochs for branch in branches if epoch.topic(branch) == topic
        )
        _, key, blocks = reader.open_publication(publication, epoch.read_key(branch))
        commit_id, *_ = blocks
        commit = reader.open_commit(blocks[commit_id], key, epoch.convergence)
        encoded = reader.open_object(commit["body"], blocks, epoch.convergence)
        tag, said = reader.open_body(encoded)
        self.commits[commit_id] = commit | {"id": commit_id, "key": key, "tag": tag, "said": said}
        self.names[commit_id] = told["name"]
        self._check_places(commit, commit_id, branch, epoch)
        self._check_keys(commit)
        self._follow(commit_id, tag, said)
        return {
            "name": told["name"],
            "author": next(name for name, user in self.users.items() if user == commit["author"]),
            "branch": branch,
            "epoch": commit["epoch"],
            "acks": [self.names[ack] for ack in commit["acks"]],
            "seen": [self.names[one] for _, _, previous in commit["tangles"] for one in previous],
            "body": encoded,
            "commit_id": commit_id,
            "commit_key": key,
            "signed_digest": commit["digest"],
            "publication_id": reader.publication_id(publication),
            "publication": publication,
        }

    def _check_places(self, commit: Vector, commit_id: bytes, branch: bytes, epoch: Epoch) -> None:
        """V1 to V3, and the feed's links."""
        is_init = commit_id == next(iter(self.commits))
        assert commit["epoch"] == (ZEROS if is_init else epoch.epoch_id)
        is_first = branch != self.repo and commit_id == branch
        assert commit["branch"] == (ZEROS if is_first else branch)
        assert (not commit["acks"]) == (is_init or is_first)
        groups = [(kind, root, bool(previous)) for kind, root, previous in commit["tangles"]]
        assert groups == ([] if branch == self.repo else [("group", next(iter(self.commits)), True)])
        sequence = commit["feed_sequence"]
        for link, wanted in (
            (commit["feed_previous"], sequence - 1),
            (commit["lipmaa"], reader.lipmaa(sequence)),
        ):
            if link is not None:
                assert (self.commits[link]["author"], self.commits[link]["feed_sequence"]) == (
                    commit["author"],
                    wanted,
                )

    def _check_keys(self, commit: Vector) -> None:
        """A key for each ack of the same epoch, and none for others."""
        for ack, key in zip(commit["acks"], commit["keys"][0], strict=True):
            acked = self.commits[ack]
            epoch = acked["epoch"] if acked["epoch"] != ZEROS else acked["id"]
            assert key == (acked["key"] if epoch == commit["epoch"] else b"")

    def _follow(self, commit_id: bytes, tag: str, said: Vector) -> None:
        """Branches and epochs that a body tells of."""
        match tag:
            case "init1":
                self.epochs[0].epoch_id = commit_id
                signed = [self.repo, said["name"], said["owners"]]
                reader.check_signature(
                    self.repo, "repo certificate signature v1", signed, said["certificate"]
                )
            case "branch-add1":
                assert said["topic"] == self.epochs[-1].topic(said["branch"])
                self.branch = said["branch"]
            case "grant1":
                author, user = self.commits[commit_id]["author"], said["user"]
                assert self._open(author, user, said["write_secret"]) == self.epochs[0].write_secret
            case "epoch-init1":
                author = self.commits[commit_id]["author"]
                opened = {self._open(author, user, sealed) for user, sealed in said["boxes"]}
                (write_secret,) = opened
                self.epochs.append(Epoch(commit_id, write_secret, self.repo))
                assert said["mark"] == self.epochs[-1].mark != self.epochs[0].mark
                assert said["previous"] == [self.epochs[0].epoch_id]
            case "epoch-history1":
                first = self.epochs[0]
                assert said["earlier"] == [[first.epoch_id, self.users["ann"], first.read_secret]]
            case "epoch-add1":
                assert (said["epoch"], said["mark"]) == (self.epochs[-1].epoch_id, self.epochs[-1].mark)
                assert said["topics"] == [[self.branch, self.epochs[-1].topic(self.branch or b"")]]

    def _open(self, author: bytes, user: bytes, sealed: bytes) -> bytes:
        name = next(name for name, one in self.users.items() if one == user)
        return reader.open_sealed_secret(self._seeds[name], author, self.repo, sealed)

    # --- what follows from the set of commits ---

    def past(self, commit_id: bytes) -> set[bytes]:
        """All that a commit has in its past, over acks and the group tangle."""
        found: set[bytes] = set()
        ahead = [commit_id]
        while ahead:
            commit = self.commits[ahead.pop()]
            fresh = {*commit["acks"], *(one for _, _, some in commit["tangles"] for one in some)} - found
            found |= fresh
            ahead += fresh
        return found

    def rank(self, commit_id: bytes) -> int:
        """The longest path to the root of its branch."""
        return 1 + max((self.rank(ack) for ack in self.commits[commit_id]["acks"]), default=-1)

    def main(self) -> list[bytes]:
        """Commits of the branch `main`."""
        return [one for one, commit in self.commits.items() if self.branch in (one, commit["branch"])]

    def is_void(self, commit_id: bytes) -> bool:
        """N2: a removal of its author is not in its past, and does not name it by a feed's end."""
        commit, past = self.commits[commit_id], self.past(commit_id)
        return any(
            removal["tag"] == "remove1"
            and removal["said"]["user"] == commit["author"]
            and one not in past
            and not any(
                commit_id == end or commit_id in self.past(end) for _, _, end in removal["said"]["feeds"]
            )
            for one, removal in self.commits.items()
        )

    def passed(self, commit_id: bytes) -> int:
        """How many checkpoints do not have it in their past, those that merge the same heads counted once."""
        merged = {
            tuple(sorted(commit["acks"])): {
                *commit["acks"],
                *(raw for ack in commit["acks"] for raw in self.past(ack)),
            }
            for commit in self.commits.values()
            if commit["tag"] == "checkpoint1"
        }
        own = tuple(sorted(self.commits[commit_id]["acks"]))
        is_checkpoint = self.commits[commit_id]["tag"] == "checkpoint1"
        return sum(
            commit_id not in inside and not (is_checkpoint and own == heads)
            for heads, inside in merged.items()
        )

    def timeline(self) -> Vector:
        """The order by (checkpoints passed, rank, id) of what is not void."""
        shown = [one for one in self.main() if not self.is_void(one)]
        keys = sorted((self.passed(one), self.rank(one), one) for one in shown)
        return {
            "order": [
                {
                    "name": self.names[one],
                    "passed": passed,
                    "rank": rank,
                    "place": (passed.to_bytes(8, "big") + rank.to_bytes(8, "big") + one).hex(),
                }
                for passed, rank, one in keys
            ],
            "digest": blake3(b"".join(one for *_, one in keys)).digest(),
        }

    def who(self) -> Vector:
        """Who is who."""
        return {
            "repo_id": self.repo,
            "seeds": {name: seed.hex() for name, seed in self._seeds.items()},
            "users": dict(self.users),
        }


def remake_root_commit(vector: Vector) -> Vector:
    """From the seeds, the name, the write secret and the publication."""
    read = Reader(vector, bytes.fromhex(vector["founding_epoch"]["write_secret"]))
    (init,) = read.commits.values()
    epoch, owners = read.epochs[0], [read.users["ann"]]
    seed = bytes.fromhex(vector["repo_seed"])
    repo, secret = bindings.crypto_sign_seed_keypair(seed)
    assert repo == read.repo
    certified = reader.pack([repo, vector["name"], owners])
    digest = reader.derive("repo certificate signature v1", certified)
    assert (init["said"]["name"], init["said"]["owners"], init["branch"]) == (vector["name"], owners, repo)
    acks, links, content = init["signed"]
    return read.who() | {
        "repo_seed": seed,
        "name": vector["name"],
        "certified": certified,
        "repo_digest": digest,
        "certificate": bindings.crypto_sign(digest, secret)[:64],
        "founding_epoch": epoch.told(None),
        "root_topic_seed": reader.root_topic_seed(epoch.read_secret, repo),
        "branch_secret": reader.branch_secret(epoch.read_secret, repo, 0),
        "body_reference": init["body"],
        "signed": reader.pack([acks, links, content]),
        "signature": init["signature"],
        "plaintext": reader.pack(["commit1", links, content, init["signature"]]),
        "commits": read.told,
    }


def remake_epoch_change(vector: Vector) -> Vector:
    """From the seeds, the founding epoch's write secret and the publications."""
    read = Reader(vector, bytes.fromhex(vector["epochs"][0]["write_secret"]))
    boxes: Sequence[tuple[bytes, bytes]] = next(
        commit["said"]["boxes"] for commit in read.commits.values() if commit["tag"] == "epoch-init1"
    )
    assert [user for user, _ in boxes] == sorted(user for user, _ in boxes)
    names: Mapping[bytes, str] = {user: name for name, user in read.users.items()}
    return read.who() | {
        "branch": read.branch,
        "epochs": [epoch.told(read.branch) for epoch in read.epochs],
        "commits": read.told,
        "members": sorted(names[user] for user, _ in boxes),
        "void": [read.names[one] for one in read.main() if read.is_void(one)],
        "timeline": read.timeline(),
    }


def remake_checkpoint_order(vector: Vector) -> Vector:
    """From the seeds, the epoch's write secret and the publications."""
    read = Reader(vector, bytes.fromhex(vector["epochs"][0]["write_secret"]))
    by_tag = {commit["tag"]: commit for commit in read.commits.values()}
    assert by_tag["checkpoint1"]["said"]["proposal"] == by_tag["propose-checkpoint1"]["id"]
    assert by_tag["approve1"]["said"]["proposal"] == by_tag["propose-checkpoint1"]["id"]
    assert by_tag["approve1"]["id"] in read.past(by_tag["checkpoint1"]["id"])
    assert sorted(by_tag["checkpoint1"]["acks"]) == sorted(by_tag["propose-checkpoint1"]["said"]["commits"])
    return read.who() | {
        "branch": read.branch,
        "epochs": [epoch.told(read.branch) for epoch in read.epochs],
        "commits": read.told,
        "members": ["ann"],
        "checkpoints": [
            read.names[one] for one, commit in read.commits.items() if commit["tag"] == "checkpoint1"
        ],
        "timeline": read.timeline(),
    }
