"""Epoch rules: what inits, openings and hand-overs must say, what opens what, who may and who surely does hold an epoch.

Keys and boxes are real; commits are neither encrypted nor signed.
"""

from collections.abc import Callable
from itertools import permutations

import pytest
from msgspec.structs import replace as changed

from protocol.crypto.epoch_boxes import Sealer
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import BlockKey, EpochKey, InvitationSeed, WritersSecret
from protocol.crypto.signing import key_pair, public_key
from protocol.formats.block import Reference
from protocol.formats.body import (
    Body,
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    Permission,
    RecoveryFriends,
    Remove,
    Revoke,
)
from protocol.formats.content import Post
from protocol.formats.epochs import (
    NONCE_SIZE,
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    Prekey,
    StartParts,
    seal_keys,
    seal_topic,
)
from protocol.formats.proofs import prove_invitation
from protocol.ids import AgreementKey, CommitId, EpochId, Mark, UserId
from tests.support.ids import as_object_id
from tests.support.memberships import KEY, REPO, USERS, Step, commit_id, make_commit, make_init
from tests.support.restored import Saver
from verifier.epochs import Epochs, box_holders, describe_epoch, epoch_reason, find_followed, preferred_epoch
from verifier.membership import Membership
from verifier.operations import Operation, Operations
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution

SEED = InvitationSeed(b"i" * 32)
SOMETHING = Reference(as_object_id(b"s" * 32), BlockKey(b"k" * 32))
Change = Callable[[EpochInit, StartParts], tuple[EpochInit, StartParts]]


def key_of(number: int) -> EpochKey:
    """Return the key of the epoch that a commit starts."""
    return KEY if number == 0 else EpochKey(number.to_bytes(2, "big") * 16)


def epoch(number: int) -> EpochId:
    """Return the epoch that a commit starts."""
    return EpochId(commit_id(number))


def state(key: EpochKey, secret: WritersSecret) -> EpochStatement:
    """Make what an init states."""
    mark = Sealer.of_epoch(key, REPO).mark
    topic = public_key(writers_topic_seed(secret, REPO, mark))
    sealed = seal_topic(key, REPO, mark, topic, bytes(NONCE_SIZE))
    return EpochStatement(mark, Sealer.of_writers(secret, REPO).mark, sealed)


