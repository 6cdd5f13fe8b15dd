"""More heads of the root branch than a commit can name: a reader leaves again and again, and members write all the same."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import pytest

from node.authoring import choosing_heads
from node.ingest.ingest_result import IngestResult
from node.membership.epoch_duties import HAND_SECONDS
from protocol.codec import encode
from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import FeedEnd, Invite, Join, Permission, Remove
from protocol.formats.content import Post
from protocol.formats.epochs import EpochInit, EpochOpen
from protocol.formats.links import InvitationLink
from protocol.formats.proofs import prove_invitation
from protocol.ids import CommitId, ObjectId, branch_begun_by
from protocol.limits.formats import ACK_COUNT_MAX
from storage.commits.pending import load_rejected
from storage.repos.repos import Branch, Repo, add_repo
from tests.support.builders import NOW_MS
from tests.support.ids import as_commit_id
from tests.unit.node.membership.epoch_people import Person, open_people
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.tangle import Tangle

pytestmark = pytest.mark.slow  # hundreds of commits each


def _begin(people: list[Person]) -> None:
    """Alice founds a repo, in which rose may read; bob and carol are nobody yet."""
    alice, rose, *_ = people
    alice.found().grant(rose, permission=Permission.READ)
    rose.follow(alice).hear(alice)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Person]]:
    with open_people(tmp_path, "alice", "rose", "bob", "carol", begin=_begin) as made:
        yield made


def leaves(rose: Person, below: CommitId | None, above: CommitId | None) -> Iterator[bytes]:
    """Leaves beside one another, after rose's head and in her epoch, if asked with ids below or above others."""
    membership = rose.replica.membership(rose.repo.repo_id)
    (head,) = rose.heads
    rank = 1 + membership.operations.place(membership.operations[head])[0]
    for number in count(1):
        body = Remove(rose.user, None, (FeedEnd(branch_begun_by(head), number, head),))
        commit_id, encoded = rose.says(body, head, rank=rank)
        if (below is None or commit_id < below) and (above is None or commit_id > above):
            yield encoded


def flood(
    rose: Person, target: Person, number: int, below: CommitId | None = None, above: CommitId | None = None
) -> None:
    """Have so many leaves come to somebody."""
    target.receive(*islice(leaves(rose, below, above), number), topic=rose.epoch.topic)


def write_until(person: Person, *, is_last: bool = True) -> CommitId:
    """Write in the root branch until its one head stands in the larger half of all ids, or in the smaller one."""
    middle = as_commit_id(b"\x80" * 32)
    while (person.author.write(person.root, Post("hello"))[0].commit_id > middle) != is_last:
        pass
    (head,) = person.heads
    return head


def admit_without_rose(people: list[Person]) -> None:
    """Rose leaves; alice admits bob in an epoch that is without her, and bob writes there."""
    alice, rose, bob, *_ = people
    flood(rose, alice, 1)
    alice.grant(bob)
    bob.follow(alice).hear(alice)


def written_by(person: Person, *authors: Person) -> list[Operation]:
    """Return what some wrote, as somebody knows it."""
    operations = person.replica.membership(person.repo.repo_id).operations
    return [one for author in authors for one in operations.authored_by(author.user)]


def check_told(writer: Person, other: Person) -> None:
    """Check that what somebody wrote last is accepted by another, and all heads are merged."""
    written = writer.author.write(writer.root, Post("heard"))[0]
    other.hear(writer)
    assert written.commit_id in other.heads
    assert len(writer.heads) <= ACK_COUNT_MAX
    with other.replica.database.read() as connection:
        assert not load_rejected(connection, [one.commit_id for one in written_by(writer, writer)])


def test_leaves_that_are_first_of_all_heads_stop_no_writer(people: list[Person]) -> None:
    """Neither the epoch that bob writes in nor his membership stands in the past of any."""
    alice, rose, bob, _ = people
    admit_without_rose(people)
    flood(rose, bob, 2 * ACK_COUNT_MAX, below=write_until(bob))
    check_told(bob, alice)
    assert len(written_by(bob, bob)) <= 8 + 3 + 1


