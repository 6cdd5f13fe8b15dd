"""Which epochs may be started, which is written in, and when the next is due: on commits alone, without secrets."""

import pytest
from msgspec.structs import replace

from protocol.block import Reference
from protocol.body import Body, BranchAdd, Grant, Invite, Permission, Remove, RepoInit, Revoke
from protocol.commit import NO_EPOCH
from protocol.content import Post
from protocol.epochs import BranchTopic, EarlierEpoch, EpochAdd, EpochBox, EpochHistory, EpochInit
from protocol.ids import BranchId, EpochId, InvitationKey, Mark, TopicKey
from protocol.keys import BlockKey, ReadSecret
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.proofs import certify_repo
from protocol.sealing import SEALED_SECRET_SIZE
from ravel.exports.schema import REASONS
from tests.support.ids import as_object_id
from tests.support.memberships import REPO, REPO_SEED, USERS, commit_id, make_commit
from verifier.epochs import (
    describe_epoch,
    find_opened,
    find_preferred,
    find_readers,
    find_topics,
    is_epoch_due,
    lacks_writing,
    why_started,
)
from verifier.membership import Membership, mark_of
from verifier.refusal import CommitRefused

BRANCHES = (b"b" * 32, b"c" * 32)
BOX = bytes(SEALED_SECRET_SIZE)


def secret(number: int) -> ReadSecret:
    """The read secret of the epoch of this number."""
    return ReadSecret(number.to_bytes(32))


class History:
    """Root branch commits by number: 0 is the init of ann, with two branches."""

    def __init__(self) -> None:
        self.membership = Membership(REPO)
        self.count = 0
        self.secrets = 0
        owners = (USERS["ann"],)
        self.add("ann", RepoInit("repo", owners, certify_repo(REPO_SEED, "repo", owners)))
        for branch in BRANCHES:
            body = BranchAdd(
                BranchId(branch),
                "branch",
                0,
                TopicKey(branch),
                Reference(as_object_id(branch), BlockKey(branch)),
            )
            self.add("ann", body, self.count - 1)

    def add(self, author: str, body: Body, *acks: int, epoch: EpochId = NO_EPOCH) -> int:
        """One more commit; its number. Raises CommitRefused."""
        commit = make_commit(self.count, author, acks, epoch)
        operation = self.membership.authorise_root_commit(commit, body)
        self.membership.add(operation, commit.acks)
        self.count += 1
        return self.count - 1

    def grant(self, user: str, permission: Permission, *acks: int, by: str = "ann") -> int:
        return self.add(by, Grant(USERS[user], permission, None), *acks)

    def exclude(self, user: str, *acks: int, by: str = "ann") -> int:
        return self.add(by, Remove(USERS[user], None, ()), *acks)

    def init(self, *acks: int) -> EpochInit:
        """What a rightful init after these commits says."""
        before = self.membership.at(tuple(map(commit_id, acks)))
        plan = describe_epoch(before)
        self.secrets += 1
        mark = mark_of(REPO, secret(self.secrets))
        return EpochInit(plan.previous, mark, tuple(EpochBox(user, BOX) for user in plan.members))

    def start(self, author: str, *acks: int) -> int:
        return self.add(author, self.init(*acks), *acks)

    def is_due(self) -> bool:
        return is_epoch_due(self.membership.operations, self.membership.now())

    def preferred(self) -> bytes:
        return find_preferred(self.membership.now().epoch_tips()).commit_id


@pytest.fixture
def history() -> History:
    made = History()
    made.grant("ben", Permission.ADMIN, 2)
    made.grant("cat", Permission.WRITE, 3)
    made.grant("dan", Permission.READ, 4)
    return made


def _refusal(history: History, author: str, body: Body, *acks: int) -> str:
    with pytest.raises(CommitRefused) as caught:
        history.add(author, body, *acks)
    return caught.value.code


