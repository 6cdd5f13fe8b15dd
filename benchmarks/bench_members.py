"""Membership: what judging a content commit costs in repos of many membership commits, and what an exclusion costs.

python benchmarks/bench_members.py [membership commits of the large repo]

An owner grants writing to one user after another, each commit acking the one before, and removes every tenth of them
again. Verified are commits of a writer from the middle, each made after another of the last root branch commits: no two
questions are the same, so that nothing that was remembered answers. Catching up takes in the same commits as a newcomer
does. Blocks, other signatures and the store are measured by `bench_ingest`.
"""

import sys
from functools import partial

from benchmarks.common import figure, note, timed
from protocol.block import Reference
from protocol.body import Body, Grant, Permission, Remove, RepoInit
from protocol.commit import NO_EPOCH, Commit, Content, HeaderKeys, Links
from protocol.ids import CommitId, Signature, UserId, root_branch
from protocol.keys import BlockKey, RepoSeed, UserSeed
from protocol.proofs import certify_repo
from protocol.signing import key_pair, sign, verify_signature
from tests.support.ids import as_commit_id, as_object_id
from verifier.membership import Membership

_SMALL = 100
_QUESTIONS = 50
_ROUNDS = 5
_REMOVED_EVERY = 10
_REPO_SEED = RepoSeed(b"r" * 32)
_REPO = key_pair(_REPO_SEED)[0]
_OWNER = key_pair(UserSeed(b"o" * 32))[0]
_WRITER, _WRITER_SECRET = key_pair(UserSeed(b"w" * 32))
_DIGEST = b"d" * 32
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
        number = len(self.ids) + 1
        content = Content(_OWNER, root_branch(_REPO), NO_EPOCH, 1, None, (), 0, b"", _SOMETHING, HeaderKeys())
        commit = Commit(
            as_commit_id(number.to_bytes(32)), BlockKey(b""), acks, Links(), content, Signature(b"")
        )
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        self.ids.append(commit.commit_id)


def _bodies(count: int, users: list[UserId]) -> list[Body]:
    made: list[Body] = [RepoInit("bench", (_OWNER,), certify_repo(_REPO_SEED, "bench", (_OWNER,)))]
    waiting = iter(users)
    newest = _OWNER
    while len(made) < count:
        if len(made) == count // 2 - 5:
            made.append(Grant(_WRITER, Permission.WRITE, None))
        elif len(made) % _REMOVED_EVERY == 0:
            made.append(Remove(newest, None, ()))
        else:
            newest = next(waiting)
            made.append(Grant(newest, Permission.WRITE, None))
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


def main() -> None:
    """Print the figures."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    note("making keys")
    users = [key_pair(UserSeed(b"user" + number.to_bytes(28)))[0] for number in range(large)]
    small, large_ones, catching_up, excluding = [], [], [], []
    for number in range(_ROUNDS):
        note(f"round {number + 1} of {_ROUNDS}")
        small.append(_verify_content(_Repo(_bodies(_SMALL, users))))
        bodies = _bodies(large, users)
        repo = _Repo([])
        catching_up.append(timed(partial(repo.extend, bodies)) / large * 1e6)
        large_ones.append(_verify_content(repo))
        thousand = _Repo([bodies[0], *(Grant(user, Permission.WRITE, None) for user in users[:1000])])
        excluding.append(timed(partial(_exclude, thousand, users[500])) * 1e3)
    verified_small, verified_large = (min(cost for cost, _ in costs) for costs in (small, large_ones))
    figure("verify_content", verified_small, "us/commit", membership_commits=_SMALL)
    figure("verify_content", verified_large, "us/commit", membership_commits=large)
    figure("verify_content_large_to_small", verified_large / verified_small, "ratio", limit=1.5)
    for costs, count in ((small, _SMALL), (large_ones, large)):
        figure("authorise_content", min(cost for _, cost in costs), "us/commit", membership_commits=count)
    figure("catch_up", min(catching_up), "us/membership commit", membership_commits=large)
    figure("exclude_one_of_1000", min(excluding), "ms", includes="a listing of all members")


def _exclude(repo: _Repo, user: UserId) -> None:
    repo.add(Remove(user, None, ()))
    assert user not in repo.membership.now().members()


if __name__ == "__main__":
    main()