@pytest.mark.parametrize("is_due", [False, True])
def test_heads_for_any_number_of_merges_are_chosen_once(
    people: list[Person], monkeypatch: pytest.MonkeyPatch, is_due: bool
) -> None:
    """To choose anew for each merge took 0.76 s of processor time at 4,000 leaves, and four times that at twice as many."""
    alice, rose, bob, _ = people
    writer = alice if is_due else bob
    if not is_due:
        admit_without_rose(people)
    for module in ("choosing_heads", "preparing", "feed_encoder"):
        monkeypatch.setattr(f"node.authoring.{module}.ACK_COUNT_MAX", 8)
    chosen, before = list[int](), len(written_by(writer, writer))
    interleave = choosing_heads.interleave_authors

    def note(membership: Membership, heads: Iterable[CommitId]) -> list[CommitId]:
        found = interleave(membership, heads)
        chosen.append(len(found))
        return found

    monkeypatch.setattr(choosing_heads, "interleave_authors", note)
    flood(rose, writer, 60)
    writer.author.write(writer.root, Post("heard"))
    assert len(chosen) == 1
    assert len(writer.heads) == 1
    assert len(written_by(writer, writer)) >= before + 60 // 8 + 1
    with writer.replica.database.read() as connection:
        assert not load_rejected(connection, [one.commit_id for one in written_by(writer, writer)])


def test_they_stop_nobody_who_leaves(people: list[Person]) -> None:
    """Carol, who may read, cannot merge them; what she acks has her own membership in its past."""
    alice, rose, _, carol = people
    alice.grant(carol, permission=Permission.READ)
    head = write_until(alice)
    carol.follow(alice).hear(alice)
    flood(rose, carol, 2 * ACK_COUNT_MAX, below=head)
    written, _ = carol.author.write(carol.root, Remove(carol.user, None, ()))
    alice.hear(carol)
    assert written.commit_id in alice.heads


def test_they_stop_nobody_who_joins(people: list[Person]) -> None:
    alice, rose, _, carol = people
    seed = InvitationSeed(b"i" * 32)
    invitation, _ = alice.author.write(
        alice.root, Invite(key_pair(seed)[0], Permission.WRITE, 1, NOW_MS + 1000000)
    )
    head = write_until(alice)
    carol.follow(alice).hear(alice)
    flood(rose, carol, 2 * ACK_COUNT_MAX, below=head)
    epoch, repo = carol.epoch, carol.repo
    root = Reference(ObjectId(repo.init_id), repo.init_key)
    link = InvitationLink(
        repo.repo_id,
        root,
        epoch.epoch_id,
        epoch.key,
        epoch.writers_secret,
        invitation.commit_id,
        seed,
        Permission.WRITE,
        NOW_MS + 1000000,
        (),
        None,
        repo.name,
        None,
    )
    with carol.replica.change() as change:
        add_repo(carol.replica.database, change.connection, replace(repo, invitation=encode(link)), epoch)
    proof = prove_invitation(seed, carol.repo.repo_id, carol.user)
    written, _ = carol.author.write(carol.root, Join(invitation.commit_id, proof))
    alice.hear(carol)
    assert written.commit_id in alice.heads


