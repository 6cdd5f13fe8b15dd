"""Keys of epochs that others give: taken from commits that wait, believed by their marks, and within bounds (E7)."""

import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from node.authoring.author import Author
from node.authoring.epoch_starts import EpochStarting, make_epoch_hand, make_init
from node.ingest import key_givers
from node.ingest.publication_reading import DecodedCommit
from node.ingest.replica import Replica
from node.membership import epoch_claims, epoch_keys
from node.membership.epoch_keys import KeyTaker
from protocol.crypto.epoch_boxes import BOX_SIZE, BoxOpener, Sealer, own_secret
from protocol.crypto.keys import EpochKey, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Body, BranchRoot, Permission
from protocol.formats.commit import NO_EPOCH
from protocol.formats.epochs import (
    NONCE_SIZE,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    seal_keys,
    seal_topic,
)
from protocol.formats.object import build_object
from protocol.ids import CommitId, EpochId, Mark, RepoId, UserId
from protocol.limits.peers import (
    CLAIM_TURN_SECONDS,
    EPOCHS_CLAIMED_BY_MEMBER_MAX,
    EPOCHS_CLAIMED_BY_OTHERS_MAX,
)
from storage.commits import pending, rejected_givers
from storage.commits.pending import count_pending
from storage.engine.errors import StorageError
from storage.repos.epochs import Epoch
from storage.repos.row_changes import row_changes
from storage.schema.schema import epochs
from tests.support.builders import STORE_KEY
from tests.support.ids import as_commit_id
from tests.unit.node.membership.epoch_people import Person, open_people
from verifier.epoch_commits import epoch_statement

STRANGER, OTHER = UserSeed(b"s" * 32), UserSeed(b"o" * 32)


def _begin(people: list[Person]) -> None:
    """Alice founds a repo, of which bob and carol, who may write, hear."""
    alice, bob, carol = people
    alice.found().grant(bob, carol)
    for one in (bob, carol):
        one.follow(alice).hear(alice)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Person]]:
    with open_people(tmp_path, "alice", "bob", "carol", begin=_begin) as made:
        yield made


def start(person: Person, epoch: Epoch | None = None) -> EpochStarting:
    """Return what would start an epoch after all that somebody knows."""
    replica, repo = person.replica, person.repo
    membership = replica.membership(repo.repo_id)
    return make_init(membership, replica.tables, repo, person.heads, epoch or person.epoch)


def tell(
    target: Person, made: EpochStarting, *acks: CommitId, seed: UserSeed | None = None, by: Person
) -> EpochId:
    """Give somebody an init, which waits for its past where no acks are named; the epoch's id."""
    commit_id, encoded = by.says(made.body, *acks, seed=seed, blocks=made.blocks)
    target.receive(encoded)
    return EpochId(commit_id)


def box_up(
    person: Person, boxes: list[bytes], mark: Mark, key: EpochKey, given: tuple[GivenEpoch, ...] = ()
) -> EpochStarting:
    """Return an init with just these boxes, whatever they hold."""
    repo_id = person.repo.repo_id
    topic = person.epoch.topic
    states = EpochStatement(mark, mark, seal_topic(key, repo_id, mark, topic, bytes(NONCE_SIZE)))
    secret = person.epoch.convergence_secret
    sealed = seal_keys(key, repo_id, mark, given, bytes(NONCE_SIZE))
    objects = [build_object(one, secret) for one in (b"".join(boxes), b"", sealed)]
    blocks = {block.block_id: block for _, made in objects for block in made}
    body = EpochInit(states, *(reference for reference, _ in objects))
    epoch = Epoch(0, person.repo.num, repo_id, NO_EPOCH, key)
    return EpochStarting(epoch, body, tuple(blocks.values()))


def boxed(person: Person, *users: UserId, given: tuple[GivenEpoch, ...] = ()) -> EpochStarting:
    """Return an init with right boxes for these users."""
    key = EpochKey(secrets.token_bytes(32))
    sealer = Sealer.of_epoch(key, person.repo.repo_id)
    return box_up(person, [sealer.seal(user) for user in users], sealer.mark, key, given)


def unknown(number: int) -> GivenEpoch:
    """Return a key that is said to be of an epoch of which nothing is known."""
    return GivenEpoch(EpochId(as_commit_id(number.to_bytes(32, "big"))), EpochKey(secrets.token_bytes(32)))


# --- from commits that wait ---


def test_the_own_box_of_an_init_that_waits_gives_its_key(people: list[Person]) -> None:
    alice, bob, _ = people
    made = start(alice)
    epoch_id = tell(bob, made, by=alice)
    assert bob.take()
    (epoch,) = bob.claims(epoch_id)
    assert (epoch.key, epoch.claimed_by, epoch.writers_topic) == (made.epoch.key, alice.user, None)
    assert made.epoch.topic in bob.replica.by_topic, "what its holders publish is followed"
    assert not bob.holds(epoch_id)
    assert not bob.take(), "nothing more is new"


