"""Plays the life of a community in the store of its first admin's node, by the code that writes what members write.

All members' commits are encoded here, since the node has what their nodes would have seen, and pass the way in as one's own
do. What is written offline is encoded when it is written, and comes later as from a peer.

An event is one transaction, or takes up what a killed one has left. So the newest arrival in the store says how far it came.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

import msgspec
from blake3 import blake3
from sqlalchemy import Connection

from benchmarks.decade.plan import (
    BEGAN_MS,
    AddBranch,
    Admit,
    Event,
    Exclude,
    Found,
    Invite,
    Join,
    KeepUp,
    Leave,
    Offline,
    Plan,
    Return,
    Run,
    Sitting,
)
from node.authoring.author import Author
from node.authoring.drafting import AuthorKeys, Draft
from node.authoring.feed_encoder import FeedEncoder
from node.authoring.feed_writer import FeedWriter
from node.home.home import open_home
from node.home.identity import open_keys
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch, open_batch
from node.ingest.replica import Replica
from node.membership.epoch_duties import EpochDuties
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats import body as bodies
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Post
from protocol.formats.profiles import Profile
from protocol.formats.proofs import prove_invitation
from protocol.ids import CommitId, TopicKey, UserId
from protocol.limits.formats import ACK_COUNT_MAX, TIMESTAMP_MAX_MS
from storage.commits.feeds import load_feed_tip
from storage.commits.heads import load_heads
from storage.commits.stored_counts import load_newest_arrival
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo
from tests.support.batches import accept_whole
from tests.support.keys import no_passphrase
from verifier.posts import Relation, make_place

_WORDS: Final = tuple(
    f"{word}{ending}"
    for word in ("river", "roof", "winter", "tangle")
    for ending in ("", "s", "less", "like")
)
_POST_MS: Final = 20_000
"""Between two posts of a sitting."""
_KEPT_UP_MAX: Final = 20
"""Times that a node looks for duties in one event: more would mean that they never end."""


def user_seed(seed: int, member: int) -> UserSeed:
    """Return the key of a member's user."""
    return UserSeed(_derive(seed, "user", member))


def _derive(seed: int, what: str, *more: int) -> bytes:
    return blake3(repr((seed, what, *more)).encode()).digest()


_Late = tuple[TopicKey, list[bytes]]
"""Writing of a member offline: the topic, and publications on it."""