def test_an_exclusion_is_followed_by_one_epoch_for_exactly_who_remains(history: History) -> None:
    assert not history.is_due()
    excluded = history.exclude("cat", 5)
    assert history.is_due()
    body = history.init(excluded)
    assert [box.user for box in body.boxes] == sorted(USERS[name] for name in ("ann", "ben", "dan"))
    assert body.previous == (commit_id(0),)
    started = history.start("ben", excluded)
    assert history.preferred() == commit_id(started)
    assert not history.is_due()


def test_it_is_told_why_an_epoch_was_started(history: History) -> None:
    operations = history.membership.operations

    def why(number: int) -> str:
        return why_started(operations, operations[commit_id(number)])

    by_ann = history.start("ann", history.exclude("cat", 5))
    by_ben = history.start("ben", history.exclude("dan", 5, by="ben"))
    merged = history.start("ann", by_ann, by_ben)
    renewed = history.start("ann", merged)
    lowered = history.add("ann", Remove(USERS["ben"], Permission.WRITE, ()), renewed)
    still = history.start("ann", lowered)
    left = history.start("ann", history.exclude("ben", still, by="ben"))
    invite = history.add("ann", Invite(InvitationKey(USERS["eve"]), Permission.READ, 1, 1), left)
    revoked = history.start("ann", history.add("ann", Revoke(commit_id(invite)), invite))
    reasons = [why(number) for number in (0, by_ann, by_ben, merged, renewed, still, left, revoked)]
    assert reasons == [
        "founding",
        "removal",
        "removal",
        "merge",
        "renewal",
        "renewal",  # ben may write as before
        "leave",
        "revocation",
    ]
    assert set(reasons) == set(REASONS)


def test_who_is_no_admin_starts_none(history: History) -> None:
    assert _refusal(history, "cat", history.init(5), 5) == "not_permitted"
    assert _refusal(history, "eve", history.init(5), 5) == "unknown_author"


def test_an_init_names_what_it_follows_every_branch_and_every_member(history: History) -> None:
    right = history.init(5)
    stranger = EpochBox(USERS["eve"], BOX)
    with_stranger = tuple(sorted((*right.boxes, stranger), key=lambda box: box.user))
    for wrong in (
        replace(right, previous=(b"x" * 32,)),
        replace(right, previous=(*right.previous, commit_id(5))),
        replace(right, boxes=right.boxes[:-1]),
        replace(right, boxes=right.boxes[1:]),
        replace(right, boxes=with_stranger),
        replace(right, boxes=tuple(reversed(right.boxes))),
        replace(right, boxes=(*right.boxes, right.boxes[-1])),
    ):
        assert _refusal(history, "ann", wrong, 5) == "bad_epoch"
    excluded = history.exclude("cat", 5)
    assert _refusal(history, "ann", right, excluded) == "bad_epoch", "it is sealed to whom it excludes"
    started = history.start("ann", excluded)
    again = replace(history.init(started), mark=mark_of(REPO, secret(history.secrets - 1)))
    assert _refusal(history, "ann", again, started) == "bad_epoch", "the excluded has these secrets"


def test_forked_epochs_have_a_preference_and_are_merged_by_the_next(history: History) -> None:
    """ann excludes cat and dan, ben excludes dan: hers has fewer members."""
    by_ann = history.start("ann", history.exclude("cat", history.exclude("dan", 5)))
    by_ben = history.start("ben", history.exclude("dan", 5, by="ben"))
    assert history.preferred() == commit_id(by_ann)
    assert history.is_due()
    merged = history.init(by_ann, by_ben)
    assert merged.previous == tuple(sorted(map(commit_id, (by_ann, by_ben))))
    started = history.start("ann", by_ann, by_ben)
    assert history.preferred() == commit_id(started)
    assert not history.is_due()


def test_between_epochs_of_one_size_the_smallest_id_is_preferred(history: History) -> None:
    first = history.start("ann", history.exclude("cat", 5))
    second = history.start("ben", history.exclude("dan", 5, by="ben"))
    assert history.preferred() == min(commit_id(first), commit_id(second))
    merged = history.start("ann", first, second)
    remaining = {USERS["ann"], USERS["ben"]}
    assert find_readers(history.membership.operations)[EpochId(commit_id(merged))] == remaining