@pytest.mark.parametrize("is_handed", [True, False])
def test_what_waits_gives_the_key_of_an_init_that_waits(people: list[Person], *, is_handed: bool) -> None:
    # The init has no box for bob.
    alice, bob, carol = people
    made = boxed(alice, alice.user, carol.user)
    epoch_id = tell(bob, made, by=alice)
    assert not bob.take()
    named = made.named(epoch_id)
    body = make_epoch_hand(named, made.body.states, [(bob.user, False)], alice.now)
    if not is_handed:
        body = EpochOpen((GivenEpoch(epoch_id, made.epoch.key),))  # type: ignore[assignment]  # the other kind
    bob.receive(carol.says(body)[1])
    assert bob.take()
    assert [one.key for one in bob.claims(epoch_id)] == [made.epoch.key]


def test_an_opening_that_came_before_the_init_is_not_lost(people: list[Person]) -> None:
    # And what the init gives is found in the same go.
    alice, bob, carol = people
    further = unknown(1)
    made = boxed(alice, alice.user, carol.user, given=(further,))
    commit_id, encoded = alice.says(made.body, blocks=made.blocks)
    bob.receive(carol.says(EpochOpen((GivenEpoch(EpochId(commit_id), made.epoch.key),)))[1])
    assert bob.keys.take(bob.repo)
    bob.receive(encoded)
    assert bob.keys.take(bob.repo)
    assert [one.key for one in bob.claims(further.epoch)] == [further.key]
    assert not bob.keys.take(bob.repo)


def test_a_hand_over_for_others_gives_nothing(people: list[Person]) -> None:
    alice, bob, carol = people
    made = boxed(alice, alice.user)
    epoch_id = tell(bob, made, by=alice)
    bob.receive(
        alice.says(make_epoch_hand(made.named(epoch_id), made.body.states, [(carol.user, True)], alice.now))[
            1
        ]
    )
    assert not bob.take()