class Life:
    """The life of one community in one node's folder. `late` is a folder for what is written offline."""

    def __init__(self, home: Path, late: Path, plan: Plan) -> None:
        keys = open_keys(home, no_passphrase)
        self._plan = plan
        self._late = late
        self._at = BEGAN_MS
        self.replica = Replica(home, keys.store_key, open_home(home).storage_url)
        self._writers: dict[int, FeedWriter] = {}
        self._admin = Author(self.replica, keys.user_seed, self._clock)
        self._duties = EpochDuties(self.replica, self._admin)
        self._invitations: dict[bytes, CommitId] = {}
        self._note_invitations()

    def close(self) -> None:
        """Close the store."""
        self.replica.close()

    def play(self, count: int, tell: Callable[[Event, int], None]) -> None:
        """Play the first `count` events, but for those that are in the store. `tell` is told of each, with its number."""
        with self.replica.database.read() as connection:
            newest = load_newest_arrival(connection)
        for number, event in enumerate(self._plan.events[:count]):
            if event.at < newest or (event.at == newest and not isinstance(event.what, KeepUp)):
                continue
            self._at = event.at
            with patch.object(secrets, "token_bytes", self._draw()):
                self._play(event)
            tell(event, number)

    def _clock(self) -> int:
        return self._at

    def _draw(self) -> Callable[[int], bytes]:
        """Return a source of secrets for one event: the same life has the same ids."""
        stream = blake3(_derive(self._plan.seed, "secrets", self._at))
        place = 0

        def draw(size: int = 32) -> bytes:
            nonlocal place
            drawn = stream.digest(length=size, seek=place)
            place += size
            return drawn

        return draw

    # --- events ---

    def _play(self, event: Event) -> None:
        match event.what:
            case Found(repo):
                self._admin.founding.create_repo(_repo_name(repo))
            case Admit(repo, members):
                held = bodies.Permission.WRITE if repo else bodies.Permission.ADMIN
                self._write_root(repo, 0, [bodies.Grant(self._user(one), held) for one in members])
            case AddBranch(repo, branch):
                self._admin.founding.create_branch(self._repo(repo), _branch_name(branch))
            case Invite(member, admin):
                key = key_pair(self._invitation_seed(member))[0]
                body = bodies.Invite(key, bodies.Permission.WRITE, 1, TIMESTAMP_MAX_MS)
                self._write_root(0, admin, [body])
                self._note_invitations()
            case Join(member):
                self._join(member)
            case Leave(member):
                self._write_root(0, member, [self._removal(0, member)])
            case Exclude(repo, members):
                self._exclude(repo, members)
            case KeepUp(repo, renews):
                self._keep_up(repo, renews=renews)
            case Sitting(branch, runs):
                target = self._branch(branch)
                self._store(lambda connection: self._encode_runs(connection, target, runs))
            case Offline(late, branch, run):
                self._write_offline(late, branch, run)
            case Return(late):
                self._return(late)

    def _join(self, member: int) -> None:
        seed = self._invitation_seed(member)
        proof = prove_invitation(seed, self._repo(0).repo_id, self._user(member))
        invitation = self._invitations[key_pair(seed)[0]]
        self._write_root(0, member, [bodies.Join(invitation, proof), Profile(f"member {member}", member % 8)])

    def _exclude(self, repo: int, members: Sequence[int]) -> None:
        written: list[bodies.Body] = []
        for member in members:
            written.append(self._removal(repo, member))
            invitation = self._invitations.get(key_pair(self._invitation_seed(member))[0])
            if repo == 0 and invitation is not None:
                written.append(bodies.Revoke(invitation))
        self._write_root(repo, 0, written)

    def _removal(self, repo: int, member: int) -> bodies.Remove:
        """Make what removes a member, with the ends of its feeds, as `node.membership.members` does."""
        user = self._user(member)
        with self.replica.database.read() as connection:
            ends = [
                bodies.FeedEnd(branch.branch_id, tip.sequence, tip.commit_id)
                for branch in self.replica.branches_in(self._repo(repo).num)
                if not branch.facts.is_root_branch
                and (tip := load_feed_tip(connection, branch.num, user)) is not None
            ]
        return bodies.Remove(user, None, tuple(ends))

    def _keep_up(self, number: int, *, renews: bool) -> None:
        repo, stored = self._repo(number), IngestResult()
        if renews:
            self._admin.start_epoch(repo, stored)
        else:
            self._admin.preparation.prepare(repo, stored)
        now = self._at / 1000
        for _ in range(_KEPT_UP_MAX):
            wait = self._duties.perform(repo, now, stored)
            if wait is None:
                return
            now += wait
        raise RuntimeError(f"duties in {repo.name} do not end")

    def _write_offline(self, late: int, branch: int, run: Run) -> None:
        target = self._branch(branch)
        with self.replica.database.read() as connection:
            encoder = self._encoder(connection, run.member, target)
            made = encoder.encode(self._drafts(run, [], {}), lambda: connection)
        late_one: _Late = (encoder.target.topic, [one.encoded for one in made])
        part = self._late / f"{late}.part"
        part.write_bytes(msgspec.msgpack.encode(late_one))
        part.rename(self._late / str(late))

    def _return(self, late: int) -> None:
        name, items = msgspec.msgpack.decode((self._late / str(late)).read_bytes(), type=_Late)
        topic = self.replica.by_topic[name]
        ingested = accept_whole(self.replica, topic, open_batch(topic, items), self._at)
        stored = sum(map(len, ingested.accepted.values()))
        if stored != len(items):
            raise RuntimeError(f"{stored} of {len(items)} late commits were accepted: {ingested}")

    # --- writing ---

    def _write_root(self, repo: int, member: int, written: Sequence[bodies.Body]) -> None:
        root = self.replica.root_branch(self._repo(repo))

        def encode_all(connection: Connection) -> Iterator[tuple[Topic, OpenedBatch]]:
            encoder = self._encoder(connection, member, root)
            yield self._open(connection, encoder, [Draft(one) for one in written])[0]

        self._store(encode_all)

    def _encode_runs(
        self, connection: Connection, branch: Branch, runs: Sequence[Run]
    ) -> Iterator[tuple[Topic, OpenedBatch]]:
        """Encode runs, each when those before are stored in the same transaction."""
        ids: list[CommitId] = []
        firsts: dict[CommitId, CommitId] = {}
        before: tuple[CommitId, ...] = ()
        for run in runs:
            encoder = self._encoder(connection, run.member, branch)
            heads = tuple(raw for raw, _ in load_heads(connection, branch.num, ACK_COUNT_MAX))
            if run.is_fork:
                encoder.follow(before, lambda: connection)
            drafts = self._drafts(run, ids, firsts)
            batch, made = self._open(connection, encoder, drafts)
            firsts |= {
                one: draft.tangles[0].root for one, draft in zip(made, drafts, strict=True) if draft.tangles
            }
            before = heads
            ids += made
            yield batch

    def _drafts(self, run: Run, ids: Sequence[CommitId], firsts: dict[CommitId, CommitId]) -> list[Draft]:
        """Make the posts of a run behind others of the sitting; `firsts` are those that answers are about."""
        rng = Random(self._at + len(ids))  # noqa: S311  # the same texts in every run
        drafts = []
        for place, answers in enumerate(run.answers):
            text = " ".join(rng.choices(_WORDS, k=rng.randint(3, 40)))
            tangles: tuple[TanglePlace, ...] = ()
            if answers:
                post = ids[-answers]
                tangles = (make_place(Relation.REPLY, firsts.get(post, post), post),)
            at = self._at + (len(ids) + place) * _POST_MS // 256
            drafts.append(Draft(Post(text), timestamp=at, tangles=tangles))
        return drafts

    def _open(
        self, connection: Connection, encoder: FeedEncoder, drafts: Sequence[Draft]
    ) -> tuple[tuple[Topic, OpenedBatch], list[CommitId]]:
        made = encoder.encode(drafts, lambda: connection)
        topic = self.replica.by_topic[encoder.target.topic]
        batch = self._writer(0).opener.open(topic, made)
        return (topic, batch), [one.commit_id for one in made]

    def _encoder(self, connection: Connection, member: int, branch: Branch) -> FeedEncoder:
        epoch = self.replica.writing_epoch(self.replica.repos[branch.repo_num])
        return self._writer(member).make_encoder(connection, branch, epoch)

    def _store(self, encode_all: Callable[[Connection], Iterator[tuple[Topic, OpenedBatch]]]) -> None:
        self._writer(0).store(encode_all)

    # --- who and where ---

    def _writer(self, member: int) -> FeedWriter:
        found = self._writers.get(member)
        if found is None:
            keys = AuthorKeys(*key_pair(user_seed(self._plan.seed, member)))
            found = self._writers[member] = FeedWriter(self.replica, keys, self._clock)
        return found

    def _user(self, member: int) -> UserId:
        return self._writer(member).keys.user

    def _invitation_seed(self, member: int) -> InvitationSeed:
        return InvitationSeed(_derive(self._plan.seed, "invitation", member))

    def _note_invitations(self) -> None:
        """Look up the invitations of the commons by their keys."""
        if not self.replica.tables.repos_with_name(_repo_name(0)):
            return
        with self.replica.membership_lock:
            operations = self.replica.membership(self._repo(0).repo_id).operations
            for one in operations.invitations[len(self._invitations) :]:
                assert isinstance(one.body, bodies.Invite)
                self._invitations[one.body.invitation_key] = one.commit_id

    def _repo(self, number: int) -> Repo:
        (repo,) = self.replica.tables.repos_with_name(_repo_name(number))
        return repo

    def _branch(self, number: int) -> Branch:
        (branch,) = self.replica.tables.with_name(_branch_name(number))
        return branch


def _repo_name(number: int) -> str:
    return f"group {number}" if number else "commons"


def _branch_name(number: int) -> str:
    return f"branch {number}"
