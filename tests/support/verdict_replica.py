"""Ravel's opinion of the histories of `tests/verdicts`: a real store takes their publications in and opens what it can."""

from base64 import b64decode
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from node.authoring.author import Author
from node.ingest.acceptance import release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch, opening_keys
from node.ingest.publication_reading import Drop, read_publication
from node.ingest.replica import Replica
from node.membership.epoch_keys import KeyTaker
from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, EpochKey, UserSeed
from protocol.formats.publication import Publication, decode_publication
from protocol.ids import BlockId, CommitId, EpochId, Id, RepoId, TopicKey
from storage.commits.commits import digest_timeline, load_rows, load_timeline
from storage.commits.pending import load_rejected
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Repo, add_repo
from storage.schema.schema import pending
from tests.support.batches import accept_whole
from tests.support.builders import STORE_KEY
from tests.verdicts.comparing import differences
from verifier.membership import Membership

History = dict[str, Any]
_TAGS: Final = (b"\xacpublication1\xc4\x20", b"\xa5bare1\xc4\x20")


class VerdictReplica:
    """A replica that follows the repo of one history after the other."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._replica = Replica(folder, STORE_KEY)
        self._clock = count(1_800_000_000_000)

    @property
    def repo_ids(self) -> list[RepoId]:
        """Ids of the repos that were judged, in order."""
        return sorted(repo.repo_id for repo in self._replica.repos.values())

    def membership(self, repo_id: RepoId) -> Membership:
        """Return what was concluded of a repo's members."""
        return self._replica.membership(repo_id)

    def close(self) -> None:
        """Close the store."""
        self._replica.close()

    def judge(self, history: History, *, is_reversed: bool = False) -> tuple[dict[str, Any], int]:
        """What the node of a history concludes, and how many publications were of commits that were known.

        Whether a known commit came where it belongs is not looked at again, so such publications may count as dropped.
        """
        arrivals = _arrivals(history)
        arrival = _Arrival(self._replica, history, self._clock)
        left, known = arrival.take(arrivals[::-1] if is_reversed else arrivals)
        return arrival.conclude(arrivals, left), known

    def judge_restarted(self, histories: Iterable[History]) -> Iterator[tuple[History, dict[str, Any], int]]:
        """What becomes of histories where the node starts anew when a half of each has come, as `judge` has it."""
        begun = []
        for history in histories:
            arrivals = _arrivals(history)
            arrival = _Arrival(self._replica, history, self._clock)
            left, known = arrival.take(arrivals[: len(arrivals) // 2])
            begun.append((history, arrivals, arrival, left, known))
        self._replica.close()
        self._replica = Replica(self._folder, STORE_KEY)
        for history, arrivals, arrival, left, known in begun:
            arrival.go_on_in(self._replica)
            rest, more = arrival.take([*left, *arrivals[len(arrivals) // 2 :]])
            yield history, arrival.conclude(arrivals, rest), known + more


@contextmanager
def verdict_replica(folder: Path) -> Iterator[VerdictReplica]:
    """A replica of that kind, closed at the end."""
    opened = VerdictReplica(folder)
    try:
        yield opened
    finally:
        opened.close()


class _Arrival:
    def __init__(self, replica: Replica, history: History, clock: Iterator[int]) -> None:
        self._clock = clock
        self._seed = UserSeed(_id(history["user_seed"]))
        self.go_on_in(replica)
        self._codes: dict[CommitId, str] = {}
        repo_id = RepoId(_id(history["repo"]))
        # Nobody follows a repo without a key: who has none has one that opens nothing.
        links = [(_id(one), _id(key)) for one, key in history["keys"]] or [(_id(history["init"]), bytes(32))]
        epochs = [Epoch(0, 0, repo_id, EpochId(CommitId(BlockId(one))), EpochKey(key)) for one, key in links]
        init, init_key = CommitId(BlockId(_id(history["init"]))), BlockKey(_id(history["init_key"]))
        with replica.change() as change:
            new = Repo(0, repo_id, "(joining)", init, init_key, 0, is_behind=False, invitation=None)
            self._num = add_repo(replica.database, change.connection, new, epochs[0]).num
        self._keys.keep(self._repo, [Epoch(0, self._num, repo_id, one.epoch_id, one.key) for one in epochs])

    @property
    def _repo(self) -> Repo:
        return self._replica.repos[self._num]

    def go_on_in(self, replica: Replica) -> None:
        """Go on in a store that was opened anew, of which nothing is remembered."""
        self._replica = replica
        self._keys = KeyTaker(replica, Author(replica, self._seed, lambda: 0))

    def take(self, arrivals: list[bytes]) -> tuple[list[bytes], int]:
        """Take publications in one after the other, and again while something comes of it.

        Returns what was not taken, and how many were of commits that were known.
        """
        left, known, is_new = arrivals, 0, True
        while is_new:
            refused = []
            for encoded in left:
                ingested = self._take(encoded)
                if ingested is None or ingested.dropped:
                    refused.append(encoded)
                else:
                    known += ingested.already
            left, is_new = refused, len(refused) < len(left)
        return left, known

    def conclude(self, arrivals: list[bytes], left: list[bytes]) -> dict[str, Any]:
        """What came of all these publications, of which some were not taken."""
        dropped = sum(self._find_topic(encoded) is not None for encoded in left)
        return {**self._conclude(arrivals), "dropped": dropped}

    def _find_topic(self, encoded: bytes) -> Topic | None:
        topic = self._replica.by_topic.get(_topic_of(encoded))
        return topic if topic is not None and self._num in topic.repo_nums else None

    def _take(self, encoded: bytes) -> IngestResult | None:
        """Take in one publication, and what may be judged then; None where its topic is not followed."""
        topic = self._find_topic(encoded)
        if topic is None:
            return None
        batch = open_batch(topic, [encoded])
        ingested = self._note(accept_whole(self._replica, topic, batch, next(self._clock)))
        while self._keys.take(self._repo):
            while self._note(release_more(self._replica, next(self._clock))).is_unfinished:
                pass
        return ingested

    def _note(self, ingested: IngestResult) -> IngestResult:
        self._codes.update((one.commit_id, one.code) for one in ingested.rejected)
        return ingested

    def _conclude(self, arrivals: Iterable[bytes]) -> dict[str, Any]:
        replica, repo = self._replica, self._repo
        decoded = [found for found in map(_decode, arrivals) if found is not None]
        seen = {one.commit_id for one in decoded if self._is_opened(one)}
        commits: dict[str, dict[str, Any]] = {}
        branches = {}
        with replica.database.read() as connection:
            waiting = connection.execute(select(pending.c.commit_id).where(pending.c.commit_id.in_(seen)))
            for one in waiting.scalars():
                commits[one.hex()] = {"is": "pending"}
            rows = load_rows(connection, seen)
            here = {row.branch_num for row in rows.values()}
            for one, row in rows.items():
                commits[one.hex()] = {"is": "void" if row.is_void else "accepted"}
            for one in load_rejected(connection, sorted(seen)):
                commits[one.hex()] = {"is": "rejected", "codes": [self._codes[one]]}
            for branch in replica.branches_in(self._num):
                timeline = [row.commit_id.hex() for row in load_timeline(connection, branch.num, 0, 10_000)]
                digest, _ = digest_timeline(connection, branch.num)
                if branch.num in here:
                    branches[branch.branch_id.hex()] = {"timeline": timeline, "digest": digest}
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, epochs = membership.now(), membership.epochs
            started = membership.operations.epochs
            preferred = epochs.find_preferred(now)
            checkpoints = {
                one.commit_id.hex(): membership.is_checkpoint_true(one)
                for one in membership.checkpoints.considered(membership.operations)
            }
            return {
                **({"checkpoints": checkpoints} if checkpoints else {}),
                "commits": commits,
                "members": {user.hex(): level.name.lower() for user, level in now.members().items()},
                "epochs": {
                    "counting": _ids(one.started_epoch for one in started if now.counts(one)),
                    "tips": _ids(one.started_epoch for one in now.epoch_tips()),
                    "clean": _ids(one.started_epoch for one in epochs.find_clean(now)),
                    "held": _ids(replica.tables.held_epochs(self._num)),
                    "written_in": None if preferred is None else preferred.started_epoch.hex(),
                },
                "branches": branches,
            }

    def _is_opened(self, publication: Publication) -> bool:
        """Whether a publication opens with the keys that are held in the end."""
        topic = self._replica.by_topic.get(publication.topic)
        if topic is None:
            return False
        try:
            read_publication(opening_keys(topic), publication.encoded)
        except Drop:
            return False
        return True


def _topic_of(encoded: bytes) -> TopicKey:
    """The topic that a publication names, also where the rest of it does not decode."""
    for tag in _TAGS:
        if encoded[1:].startswith(tag):
            return TopicKey(encoded[1 + len(tag) : 33 + len(tag)])
    return TopicKey(bytes(32))


def _decode(encoded: bytes) -> Publication | None:
    try:
        return decode_publication(encoded)
    except DecodeError:
        return None


def _arrivals(history: History) -> list[bytes]:
    return [b64decode(one) for one in history["publications"]]


def _id(text: str) -> bytes:
    return bytes.fromhex(text)


def _ids(ids: Iterable[Id]) -> list[str]:
    return sorted(one.hex() for one in ids)


def differing_in_replica(histories: Iterable[History], folder: Path) -> Generator[str, None, None]:
    """What a replica in a folder says of histories on which it differs, in two orders of arrival each, line by line."""
    with verdict_replica(folder / "forwards") as one, verdict_replica(folder / "backwards") as other:
        for history in histories:
            for replica, is_reversed in ((one, False), (other, True)):
                found, known = replica.judge(history, is_reversed=is_reversed)
                yield from _differences(history, found, known, " (reversed)" if is_reversed else "")


def differing_after_restart(histories: Iterable[History], folder: Path) -> Iterator[str]:
    """What a replica that starts anew when a half has come says of histories on which it differs, line by line."""
    with verdict_replica(folder / "restarted") as replica:
        for history, found, known in replica.judge_restarted(histories):
            yield from _differences(history, found, known, " (restarted)")


def _differences(history: History, found: dict[str, Any], known: int, how: str) -> Iterator[str]:
    meant = history["expect"]
    if found["dropped"] <= meant["dropped"] <= found["dropped"] + known:
        found["dropped"] = meant["dropped"]
    for line in differences(meant, found):
        yield f"{history['name']}{how}: {line}"
