"""Duties of nodes for the others' access, and their times (E9 to E11): the times are the test's."""

import secrets
from collections.abc import Iterator
from itertools import count as numbers
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from node.authoring.drafting import Draft
from node.authoring.epoch_starts import make_init
from node.ingest.ingest_result import IngestResult
from node.membership.epoch_duties import ADMIN_STEP_SECONDS, HAND_SECONDS, WRITER_STEP_SECONDS
from node.runtime.errors import ServiceError
from protocol.crypto.epoch_boxes import BOX_SIZE, Sealer
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import DeviceGrant, Grant, Invite, Join, Permission, Revoke
from protocol.formats.content import Post
from protocol.formats.epochs import EpochOpen
from protocol.formats.links import RENEWAL_NOTE
from protocol.formats.object import build_object
from protocol.formats.proofs import prove_invitation
from protocol.ids import CommitId, EpochId, UserId
from storage.commits.pending import load_rejected
from storage.repos.row_changes import row_changes
from storage.schema.schema import epochs
from tests.unit.node.membership.epoch_people import Person, open_people

pytestmark = pytest.mark.slow  # several stores each


def _begin(people: list[Person]) -> None:
    """Alice founds a repo; the others follow it, and are no members."""
    alice, *others = people
    alice.found()
    for one in others:
        one.follow(alice).hear(alice)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Person]]:
    """People of whom all but alice stand in the order of their ids."""
    with open_people(tmp_path, "alice", "bob", "carol", "dave", begin=_begin) as (alice, *others):
        yield [alice, *sorted(others, key=lambda one: one.user)]


def settle(*people: Person) -> None:
    """Have all hear all, twice."""
    for _ in range(2):
        for one in people:
            one.hear(*(other for other in people if other is not one))


def precede(person: Person, *others: Person) -> int:
    """Return how many of these have smaller ids."""
    return sum(other.user < person.user for other in others)


def all_members(people: list[Person], **permissions: Permission) -> None:
    """Make the others writers, or what is said of their place (p1 to p3), in an epoch that all who write surely hold."""
    alice, *others = people
    for place, one in enumerate(others, 1):
        alice.grant(one, permission=permissions.get(f"p{place}", Permission.WRITE))
    for one in others:
        one.hear(alice)
        if (one.replica.permission(one.repo, one.user) or 0) >= Permission.WRITE:
            one.author.write(one.root, Post("who writes in an epoch holds it"))
            alice.hear(one)
    alice.author.start_epoch(alice.repo)
    assert alice.act(0.0) is None
    for one in others:
        one.hear(alice)
        assert one.act(0.0) is None


def handed(person: Person) -> list[tuple[UserId, EpochId, EpochId, UserId, bool]]:
    """List who handed which epoch over in which, to whom, and whether with the writers' secret."""
    return [
        (one.author, body.epoch, one.epoch, item.user, item.writers_box is not None)
        for one, body in person.hands
        for item in body.boxes
    ]


# --- starting (E9) ---


def test_an_admin_starts_a_due_epoch_after_five_seconds_for_it_and_each_before(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.ADMIN, p2=Permission.ADMIN)
    alice.remove(dave)
    settle(alice, bob, carol)
    for one in (alice, bob, carol):
        before, places = one.epoch, 1 + precede(one, alice, bob, carol)
        assert one.act(100.0) == places * ADMIN_STEP_SECONDS
        assert one.act(100.0 + places * ADMIN_STEP_SECONDS - 1) == 1.0
        assert one.epoch == before
        one.act(100.0 + places * ADMIN_STEP_SECONDS)
        assert one.epoch != before
        assert one.epochs[-1].author == one.user


def test_other_writers_start_it_after_a_minute_for_each(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people)
    alice.remove(dave)
    settle(alice, bob, carol)
    for one in (bob, carol):
        before, places = one.epoch, 1 + precede(one, alice, bob, carol)
        assert one.act(0.0) == places * WRITER_STEP_SECONDS
        assert one.act(places * WRITER_STEP_SECONDS - 1) == 1.0
        assert one.epoch == before
        one.act(places * WRITER_STEP_SECONDS)
        assert one.epochs[-1].author == one.user
        assert one.epoch.epoch_id == one.epochs[-1].started_epoch