def test_what_an_excluded_admin_started_meanwhile_does_not_count(history: History) -> None:
    """ben excludes everybody that he can while ann excludes ben."""
    by_ben = history.start("ben", history.exclude("dan", history.exclude("cat", 5, by="ben"), by="ben"))
    by_ann = history.start("ann", history.exclude("ben", 5))
    assert history.preferred() == commit_id(by_ann)
    assert [tip.commit_id for tip in history.membership.now().epoch_tips()] == [commit_id(by_ann)]
    assert not history.is_due()
    boxes = history.init(by_ben, by_ann).boxes
    assert [box.user for box in boxes] == sorted(USERS[name] for name in ("ann", "cat", "dan"))


def test_who_leaves_or_loses_writing_makes_an_epoch_due(history: History) -> None:
    left = history.add("cat", Remove(USERS["cat"], None, ()), 5)
    assert history.is_due()
    started = history.start("ann", left)
    assert not history.is_due()
    lowered = history.add("ann", Remove(USERS["ben"], Permission.WRITE, ()), started)
    assert not history.is_due(), "who may still write keeps the secrets"
    history.add("ann", Remove(USERS["ben"], Permission.READ, ()), lowered)
    assert history.is_due()


def test_who_leaves_again_after_an_exclusion_makes_no_epoch_due(history: History) -> None:
    """By what it had seen before: else anyone who was excluded has the others start epoch after epoch."""
    excluded = history.exclude("cat", 5)
    history.start("ann", excluded)
    for _ in range(3):
        history.add("cat", Remove(USERS["cat"], None, ()), 5)
    assert not history.is_due()
    history.exclude("cat", 5, by="ben")
    assert history.is_due(), "what admins do at the same time is brought together"


def test_who_leaves_what_is_left_of_its_rights_makes_an_epoch_due(history: History) -> None:
    lowered = history.add("ann", Remove(USERS["cat"], Permission.READ, ()), 5)
    started = history.start("ann", lowered)
    assert not history.is_due()
    history.add("cat", Remove(USERS["cat"], Permission.READ, ()), 5)
    assert not history.is_due(), "the epoch was started for a reader"
    history.add("cat", Remove(USERS["cat"], None, ()), lowered)
    assert history.is_due()
    started = history.start("ann", history.count - 1, started)
    assert not history.is_due()


def test_who_leaves_after_it_was_granted_something_again_makes_an_epoch_due(history: History) -> None:
    excluded = history.exclude("cat", 5)
    started = history.start("ann", excluded)
    granted = history.grant("cat", Permission.READ, started)
    history.add("cat", Remove(USERS["cat"], None, ()), granted)
    assert history.is_due(), "it was given the epoch's secrets"


def test_additions_to_an_epoch_name_it_members_and_branches(history: History) -> None:
    started = history.start("ann", history.exclude("cat", 5))
    epoch, ann = EpochId(commit_id(started)), USERS["ann"]
    added = history.grant("eve", Permission.WRITE, started)
    box = EpochBox(USERS["eve"], BOX)
    topic = BranchTopic(BranchId(BRANCHES[0]), TopicKey(b"n" * 32))
    mark = mark_of(REPO, secret(history.secrets))
    right = EpochAdd(epoch, ann, mark, (), (box,))
    for wrong in (
        EpochAdd(EpochId(commit_id(0)), ann, mark, (), (box,)),
        EpochAdd(EpochId(commit_id(4)), ann, mark, (), (box,)),
        EpochAdd(epoch, USERS["ben"], mark, (), (box,)),
        EpochAdd(epoch, ann, Mark(b"u" * 32), (), (box,)),
        EpochAdd(epoch, ann, mark, (), (EpochBox(USERS["cat"], BOX),)),
        EpochAdd(epoch, ann, mark, (), (box, box)),
        EpochAdd(epoch, ann, mark, (topic,), ()),
    ):
        assert _refusal(history, "ann", wrong, added) == "bad_epoch"
    for topics in ((BranchTopic(BranchId(b"x" * 32), TopicKey(b"n" * 32)),), (topic, topic)):
        with pytest.raises(CommitRefused, match="M10"):
            history.add("ann", EpochAdd(epoch, ann, mark, topics, ()), added, epoch=epoch)
    assert _refusal(history, "dan", right, added) == "not_permitted"
    assert _refusal(history, "ann", right, 5) == "bad_epoch", "in its past there is no such epoch"
    operations = history.membership.operations
    assert USERS["eve"] not in find_readers(operations)[epoch]
    handed = history.add("ben", right, added)
    assert USERS["eve"] in find_readers(operations)[epoch]
    history.add("ann", EpochAdd(epoch, ann, mark, (topic,), ()), handed, epoch=epoch)
    assert (topic.branch, topic.topic) in find_topics(operations, operations[epoch])