class History:
    """A repo that ann founded; what is done follows the last commit, unless others are named. Numbers name commits."""

    def __init__(self) -> None:
        self.membership = Membership(REPO)
        self.count = 0
        self.steps: list[tuple[int, str, Body, tuple[int, ...], int, StartParts | None]] = []
        self.do("ann", make_init())

    @property
    def epochs(self) -> Epochs:
        return self.membership.epochs

    @property
    def now(self) -> Resolution:
        return self.membership.now()

    def at(self, *numbers: int) -> Resolution:
        return self.membership.at(tuple(sorted(map(commit_id, numbers))))

    def do(
        self,
        author: str,
        body: Body,
        *after: int,
        into: int = 0,
        parts: StartParts | None = None,
        by_writer: bool = False,
    ) -> int:
        """Add a commit, published `into` an epoch; gives its number. Raises CommitRefused."""
        number = self.count
        acks = after or ((number - 1,) if number else ())
        self._judge(number, author, body, acks, into, parts, by_writer=by_writer)
        self.steps.append((number, author, body, acks, into, parts))
        self.count += 1
        return number

    def _judge(
        self,
        number: int,
        author: str,
        body: Body,
        acks: tuple[int, ...],
        into: int,
        parts: StartParts | None,
        *,
        by_writer: bool = False,
        checks_boxes: bool = True,
    ) -> None:
        commit = make_commit(number, author, acks, epoch(into) if acks else None)
        commit = changed(commit, content=changed(commit.content, by_writer=by_writer))
        key = key_of(number)
        if isinstance(body, EpochHand):
            key = next((key_of(one) for one in range(self.count) if epoch(one) == body.epoch), key)
        operation = self.membership.authorise_root_commit(commit, body, key, parts, checks_boxes=checks_boxes)
        self.membership.add(operation, commit.acks)

    def again(self, order: tuple[int, ...]) -> "History":
        """Add the same operations in another order of arrival, causes first."""
        other = History()
        for number in order:
            one, author, body, acks, into, parts = self.steps[number]
            if one:
                other._judge(one, author, body, acks, into, parts, checks_boxes=False)
        return other

    def start(
        self,
        author: str,
        *after: int,
        into: int = 0,
        gives: tuple[int, ...] | None = None,
        change: Change | None = None,
        key: EpochKey | None = None,
    ) -> int:
        """Start an epoch after some commits, which gives the keys of all epochs there or of some."""
        acks = after or (self.count - 1,)
        before = self.at(*acks)
        plan = describe_epoch(before)
        key, secret = key or key_of(self.count), WritersSecret(bytes([self.count]) * 32)
        given = tuple(
            GivenEpoch(one.started_epoch, self.known_key(one))
            for one in self.epochs.started_within(before)
            if gives is None or one.started_epoch in [epoch(number) for number in gives]
        )
        sealer, writers = Sealer.of_epoch(key, REPO), Sealer.of_writers(secret, REPO)
        states = state(key, secret)
        body = EpochInit(states, SOMETHING, SOMETHING, SOMETHING)
        parts = StartParts(
            b"".join(map(sealer.seal, plan.members)),
            b"".join(map(writers.seal, plan.writers)),
            seal_keys(key, REPO, states.mark, given, bytes(NONCE_SIZE)),
        )
        if change is not None:
            body, parts = change(body, parts)
        return self.do(author, body, *after, into=into, parts=parts)

    def known_key(self, started: Operation) -> EpochKey:
        return key_of(next(number for number in range(self.count) if commit_id(number) == started.commit_id))

    def grant(self, author: str, user: str, held: Permission, *after: int, into: int = 0) -> int:
        return self.do(author, Grant(USERS[user], held), *after, into=into)

    def exclude(
        self, author: str, user: str, *after: int, into: int = 0, keeps: Permission | None = None
    ) -> int:
        return self.do(author, Remove(USERS[user], keeps, ()), *after, into=into)

    def hand(self, author: str, handed: int, *users: str, into: int = 0, after: tuple[int, ...] = ()) -> int:
        body = make_hand(handed, *users)
        return self.do(author, body, *after, into=into)

    def clean(self) -> list[EpochId]:
        return [one.started_epoch for one in self.epochs.find_clean(self.now)]

    def written_in(self) -> EpochId | None:
        found = self.epochs.find_preferred(self.now)
        return None if found is None else found.started_epoch


def make_hand(handed: int, *users: str, by_writers: bool = False) -> EpochHand:
    """Hand an epoch to users, with the writers' secret where they may write."""
    secret = WritersSecret((b"w" if handed == 0 else bytes([handed])) * 32)
    sealer, writers = Sealer.of_epoch(key_of(handed), REPO), Sealer.of_writers(secret, REPO)
    boxes = tuple(
        HandedBox(user, sealer.seal(user), writers.seal(user) if by_writers else None)
        for user in sorted(USERS[name] for name in users)
    )
    return EpochHand(epoch(handed), sealer.mark, writers.mark, boxes)


@pytest.fixture
def history() -> History:
    """Make ann's repo with ben and cat as admins, dan who writes and eve who reads."""
    history = History()
    for name, held in ("ben", "ADMIN"), ("cat", "ADMIN"), ("dan", "WRITE"), ("eve", "READ"):
        history.grant("ann", name, Permission[held])
    return history


def refused(code: str) -> "pytest.RaisesExc[CommitRefused]":
    return pytest.raises(CommitRefused, match=f"^{code}")


# --- M9, E2: inits ---


