"""Prekeys (M16): a stolen copy of a node opens nothing that is written after a fresh key of its user and the next epoch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from node.authoring.refusals import RefusedByRules
from node.ingest.ingest_result import IngestResult
from node.membership.epoch_duties import ADMIN_STEP_SECONDS
from node.membership.prekeys import renewal_ms
from protocol.crypto.epoch_boxes import prekey_of
from protocol.crypto.keys import AgreementSecret
from protocol.formats.body import Permission
from protocol.formats.content import Post
from protocol.formats.epochs import Prekey
from protocol.ids import AgreementKey, EpochId
from protocol.limits.formats import PREKEYS_UNUSED_MAX
from storage.repos.prekeys import load_prekeys
from tests.support.builders import NOW_MS
from tests.support.stores import KeptFolder
from tests.unit.node.membership.epoch_people import Person, open_people

pytestmark = pytest.mark.slow  # several stores each


def _begin(people: list[Person]) -> None:
    """Alice owns a repo, Bob writes there, Carol is an admin, and Dave reads."""
    alice, bob, carol, dave = people
    alice.found()
    for one in (bob, carol, dave):
        one.follow(alice)
    alice.grant(bob)
    alice.grant(carol, permission=Permission.ADMIN)
    alice.grant(dave, permission=Permission.READ)
    alice.author.start_epoch(alice.repo)
    for one in (bob, carol, dave):
        one.hear(alice)
        assert one.epoch == alice.epoch or one.epoch.epoch_id == alice.epoch.epoch_id


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Person]]:
    with open_people(tmp_path, "alice", "bob", "carol", "dave", begin=_begin) as people:
        yield people


@contextmanager
def copy_of(person: Person, name: str) -> Iterator[Person]:
    """Open a copy of a person's node as it is now: keys, store and all."""
    folder = person.replica.database.folder
    copy = Person(folder.parent / f"copy of {name}", name, KeptFolder(folder))
    try:
        yield copy
    finally:
        copy.replica.close()


def refresh(person: Person) -> AgreementKey:
    """State a fresh prekey; return it."""
    person.prekeys.state(person.repo, IngestResult())
    found = person.now.prekey_of(person.user)
    assert found is not None
    return found


def renew(person: Person, *others: Person) -> EpochId:
    """Start an epoch, which others hear of."""
    person.author.start_epoch(person.repo)
    tell(person, *others)
    return person.epoch.epoch_id


def tell(person: Person, *others: Person) -> None:
    """Have others hear a person."""
    for one in others:
        one.hear(person)


def kept(person: Person) -> set[AgreementKey]:
    """Return the prekeys whose private halves a node has."""
    with person.replica.database.read() as connection:
        return set(load_prekeys(connection, person.repo.num))


def set_clock(person: Person, now: int) -> None:
    """Have a person's clock stand at a time, in unix milliseconds."""
    person.author.writer.clock_ms = lambda: now