def test_what_waits_is_opened_once(people: list[Person], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else changes; but what gave a key is looked at until it gives no more."""
    alice, bob, carol = people
    opened, find = 0, KeyTaker._find_keys

    def look(*arguments: Any) -> Any:  # noqa: ANN401  # as it is
        nonlocal opened
        opened += 1
        return find(*arguments)

    monkeypatch.setattr(KeyTaker, "_find_keys", look)
    bob.receive(carol.says(EpochOpen((unknown(1),)))[1])
    tell(bob, boxed(alice, carol.user), by=alice)
    bob.take()
    before = opened
    alice.grant(carol, permission=Permission.MANAGE)
    bob.hear(alice)
    bob.take()
    assert opened == before == 2


def test_what_one_repo_is_flooded_with_is_read_again_for_no_other(
    people: list[Person], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one over the bound is one that is read again, not all."""
    monkeypatch.setattr(epoch_claims, "REMEMBERED_MAX", 3)
    read: Counter[RepoId] = Counter()
    find = KeyTaker._find_keys

    def look(keys: KeyTaker, known: epoch_claims.Claims, giver: DecodedCommit) -> Iterator[Epoch]:
        read[known.repo.repo_id] += 1
        return find(keys, known, giver)

    monkeypatch.setattr(KeyTaker, "_find_keys", look)
    _, bob, carol = people
    with open_people(tmp_path / "more", "dave") as (dave,):
        repos = [bob.repo, bob.follow_too(dave.found())]

        def flood(by: Person) -> None:
            false = GivenEpoch(by.epoch.epoch_id, EpochKey(secrets.token_bytes(32)))
            bob.receive(by.says(EpochOpen((false,)))[1], topic=by.epoch.topic)

        def count_read() -> list[int]:
            read.clear()
            for one in repos:
                bob.keys.take(one)
            return [read[one.repo_id] for one in repos]

        for _ in range(3):
            flood(carol)
            flood(dave)
        assert count_read() == [3, 3]
        assert count_read() == [0, 0]
        flood(carol)
        assert count_read() == [1, 0]
        assert count_read() == [1, 0]


def test_an_init_is_judged_once_its_key_comes(people: list[Person], tmp_path: Path) -> None:
    # Its past is here; but dave, who follows by a link of the epoch before, is no member, and has no box.
    alice, bob, _ = people
    with open_people(tmp_path / "more", "dave") as (dave,):
        dave.follow(alice).hear(alice)
        alice.author.start_epoch(alice.repo)
        dave.hear(alice)
        epoch_id = alice.epoch.epoch_id
        with dave.replica.database.read() as connection:
            assert count_pending(connection, dave.root.num) == 1
        assert dave.claims(epoch_id) == []
        assert dave.epoch.epoch_id == bob.epoch.epoch_id
        dave.receive(bob.says(EpochOpen((GivenEpoch(epoch_id, alice.epoch.key),)))[1])
        dave.take()
        assert dave.holds(epoch_id)
        assert dave.epoch.epoch_id == epoch_id


def test_what_finds_no_room_gives_its_keys(people: list[Person], monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob, carol = people
    monkeypatch.setattr(pending, "PENDING_COUNT_MAX", 0)
    alice.author.start_epoch(alice.repo)
    given = GivenEpoch(alice.epoch.epoch_id, alice.epoch.key)
    assert bob.receive(carol.says(EpochOpen((given,)))[1]).dropped["pending_full"]
    assert bob.take()
    assert [one.key for one in bob.claims(given.epoch)] == [given.key]


@pytest.mark.parametrize("is_handed", [True, False])
def test_what_is_rejected_gives_its_keys(people: list[Person], *, is_handed: bool) -> None:
    # No order of arrival matters: it might have waited.
    alice, bob, carol = people
    before = bob.heads
    alice.author.start_epoch(alice.repo)
    body: Body = EpochOpen((GivenEpoch(alice.epoch.epoch_id, alice.epoch.key),))
    if is_handed:
        body = make_epoch_hand(alice.epoch, epoch_statement(alice.epochs[-1]), [(bob.user, False)], alice.now)
    operations = bob.replica.membership(bob.repo.repo_id).operations
    rank = 1 + max(operations.place(operations[one])[0] for one in before)
    result = bob.receive(carol.says(body, *before, seed=STRANGER, rank=rank)[1])
    assert [one.code for one in result.rejected] == ["unknown_author"]
    assert result.is_about_repos  # which wakes who takes keys
    assert bob.take()
    assert [one.key for one in bob.claims(alice.epoch.epoch_id)] == [alice.epoch.key]


def restart(person: Person) -> None:
    """Close the store and open it anew: what only memory held is gone."""
    person.replica.close()
    person.replica = Replica(person.replica.database.folder, STORE_KEY)
    person.author = Author(person.replica, person.seed, lambda: next(person.clock))
    person.keys = KeyTaker(person.replica, person.author)


def refuse_one(target: Person, by: Person) -> tuple[CommitId, int]:
    """Give somebody a commit that is rejected; its id, and the rank of what acks it."""
    operations = target.replica.membership(target.repo.repo_id).operations
    rank = 1 + max(operations.place(operations[one])[0] for one in target.heads)
    commit_id, encoded = by.says(BranchRoot(), *target.heads, seed=STRANGER, rank=rank)
    target.receive(encoded)
    return commit_id, rank + 1


def reject(target: Person, by: Person, made: EpochStarting) -> EpochId:
    """Give somebody an init that is rejected at once, whichever keys are held, since what it acks is; the epoch's id."""
    wrong, rank = refuse_one(target, by)
    commit_id, encoded = by.says(made.body, wrong, blocks=made.blocks, rank=rank)
    assert [one.code for one in target.receive(encoded).rejected] == ["rejected_cause"]
    return EpochId(commit_id)


def test_a_rejected_init_gives_its_own_key_and_those_of_others(people: list[Person]) -> None:
    # As it does where it came before what it acks, and waited.
    _, bob, carol = people
    further = unknown(1)
    made = boxed(carol, bob.user, given=(further,))
    epoch_id = reject(bob, carol, made)
    bob.take()
    assert [one.key for one in bob.claims(further.epoch)] == [further.key]
    assert [one.key for one in bob.claims(epoch_id)] == [made.epoch.key]


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_rejected_init_gives_keys_once_its_own_comes(people: list[Person], *, is_restarted: bool) -> None:
    alice, bob, carol = people
    further = unknown(1)
    made = boxed(carol, alice.user, given=(further,))
    epoch_id = reject(bob, carol, made)
    assert not bob.take()
    assert not bob.take(), "it has nothing to say yet, and is not forgotten"
    if is_restarted:
        restart(bob)
    false = EpochOpen((GivenEpoch(epoch_id, EpochKey(secrets.token_bytes(32))),))
    bob.receive(carol.says(false)[1])
    assert not bob.take(), "its mark is known"
    bob.receive(carol.says(EpochOpen((GivenEpoch(epoch_id, made.epoch.key),)))[1])
    bob.take()
    assert [one.key for one in bob.claims(further.epoch)] == [further.key]


@pytest.mark.parametrize("is_rejected", [True, False])
def test_an_init_gives_keys_once_a_link_brings_its_own(people: list[Person], *, is_rejected: bool) -> None:
    # Else who had left waits for ever for the epochs that only this one opens, granted again or not.
    alice, bob, carol = people
    further = unknown(1)
    made = boxed(carol, alice.user, given=(further,))
    epoch_id = reject(bob, carol, made) if is_rejected else tell(bob, made, by=carol)
    assert not bob.take()
    bob.follow_too(carol, made.named(epoch_id))
    assert bob.take()
    assert [one.key for one in bob.claims(further.epoch)] == [further.key]
    assert not bob.take(), "nothing more is new"


@pytest.mark.parametrize("is_taken_first", [True, False])
def test_a_restart_forgets_no_key_that_a_rejected_commit_gives(
    people: list[Person], *, is_taken_first: bool
) -> None:
    """Its author gave a false one first: of each author one is tried."""
    alice, bob, carol = people
    before = bob.heads
    operations = bob.replica.membership(bob.repo.repo_id).operations
    rank = 1 + max(operations.place(operations[one])[0] for one in before)
    made = boxed(alice, alice.user, carol.user)
    commit_id, encoded = alice.says(made.body, blocks=made.blocks)
    epoch_id = EpochId(commit_id)
    for key in (EpochKey(secrets.token_bytes(32)), made.epoch.key):
        body = EpochOpen((GivenEpoch(epoch_id, key),))
        (rejected,) = bob.receive(carol.says(body, *before, seed=STRANGER, rank=rank)[1]).rejected
        assert rejected.code == "unknown_author"
        if is_taken_first:
            bob.take()
    restart(bob)
    bob.take()
    bob.receive(encoded)
    bob.take()
    assert [one.key for one in bob.claims(epoch_id)] == [made.epoch.key]


def test_rejected_commits_that_give_no_more_are_forgotten(people: list[Person]) -> None:
    alice, bob, carol = people
    before = bob.heads
    operations = bob.replica.membership(bob.repo.repo_id).operations
    rank = 1 + max(operations.place(operations[one])[0] for one in before)
    alice.author.start_epoch(alice.repo)
    statement = epoch_statement(alice.epochs[-1])
    for_others = make_epoch_hand(alice.epoch, statement, [(carol.user, False)], alice.now)
    bob.receive(carol.says(for_others, *before, seed=STRANGER, rank=rank)[1])
    assert len(kept_of_rejected(bob)) == 1
    for _ in range(2):
        bob.take()
    assert not kept_of_rejected(bob)


def kept_of_rejected(person: Person) -> list[CommitId]:
    """List the rejected commits that somebody has kept since they give keys."""
    with person.replica.database.read() as connection:
        return rejected_givers.list_rejected_givers(connection, person.root.num)


@pytest.mark.parametrize("is_flooded_first", [True, False])
@pytest.mark.parametrize("authors", [1, 4], ids=["one", "many"])
def test_a_flood_of_rejected_commits_pushes_out_no_members_key(
    people: list[Person], monkeypatch: pytest.MonkeyPatch, authors: int, *, is_flooded_first: bool
) -> None:
    """Nor that of who was excluded, which elsewhere may not count."""
    monkeypatch.setattr(rejected_givers, "REJECTION_COUNT_MAX", 6)
    alice, bob, carol = people
    with open_people(bob.replica.database.folder / "more", "dave") as (dave,):
        alice.grant(dave)
        alice.remove(dave)
        bob.hear(alice)
        wrong, rank = refuse_one(bob, carol)
        given = [unknown(number) for number in range(2)]
        honest = [
            carol.says(EpochOpen((one,)), wrong, seed=seed, rank=rank)[1]
            for one, seed in zip(given, (carol.seed, dave.seed), strict=True)
        ]
    flood = [
        carol.says(EpochOpen((unknown(number),)), wrong, seed=made_up(number % authors), rank=rank)[1]
        for number in range(10, 22)
    ]
    said = [*flood, *honest] if is_flooded_first else [*honest, *flood]
    for one in said:
        assert [item.code for item in bob.receive(one).rejected] == ["rejected_cause"]
    assert len(kept_of_rejected(bob)) == 6
    bob.take()
    assert claimed(bob, given) == given


def test_what_names_an_epoch_that_is_said_to_have_the_topics_key_is_judged_when_it_comes_again(
    people: list[Person],
) -> None:
    """Until then it is dropped, and what follows it waits; then both are rejected, as where the key came first."""
    _, bob, carol = people
    wrong, rank = refuse_one(bob, carol)
    held = bob.epoch
    false = Epoch(0, held.repo_num, held.repo_id, unknown(1).epoch, held.key)
    bad_id, bad = carol.says(BranchRoot(), wrong, epoch=false, rank=rank)
    absent = as_commit_id(b"a" * 32)
    after = carol.says(BranchRoot(), bad_id, absent, rank=rank + 1)[1]
    opening = carol.says(EpochOpen((GivenEpoch(false.epoch_id, false.key),)))[1]
    assert bob.receive(bad, topic=false.topic).dropped == {"other_epoch": 1}
    assert bob.receive(after).waiting == 1
    bob.receive(opening)
    assert bob.take()
    assert [one.key for one in bob.claims(false.epoch_id)] == [held.key]
    codes = [one.code for one in bob.receive(bad, topic=false.topic).rejected]
    assert codes == ["rejected_cause", "rejected_cause"]


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_rejected_commit_of_a_claimed_epoch_gives_its_keys_again_when_that_has_another_turn(
    people: list[Person], monkeypatch: pytest.MonkeyPatch, *, is_restarted: bool
) -> None:
    """While the epoch's key is not tried, its topic is not followed, and nothing that came on it can be read."""
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 2)
    _, bob, carol = people
    wrong, rank = refuse_one(bob, carol)
    first, further = unknown(1), unknown(2)
    bob.receive(carol.says(EpochOpen((first,)), seed=made_up(1))[1])
    bob.take()
    (epoch,) = bob.claims(first.epoch)
    giver = carol.says(EpochOpen((further,)), wrong, seed=made_up(2), epoch=epoch, rank=rank)[1]
    assert [item.code for item in bob.receive(giver, topic=epoch.topic).rejected] == ["rejected_cause"]
    bob.take(1.0)
    assert bob.claims(further.epoch)
    bob.receive(carol.says(EpochOpen((unknown(3),)), seed=made_up(3))[1])
    bob.take(CLAIM_TURN_SECONDS)
    assert not bob.claims(first.epoch), "it had its turn"
    if is_restarted:
        restart(bob)
    tried = []
    for turn in range(2, 9):
        bob.take(turn * CLAIM_TURN_SECONDS)
        tried.append(bool(bob.claims(further.epoch)))
    assert not all(tried), "it had its turn"
    assert any(tried[tried.index(False) :]), "and has another"


@pytest.mark.parametrize("is_rejected", [True, False])
def test_a_key_that_could_not_be_stored_is_taken_later(
    people: list[Person], monkeypatch: pytest.MonkeyPatch, *, is_rejected: bool
) -> None:
    _, bob, carol = people
    made = boxed(carol, bob.user)
    epoch_id = reject(bob, carol, made) if is_rejected else tell(bob, made, by=carol)

    def fail(*_arguments: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(epoch_keys, "add_epoch", fail)
        for _ in range(2):
            with pytest.raises(StorageError):
                bob.keys.take(bob.repo)
    bob.take()
    assert [one.key for one in bob.claims(epoch_id)] == [made.epoch.key]


def test_a_claim_that_left_has_another_turn_after_a_restart(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 2)
    _, bob, carol = people
    given = [unknown(number) for number in range(2)]
    for number, one in enumerate(given):
        bob.receive(carol.says(EpochOpen((one,)), seed=made_up(number))[1])
    bob.take()
    restart(bob)
    bob.take()
    bob.receive(carol.says(EpochOpen((unknown(2),)), seed=made_up(2))[1])
    bob.take(CLAIM_TURN_SECONDS)
    (gone,) = [one for one in given if not bob.claims(one.epoch)]
    tried = []
    for turn in (2, 3):
        bob.take(turn * CLAIM_TURN_SECONDS)
        tried += claimed(bob, [gone])
    assert tried


def test_commits_that_give_keys_are_kept_up_to_a_size(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "PENDING_COUNT_MAX", 0)
    _, bob, carol = people
    given = [unknown(number) for number in range(3)]
    said = [carol.says(EpochOpen((one,)))[1] for one in given]
    monkeypatch.setattr(key_givers, "KEY_GIVERS_SIZE_MAX", len(said[1]) + len(said[2]))
    bob.receive(*said)
    bob.take()
    assert [bool(bob.claims(one.epoch)) for one in given] == [False, True, True]
    assert not bob.replica.givers.find(bob.repo.repo_id) or bob.take() is False


# --- claims ---


def test_a_key_that_does_not_give_the_stated_mark_is_not_taken(people: list[Person]) -> None:
    alice, bob, carol = people
    epoch_id = tell(bob, boxed(alice, alice.user), by=alice)
    bob.receive(carol.says(EpochOpen((GivenEpoch(epoch_id, EpochKey(b"k" * 32)),)))[1])
    assert not bob.take()


def test_of_each_author_one_key_of_an_epoch_is_tried(people: list[Person]) -> None:
    alice, bob, carol = people
    one = unknown(1)
    others = [GivenEpoch(one.epoch, EpochKey(secrets.token_bytes(32))) for _ in range(2)]
    bob.receive(carol.says(EpochOpen((one,)))[1], carol.says(EpochOpen((others[0],)))[1])
    assert bob.take()
    (kept,) = bob.claims(one.epoch)
    assert kept.claimed_by == carol.user
    bob.receive(alice.says(EpochOpen((others[1],)))[1])
    assert bob.take()
    assert {item.claimed_by for item in bob.claims(one.epoch)} == {alice.user, carol.user}


def test_a_right_key_counts_though_its_author_gave_a_false_one_first(people: list[Person]) -> None:
    alice, bob, carol = people
    made = boxed(alice, alice.user, carol.user)
    commit_id, encoded = alice.says(made.body, blocks=made.blocks)
    epoch_id = EpochId(commit_id)
    for key in (EpochKey(secrets.token_bytes(32)), made.epoch.key):
        bob.receive(carol.says(EpochOpen((GivenEpoch(epoch_id, key),)))[1])
        bob.take()
    assert [one.key == made.epoch.key for one in bob.claims(epoch_id)] == [False]
    bob.receive(encoded)  # which shows that it was false
    bob.take()
    assert [one.key for one in bob.claims(epoch_id)] == [made.epoch.key]


def test_a_false_key_shuts_nobody_out(people: list[Person]) -> None:
    """Carol, excluded, gives bob a key of her own for the epoch that her exclusion starts, before that comes."""
    alice, bob, carol = people
    alice.remove(carol)
    alice.author.start_epoch(alice.repo)
    epoch = alice.epoch
    bob.receive(carol.says(EpochOpen((GivenEpoch(epoch.epoch_id, EpochKey(b"k" * 32)),)))[1])
    assert bob.take()
    bob.hear(alice)
    assert (bob.epoch.epoch_id, bob.epoch.key) == (epoch.epoch_id, epoch.key)
    assert bob.epoch.claimed_by is None
    assert len(bob.claims(epoch.epoch_id)) == 1, "what is false leaves"


def test_a_member_claims_so_many_epochs_and_more_as_their_inits_come(people: list[Person]) -> None:
    alice, bob, carol = people
    made = boxed(alice, alice.user)
    commit_id, encoded = alice.says(made.body, blocks=made.blocks)
    given = [
        GivenEpoch(EpochId(commit_id), made.epoch.key),
        *map(unknown, range(EPOCHS_CLAIMED_BY_MEMBER_MAX)),
    ]
    for one in given:
        bob.receive(carol.says(EpochOpen((one,)))[1])
    bob.take()
    taken = [one for one in given if bob.claims(one.epoch)]
    assert len(taken) == EPOCHS_CLAIMED_BY_MEMBER_MAX
    assert given[0] in taken
    bob.receive(encoded)
    bob.take()
    assert all(bob.claims(one.epoch) for one in given), "one of them is no claim any more"


def test_all_who_are_no_members_claim_so_many_together(people: list[Person]) -> None:
    _, bob, carol = people
    given = [unknown(number) for number in range(EPOCHS_CLAIMED_BY_OTHERS_MAX + 1)]
    for number, one in enumerate(given):
        bob.receive(carol.says(EpochOpen((one,)), seed=(STRANGER, OTHER)[number % 2])[1])
    bob.take()
    assert sum(bool(bob.claims(one.epoch)) for one in given) == EPOCHS_CLAIMED_BY_OTHERS_MAX
    member = unknown(1000)
    bob.receive(carol.says(EpochOpen((member,)))[1])
    assert bob.take(), "members have room of their own"


def made_up(number: int) -> UserSeed:
    """Return the seed of an author whom nobody knows."""
    return UserSeed(number.to_bytes(32, "big"))


def claimed(person: Person, given: list[GivenEpoch]) -> list[GivenEpoch]:
    """Return the keys of these that are tried."""
    return [one for one in given if person.claims(one.epoch)]


def test_members_wait_behind_no_others(people: list[Person], monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("EPOCHS_CLAIMED_BY_MEMBER_MAX", "EPOCHS_CLAIMED_BY_OTHERS_MAX", "CLAIMS_LOOKED_AT"):
        monkeypatch.setattr(epoch_claims, bound, 1)
    alice, bob, carol = people
    for number in range(6):
        bob.receive(carol.says(EpochOpen((unknown(number),)), seed=made_up(number))[1])
    bob.take()
    made = boxed(alice, alice.user)
    commit_id, encoded = alice.says(made.body, blocks=made.blocks)
    given = [GivenEpoch(EpochId(commit_id), made.epoch.key), unknown(1000)]
    for one in given:
        bob.receive(carol.says(EpochOpen((one,)))[1])
    bob.take()
    assert claimed(bob, given) == given[:1]
    bob.receive(encoded)
    bob.take()
    assert claimed(bob, given) == given


@pytest.mark.slow  # hundreds of commits, and as many topics
def test_claims_of_who_is_no_member_take_turns(people: list[Person]) -> None:
    """Made-up authors claimed first, as many as there is room for, and more than one turn of them."""
    alice, bob, carol = people
    false = [unknown(number) for number in range(2 * EPOCHS_CLAIMED_BY_OTHERS_MAX)]
    for number, one in enumerate(false):
        bob.receive(carol.says(EpochOpen((one,)), seed=made_up(number))[1])
    alice.author.start_epoch(alice.repo)
    right = GivenEpoch(alice.epoch.epoch_id, alice.epoch.key)
    bob.receive(carol.says(EpochOpen((right,)), seed=STRANGER)[1])
    bob.take()
    tried = [claimed(bob, false)]
    assert len(tried[0]) == EPOCHS_CLAIMED_BY_OTHERS_MAX
    assert not bob.claims(right.epoch)
    assert bob.keys.wait(bob.repo, 1.0) == CLAIM_TURN_SECONDS - 1
    assert not bob.take(CLAIM_TURN_SECONDS - 1)
    for turn in (1, 2):
        bob.take(turn * CLAIM_TURN_SECONDS)
        tried.append(claimed(bob, false))
    assert bob.claims(right.epoch), "its turn has come"
    assert {one.epoch for one in (*tried[0], *tried[1])} == {one.epoch for one in false}
    assert not {one.epoch for one in tried[0]} & {one.epoch for one in tried[1]}
    assert {one.epoch for one in tried[2]} <= {one.epoch for one in tried[0]}, "and these again"
    here = {one.topic for one in bob.replica.topics.values()}
    assert len(here) == 2 + EPOCHS_CLAIMED_BY_OTHERS_MAX, "topics of the others are followed no more"
    bob.hear(alice)
    assert bob.epoch.epoch_id == right.epoch


def test_who_has_had_no_turn_comes_before_who_has(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys were claimed one after the other, so that their turns end one by one, and one author claims many more."""
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 4)
    monkeypatch.setattr(epoch_claims, "CLAIMS_LOOKED_AT", 3)
    _, bob, carol = people
    for number in range(4):
        bob.receive(carol.says(EpochOpen((unknown(number),)), seed=made_up(number))[1])
        bob.take(number * CLAIM_TURN_SECONDS / 4)
    bob.receive(carol.says(EpochOpen(tuple(map(unknown, range(10, 30)))), seed=made_up(10))[1])
    # Each epoch is claimed by their author already: they find no room, whoever's turn it is.
    for number in range(3):
        bob.receive(carol.says(EpochOpen((unknown(number),)), seed=made_up(number))[1])
    right = unknown(1000)
    bob.receive(carol.says(EpochOpen((right,)), seed=STRANGER)[1])
    now, ends = 0.75 * CLAIM_TURN_SECONDS, 0
    bob.take(now)
    while not bob.claims(right.epoch):
        wait = bob.keys.wait(bob.repo, now)
        assert wait is not None
        now, ends = now + wait, ends + 1
        assert ends <= 4, "one before it waits for room, and three may be looked at instead"
        bob.take(now)


def test_turns_that_end_together_are_given_at_once(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look that changes something is a transaction, and the repo's topics are read anew after it."""
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 6)
    _, bob, carol = people
    given = [tuple(map(unknown, range(first, first + 10))) for first in (0, 10, 20)]
    for number, one in enumerate(given):
        bob.receive(carol.says(EpochOpen(one), seed=made_up(number))[1])
        bob.take()
    assert [len(claimed(bob, list(one))) for one in given] == [6, 0, 0]
    bob.keys.take(bob.repo, CLAIM_TURN_SECONDS)
    assert [len(claimed(bob, list(one))) for one in given] == [2, 2, 2], "each has as many as the others"


def test_what_is_remembered_of_floods_is_bounded(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 2)
    monkeypatch.setattr(epoch_claims, "REMEMBERED_MAX", 3)
    _, bob, carol = people
    for number in range(8):
        bob.receive(carol.says(EpochOpen((unknown(number),)), seed=made_up(number))[1])
        bob.take()
    turns = bob.keys._memories[bob.repo.repo_id]
    assert (len(turns.left_out), len(turns.givers), len(turns.began)) == (3, 2, 2)


def test_half_of_the_room_is_for_claims_on_writers_topics(people: list[Person]) -> None:
    _, bob, carol = people
    seed = count(1)

    def claim(number: int, *, by_writer: bool) -> list[GivenEpoch]:
        given = [unknown(next(seed)) for _ in range(number)]
        said = [
            carol.says(EpochOpen((one,)), seed=made_up(next(seed)), by_writer=by_writer)[1] for one in given
        ]
        bob.receive(*said, topic=bob.epoch.writers_topic if by_writer else None)
        return given

    bound = EPOCHS_CLAIMED_BY_OTHERS_MAX
    of_all = claim(bound, by_writer=False)
    bob.take()
    of_writers = claim(bound, by_writer=True)
    bob.take(CLAIM_TURN_SECONDS)
    assert len(claimed(bob, of_writers)) == len(claimed(bob, of_all)) == bound // 2
    claim(bound, by_writer=False)
    bob.take(1.5 * CLAIM_TURN_SECONDS)
    assert len(claimed(bob, of_writers)) == bound // 2


def test_keys_of_epochs_whose_inits_wait_take_turns_too(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_claims, "EPOCHS_AWAITED_MAX", 2)
    _, bob, carol = people
    made = [tell(bob, boxed(carol, bob.user), seed=made_up(number), by=carol) for number in range(3)]
    bob.take()
    assert [bool(bob.claims(one)) for one in made] == [True, True, False]
    bob.take(CLAIM_TURN_SECONDS)
    assert bob.claims(made[2]), "its turn has come"
    assert sum(bool(bob.claims(one)) for one in made) == 2
    members = [tell(bob, boxed(carol, bob.user), by=carol) for _ in range(3)]
    bob.take(CLAIM_TURN_SECONDS)
    assert [bool(bob.claims(one)) for one in members] == [True, True, False], "a member has as much room"


def test_a_key_from_a_box_has_another_turn_after_a_restart(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_claims, "EPOCHS_AWAITED_MAX", 2)
    _, bob, carol = people
    made = [tell(bob, boxed(carol, bob.user), seed=made_up(number), by=carol) for number in range(3)]
    bob.take()
    restart(bob)
    tried = []
    for turn in range(4):
        bob.take(turn * CLAIM_TURN_SECONDS)
        tried.append({one for one in made if bob.claims(one)})
    assert [len(one) for one in tried] == [2, 2, 2, 2]
    assert tried[0] != tried[1] != tried[2] != tried[3], "they take turns"


def test_the_bound_of_claims_holds_after_a_restart(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bob, carol = people
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_MEMBER_MAX", 2)
    bob.receive(carol.says(EpochOpen(tuple(map(unknown, range(3)))))[1])
    bob.take()
    bob.keys = epoch_keys.KeyTaker(bob.replica, bob.author)
    assert not bob.take()
    assert sum(one.claimed_by == carol.user for one in bob.replica.tables.epochs.values()) == 2


@pytest.mark.parametrize("is_trusted", [True, False])
def test_what_a_trusted_init_gives_is_taken_without_a_bound(
    people: list[Person], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_trusted: bool
) -> None:
    """Dave follows by a link of the last epoch, or has its key from the word of somebody; he has heard nothing else."""
    alice, *_ = people
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_MEMBER_MAX", 2)
    monkeypatch.setattr(epoch_claims, "EPOCHS_CLAIMED_BY_OTHERS_MAX", 2)
    for _ in range(5):
        alice.author.start_epoch(alice.repo)
    last = alice.epoch
    with open_people(tmp_path / "more", "dave") as (dave,):
        dave.follow(alice, with_secret=False)
        if not is_trusted:
            with dave.replica.change() as change:
                change.connection.execute(update(epochs).values(claimed_by=alice.user))
                row_changes(change.connection).repos.add(dave.repo.num)
        dave.hear_on(alice, last.topic)
        dave.keys.take(dave.repo)
        here = {one.epoch_id for one in dave.replica.tables.epochs.values()}
        assert len(here) == (6 if is_trusted else 1 + 2)


# --- boxes ---


def test_the_own_box_is_found_where_nothing_of_the_members_is_known(
    people: list[Person], tmp_path: Path
) -> None:
    alice, *_ = people
    with open_people(tmp_path / "more", "dave") as (dave,):
        dave.follow(alice)
        others = [key_pair(UserSeed(bytes([number]) * 32))[0] for number in range(30)]
        made = boxed(alice, *sorted([dave.user, *others]))
        epoch_id = tell(dave, made, by=alice)
        assert dave.take()
        assert [one.key for one in dave.claims(epoch_id)] == [made.epoch.key]


def test_where_the_members_are_known_one_box_is_tried(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, _ = people
    tried = 0

    class Counted(BoxOpener):
        def open(self, box: bytes) -> bytes | None:
            nonlocal tried
            tried += 1
            return super().open(box)

    monkeypatch.setattr(
        bob.author, "open_boxes", lambda mark, _: [Counted(bob.user, own_secret(key_pair(bob.seed)[1]), mark)]
    )
    tell(bob, start(alice), by=alice)
    assert bob.take()
    assert tried == 1


def test_boxes_of_one_author_are_tried_in_vain_so_often(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = people
    monkeypatch.setattr(epoch_keys, "BOXES_TRIED_MAX", 5)
    garbage = [secrets.token_bytes(BOX_SIZE) for _ in range(6)]
    mark = Sealer.of_epoch(EpochKey(b"k" * 32), alice.repo.repo_id).mark
    epoch_id = tell(bob, box_up(carol, garbage, mark, EpochKey(b"k" * 32)), by=carol)
    assert not bob.take()
    assert not bob.claims(epoch_id)
    assert bob.keys._boxes_tried == {carol.user: 5}
    hidden = box_up(
        carol,
        [*garbage, Sealer.of_epoch(EpochKey(b"r" * 32), alice.repo.repo_id).seal(bob.user)],
        mark,
        EpochKey(b"k" * 32),
    )
    hidden_id = tell(bob, hidden, by=carol)
    assert not bob.take(), "no more are tried than the expected one"
    assert not bob.claims(hidden_id)
    right = tell(bob, boxed(carol, bob.user), by=carol)
    assert bob.take(), "which costs nobody anything"
    assert bob.claims(right)


def test_the_last_box_within_the_bound_is_tried(
    people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bob, carol = people
    monkeypatch.setattr(epoch_keys, "BOXES_TRIED_MAX", 3)
    made = boxed(carol, key_pair(STRANGER)[0], key_pair(OTHER)[0], bob.user)
    tell(bob, made, by=carol)
    assert bob.take()


def test_a_mark_that_is_no_key_opens_nothing(people: list[Person]) -> None:
    _, bob, carol = people
    tell(bob, box_up(carol, [bytes(BOX_SIZE)] * 3, Mark(bytes(32)), EpochKey(b"k" * 32)), by=carol)
    assert not bob.take()


# --- writers' secrets ---


def test_the_writers_secret_comes_with_an_init_that_waited(people: list[Person]) -> None:
    alice, bob, _ = people
    alice.author.start_epoch(alice.repo)
    bob.hear(alice)
    assert bob.epoch.epoch_id == alice.epoch.epoch_id
    assert bob.epoch.writers_secret == alice.epoch.writers_secret is not None
    assert bob.epoch.writers_seed is not None


def test_a_reader_gets_the_key_alone_until_the_writers_secret_is_handed_over(people: list[Person]) -> None:
    alice, bob, _ = people
    alice.remove(bob, keeps=Permission.READ)
    alice.author.start_epoch(alice.repo)
    bob.hear(alice)
    assert bob.epoch.epoch_id == alice.epoch.epoch_id
    assert bob.epoch.writers_secret is None
    alice.grant(bob)
    states = epoch_statement(alice.epochs[-1])
    alice.author.write(alice.root, make_epoch_hand(alice.epoch, states, [(bob.user, True)], alice.now))
    bob.hear(alice)
    assert bob.epoch.writers_secret == alice.epoch.writers_secret


def test_a_false_writers_box_is_passed_over_and_a_right_one_taken(people: list[Person]) -> None:
    alice, bob, _ = people
    alice.remove(bob, keeps=Permission.READ)
    alice.author.start_epoch(alice.repo)
    alice.grant(bob)
    states = epoch_statement(alice.epochs[-1])
    right = make_epoch_hand(alice.epoch, states, [(bob.user, True)], alice.now)
    (box,) = right.boxes
    false = replace(right, boxes=(replace(box, writers_box=bytes(BOX_SIZE)),))
    alice.author.write(alice.root, false)
    bob.hear(alice)
    assert bob.epoch.writers_secret is None
    alice.author.write(alice.root, right)
    bob.hear(alice)
    assert bob.epoch.writers_secret == alice.epoch.writers_secret