def test_an_init_has_a_box_for_each_member_and_a_writers_box_for_each_who_may_write(history: History) -> None:
    started = history.start("ben")
    start = history.membership.operations[commit_id(started)].start
    assert start is not None
    assert tuple(start.members) == tuple(sorted(USERS[name] for name in ("ann", "ben", "cat", "dan", "eve")))
    assert tuple(start.writers) == tuple(sorted(USERS[name] for name in ("ann", "ben", "cat", "dan")))
    assert history.clean() == [epoch(started)]
    assert history.written_in() == epoch(started)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda body, parts: (body, changed(parts, boxes=parts.boxes[32:])), "not one box for each"),
        (lambda body, parts: (body, changed(parts, boxes=parts.boxes + bytes(32))), "not one box for each"),
        (lambda body, parts: (body, changed(parts, boxes=parts.boxes[:-1] + b"?")), "a box does not give"),
        (
            lambda body, parts: (body, changed(parts, boxes=parts.boxes[32:] + parts.boxes[:32])),
            "a box does not give",
        ),
        (
            lambda body, parts: (body, changed(parts, writers_boxes=parts.writers_boxes[32:])),
            "not one writers' box",
        ),
        (lambda body, parts: (body, changed(parts, keys=parts.keys[:-1] + b"?")), "not stated under"),
        (
            lambda body, parts: (
                changed(body, states=changed(body.states, writers_topic=bytes(72))),
                parts,
            ),
            "writers' topic is not stated",
        ),
    ],
)
def test_an_init_with_a_wrong_part_is_refused(history: History, change: Change, says: str) -> None:
    with pytest.raises(CommitRefused, match=says):
        history.start("ben", change=change)


def test_of_writers_boxes_the_number_alone_is_looked_at(history: History) -> None:
    history.start(
        "ben",
        change=lambda body, parts: (body, changed(parts, writers_boxes=bytes(len(parts.writers_boxes)))),
    )


def test_an_init_uses_no_key_of_an_epoch_before_it(history: History) -> None:
    with pytest.raises(CommitRefused, match="the key of an earlier epoch"):
        history.start("ben", key=KEY)


def test_an_init_gives_the_key_of_the_epoch_that_it_is_published_in(history: History) -> None:
    history.start("ben")
    with pytest.raises(CommitRefused, match="the epoch that it is published in"):
        history.start("ben", gives=(5,))
    history.start("ben", gives=(0, 5))


def test_an_init_gives_no_wrong_key_and_none_of_an_epoch_beside_it(history: History) -> None:
    beside = history.start("ben", 4)
    with pytest.raises(CommitRefused, match="no such epoch in the commit's past"):
        other = GivenEpoch(epoch(beside), key_of(beside))
        history.start(
            "cat",
            4,
            change=lambda body, parts: (body, give(history, body, GivenEpoch(epoch(0), KEY), other, parts)),
        )
    with pytest.raises(CommitRefused, match="another key than the epoch's"):
        wrong = GivenEpoch(epoch(0), key_of(9))
        history.start("cat", 4, change=lambda body, parts: (body, give(history, body, wrong, None, parts)))


def give(
    history: History, body: EpochInit, one: GivenEpoch, other: GivenEpoch | None, parts: StartParts
) -> StartParts:
    """Return the same parts with these keys."""
    given = (one,) if other is None else (one, other)
    key = key_of(history.count)
    return changed(parts, keys=seal_keys(key, REPO, body.states.mark, given, bytes(NONCE_SIZE)))


def test_who_is_no_admin_starts_an_epoch_only_where_one_is_due(history: History) -> None:
    with pytest.raises(CommitRefused, match="M9"):
        history.start("dan")
    history.exclude("ann", "eve")
    with pytest.raises(CommitRefused, match="M9"):
        history.start("eve")
    started = history.start("dan")
    assert history.written_in() == epoch(started)
    with pytest.raises(CommitRefused, match="M9"):
        history.start("dan", into=started)


# --- M10, M11 ---


