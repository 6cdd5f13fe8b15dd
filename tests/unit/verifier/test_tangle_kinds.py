"""Commits that each kind of tangle takes, and what they follow in it."""

import pytest

from protocol.crypto import signing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, EpochKey, UserSeed
from protocol.formats.block import Reference
from protocol.formats.body import Body, BranchAdd, BranchRoot, Invite, Join, Permission, RepoInit
from protocol.formats.commit import NO_EPOCH, NO_MARK, Content, Links, TanglePlace, create_commit
from protocol.formats.content import Post
from protocol.formats.epochs import EpochInit, EpochOpen, EpochStatement, GivenEpoch
from protocol.ids import BranchId, CommitId, EpochId, InvitationKey, Mark, Signature
from tests.support.ids import as_object_id
from verifier.tangle_kinds import TANGLE_KINDS, KindTangle, ReadCommit, TangleKind
from verifier.verify import Rejected, SignedCommit, sign_off

SECRET = ConvergenceSecret(b"c" * 32)
REPO, MAIN, NOTES = BranchId(b"r" * 32), BranchId(b"m" * 32), BranchId(b"n" * 32)
ALICE, BOB = UserSeed(b"alice".ljust(32)), UserSeed(b"bob".ljust(32))
STATES = EpochStatement(Mark(b"m" * 32), Mark(b"w" * 32), bytes(72))
SOMETHING = Reference(as_object_id(b"s" * 32), BlockKey(b"k" * 32))


class _History:
    """Writes signed commits. Bodies need not be legal for their place: kinds do not judge."""

    def __init__(self) -> None:
        body = RepoInit("repo", (signing.public_key(ALICE),), Signature(b"c" * 64), STATES)
        self.init = self.write(REPO, (), body, epoch=NO_EPOCH)
        self.init_id = self.init.commit.commit_id

    def write(
        self,
        branch: BranchId,
        acks: tuple[SignedCommit, ...],
        body: Body,
        *,
        places: tuple[TanglePlace, ...] = (),
        author: UserSeed = ALICE,
        feed: tuple[int, CommitId | None] = (1, None),
        epoch: EpochId | None = None,
    ) -> SignedCommit:
        user, secret = signing.key_pair(author)
        ids = tuple(ack.commit.commit_id for ack in acks)
        content = Content(
            author=user,
            branch=branch,
            epoch=EpochId(self.init_id) if epoch is None else epoch,
            by_writer=False,
            whole=True,
            feed_sequence=feed[0],
            feed_previous=feed[1],
            tangles=places,
            timestamp=0,
            metadata=repr(body).encode(),
            body=SOMETHING,
        )
        commit, _ = create_commit(ids, 0, NO_MARK, Links(), content, secret, SECRET)
        signed = sign_off(commit, body, holds=True)
        assert not isinstance(signed, Rejected)
        return signed

    def group(self, *seen: SignedCommit) -> TanglePlace:
        return TanglePlace("group", self.init_id, tuple(commit.commit.commit_id for commit in seen))


def _id(commit: ReadCommit) -> CommitId:
    return commit.commit.commit_id


def _grown(kind: TangleKind, root: ReadCommit, commits: list[SignedCommit]) -> KindTangle:
    """Grow a tangle with the last commit first: each waits for the next."""
    tangle = KindTangle(kind, root)
    for commit in reversed(commits):
        tangle.add(commit)
    return tangle


@pytest.fixture
def history() -> _History:
    return _History()


def test_members_epoch_and_group_share_the_init(history: _History) -> None:
    invite = history.write(REPO, (history.init,), Invite(InvitationKey(b"i" * 32), Permission.WRITE, 1, 1))
    added = history.write(REPO, (invite,), BranchAdd(MAIN, "main", SOMETHING))
    beside = history.write(REPO, (invite,), Invite(InvitationKey(b"j" * 32), Permission.READ, 1, 1))
    join = history.write(REPO, (added, beside), Join(_id(invite), Signature(b"p" * 64)), author=BOB)
    content = history.write(MAIN, (), BranchRoot(), places=(history.group(added),))
    post = history.write(MAIN, (content,), Post("hello"), places=(history.group(join),), author=BOB)
    root_commits = [invite, added, beside, join]

    members = _grown(TANGLE_KINDS["members"], history.init, [*root_commits, content, post]).graph
    assert set(members.in_order()) == {history.init_id, _id(invite), _id(beside), _id(join)}
    assert members.previous(_id(join)) == [_id(beside)], "what the branch-add hands on is implied by it"
    assert members.tips() == [_id(join)]

    epoch = _grown(TANGLE_KINDS["epoch"], history.init, [*root_commits, content, post]).graph
    assert list(epoch.in_order()) == [history.init_id]

    group = _grown(TANGLE_KINDS["group"], history.init, [*root_commits, content, post]).graph
    assert len(group) == 7
    assert group.previous(_id(content)) == [_id(added)]
    assert set(group.previous(_id(post))) == {_id(content), _id(join)}
    assert group.precedes(_id(beside), _id(post)), "cause and effect are known across branches"
    assert not group.precedes(_id(beside), _id(content))
    assert members.root == epoch.root == group.root == history.init_id