def test_nobody_waits_for_more_than_nine_others(people: list[Person]) -> None:
    alice, bob, _, dave = people
    alice.grant(bob, dave)
    before = 0
    for number in numbers():
        user = key_pair(UserSeed(number.to_bytes(32, "big")))[0]
        if user < bob.user:
            before += 1
            alice.author.write(alice.root, Grant(user, Permission.WRITE))
        if before == 12:
            break
    alice.remove(dave)
    bob.hear(alice)
    places = (12 + precede(bob, alice)) % 10
    assert bob.act(0.0) == (1 + places) * WRITER_STEP_SECONDS


def test_a_write_starts_it_at_once(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people)
    alice.remove(dave)
    settle(bob, alice)
    before = bob.epoch
    assert bob.act(0.0)
    bob.author.write(bob.replica.branches[2], Post("not for dave"))
    assert bob.epoch != before
    dave.hear(alice, bob)
    carol.hear(alice, bob)
    assert not dave.claims(bob.epoch.epoch_id)
    assert carol.epoch.epoch_id == bob.epoch.epoch_id


def test_what_somebody_else_started_is_not_started_again(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.ADMIN)
    alice.remove(dave)
    settle(alice, bob, carol)
    assert bob.act(0.0)
    alice.author.preparation.prepare(alice.repo, IngestResult())
    count = len(alice.epochs)
    settle(alice, bob, carol)
    assert bob.act(1000.0) is None
    assert carol.act(1000.0) is None
    assert len(bob.epochs) == count


def test_the_wait_begins_anew_with_what_is_due_anew(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.ADMIN)
    alice.remove(dave)
    settle(alice, bob)
    wait = bob.act(0.0)
    assert wait is not None
    alice.author.preparation.prepare(alice.repo, IngestResult())
    settle(alice, bob)
    bob.act(1.0)
    alice.remove(carol)
    settle(alice, bob)
    assert bob.act(1000.0) == wait


def test_readers_do_nothing(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.READ)
    alice.remove(dave)
    carol.hear(alice)
    alice.grant(dave)
    bob.hear(alice, carol)
    before = bob.heads
    assert bob.act(0.0) is None
    assert bob.act(10_000.0) is None
    assert bob.heads == before


def test_followers_and_who_was_excluded_do_nothing(people: list[Person]) -> None:
    alice, bob, carol, _ = people
    alice.grant(bob, carol)
    settle(alice, bob)
    alice.remove(bob)
    bob.hear(alice)
    carol.hear(alice)
    dave = people[3]
    dave.hear(alice)
    for one in (bob, dave):
        before = one.heads
        assert one.act(0.0) is None
        assert one.act(10_000.0) is None
        assert one.heads == before


def test_a_wrong_box_is_refused_and_an_admin_starts_another_epoch(people: list[Person]) -> None:
    """Bob, an admin, excludes dave and makes an epoch in which carol's box opens nothing."""
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.ADMIN)
    bob.remove(dave)
    alice.hear(bob)
    membership = bob.replica.membership(bob.repo.repo_id)
    made = make_init(membership, bob.replica.tables, bob.repo, bob.heads, bob.epoch)
    users = sorted([alice.user, bob.user, carol.user])
    sealer = Sealer.of_epoch(made.epoch.key, bob.repo.repo_id)
    boxes = b"".join(bytes(BOX_SIZE) if user == carol.user else sealer.seal(user) for user in users)
    reference, blocks = build_object(boxes, bob.epoch.convergence_secret)
    kept = [one for one in made.blocks if one.block_id != made.body.boxes.object_id]
    rank = 1 + membership.operations.place(membership.operations[bob.heads[0]])[0]
    commit_id, encoded = bob.says(
        replace(made.body, boxes=reference), *bob.heads, blocks=(*blocks, *kept), rank=rank
    )
    assert alice.receive(encoded).waiting == 1, "for its key, which is in alice's box"
    assert alice.take()
    with alice.replica.database.read() as connection:
        assert load_rejected(connection, [commit_id])
    count = len(alice.epochs)
    alice.act(0.0)
    alice.act(1000.0)
    assert len(alice.epochs) == count + 1
    assert alice.epochs[-1].author == alice.user
    carol.hear(alice, bob)
    assert carol.epoch.epoch_id == alice.epoch.epoch_id