def test_what_hands_an_epoch_over_names_its_marks_and_members_in_order_with_right_boxes(
    history: History,
) -> None:
    body = make_hand(0, "dan", "eve")
    wrong_mark = replace_mark(body)
    swapped = changed(body, boxes=tuple(reversed(body.boxes)))
    one, other = body.boxes
    crossed = changed(body, boxes=(changed(one, box=other.box), changed(other, box=one.box)))
    for bad, says in (
        (wrong_mark, "another mark"),
        (swapped, "not in order"),
        (crossed, "a box does not give"),
        (make_hand(0, "fay"), "no member"),
        (make_hand(0, "eve", by_writers=True), "may not write"),
        (changed(body, epoch=epoch(77)), "no such epoch"),
    ):
        with pytest.raises(CommitRefused, match=says):
            history.do("dan", bad)
    with pytest.raises(CommitRefused, match="M10"):
        history.do("eve", body)
    history.do("dan", body)


def replace_mark(body: EpochHand) -> EpochHand:
    return changed(body, mark=Mark(b"m" * 32))


def test_what_opens_an_epoch_gives_its_key_and_has_it_in_its_past(history: History) -> None:
    beside = history.start("ben", 4)
    opened = EpochOpen((GivenEpoch(epoch(beside), key_of(beside)),))
    for author, body, says in (
        ("eve", opened, "M11"),
        ("dan", opened, "no such epoch"),
        ("dan", EpochOpen((GivenEpoch(epoch(0), key_of(3)),)), "another key"),
        ("dan", EpochOpen((GivenEpoch(epoch(0), KEY), GivenEpoch(epoch(0), KEY))), "named twice"),
    ):
        with pytest.raises(CommitRefused, match=says):
            history.do(author, body, 4)
    history.do("dan", opened, beside)


# --- E4: opening ---


def test_an_epoch_opens_what_its_init_gives_and_what_that_opens(history: History) -> None:
    first = history.start("ben")
    second = history.start("ben", into=first, gives=(first,))
    heads = (commit_id(second),)
    assert history.epochs.opens_all(epoch(second), heads)
    assert not history.epochs.opens_all(epoch(first), heads)
    assert history.epochs.opens_all(epoch(first), heads, (epoch(second),))
    assert history.epochs.find_unopened([epoch(first)], heads) == {epoch(second)}


def test_what_is_opened_later_opens_nothing_in_an_earlier_past(history: History) -> None:
    left, right = history.start("ben", 4), history.start("cat", 4)
    merged = history.do("ann", EpochOpen((GivenEpoch(epoch(right), key_of(right)),)), left, right, into=left)
    assert history.epochs.opens_all(epoch(left), (commit_id(merged),))
    assert not history.epochs.opens_all(epoch(left), tuple(sorted(map(commit_id, (left, right)))))
    assert not history.epochs.opens_all(epoch(right), (commit_id(merged),))


def test_who_may_not_open_names_what_the_epoch_opens(history: History) -> None:
    left, right = history.start("ben", 4), history.start("cat", 4)
    post = history.do("dan", Post("on the right"), right, into=right)
    heads = tuple(sorted(map(commit_id, (left, post))))
    assert history.epochs.find_followable(epoch(left), heads) == (commit_id(left),)
    assert history.epochs.find_followable(epoch(right), heads) == (commit_id(post),)
    assert history.epochs.find_followable(epoch(0), heads) == (commit_id(4),)
    assert history.epochs.find_followable(epoch(99), heads) == ()


def test_what_was_written_beside_the_opening_of_its_epoch_is_named_with_it(history: History) -> None:
    # Else a right that was granted there could not be used by who has nothing but it.
    left, right = history.start("ben", 4), history.start("cat", 4)
    opened = history.do("ann", EpochOpen((GivenEpoch(epoch(right), key_of(right)),)), left, right, into=left)
    post = history.do("dan", Post("on the right"), right, into=right)
    third = history.start("ben", 4)
    beside = history.do("dan", Post("in a third"), third, into=third)
    heads = tuple(sorted(map(commit_id, (opened, post))))
    assert history.epochs.find_followable(epoch(left), heads) == heads
    assert history.epochs.find_followable(epoch(right), heads) == (commit_id(post),)
    with_third = tuple(sorted((*heads, commit_id(beside))))
    assert history.epochs.find_followable(epoch(left), with_third) == heads


