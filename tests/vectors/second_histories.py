"""Whole repos, read a second time: their commits are opened, followed from epoch to epoch, ordered, and made again.

From protocol.md and membership-rules.md, with `second_reader` and public libraries. Rights are not judged, but for
what the vectors hold: removals void what does not have them in its past and is not among the feeds' ends (N1, N2).
"""

from typing import Any

from blake3 import blake3
from nacl import bindings

from tests.vectors import second_epochs as epochs
from tests.vectors import second_reader as reader

Vector = Any  # whatever a file holds
ZEROS = bytes(32)


class Epoch:
    """An epoch's secrets, and what follows from them. Who does not write has no writers' secret."""

    def __init__(self, epoch_id: bytes, key: bytes, writers_secret: bytes | None, repo: bytes) -> None:
        self.epoch_id = epoch_id
        self.key = key
        self.writers_secret = writers_secret
        self.repo = repo
        self.convergence = reader.convergence_secret(key)
        self.read_key = reader.epoch_read_key(key)
        self.topic = reader.public_key(reader.epoch_topic_seed(key, repo))
        self.mark = epochs.mark_of(epochs.sealing_key(key, repo))
        self.writers_mark: bytes | None = None
        self.writers_topic: bytes | None = None

    def take_statement(self, states: list[bytes]) -> None:
        """What the epoch's init states of it."""
        mark, self.writers_mark, _ = states
        assert mark == self.mark
        self.writers_topic = epochs.open_topic(self.key, self.repo, states)
        if self.writers_secret is not None:
            sealing = epochs.writers_sealing_key(self.writers_secret, self.repo)
            assert self.writers_mark == epochs.mark_of(sealing)
            seed = reader.writers_topic_seed(self.writers_secret, self.repo, self.mark)
            assert self.writers_topic == reader.public_key(seed)

    def branch_mark(self, branch: bytes) -> bytes:
        """A branch's mark."""
        return reader.branch_mark(reader.branch_secret(self.key, branch))

    def told(self) -> Vector:
        """As the vectors spell it."""
        return {
            "epoch": self.epoch_id,
            "key": self.key,
            "writers_secret": self.writers_secret,
            "convergence_secret": self.convergence,
            "read_key": self.read_key,
            "topic": self.topic,
            "writers_topic": self.writers_topic,
            "mark": self.mark,
            "writers_mark": self.writers_mark,
        }