def test_a_reader_who_may_write_later_lacks_the_secret_to_write_with(history: History) -> None:
    """dan is raised beside the epoch that was sealed to a reader."""
    started = history.start("ann", history.exclude("cat", 5))
    raised = history.grant("dan", Permission.WRITE, 5, by="ben")
    operations, now = history.membership.operations, history.membership.now()
    epoch = operations[commit_id(started)]
    assert lacks_writing(operations, now, epoch, USERS["dan"])
    assert not lacks_writing(operations, now, epoch, USERS["ben"])
    body = EpochAdd(
        EpochId(epoch.commit_id),
        USERS["ann"],
        mark_of(REPO, secret(history.secrets)),
        (),
        (EpochBox(USERS["dan"], BOX),),
    )
    history.add("ben", body, started, raised)
    assert not lacks_writing(operations, history.membership.now(), epoch, USERS["dan"])


def test_a_history_names_epochs_before_it_and_their_authors(history: History) -> None:
    started = history.start("ann", history.exclude("cat", 5))
    beside = history.start("ben", 5)
    first = EarlierEpoch(EpochId(commit_id(0)), USERS["ann"], ReadSecret(b"r" * 32))
    for wrong in (
        (first, first),
        (EarlierEpoch(EpochId(commit_id(0)), USERS["ben"], ReadSecret(b"r" * 32)),),
        (EarlierEpoch(EpochId(commit_id(1)), USERS["ann"], ReadSecret(b"r" * 32)),),
        (first, EarlierEpoch(EpochId(commit_id(beside)), USERS["ben"], secret(history.secrets))),
        (EarlierEpoch(EpochId(commit_id(started)), USERS["ann"], ReadSecret(b"r" * 32)),),
    ):
        assert _refusal(history, "ann", EpochHistory(wrong), started) == "bad_epoch"
    assert _refusal(history, "dan", EpochHistory((first,)), started) == "not_permitted"
    history.add(
        "ben",
        EpochHistory(
            (first, EarlierEpoch(EpochId(commit_id(beside)), USERS["ben"], secret(history.secrets)))
        ),
        started,
        beside,
    )
    # All was published in the first epoch here, which thus opens them.
    assert find_opened(history.membership.operations, EpochId(commit_id(0))) == {
        commit_id(0),
        commit_id(beside),
    }


def test_two_hundred_concurrent_epochs_become_one(history: History) -> None:
    excluded = history.exclude("cat", 5)
    started = [history.start("ann", excluded) for _ in range(200)]
    assert len(history.membership.now().epoch_tips()) == 200
    assert history.preferred() == min(map(commit_id, started))
    first = history.add("ann", Post("of many"), *started[:ACK_COUNT_MAX])
    second = history.add("ben", Post("of the others"), *started[ACK_COUNT_MAX:])
    merged = history.start("ann", first, second)
    assert history.preferred() == commit_id(merged)
    assert not history.is_due()


def test_no_order_of_arrival_prefers_another() -> None:
    preferred = set()
    for is_turned in (False, True):
        made = History()
        cat = made.grant("cat", Permission.WRITE, made.grant("ben", Permission.ADMIN, 2))
        body = made.init(cat)
        for number, author in sorted(enumerate(("ann", "ben")), reverse=is_turned):
            commit = make_commit(made.count + number, author, (cat,))
            made.membership.add(made.membership.authorise_root_commit(commit, body), commit.acks)
        preferred.add(made.preferred())
    assert len(preferred) == 1