def test_who_may_not_open_leaves_out_what_takes_the_own_membership_away(tmp_path: Path) -> None:
    """Bob's exclusion of rose does not count, by what stands in an epoch that rose may not open in her own."""
    with open_people(tmp_path, "alice", "rose", "bob", "carol", "dave") as made:
        alice, rose, bob, carol, dave = made
        alice.found().grant(bob, carol, permission=Permission.ADMIN)
        alice.grant(rose, permission=Permission.READ)
        alice.grant(dave)
        for one in (rose, bob, carol):
            one.follow(alice).hear(alice)
        alice.author.start_epoch(alice.repo)
        alice.remove(bob, keeps=Permission.WRITE)
        carol.remove(dave)
        carol.author.preparation.prepare(carol.repo, IngestResult())
        bob.hear(carol)
        bob.remove(rose)
        rose.hear(alice, bob, carol)
        assert rose.epoch.epoch_id == carol.epoch.epoch_id
        written, _ = rose.author.write(rose.root, Remove(rose.user, None, ()))
        alice.hear(rose, bob, carol)
        assert written.commit_id in alice.heads


def test_while_an_epoch_is_due_they_are_merged_where_nothing_is_opened(tmp_path: Path) -> None:
    # Alice excludes dave while bob excludes erin: whoever is in one of the two epochs must not be given the other.
    with open_people(tmp_path, "alice", "rose", "bob", "carol", "dave", "erin") as made:
        alice, rose, bob, carol, dave, erin = made
        alice.found().grant(rose, permission=Permission.READ)
        alice.grant(bob, permission=Permission.ADMIN)
        alice.grant(carol, dave, erin)
        rose.follow(alice).hear(alice)
        for one in (bob, carol):
            one.follow(alice).hear(alice)
        ends = []
        for one, other in ((alice, dave), (bob, erin)):
            one.remove(other)
            ends.append(write_until(one, is_last=False))
        carol.hear(alice, bob)
        flood(rose, carol, 2 * ACK_COUNT_MAX, above=max(ends))
        check_told(carol, alice)
        kinds = [type(one.body) for one in written_by(carol, carol)]
        assert kinds.index(EpochInit) == 2, "two merges, then the epoch"
        assert EpochOpen not in kinds
        started = carol.epochs[-1].start
        assert started is not None
        assert sorted(started.members) == sorted(one.user for one in (alice, bob, carol))


def test_an_init_that_cannot_name_all_heads_names_what_makes_it_due(people: list[Person]) -> None:
    # The leaves are older than bob's membership, so bob can merge none of them before the epoch.
    alice, rose, bob, carol = people
    alice.grant(bob)
    alice.author.write(alice.root, Post("renewed"))
    alice.author.start_epoch(alice.repo)
    bob.follow(alice).hear(alice)
    head = write_until(bob)
    flood(rose, bob, 2 * ACK_COUNT_MAX, below=head)
    check_told(bob, alice)
    mine = written_by(bob, bob)
    inits = [one for one in mine if isinstance(one.body, EpochInit)]
    assert len(inits) == 1
    assert not any(isinstance(one.body, EpochOpen) for one in mine if one.epoch != inits[0].started_epoch)
    assert rose.user not in inits[0].start.members  # type: ignore[union-attr]  # it is an init
    carol.follow(bob).hear(alice, bob)
    assert bob.heads[0] in carol.heads