def test_the_key_of_an_earlier_epoch_starts_none(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, *_ = people
    old, fresh = alice.epoch, secrets.token_bytes
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda size: old.key if size == 32 else fresh(size))
        with pytest.raises(ServiceError, match="earlier epoch"):
            alice.author.start_epoch(alice.repo)
    assert alice.epoch == old


# --- opening (E11) ---


def test_a_fork_is_opened_in_the_epoch_that_is_written_in(people: list[Person]) -> None:
    """Alice renews while bob does: one of the two is preferred, and the other one's past is opened in it."""
    alice, bob, carol, _ = people
    all_members(people, p1=Permission.ADMIN)
    alice.author.start_epoch(alice.repo)
    bob.author.start_epoch(bob.repo)
    settle(alice, bob)
    assert alice.epoch.epoch_id == bob.epoch.epoch_id
    wait = bob.act(0.0)
    assert wait == (1 + precede(bob, alice)) * ADMIN_STEP_SECONDS
    before = bob.heads
    bob.act(wait)
    operations = bob.replica.membership(bob.repo.repo_id).operations
    (new,) = set(bob.heads) - set(before)
    assert isinstance(operations[new].body, EpochOpen)
    alice.hear(bob)
    assert alice.act(1000.0) is None
    carol.hear(alice, bob)
    assert carol.act(0.0) is None
    assert len(carol.heads) == 1


def test_who_was_raised_beside_an_epoch_writes_there_after_both(people: list[Person]) -> None:
    """Bob raises carol in the epoch before, which the one in use opens. Her commit acks both heads."""
    alice, bob, carol, _ = people
    all_members(people, p1=Permission.ADMIN)
    alice.author.start_epoch(alice.repo)
    bob.grant(carol, permission=Permission.MANAGE)
    carol.hear(alice, bob)
    assert carol.epoch.epoch_id == alice.epoch.epoch_id
    assert len(carol.heads) == 2
    carol.author.write(carol.root, Post("after both"))
    assert len(carol.heads) == 1


# --- handing over (E10) ---


def test_who_granted_hands_the_epoch_over_at_once(people: list[Person]) -> None:
    """Carol is a follower: she was handed the epoch in all before it, and so is handed the writers' secret there."""
    alice, _, carol, _ = people
    all_members(people, p2=Permission.READ)
    alice.grant(carol)
    assert alice.act(0.0) is None
    hands = [one for one in handed(alice) if one[3] == carol.user and one[4]]
    assert {(one[0], one[1]) for one in hands} == {(alice.user, alice.epoch.epoch_id)}
    assert {one[2] for one in hands} == {alice.epoch.epoch_id}
    carol.hear(alice)
    assert carol.epoch.writers_seed is not None


def test_a_writer_hands_its_device_the_epoch_at_once(people: list[Person]) -> None:
    _, bob, _, dave = people
    all_members(people, p3=Permission.READ)
    bob.author.write(bob.root, DeviceGrant(dave.user, Permission.WRITE))
    assert bob.act(0.0) is None
    assert [one for one in handed(bob) if one[0] == bob.user and one[3] == dave.user and one[4]]
    dave.hear(bob)
    assert dave.epoch.writers_seed is not None


@pytest.mark.parametrize("is_admin", [True, False])
def test_others_hand_it_over_later_in_the_order_of_their_ids(people: list[Person], *, is_admin: bool) -> None:
    alice, bob, carol, dave = people
    all_members(people, p1=Permission.ADMIN if is_admin else Permission.WRITE, p3=Permission.READ)
    alice.grant(dave)
    bob.hear(alice)
    admins = [alice, bob] if is_admin else []
    expected = HAND_SECONDS + ADMIN_STEP_SECONDS * precede(bob, *admins)
    if not is_admin:
        expected = 2 * HAND_SECONDS + WRITER_STEP_SECONDS * precede(bob, alice, bob, carol, dave)
    before = handed(bob)
    assert bob.act(50.0) == expected
    assert handed(bob) == before
    assert bob.act(50.0 + expected - 1) == 1.0
    assert handed(bob) == before
    assert bob.act(50.0 + expected) is None
    new = [one for one in handed(bob) if one not in before]
    assert {(one[0], one[3]) for one in new} == {(bob.user, dave.user)}