def test_what_came_beside_the_start_of_an_epoch_is_named_with_it(history: History) -> None:
    # Else a right that was granted meanwhile could not be used in the epoch.
    started, beside = history.start("ben", 4), history.do("dan", Post("beside"), 4)
    heads = tuple(sorted(map(commit_id, (started, beside))))
    assert history.epochs.find_followable(epoch(started), heads) == heads


def test_asking_what_a_chain_opens_costs_one_walk_an_epoch(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[int] = []
    walk = Epochs._walk

    def count(self: Epochs, num: int, here: int, heads: tuple[CommitId, ...]) -> int:
        walks.append(num)
        return walk(self, num, here, heads)

    monkeypatch.setattr(Epochs, "_walk", count)
    counts = []
    for length in (20, 200):
        walks.clear()
        into = history.start("ben")
        for number in range(length):
            last = history.do("dan", Post(f"{number}"), into=into)
            assert history.epochs.opens_all(epoch(into), (commit_id(last),))
        counts.append(len(walks))
    assert counts == [1, 1]


# --- E8: clean and due ---


def test_an_exclusion_makes_an_epoch_due_and_one_is_started_for_who_remains(history: History) -> None:
    history.exclude("ann", "dan")
    assert history.epochs.is_due(history.now)
    assert history.written_in() is None
    started = history.start("ann")
    assert not history.epochs.is_due(history.now)
    assert USERS["dan"] not in box_holders(history.membership.operations[commit_id(started)])


def test_a_demotion_that_leaves_writing_makes_none_due(history: History) -> None:
    history.exclude("ann", "cat", keeps=Permission.WRITE)
    assert not history.epochs.is_due(history.now)
    history.exclude("ann", "cat", keeps=Permission.READ)
    assert history.epochs.is_due(history.now)


def test_who_leaves_makes_one_due_once(history: History) -> None:
    history.exclude("dan", "dan")
    assert history.epochs.is_due(history.now), "dan may hold the epoch"
    history.start("ann")
    history.exclude("ann", "eve", into=6)
    into = history.start("ann", into=6)
    assert history.clean() == [epoch(into)]
    history.exclude("eve", "eve", 4)  # beside it all: who left has no box there
    assert history.clean() == [epoch(into)]


def test_a_revocation_beside_a_join_makes_one_due(history: History) -> None:
    invitation = history.do("ben", Invite(key_pair(SEED)[0], Permission.READ, 9, 1))
    history.do("fay", Join(commit_id(invitation), prove_invitation(SEED, REPO, USERS["fay"])), invitation)
    history.do("ben", Revoke(commit_id(invitation)), invitation)
    assert history.epochs.is_due(history.now)
    started = history.start("ben", 6, 7)
    assert history.clean() == [epoch(started)]


def test_an_epoch_that_a_stranger_may_hold_is_not_clean(history: History) -> None:
    # Ben excludes dan; cat, who does not know it, starts an epoch that has a box for dan.
    history.exclude("ben", "dan", 4)
    beside = history.start("cat", 4)
    assert history.clean() == []
    merged = history.start("ann", 5, beside)
    assert history.clean() == [epoch(merged)]


def test_who_is_given_a_place_in_an_epoch_may_hold_it(history: History) -> None:
    for device, kind in (("tab", "move"), ("pad", "recover")):
        naming = history.do("dan", RecoveryFriends((USERS["eve"],), 1))
        lent = history.do("dan", DeviceGrant(USERS["tab"], Permission.READ)) if kind == "move" else naming
        beside = history.start("ann", naming)
        given = 3 if kind == "move" else naming
        body = Step("eve", kind, device, Permission.READ, (), given, ("eve",)).body()
        history.do("dan" if kind == "move" else "eve", body, lent, beside, into=beside)
        if kind == "move":
            history.grant("ann", "dan", Permission.WRITE, into=beside)  # who may hold it too
        clean, whole = epoch(beside), history.clean()
        history.exclude(
            device, device
        )  # it leaves; that is published in an epoch that does not open the other
        assert (whole, history.clean()) == ([clean], []), kind
        left = history.count - 1
        history.grant("ann", f"later {kind}", Permission.READ, left)
        assert [history.clean(), history.epochs.find_clean(history.at(left))] == [[], []]
        beside = history.start("ann", into=beside)


def test_who_publishes_what_friends_grant_holds_its_epoch_and_the_member_need_not(history: History) -> None:
    history.grant("ann", "fay", Permission.READ)
    joined = history.grant("ann", "gus", Permission.READ)
    started = history.start("ann", joined - 2)
    naming = history.do("fay", RecoveryFriends((USERS["eve"],), 1), joined, started)
    body = Step("gus", "recover", "pad", Permission.READ, (), naming, ("eve",)).body()
    history.do("gus", body, into=started)
    assert not history.epochs.surely_holds(USERS["fay"], epoch(started))
    assert history.epochs.surely_holds(USERS["gus"], epoch(started))
    assert history.clean() == [epoch(started)]
    left = history.exclude("gus", "gus")
    assert history.clean() == []
    history.grant("ann", "hal", Permission.READ)
    assert [history.clean(), history.epochs.find_clean(history.at(left))] == [[], []]


def test_a_move_makes_an_epoch_due_as_a_leave_does(history: History) -> None:
    history.do("dan", DeviceGrant(USERS["tab"], Permission.READ))
    moved = history.do("dan", Move(USERS["tab"], commit_id(3)))
    assert history.clean() == []
    started = history.start("tab", moved)
    assert history.clean() == [epoch(started)]
    operations = history.membership.operations
    assert epoch_reason(operations, operations[commit_id(started)]) == "leave"


def test_an_exclusion_that_counts_again_makes_one_due(history: History) -> None:
    # Ben, junior to cat, excludes dan; cat takes ben's right beside it; ann takes cat's: dan is excluded again.
    first = History()
    for name in ("cat", "ben", "eve"):
        first.grant("ann", name, Permission.ADMIN)
    last = first.grant("ann", "dan", Permission.WRITE)
    out = first.exclude("ben", "dan", last)
    taken = first.exclude("cat", "ben", last, keeps=Permission.WRITE)
    renewed = first.start("eve", out, taken)
    assert first.now.permission(USERS["dan"]) is Permission.WRITE
    assert first.clean() == [epoch(renewed)]
    first.exclude("ann", "cat", last, keeps=Permission.WRITE)
    assert first.now.permission(USERS["dan"]) is None
    assert first.clean() == []


def test_who_may_hold_the_writers_secret_and_may_not_write_makes_one_due(history: History) -> None:
    history.exclude("ann", "dan", keeps=Permission.READ)
    started = history.start("ann")
    assert history.clean() == [epoch(started)]
    history.grant("ann", "dan", Permission.WRITE, into=started)
    history.do("ann", make_hand(started, "dan", by_writers=True), into=started)
    assert history.clean() == [epoch(started)]
    history.exclude("dan", "dan", keeps=Permission.READ, into=started)
    assert history.clean() == []


def test_of_clean_epochs_the_one_for_the_fewest_is_written_in_then_the_smallest_id(history: History) -> None:
    left, right = history.start("ben", 4), history.start("cat", 4)
    assert history.clean() == sorted([epoch(left), epoch(right)])
    assert history.written_in() == min(epoch(left), epoch(right))
    history.exclude("ann", "eve", 4)
    smaller = history.start("ann")
    assert history.clean() == [epoch(smaller)], "the others lack the exclusion"
    started = [history.membership.operations[commit_id(number)] for number in (left, right, smaller)]
    assert preferred_epoch(started).commit_id == commit_id(smaller)


def test_what_an_excluded_admin_started_beside_it_does_not_count(history: History) -> None:
    beside = history.start("ben", 4)
    history.exclude("ann", "ben", 4)
    started = history.start("ann")
    assert [one.started_epoch for one in history.now.epoch_tips()] == [epoch(started)]
    assert not history.now.counts(history.membership.operations[commit_id(beside)])


# --- E10: who surely holds ---


def test_who_surely_holds_an_epoch(history: History) -> None:
    surely = history.epochs.surely_holds
    assert surely(USERS["ann"], epoch(0))
    assert not surely(USERS["dan"], epoch(0)), "a grant alone tells nothing"
    history.do("dan", Post("here"))
    assert surely(USERS["dan"], epoch(0))
    started = history.start("ben")
    assert surely(USERS["dan"], epoch(started)), "a box, in an epoch that dan holds"
    assert not surely(USERS["eve"], epoch(started)), "a box that eve may not find"
    history.do("ann", make_hand(0, "eve"), into=started)
    assert not surely(USERS["eve"], epoch(0)), "handed where eve may not look"


def test_who_is_handed_an_epoch_in_all_of_the_latest_before_it_surely_holds_it(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever link eve has, its epoch is one of these, or opens one.
    monkeypatch.setattr("verifier.epochs.EPOCHS_TOLD_IN_MAX", 2)
    surely = history.epochs.surely_holds
    started = [0]
    for _ in range(3):
        started.append(history.start("ben", into=started[-1]))
    history.do("ann", make_hand(started[3], "eve"), into=started[2])
    history.do("ann", make_hand(started[3], "eve"), into=started[0])
    assert not surely(USERS["eve"], epoch(started[3]))
    history.do("ann", make_hand(started[3], "eve"), into=started[1])
    assert surely(USERS["eve"], epoch(started[3]))
    assert surely(USERS["eve"], epoch(0)), "it is opened"
    last = history.start("ben", into=started[3])
    assert surely(USERS["eve"], epoch(last)), "a box in an epoch that eve holds"


def test_a_box_that_could_not_be_found_counts_once_its_epoch_is_held(history: History) -> None:
    first = history.start("ben")
    second = history.start("ben", into=first)
    surely = history.epochs.surely_holds
    assert not surely(USERS["dan"], epoch(second))
    history.do("dan", Post("in the founding epoch"), 4)
    assert surely(USERS["dan"], epoch(first))
    assert surely(USERS["dan"], epoch(second))
    assert surely(USERS["dan"], epoch(0))
    held = [one.started_epoch for one in history.epochs.find_held(USERS["dan"])]
    assert held == [epoch(second), epoch(first), epoch(0)], "the latest first"


def test_who_surely_holds_the_writers_secret(history: History) -> None:
    surely = history.epochs.surely_writes
    assert surely(USERS["ann"], epoch(0))
    history.do("dan", Post("on the epoch's own topic"))
    assert not surely(USERS["dan"], epoch(0))
    history.do("ann", make_hand(0, "dan", by_writers=True))
    assert surely(USERS["dan"], epoch(0))
    history.do("ben", Post("on the writers' topic"), by_writer=True)
    assert surely(USERS["ben"], epoch(0))
    invitation = history.do("ben", Invite(key_pair(SEED)[0], Permission.WRITE, 9, 1))
    history.do("fay", Join(commit_id(invitation), prove_invitation(SEED, REPO, USERS["fay"])), invitation)
    assert not surely(USERS["fay"], epoch(0)), "its link may have had no secret, or a wrong one"
    started = history.start("ann")
    assert surely(USERS["ben"], epoch(started))
    assert not surely(USERS["cat"], epoch(started)), "cat was never heard of"


# --- what is told, and orders ---


def test_it_is_told_what_an_epoch_follows_and_why_it_was_started(history: History) -> None:
    operations = history.membership.operations
    left, right = history.start("ben", 4), history.start("cat", 4)
    merged = history.start("ann", left, right)
    out = history.exclude("ann", "eve", into=merged)
    last = history.start("ann", out, into=merged)

    def follows(number: int) -> list[CommitId]:
        return [one.commit_id for one in find_followed(operations, operations[commit_id(number)])]

    assert follows(0) == []
    assert follows(merged) == sorted([commit_id(left), commit_id(right)])
    assert follows(last) == [commit_id(merged)]
    reasons = [epoch_reason(operations, operations[commit_id(number)]) for number in (0, left, merged, last)]
    assert reasons == ["founding", "renewal", "merge", "removal"]


@pytest.mark.slow
def test_no_order_of_arrival_gives_another_result() -> None:
    # Five operations side by side after the founding, in all orders: two epochs, an exclusion, a merge and a hand-over.
    history = History()
    base = history.grant("ann", "ben", Permission.ADMIN)
    base = history.grant("ann", "dan", Permission.WRITE)
    base = history.grant("ann", "cat", Permission.ADMIN)
    left, right = history.start("ben", base), history.start("cat", base)
    history.exclude("ann", "dan", base)
    history.hand("ann", 0, "cat", after=(base,))
    history.do("dan", Post("by dan"), base)
    history.start("ann", left, right)
    steps = range(base + 1, history.count)
    merged = history.count - 1
    results = set()
    for order in permutations(steps):
        if order.index(merged) < max(order.index(left), order.index(right)):
            continue
        other = history.again((*range(base + 1), *order))
        Saver(other.membership, REPO).check()
        users = [USERS[name] for name in ("ann", "ben", "cat", "dan")]
        results.add(
            (
                tuple(other.clean()),
                other.written_in(),
                tuple(other.epochs.surely_holds(user, epoch(merged)) for user in users),
                tuple(other.epochs.surely_writes(user, epoch(merged)) for user in users),
            )
        )
    assert len(results) == 1


def test_a_user_of_small_order_is_no_member() -> None:
    # A box for such a key would give the epoch's key to everybody.
    history = History()
    with pytest.raises(CommitRefused, match="bad_user"):
        history.do("ann", Grant(UserId(bytes([1]) + bytes(31)), Permission.READ))


@pytest.mark.parametrize("counted", [(Operations, "precedes"), (Epochs, "_is_cut")])
def test_of_many_concurrent_epochs_none_is_compared_with_each_other_or_with_each_removal(
    monkeypatch: pytest.MonkeyPatch, counted: tuple[type, str]
) -> None:
    """Leaves are removals that no epoch has to have in its past."""

    def count_calls(concurrent: int) -> int:
        history = History()
        history.grant("ann", "ben", Permission.READ)
        for _ in range(concurrent):
            history.start("ann", 1)
        for _ in range(concurrent):
            history.exclude("ben", "ben", 1, keeps=None)
        calls, (owner, name) = [0], counted
        call = getattr(owner, name)

        def count(*args: object) -> object:
            calls[0] += 1
            return call(*args)

        monkeypatch.setattr(owner, name, count)
        before = history.at(*range(2, history.count))
        assert len(before.epoch_tips()) == concurrent
        history.epochs.find_clean(before)
        monkeypatch.undo()
        return calls[0]

    few, many = count_calls(6), count_calls(24)
    assert many <= (4 * few + 4 if counted[1] == "precedes" else 0), (few, many)


def test_an_init_goes_once_through_the_prekeys_of_one_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any reader may state any number beside one another: each was compared with each by the next init."""
    precedes, asked = Operations.precedes, [0]

    def count(operations: Operations, earlier: Operation, later: Operation) -> bool:
        asked[0] += 1
        return precedes(operations, earlier, later)

    def count_calls(stated: int) -> int:
        history = History()
        granted = history.grant("ann", "eve", Permission.READ)
        keys = [AgreementKey(bytes([number + 2, 7] * 16)) for number in range(stated)]
        merge = history.do("ann", Post("x"), *[history.do("eve", Prekey(key), granted) for key in keys])
        asked[0] = 0
        history.start("ann", merge)
        return asked[0]

    monkeypatch.setattr(Operations, "precedes", count)
    few, many = count_calls(10), count_calls(40)
    assert many <= 4 * few, (few, many)