def test_each_epoch_has_a_members_tangle_of_its_own(history: _History) -> None:
    # An invitation before, one after, and one that its author made beside the epoch without knowing of it.
    before = history.write(REPO, (history.init,), Invite(InvitationKey(b"i" * 32), Permission.WRITE, 1, 1))
    init = history.write(REPO, (before,), EpochInit(STATES, SOMETHING, SOMETHING, SOMETHING))
    beside = history.write(REPO, (before,), Invite(InvitationKey(b"j" * 32), Permission.WRITE, 1, 1))
    opened = history.write(
        REPO,
        (init,),
        EpochOpen((GivenEpoch(EpochId(history.init_id), EpochKey(b"k" * 32)),)),
        epoch=EpochId(_id(init)),
    )
    after = history.write(
        REPO,
        (opened, beside),
        Invite(InvitationKey(b"k" * 32), Permission.WRITE, 1, 1),
        epoch=EpochId(_id(init)),
    )
    join = history.write(
        REPO, (after,), Join(_id(after), Signature(b"p" * 64)), author=BOB, epoch=EpochId(_id(init))
    )
    late = history.write(REPO, (beside,), Join(_id(beside), Signature(b"p" * 64)), author=BOB)
    commits = [before, init, beside, opened, after, join, late]

    members = _grown(TANGLE_KINDS["members"], init, [history.init, *commits]).graph
    assert list(members.in_order()) == [_id(init), _id(after), _id(join)]
    assert members.previous(_id(after)) == [_id(init)]
    assert members.missing() == []

    first = _grown(TANGLE_KINDS["members"], history.init, commits).graph
    assert set(first.in_order()) == {history.init_id, _id(before), _id(beside), _id(late)}

    epoch = _grown(TANGLE_KINDS["epoch"], history.init, commits).graph
    assert list(epoch.in_order()) == [history.init_id, _id(init)]
    assert _id(init) in _grown(TANGLE_KINDS["group"], history.init, commits).graph, "it is in all three"


def test_a_branch_takes_its_own_commits_alone(history: _History) -> None:
    root = history.write(MAIN, (), BranchRoot(), places=(history.group(history.init),))
    one = history.write(MAIN, (root,), Post("one"))
    two = history.write(MAIN, (root,), Post("two"))
    both = history.write(MAIN, (one, two), Post("both"))
    other = history.write(NOTES, (), BranchRoot())
    graph = _grown(TANGLE_KINDS["branch"], root, [one, two, both, other, history.init]).graph
    assert list(graph.in_order()) == [_id(root), *sorted([_id(one), _id(two)]), _id(both)]
    assert graph.is_branch(_id(root))
    assert graph.is_merge(_id(both))


def test_a_forked_feed_shows_where(history: _History) -> None:
    first = history.write(MAIN, (), BranchRoot())
    second = history.write(MAIN, (first,), Post("second"), feed=(2, _id(first)))
    third = history.write(MAIN, (second,), Post("third"), feed=(3, _id(second)))
    instead = history.write(MAIN, (second,), Post("instead"), feed=(3, _id(second)))
    of_bob = history.write(MAIN, (first,), Post("of bob"), author=BOB)
    elsewhere = history.write(NOTES, (), Post("elsewhere"), feed=(2, _id(first)))
    graph = _grown(TANGLE_KINDS["feed"], first, [second, third, instead, of_bob, elsewhere]).graph
    assert graph.is_branch(_id(second))
    assert graph.tips() == sorted([_id(third), _id(instead)])
    assert len(graph) == 4