class Reader:
    """One who holds the founding epoch's secrets and the seeds of all users, and reads commits in their order."""

    def __init__(self, vector: Vector, founding: Vector) -> None:
        self.repo = bytes.fromhex(vector["repo_id"])
        self.users = {name: reader.public_key(bytes.fromhex(seed)) for name, seed in vector["seeds"].items()}
        key, writers_secret = bytes.fromhex(founding["key"]), bytes.fromhex(founding["writers_secret"])
        self.epochs = [Epoch(ZEROS, key, writers_secret, self.repo)]
        self.branch: bytes | None = None
        self.commits: dict[bytes, dict[str, Any]] = {}  # by id: fields, and `tag` and `said` of the body
        self.names: dict[bytes, str] = {}
        self._seeds = {self.users[name]: bytes.fromhex(seed) for name, seed in vector["seeds"].items()}
        self.told = [self._read(told) for told in vector["commits"]]

    def _read(self, told: Vector) -> Vector:
        publication = bytes.fromhex(told["publication"])
        on = reader.read_publication(publication)["topic"]
        epoch = next(one for one in self.epochs if on in (one.topic, one.writers_topic))
        _, key, blocks = reader.open_publication(publication, epoch.read_key)
        commit_id, *_ = blocks
        commit = reader.open_commit(blocks[commit_id], key, epoch.convergence)
        encoded = reader.open_object(commit["body"], blocks, epoch.convergence)
        tag, said = reader.open_body(encoded)
        branch = commit_id if commit["branch"] == ZEROS else commit["branch"]
        self.commits[commit_id] = commit | {"id": commit_id, "key": key, "tag": tag, "said": said}
        self.names[commit_id] = told["name"]
        parts = {
            name: reader.open_object(said[name], blocks, epoch.convergence)
            for name in ("boxes", "writers_boxes", "keys")
            if tag == "epoch-init3"
        }
        assert len(blocks) == 2 + len(parts)
        self._follow(commit_id, tag, said, parts)
        self._check_places(commit, commit_id, branch, epoch)
        assert commit["by_writer"] == (on == epoch.writers_topic)
        assert commit["mark"] == (bytes(8) if commit_id == branch else epoch.branch_mark(branch))
        again = {
            "name": told["name"],
            "author": next(name for name, user in self.users.items() if user == commit["author"]),
            "branch": branch,
            "epoch": commit["epoch"],
            "by_writer": commit["by_writer"],
            "acks": [self.names[ack] for ack in commit["acks"]],
            "seen": [self.names[one] for _, _, previous in commit["tangles"] for one in previous],
            "rank": self.rank(commit_id),
            "mark": commit["mark"],
            "body": encoded,
            "commit_id": commit_id,
            "commit_key": key,
            "signed_digest": commit["digest"],
            "publication_id": reader.publication_id(publication),
            "publication": publication,
        }
        if parts:
            again |= {"publication_on_its_epochs_topic": self._republish(told, commit_id, blocks, epoch)}
        return again

    def _republish(self, told: Vector, commit_id: bytes, blocks: reader.Blocks, before: Epoch) -> bytes:
        """An init on its own epoch's topic, made again; the one given opens with the key of its epoch alone (E6)."""
        epoch = self.epochs[-1]
        given = bytes.fromhex(told["publication_on_its_epochs_topic"])
        assert epochs.open_init(given, commit_id, epoch.key, self.repo) == (before.epoch_id, before.key)
        hidden = reader.xor(
            self.commits[commit_id]["key"], reader.commit_key_pad(epoch.read_key, epoch.topic, commit_id)
        )
        digest = reader.derive("publication signature v1", reader.pack([epoch.topic, hidden, list(blocks)]))
        _, secret = bindings.crypto_sign_seed_keypair(reader.epoch_topic_seed(epoch.key, self.repo))
        signature = bindings.crypto_sign(digest, secret)[:64]
        return reader.pack(["publication1", epoch.topic, hidden, list(blocks.values()), signature])

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

    def _follow(self, commit_id: bytes, tag: str, said: Vector, parts: dict[str, bytes]) -> None:
        """Branches and epochs that a body tells of."""
        first = self.epochs[0]
        match tag:
            case "init2":
                first.epoch_id = commit_id
                first.take_statement(said["states"])
                signed = [self.repo, said["name"], said["owners"]]
                reader.check_signature(
                    self.repo, "repo certificate signature v1", signed, said["certificate"]
                )
            case "branch-add2":
                self.branch = said["branch"]
                assert said["root"][0] == self.branch
            case "epoch-init3":
                mark, writers_mark, _ = said["states"]
                users, writers_users = self.boxed()
                key, writers_secret = (
                    self._open_all(some, its_mark, parts[name])
                    for some, its_mark, name in (
                        (users, mark, "boxes"),
                        (writers_users, writers_mark, "writers_boxes"),
                    )
                )
                self.epochs.append(Epoch(commit_id, key, writers_secret, self.repo))
                self.epochs[-1].take_statement(said["states"])
                assert epochs.open_keys(key, self.repo, mark, parts["keys"]) == [(first.epoch_id, first.key)]
                sealing = epochs.sealing_key(key, self.repo)
                made = [epochs.make_box(key, sealing, user) for user in users]
                assert b"".join(made) == parts["boxes"]
            case "epoch-hand1":
                last = self.epochs[-1]
                stated = (last.epoch_id, last.mark, last.writers_mark)
                assert (said["epoch"], said["mark"], said["writers_mark"]) == stated
                for user, box, writers_box in said["boxes"]:
                    assert (self._open_all([user], last.mark, box), writers_box) == (last.key, None)

    def members(self) -> dict[bytes, int]:
        """Who is a member after all that was read, with the permission: grants and removals as they stand in the vectors."""
        found: dict[bytes, int] = {}
        for commit in self.commits.values():
            said = commit["said"]
            match commit["tag"]:
                case "init2":
                    found |= dict.fromkeys(said["owners"], 5)
                case "grant2":
                    found[said["user"]] = said["permission"]
                case "remove1":
                    del found[said["user"]]
        return found

    def boxed(self) -> tuple[list[bytes], list[bytes]]:
        """Members, and those who may write, in the order of their boxes (E2)."""
        held = self.members()
        return sorted(held), sorted(user for user, permission in held.items() if permission >= 2)

    def _open_all(self, users: list[bytes], mark: bytes, boxes: bytes) -> bytes:
        """The one secret that all these users take out of their boxes."""
        assert len(boxes) == epochs.BOX * len(users)
        (secret,) = {
            epochs.open_box(self._seeds[user], mark, boxes[epochs.BOX * at : epochs.BOX * (at + 1)])
            for at, user in enumerate(users)
        }
        return secret

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
        """The longest path to the root of its branch, which the commit states, too."""
        found = 1 + max((self.rank(ack) for ack in self.commits[commit_id]["acks"]), default=-1)
        assert self.commits[commit_id]["rank"] == found
        return found

    def main(self) -> list[bytes]:
        """Commits of the branch `main`."""
        return [one for one, commit in self.commits.items() if self.branch in (one, commit["branch"])]

    def is_void(self, commit_id: bytes) -> bool:
        """A removal of its author is not in its past, and does not name it by a feed's end (N2)."""
        commit, past = self.commits[commit_id], self.past(commit_id)
        return any(
            removal["tag"] == "remove1"
            and removal["said"]["user"] == commit["author"]
            and one not in past
            and not any(commit_id in self._back_from(end) for _, _, end in removal["said"]["feeds"])
            for one, removal in self.commits.items()
        )

    def _back_from(self, end: bytes | None) -> list[bytes]:
        """A commit and those before it in its author's feed."""
        found = []
        while end is not None:
            found.append(end)
            end = self.commits[end]["feed_previous"]
        return found

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
            "seeds": {name: self._seeds[user] for name, user in self.users.items()},
            "users": dict(self.users),
        }