def test_what_was_handed_over_is_not_handed_over_again(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    all_members(people, p3=Permission.READ)
    alice.grant(dave)
    settle(alice, bob, carol)
    bob.act(0.0)
    alice.act(0.0)
    count = len(handed(alice))
    settle(alice, bob, carol)
    for one in (alice, bob, carol):
        assert one.act(10_000.0) is None
    settle(alice, bob, carol, dave)
    assert alice.act(20_000.0) is None
    assert len(handed(alice)) == count


def test_a_follower_who_was_granted_a_permission_is_told_in_each_epoch_that_it_may_hold(
    people: list[Person],
) -> None:
    """Dave follows by a link of the first epoch, and members are in the fourth."""
    alice, *_, dave = people
    for _ in range(3):
        alice.author.start_epoch(alice.repo)
    alice.grant(dave, permission=Permission.READ)
    assert not dave.holds(alice.epoch.epoch_id)
    alice.act(0.0)
    told = [one[2] for one in handed(alice) if one[3] == dave.user]
    assert sorted(told) == sorted(one.started_epoch for one in alice.epochs[:-1]), "but not in itself"
    dave.hear(alice)
    assert dave.epoch.epoch_id == alice.epoch.epoch_id
    assert dave.epoch.writers_secret is None
    alice.act(1.0)
    assert [one[2] for one in handed(alice) if one[3] == dave.user] == told
    alice.grant(dave)
    alice.act(2.0)
    dave.hear(alice)
    assert dave.epoch.writers_seed is not None
    told = [one[2] for one in handed(alice) if one[3] == dave.user]
    alice.author.start_epoch(alice.repo)
    alice.act(3.0)
    assert [one[2] for one in handed(alice) if one[3] == dave.user] == told, (
        "dave has a box that he surely finds"
    )
    dave.hear(alice)
    assert dave.epoch.epoch_id == alice.epoch.epoch_id


def test_a_member_who_lacks_the_epoch_is_told_in_the_latest_that_it_surely_holds(
    people: list[Person],
) -> None:
    """Carol is granted a permission while bob starts an epoch, in which she has no box."""
    alice, bob, carol, dave = people
    alice.grant(bob, permission=Permission.ADMIN)
    alice.grant(dave)
    settle(alice, bob, dave)
    bob.author.start_epoch(bob.repo)
    alice.grant(carol)
    carol.hear(alice)
    carol.author.write(carol.root, Post("hello"))
    alice.hear(bob, carol)
    founding = alice.epochs[0].started_epoch
    assert alice.epoch.epoch_id == bob.epoch.epoch_id != founding
    alice.act(0.0)
    alice.act(1000.0)
    mine = [one for one in handed(alice) if one[3] == carol.user]
    assert [(one[1], one[2], one[4]) for one in mine] == [(bob.epoch.epoch_id, founding, True)]
    carol.hear(alice, bob)
    assert carol.epoch.epoch_id == bob.epoch.epoch_id
    assert carol.epoch.writers_seed is not None


def test_who_started_the_epoch_hands_it_over_at_once(people: list[Person]) -> None:
    alice, bob, carol, _ = people
    alice.grant(bob, permission=Permission.ADMIN)
    bob.hear(alice)
    bob.author.start_epoch(bob.repo)
    alice.grant(carol)
    carol.hear(alice)
    carol.author.write(carol.root, Post("hello"))
    bob.hear(alice, carol)
    bob.author.preparation.prepare(bob.repo, IngestResult())  # what alice's epoch has is opened
    bob.act(0.0)
    assert bob.user in {one[0] for one in handed(bob) if one[3] == carol.user}


def test_who_joined_without_the_writers_secret_is_handed_it(people: list[Person]) -> None:
    """Carol follows by a link for readers, and joins by an invitation to write that she found in the root branch."""
    alice, _, carol, _ = people
    invite(alice, renews=False)
    (invitation,) = alice.heads
    with carol.replica.change() as change:
        change.connection.execute(update(epochs).values(writers_secret=None))
        row_changes(change.connection).repos.add(carol.repo.num)
    carol.hear(alice)
    proof = prove_invitation(InvitationSeed(bytes(reversed(alice.seed))), carol.repo.repo_id, carol.user)
    carol.author.write(carol.root, Join(invitation, proof))
    alice.hear(carol)
    assert alice.act(0.0) is None
    carol.hear(alice)
    assert carol.epoch.writers_seed is not None


def test_who_lacks_the_writers_secret_hands_over_the_key_and_who_has_it_that(people: list[Person]) -> None:
    alice, bob, _, dave = people
    all_members(people, p3=Permission.READ)
    with bob.replica.change() as change:
        change.connection.execute(update(epochs).values(writers_secret=None))
        row_changes(change.connection).repos.add(bob.repo.num)
    assert bob.epoch.writers_secret is None
    alice.grant(dave)
    bob.hear_on(alice, alice.epoch.topic)
    bob.hear_on(alice, alice.epoch.writers_topic or b"")
    assert bob.act(0.0) is None, "dave surely holds the key, or nobody knows"
    alice.act(0.0)
    dave.hear(alice)
    assert dave.epoch.writers_seed is not None


def test_nothing_is_looked_at_again_while_the_root_branch_stays(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, *_ = people
    all_members(people)
    assert alice.act(0.0) is None

    def fail(*_: object) -> None:
        raise AssertionError("looked at again")

    monkeypatch.setattr(alice.duties, "_hand_over", fail)
    assert alice.act(1.0) is None


# --- renewal of ended links ---


def invite(person: Person, *, renews: bool) -> None:
    """Return an invitation to write, used by nobody yet."""
    body = Invite(key_pair(InvitationSeed(bytes(reversed(person.seed))))[0], Permission.WRITE, 1, 2**52)
    person.author.write(person.root, Draft(body, metadata=RENEWAL_NOTE if renews else b""))


@pytest.mark.parametrize("renews", [True, False])
def test_who_made_a_link_that_is_over_renews_at_once_and_once(people: list[Person], *, renews: bool) -> None:
    alice, bob, *_ = people
    all_members(people, p1=Permission.ADMIN)
    invite(alice, renews=renews)
    invitation = alice.heads[0]
    alice.author.write(alice.root, Revoke(invitation))
    bob.hear(alice)
    count = len(alice.epochs)
    assert bob.act(0.0) is None
    assert len(bob.epochs) == count, "that is for who made it"
    alice.act(0.0)
    assert len(alice.epochs) == count + renews
    alice.act(10_000.0)
    assert len(alice.epochs) == count + renews


def join(person: Person, inviter: Person, invitation: CommitId) -> None:
    """Join by `inviter`'s invitation, as who knows of nothing that came after it."""
    proof = prove_invitation(InvitationSeed(bytes(reversed(inviter.seed))), person.repo.repo_id, person.user)
    person.author.write(person.root, Draft(Join(invitation, proof), (invitation,)))


@pytest.mark.parametrize("is_renewed", [False, True])
def test_a_link_that_renews_admits_nobody_beside_who_used_it_up(
    people: list[Person], *, is_renewed: bool
) -> None:
    """Else who has the link joins by an older past, and is handed the secrets that were to be kept from it."""
    alice, bob, carol, _ = people
    invite(alice, renews=True)
    (invitation,) = alice.heads
    for one in bob, carol:
        one.hear(alice)
    join(bob, alice, invitation)
    alice.hear(bob)
    if is_renewed:  # for another reason, with the join in the new epoch's past
        alice.author.start_epoch(alice.repo)
    alice.act(0.0)
    count = len(alice.epochs)
    alice.act(10_000.0)
    assert len(alice.epochs) == count
    join(carol, alice, invitation)
    alice.hear(carol)
    alice.act(0.0)
    assert alice.replica.permission(alice.repo, bob.user) is Permission.WRITE
    assert alice.replica.permission(alice.repo, carol.user) is None
    assert carol.user not in {one[3] for one in handed(alice)}
