"""Membership: what judging a content commit costs in repos of many membership commits, and what arrivals cost.

python benchmarks/bench_members.py [membership commits of the large repo [members of the busy repo]]

An owner grants writing to one user after another, each commit acking the one before, and removes every tenth of them
again. Verified are commits of a writer from the middle, each made after another of the last root branch commits: no two
questions are the same, so that nothing that was remembered answers. Catching up takes in the same commits as a newcomer
does. Blocks, other signatures and the store are measured by `bench_ingest`.

The *busy* repo has ten operations for each of its members: twenty admins grant, remove and lower, and exclude each other,
in four forks that are merged now and then. Each operation is judged, kept, and followed by a question that needs what
counts now. Content is judged after one and after two of its operations.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from random import Random

from benchmarks.common import figure, note, timed
from protocol.crypto.epoch_boxes import epoch_mark, writers_mark
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import BlockKey, EpochKey, RepoSeed, UserSeed, WritersSecret
from protocol.crypto.signing import key_pair, public_key, sign, verify_signature
from protocol.formats.block import Reference
from protocol.formats.body import Body, Grant, Permission, Remove, RepoInit
from protocol.formats.commit import NO_EPOCH, NO_MARK, Commit, Content, Links
from protocol.formats.content import Post
from protocol.formats.epochs import NONCE_SIZE, EpochStatement, seal_topic
from protocol.formats.proofs import certify_repo
from protocol.ids import CommitId, EpochId, Signature, UserId, root_branch
from tests.support.ids import as_commit_id, as_object_id
from verifier.membership import Membership
from verifier.refusal import CommitRefused

_SMALL = 100
_QUESTIONS = 50
_ROUNDS = 5
_REMOVED_EVERY = 10
_ADMINS = 20
_FORKS = 4
_MERGED_EVERY = 100
_REPO_SEED = RepoSeed(b"r" * 32)
_REPO = key_pair(_REPO_SEED)[0]
_OWNER = key_pair(UserSeed(b"o" * 32))[0]
_WRITER, _WRITER_SECRET = key_pair(UserSeed(b"w" * 32))
_DIGEST = b"d" * 32
_KEY = EpochKey(b"e" * 32)
_FIRST = as_commit_id((1).to_bytes(32))
_SOMETHING = Reference(as_object_id(b"s" * 32), BlockKey(b"k" * 32))


class _Repo:
    """A repo whose root branch is a chain."""

    def __init__(self, bodies: list[Body]) -> None:
        self.membership = Membership(_REPO)
        self.ids: list[CommitId] = []
        self.extend(bodies)

    def extend(self, bodies: list[Body]) -> None:
        for body in bodies:
            self.add(body)

    def add(self, body: Body) -> None:
        acks = tuple(self.ids[-1:])
        commit = _make_commit(len(self.ids) + 1, _OWNER, acks)
        self.membership.add(self.membership.authorise_root_commit(commit, body, _KEY), acks)
        self.ids.append(commit.commit_id)


def _bodies(count: int, users: list[UserId]) -> list[Body]:
    made: list[Body] = [_make_init("bench")]
    waiting = iter(users)
    newest = _OWNER
    while len(made) < count:
        if len(made) == count // 2 - 5:
            made.append(Grant(_WRITER, Permission.WRITE))
        elif len(made) % _REMOVED_EVERY == 0:
            made.append(Remove(newest, None, ()))
        else:
            newest = next(waiting)
            made.append(Grant(newest, Permission.WRITE))
    return made


def _verify_content(repo: _Repo) -> tuple[float, float]:
    """Microseconds for each commit of a writer from the middle: signature and right to write, and the latter alone."""
    moments = repo.ids[-_QUESTIONS:]
    signature = sign(_WRITER_SECRET, _DIGEST)
    repo.membership.authorise_content(_WRITER, tuple(moments[:1]))

    def verify() -> None:
        for seen in moments[: _QUESTIONS // 2]:
            verify_signature(_WRITER, _DIGEST, signature)
            repo.membership.authorise_content(_WRITER, (seen,))

    def authorise() -> None:
        for seen in moments[_QUESTIONS // 2 :]:
            repo.membership.authorise_content(_WRITER, (seen,))

    each = 1e6 / (_QUESTIONS // 2)
    return timed(verify) * each, timed(authorise) * each


class _Busy:
    """A repo of many members and admins, in forks, with the seconds that each kind of operation took to arrive."""

    def __init__(self, users: list[UserId]) -> None:
        self.membership = Membership(_REPO)
        self.ids: list[CommitId] = []
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.refused = 0
        self._rng = Random(1)  # noqa: S311  # the same history in every run
        self._admins = users[:_ADMINS]
        self._users = users[_ADMINS:]
        self._add("found", _OWNER, _make_init("busy"), ())
        for admin in self._admins:
            self._add("grant", _OWNER, Grant(admin, Permission.ADMIN), self.ids[-1:])
        self._forks = [self.ids[-1]] * _FORKS

    def grow(self, count: int) -> None:
        """Grow to so many operations."""
        rng = self._rng
        while len(self.ids) < count:
            if len(self.ids) % _MERGED_EVERY == 0 and len(set(self._forks)) > 1:
                self._add("merge", _OWNER, Post("all of it"), sorted(set(self._forks)))
                self._forks = [self.ids[-1]] * _FORKS
            fork, author = rng.randrange(_FORKS), rng.choice(self._admins)
            user = rng.choice(self._users)
            kind = rng.choices(("grant", "removal", "duel", "other"), (60, 20, 2, 18))[0]
            body: Body = Grant(user, Permission.WRITE)
            if kind == "removal":
                body = Remove(user, rng.choice((None, Permission.READ)), ())
            elif kind == "duel":
                body = Remove(rng.choice(self._admins), None, ())
            elif kind == "other":
                author, body = _OWNER, Grant(rng.choice(self._admins), Permission.ADMIN)
                if rng.random() < 0.8:
                    body = Post("something")
            try:
                self._add(kind, author, body, self._forks[fork : fork + 1])
            except CommitRefused:
                self.refused += 1
            else:
                self._forks[fork] = self.ids[-1]

    def _add(self, kind: str, author: UserId, body: Body, acks: Iterable[CommitId]) -> None:
        commit = _make_commit(len(self.ids) + 1, author, tuple(acks))
        began = time.perf_counter()
        operation = self.membership.authorise_root_commit(commit, body, _KEY)
        self.membership.add(operation, commit.acks)
        self.membership.now().permission(_WRITER)
        self.seconds[kind].append(time.perf_counter() - began)
        self.ids.append(commit.commit_id)


def _make_commit(number: int, author: UserId, acks: tuple[CommitId, ...]) -> Commit:
    epoch = EpochId(_FIRST) if acks else NO_EPOCH
    content = Content(
        author, root_branch(_REPO), epoch, True, True, 1, None, (), 0, b"", _SOMETHING
    )  # in its order
    commit_id, nothing = as_commit_id(number.to_bytes(32)), Signature(b"")
    return Commit(commit_id, BlockKey(b""), acks, 0, NO_MARK, Links(), content, nothing)


def _make_init(name: str) -> RepoInit:
    mark, secret = epoch_mark(_KEY, _REPO), WritersSecret(b"w" * 32)
    topic = public_key(writers_topic_seed(secret, _REPO, mark))
    states = EpochStatement(
        mark, writers_mark(secret, _REPO), seal_topic(_KEY, _REPO, mark, topic, bytes(NONCE_SIZE))
    )
    return RepoInit(name, (_OWNER,), certify_repo(_REPO_SEED, name, (_OWNER,)), states)


def _measure_busy(users: list[UserId]) -> None:
    busy = _Busy(users)
    busy.grow(10 * len(users))
    size = {"members": len(users), "operations": len(busy.ids)}
    for kind, seconds in busy.seconds.items():
        if kind != "found":
            each = sum(seconds) / len(seconds)
            figure(
                f"arrival_{kind}", each * 1e6, "us", worst_ms=max(seconds) * 1e3, count=len(seconds), **size
            )
    removals = len(busy.membership.operations.contestable)
    now = busy.membership.now()
    figure("questions_for_each_removal", busy.membership.questions_asked / removals, "questions", **size)
    figure("removals_that_do_not_count", removals - len(now.counting), "removals", of=removals, **size)
    figure("list_members", timed(now.members) * 1e3, "ms", **size)
    rng = Random(2)  # noqa: S311  # the same places in every run
    for heads in (1, 2):
        moments = [tuple(rng.sample(busy.ids, heads)) for _ in range(_QUESTIONS)]
        cost = timed(partial(_ask_at, busy.membership, moments)) / _QUESTIONS
        figure("at_for_content", cost * 1e6, "us", heads=heads, **size)


def _ask_at(membership: Membership, moments: list[tuple[CommitId, ...]]) -> None:
    for heads in moments:
        membership.at(heads).permission(_WRITER)


def main() -> None:
    """Print the figures."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    members = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    note("making keys")
    users = [
        key_pair(UserSeed(b"user" + number.to_bytes(28)))[0] for number in range(max(large, members, 1000))
    ]
    small, large_ones, catching_up, excluding = [], [], [], []
    for number in range(_ROUNDS):
        note(f"round {number + 1} of {_ROUNDS}")
        small.append(_verify_content(_Repo(_bodies(_SMALL, users))))
        bodies = _bodies(large, users)
        repo = _Repo([])
        catching_up.append(timed(partial(repo.extend, bodies)) / large * 1e6)
        large_ones.append(_verify_content(repo))
        thousand = _Repo([bodies[0], *(Grant(user, Permission.WRITE) for user in users[:1000])])
        excluding.append(timed(partial(_exclude, thousand, users[500])) * 1e3)
    verified_small, verified_large = (min(cost for cost, _ in costs) for costs in (small, large_ones))
    figure("verify_content", verified_small, "us/commit", membership_commits=_SMALL)
    figure("verify_content", verified_large, "us/commit", membership_commits=large)
    figure("verify_content_large_to_small", verified_large / verified_small, "ratio", limit=1.5)
    for costs, count in ((small, _SMALL), (large_ones, large)):
        figure("authorise_content", min(cost for _, cost in costs), "us/commit", membership_commits=count)
    figure("catch_up", min(catching_up), "us/membership commit", membership_commits=large)
    figure("exclude_one_of_1000", min(excluding), "ms", includes="a listing of all members")
    note("the busy repo")
    _measure_busy(users[:members])


def _exclude(repo: _Repo, user: UserId) -> None:
    repo.add(Remove(user, None, ()))
    assert user not in repo.membership.now().members()


if __name__ == "__main__":
    main()