def test_hand_overs_wait_where_others_wrote_more_heads_than_they_can_name(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    # They came after all was merged. What is opened in an older epoch is open to all who hold that.
    alice, rose, _, carol = people
    admit_without_rose(people)
    alice.act(0.0)
    alice.grant(carol)
    before, prepare = len(alice.hands), alice.author.preparation.prepare

    def prepare_and_hear(repo: Repo, stored: IngestResult) -> None:
        prepare(repo, stored)
        flood(rose, alice, 2 * ACK_COUNT_MAX)

    with monkeypatch.context() as patch:
        patch.setattr(alice.author.preparation, "prepare", prepare_and_hear)
        assert alice.act(0.0) == HAND_SECONDS
        assert len(alice.hands) == before
    alice.act(0.0)
    carol.follow(alice).hear(alice)
    assert carol.user in {item.user for _, body in alice.hands[before:] for item in body.boxes}
    opened = [one for one in written_by(alice, alice) if isinstance(one.body, EpochOpen)]
    assert {one.epoch for one in opened} <= {alice.epoch.epoch_id}


_FIRST = as_commit_id(b"\x40" * 32)
"""An id before which a quarter of all ids stands."""


def _say_beside(
    carol: Person, target: Person, number: int, below: CommitId | None = None, above: CommitId | None = None
) -> None:
    """Have so many posts in the root branch come to somebody, beside one another, with ids below or above others."""
    found: list[bytes] = []
    (head,), operations = carol.heads, carol.replica.membership(carol.repo.repo_id).operations
    rank = 1 + operations.place(operations[head])[0]
    for text in count():
        commit_id, encoded = carol.says(Post(str(text)), head, rank=rank)
        if (below is None or commit_id < below) and (above is None or commit_id > above):
            found.append(encoded)
        if len(found) == number:
            break
    target.receive(*found, topic=carol.epoch.topic)


@pytest.fixture
def writers(people: list[Person]) -> tuple[Person, Person, Branch]:
    """Alice, carol who may write, and the branch in which alice writes."""
    alice, _, _, carol = people
    alice.grant(carol)
    carol.follow(alice).hear(alice)
    return alice, carol, next(one for one in alice.replica.branches.values() if one.name == "main")


@pytest.mark.parametrize("meanwhile", ["prepare", "_open_closed"])
def test_a_write_is_prepared_again_where_more_heads_came_after_its_preparation(
    writers: tuple[Person, Person, Branch], monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """The place of what alice wrote before names a head that has no room in a place beside those that came since."""
    alice, carol, branch = writers
    _say_beside(carol, alice, 1, below=_FIRST)
    alice.author.write(branch, Post("before"))
    _say_beside(carol, alice, 1, above=_FIRST)  # so that there is something to prepare
    step, floods = getattr(alice.author.preparation, meanwhile), [2 * ACK_COUNT_MAX]

    def step_and_hear(repo: Repo, stored: IngestResult) -> None:
        step(repo, stored)
        if floods:
            _say_beside(carol, alice, floods.pop(), above=_FIRST)

    monkeypatch.setattr(alice.author.preparation, meanwhile, step_and_hear)
    alice.author.write(branch, Post("meanwhile"))
    assert len(alice.heads) <= ACK_COUNT_MAX
    assert not floods


def test_after_a_merge_a_place_is_compared_with_the_one_before_in_one_step(
    writers: tuple[Person, Person, Branch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the heads that the place before names was looked for below each head of the new one."""
    alice, carol, branch = writers
    _say_beside(carol, alice, ACK_COUNT_MAX - 8, above=_FIRST)
    alice.author.write(branch, Post("before"))
    _say_beside(carol, alice, ACK_COUNT_MAX - 8, below=_FIRST)
    compared, precedes = list[CommitId](), Tangle.precedes

    def count_compared(tangle: Tangle, earlier: CommitId, later: CommitId) -> bool:
        compared.append(earlier)
        return precedes(tangle, earlier, later)

    monkeypatch.setattr(Tangle, "precedes", count_compared)
    alice.author.write(branch, Post("after"))
    assert len(alice.heads) < ACK_COUNT_MAX
    assert len(compared) < 64


def test_an_epoch_is_started_beside_more_heads_than_an_init_can_name_that_came_after_a_merge(
    writers: tuple[Person, Person, Branch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of those that are first by their ids has the epoch in use in its past."""
    alice, carol, _ = writers
    alice.author.start_epoch(alice.repo)
    head, merge = write_until(alice), alice.author.preparation._merge

    def merge_and_hear(repo: Repo, stored: IngestResult) -> None:
        merge(repo, stored)
        _say_beside(carol, alice, 2 * ACK_COUNT_MAX, below=head)

    monkeypatch.setattr(alice.author.preparation, "_merge", merge_and_hear)
    before = len(alice.epochs)
    alice.author.start_epoch(alice.repo)
    assert len(alice.epochs) == before + 1
    assert alice.epochs[-1].started_epoch == alice.epoch.epoch_id