def test_a_copy_of_a_node_reads_on_until_a_fresh_key_and_the_next_epoch(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    with copy_of(bob, "bob") as thief:
        opened = renew(alice, bob, carol, dave)
        thief.hear(alice)
        assert thief.holds(opened), "renewing alone does not help"
        refresh(bob)
        tell(bob, alice, carol, dave)
        thief.hear(bob)
        assert thief.now.prekey_of(bob.user) is not None, "the copy sees what is stated"
        closed = [renew(alice, bob, carol, dave)]
        for one in (alice, bob, carol):
            one.author.write(one.root, Post("for members"))
            settle(alice, bob, carol, dave)
        closed.append(renew(carol, alice, bob, dave))
        closed.append(renew(alice, bob, carol, dave))
        thief.hear(alice, bob, carol, dave)
        for epoch in closed:
            assert all(one.holds(epoch) for one in (alice, bob, carol, dave))
            assert not thief.holds(epoch)
            assert not thief.claims(epoch)
        assert len(thief.heads) == 1
        assert len(thief.replica.membership(thief.repo.repo_id).operations) < len(
            alice.replica.membership(alice.repo.repo_id).operations
        )


def settle(*people: Person) -> None:
    """Have all hear all, twice."""
    for _ in range(2):
        for one in people:
            one.hear(*(other for other in people if other is not one))


@pytest.mark.parametrize("place", [0, 2, 3])
def test_it_heals_owners_admins_and_readers(people: list[Person], place: int) -> None:
    victim = people[place]
    with copy_of(victim, ("alice", "bob", "carol", "dave")[place]) as thief:
        refresh(victim)
        admin = people[2] if place == 0 else people[0]
        tell(victim, *(one for one in people if one is not victim))
        epoch = renew(admin, *(one for one in people if one is not admin))
        thief.hear(*people)
        assert all(one.holds(epoch) for one in people)
        assert not thief.holds(epoch)


def test_an_epoch_beside_that_knows_less_is_left_for_one_that_knows_the_fresh_key(
    people: list[Person],
) -> None:
    alice, bob, carol, dave = people
    with copy_of(bob, "bob") as thief:
        refresh(bob)
        tell(bob, alice)
        knowing = renew(alice, bob)
        beside = renew(carol, dave)
        thief.hear(carol)
        assert thief.holds(beside), "whoever does not know of the key seals to the old one"
        settle(alice, bob, carol, dave)
        for one in (alice, bob, carol, dave):
            one.act(0.0)
        settle(alice, bob, carol, dave)
        assert {one.epoch.epoch_id for one in people} == {knowing}
        carol.author.write(carol.root, Post("in the epoch that knows it"))
        assert carol.epoch.epoch_id == knowing
        settle(alice, bob, carol, dave)
        assert len({one.heads for one in people}) == 1
        thief.hear(*people)
        assert not thief.holds(knowing)


def test_a_new_epoch_is_due_where_each_of_two_knows_a_key_that_the_other_does_not(
    people: list[Person],
) -> None:
    alice, bob, carol, dave = people
    refresh(bob)
    refresh(dave)
    tell(bob, alice)
    tell(dave, carol)
    renew(alice)
    renew(carol)
    settle(alice, bob, carol, dave)
    operations = bob.replica.membership(bob.repo.repo_id)
    assert operations.epochs.is_due(bob.now)
    bob.author.write(bob.root, Post("who writes starts it"))
    settle(alice, bob, carol, dave)
    assert len({one.epoch.epoch_id for one in people}) == 1
    assert all(one.holds(bob.epoch.epoch_id) for one in people)


def test_a_private_half_is_kept_until_an_epoch_in_use_makes_it_needless(people: list[Person]) -> None:
    alice, bob, *_ = people
    first, second = refresh(bob), refresh(bob)
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert kept(bob) == {first, second}, "an init may still be made for the first"
    tell(bob, alice)
    renew(alice, bob)
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert kept(bob) == {second}
    third = refresh(bob)
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert kept(bob) == {second, third}


def test_a_prekey_that_was_sealed_to_is_replaced_after_a_week(people: list[Person]) -> None:
    alice, bob, *_ = people
    first = refresh(bob)
    stated_at = bob.now.prekeys_of(bob.user)[-1].timestamp
    set_clock(bob, stated_at + renewal_ms(4))
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert bob.now.prekey_of(bob.user) == first, "no epoch was sealed to it"
    tell(bob, alice)
    renew(alice, bob)
    set_clock(bob, stated_at + renewal_ms(4) - 1)
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert bob.now.prekey_of(bob.user) == first
    set_clock(bob, stated_at + renewal_ms(4))
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert bob.now.prekey_of(bob.user) not in (None, first)
    assert renewal_ms(100) == 7 * 24 * 60 * 60 * 1000
    assert renewal_ms(101) == 30 * 24 * 60 * 60 * 1000


def test_who_has_stated_none_states_none_by_itself(people: list[Person]) -> None:
    _, bob, *_ = people
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert not bob.now.prekeys_of(bob.user)


def test_an_admin_starts_an_epoch_for_a_fresh_key_after_a_week(people: list[Person]) -> None:
    alice, bob, carol, _ = people
    before = alice.epoch.epoch_id
    started = next(one for one in alice.epochs if one.started_epoch == before)
    refresh(bob)
    tell(bob, alice)
    set_clock(alice, started.timestamp + renewal_ms(4) - 2_000)
    assert alice.act(0.0) == 2.0
    set_clock(alice, started.timestamp + renewal_ms(4))
    places = 1 + (carol.user < alice.user)
    assert alice.act(10.0) == places * ADMIN_STEP_SECONDS
    assert alice.epoch.epoch_id == before
    alice.act(10.0 + places * ADMIN_STEP_SECONDS)
    assert alice.epoch.epoch_id != before
    bob.hear(alice)
    assert bob.holds(alice.epoch.epoch_id)


def test_an_old_epoch_is_left_alone_while_it_knows_all_keys(people: list[Person]) -> None:
    alice, bob, *_ = people
    before = alice.epoch.epoch_id
    set_clock(alice, NOW_MS + 10 * renewal_ms(4))
    assert alice.act(0.0) is None
    refresh(bob)
    alice.hear(bob)
    alice.remove(bob)
    alice.author.start_epoch(alice.repo)
    after = alice.epoch.epoch_id
    assert alice.act(100.0) is None
    assert alice.epoch.epoch_id == after != before


def test_a_refused_statement_leaves_no_private_half(people: list[Person]) -> None:
    _, bob, *_ = people
    for _ in range(PREKEYS_UNUSED_MAX):
        refresh(bob)
    before = kept(bob)
    with pytest.raises(RefusedByRules) as caught:
        refresh(bob)
    assert caught.value.verdict == "bad_prekey"
    assert kept(bob) == before
    with pytest.raises(RefusedByRules) as caught:
        bob.author.write(bob.root, Prekey(AgreementKey(bytes(32))))
    assert caught.value.verdict == "bad_prekey"


def test_a_node_that_lost_its_private_halves_states_another(people: list[Person]) -> None:
    alice, bob, *_ = people
    with copy_of(bob, "bob") as restored:
        lost = refresh(bob)
        tell(bob, alice)
        renewed = renew(alice)
        restored.hear(alice)
        assert not restored.holds(renewed)
        restored.replica.own_feeds.uncertain = frozenset()  # a peer has returned what was written since
        given = replace(alice.epoch, num=0, repo_num=restored.repo.num, writers_topic=None)  # by a link
        restored.keys.keep(restored.repo, [given])
        restored.hear(alice)
        assert restored.now.prekey_of(bob.user) == lost
        restored.prekeys.keep_up(restored.repo, IngestResult())
        assert restored.now.prekey_of(bob.user) in kept(restored)
        tell(restored, alice)
        later = renew(alice, restored)
        assert restored.holds(later)


def test_a_key_of_another_is_no_use_to_who_states_it(people: list[Person]) -> None:
    """A box names its user: who states another's key as its own loses its box, and gains nothing."""
    alice, bob, _, dave = people
    theirs = refresh(bob)
    dave.hear(bob)
    dave.author.write(dave.root, Prekey(theirs))
    tell(dave, alice, bob)
    epoch = renew(alice, bob, dave)
    assert bob.holds(epoch)
    assert not dave.holds(epoch)


def test_a_prekey_of_who_is_excluded_gets_no_box(people: list[Person]) -> None:
    alice, bob, carol, _ = people
    secret = AgreementSecret(b"p" * 32)
    bob.author.write(bob.root, Prekey(prekey_of(secret)))
    alice.remove(bob)
    renew(alice, carol)
    tell(bob, alice, carol)
    epoch = renew(alice, carol)
    assert carol.holds(epoch)
    bob.hear(alice, carol)
    assert not bob.holds(epoch)


def test_who_forgot_the_prekey_of_an_epoch_beside_is_handed_what_follows_it(people: list[Person]) -> None:
    alice, bob, carol, dave = people
    refresh(bob)
    tell(bob, alice)
    renew(alice, bob, carol, dave)
    refresh(bob)
    tell(bob, alice)
    renew(alice, bob)
    bob.prekeys.keep_up(bob.repo, IngestResult())
    assert len(kept(bob)) == 1, "the first is gone, though carol still seals to it"
    carol.remove(dave)
    beside = renew(carol)
    carol.hear(bob)
    after = renew(carol)
    bob.hear(carol, alice)
    assert not bob.holds(beside)
    assert not bob.holds(after), "it is told on topics that bob cannot follow"
    epochs = carol.replica.membership(carol.repo.repo_id).epochs
    assert not epochs.surely_holds(bob.user, after)
    for seconds in range(0, 600, 60):
        for one in (carol, alice, bob):
            one.act(float(seconds))
            settle(alice, bob, carol)
    assert len({one.heads for one in (alice, bob, carol)}) == 1
    assert all(one.holds(beside) and one.holds(after) for one in (alice, bob, carol))
    carol.author.write(carol.root, Post("for members"))
    settle(alice, bob, carol)
    assert bob.heads == carol.heads