def remake_root_commit(vector: Vector) -> Vector:
    """From the seeds, the name, the epoch's secrets and the publication."""
    read = Reader(vector, vector["founding_epoch"])
    (init,) = read.commits.values()
    epoch, owners = read.epochs[0], [read.users["ann"]]
    seed = bytes.fromhex(vector["repo_seed"])
    repo, secret = bindings.crypto_sign_seed_keypair(seed)
    assert repo == read.repo
    certified = reader.pack([repo, vector["name"], owners])
    digest = reader.derive("repo certificate signature v1", certified)
    assert (init["said"]["name"], init["said"]["owners"], init["branch"]) == (vector["name"], owners, repo)
    *_, links, content = init["signed"]
    writers_secret = epoch.writers_secret or b""
    return read.who() | {
        "repo_seed": seed,
        "name": vector["name"],
        "certified": certified,
        "repo_digest": digest,
        "certificate": bindings.crypto_sign(digest, secret)[:64],
        "founding_epoch": epoch.told(),
        "topic_seed": reader.epoch_topic_seed(epoch.key, repo),
        "writers_topic_seed": reader.writers_topic_seed(writers_secret, repo, epoch.mark),
        "branch_secret": reader.branch_secret(epoch.key, repo),
        "body_reference": init["body"],
        "signed": reader.pack(init["signed"]),
        "signature": init["signature"],
        "plaintext": reader.pack(["commit2", links, content, init["signature"]]),
        "commits": read.told,
    }


def remake_epoch_change(vector: Vector) -> Vector:
    """From the seeds, the founding epoch's secrets and the publications."""
    read = Reader(vector, vector["epochs"][0])
    names = {user: name for name, user in read.users.items()}
    return read.who() | {
        "branch": read.branch,
        "epochs": [epoch.told() for epoch in read.epochs],
        "commits": read.told,
        "members": sorted(names[user] for user in read.members()),
        "void": [read.names[one] for one in read.main() if read.is_void(one)],
        "timeline": read.timeline(),
    }


def remake_checkpoint_order(vector: Vector) -> Vector:
    """From the seeds, the epoch's secrets and the publications."""
    read = Reader(vector, vector["epochs"][0])
    by_tag = {commit["tag"]: commit for commit in read.commits.values()}
    assert by_tag["checkpoint1"]["said"]["proposal"] == by_tag["propose-checkpoint1"]["id"]
    assert by_tag["approve1"]["said"]["proposal"] == by_tag["propose-checkpoint1"]["id"]
    assert by_tag["approve1"]["id"] in read.past(by_tag["checkpoint1"]["id"])
    assert sorted(by_tag["checkpoint1"]["acks"]) == sorted(by_tag["propose-checkpoint1"]["said"]["commits"])
    return read.who() | {
        "branch": read.branch,
        "epochs": [epoch.told() for epoch in read.epochs],
        "commits": read.told,
        "members": ["ann"],
        "checkpoints": [
            read.names[one] for one, commit in read.commits.items() if commit["tag"] == "checkpoint1"
        ],
        "timeline": read.timeline(),
    }
