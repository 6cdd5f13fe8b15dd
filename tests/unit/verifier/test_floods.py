"""Floods of statements in the root branch: they cost others no more, in memory and in work."""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import count
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from protocol.crypto.keys import BlockKey, UserSeed
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.formats.block import Reference
from protocol.formats.body import (
    Answer,
    Body,
    BranchAdd,
    BranchLink,
    CouncilInit,
    DeviceGrant,
    ErasedBody,
    FeedEnd,
    FriendSignature,
    Grant,
    Move,
    Offer,
    Permission,
    ProposeRemoval,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    RepoInit,
    UnknownBody,
)
from protocol.formats.commit import NO_EPOCH
from protocol.formats.content import Post
from protocol.formats.devices import Device
from protocol.formats.epochs import Prekey
from protocol.formats.proofs import certify_repo, recovery_digest
from protocol.ids import AgreementKey, BranchId, CommitId, EpochId, Signature, UserId, root_branch
from protocol.limits.formats import OFFER_WITHDRAWALS_MAX, OFFERS_OF_AUTHOR_MAX, RECOVERY_FRIEND_COUNT_MAX
from tests.support.ids import as_commit_id, as_object_id
from tests.support.memberships import KEY, REPO, REPO_SEED, USERS, make_commit, make_init
from verifier import offers, places
from verifier.membership import Membership
from verifier.operations import Operation, Operations
from verifier.places import find_heirs, find_moves
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution
from verifier.tangle import Tangle

_BRANCH = BranchId(b"b" * 32)


class Repo:
    """A repo of ann's, in which ben reads, cat writes and dan is an admin."""

    def __init__(self, init: RepoInit | None = None) -> None:
        self.membership = Membership(REPO)
        self._numbers = count()
        self.init = self.say("ann", init or make_init())
        root = Reference(as_object_id(_BRANCH), BlockKey(_BRANCH))
        last = self.say("ann", BranchAdd(_BRANCH, "branch", root), self.init)
        for user, held in ("ben", Permission.READ), ("cat", Permission.WRITE), ("dan", Permission.ADMIN):
            last = self.say("ann", Grant(USERS[user], held), last)
        self.last = last

    def say(self, author: str, body: Body | UnknownBody, *acks: CommitId) -> CommitId:
        """Add a statement. Raises CommitRefused."""
        number = next(self._numbers)
        commit_id = as_commit_id((number * 7919 % 65_521).to_bytes(4, "big") * 8)
        epoch = EpochId(self.init) if acks else NO_EPOCH
        commit = replace(make_commit(0, author, (), epoch), commit_id=commit_id, acks=acks)
        self.membership.add(self.membership.authorise_root_commit(commit, body, KEY), acks)
        return commit_id

    def offer(self, text: str = "", link: bytes = b"", *, author: str = "ben") -> CommitId:
        """Offer something beside all else."""
        return self.say(author, Offer(_BRANCH, False, text, link), self.last)


@pytest.fixture
def repo() -> Repo:
    return Repo()


def test_of_statements_that_nothing_is_computed_of_the_kind_alone_is_kept(repo: Repo) -> None:
    post = repo.say("cat", Post("x" * 100_000), repo.last)
    assert repo.membership.operations[post].body == ErasedBody("post")
    offer = repo.offer("a note", b"a link")
    assert repo.membership.operations[offer].body == Offer(_BRANCH, False, "", b"")


def _found(repo: Repo, *, accepted: bool = False) -> list[tuple[str, bool | None]]:
    membership = repo.membership
    found = membership.offers.find(membership.operations, membership.now(), accepted=accepted)
    return [(one.body.note, one.is_accepted) for one in found]


def test_of_one_authors_offers_the_latest_are_considered_and_those_that_were_accepted(repo: Repo) -> None:
    first = repo.offer("first", b"link")
    other = repo.offer("of another", author="cat")
    accepted = repo.say("dan", Answer(first, accepts=True), first)
    after = repo.say("ann", Post("later"), accepted)
    for number in range(OFFERS_OF_AUTHOR_MAX + 10):
        after = repo.say("ben", Offer(_BRANCH, True, str(number), b"link"), after)
    assert _found(repo)[:2] == [("first", True), ("of another", None)]
    assert [note for note, _ in _found(repo)[2:]] == [str(n) for n in range(10, OFFERS_OF_AUTHOR_MAX + 10)]
    assert len(repo.membership.offers._kept) == OFFERS_OF_AUTHOR_MAX + 2, "of others nothing is kept"
    assert _found(repo, accepted=True) == [("first", True)]
    after = repo.say("dan", Answer(other, accepts=True), after, other)
    repo.say("dan", Answer(first, accepts=False), after)
    assert _found(repo, accepted=True) == [("of another", True)]


def test_which_offers_are_considered_does_not_depend_on_whether_they_or_the_answer_came_first() -> None:
    found: list[list[tuple[int, bool | None]]] = []
    for is_late in (False, True):
        repo = Repo()
        offers: list[CommitId] = [repo.offer("0", b"link")]
        if not is_late:
            repo.say("dan", Answer(offers[0], accepts=True), offers[0])
        for number in range(1, OFFERS_OF_AUTHOR_MAX + 10):
            offers.append(repo.say("ben", Offer(_BRANCH, False, str(number), b"link"), offers[-1]))
        if is_late:
            repo.say("dan", Answer(offers[0], accepts=True), offers[0])
            (first, *_) = repo.membership.offers.find(repo.membership.operations, repo.membership.now())
            assert (first.is_stripped, first.body.note, first.body.branch) == (True, "", _BRANCH)
        offered = repo.membership.offers.find(repo.membership.operations, repo.membership.now())
        found.append([(offers.index(one.operation.commit_id), one.is_accepted) for one in offered])
        assert len(offered) == OFFERS_OF_AUTHOR_MAX + 1
    assert found[0] == found[1]


def test_of_an_offers_withdrawals_the_latest_are_considered(repo: Repo) -> None:
    offer = repo.offer("withdrawn")
    for _ in range(10 * OFFER_WITHDRAWALS_MAX):
        repo.say("ben", Answer(offer, accepts=False), offer)
    assert _found(repo) == [("withdrawn", False)]
    (kept,) = repo.membership.offers._kept.values()
    assert len(kept.withdrawals) == OFFER_WITHDRAWALS_MAX


def test_an_offer_is_withdrawn_by_its_author_whatever_it_holds(repo: Repo) -> None:
    # A withdrawal needs nothing and always counts, like a leave; to accept needs admin, also of one's own.
    offer = repo.offer("a note")
    excluded = repo.say("dan", Remove(USERS["ben"], None, ()), offer)
    withdrawn = repo.say("ben", Answer(offer, accepts=False), excluded)
    assert repo.membership.operations[withdrawn].needs is None
    assert _found(repo) == [("a note", False)]
    for author, accepts in (("ben", True), ("cat", False), ("cat", True)):
        with pytest.raises(CommitRefused, match="M12: answering needs"):
            repo.say(author, Answer(offer, accepts=accepts), excluded)
    beside = repo.say("ben", Answer(offer, accepts=False), offer)
    now = repo.membership.now()
    assert now.counts(repo.membership.operations[beside]), "an exclusion beside it takes nothing from it"
    assert now.permission(USERS["ben"]) is None


def test_the_root_branch_is_not_offered_added_or_linked(repo: Repo) -> None:
    # The root branch counts as added, but for offers and links: no operation adds it.
    root = root_branch(REPO)
    for body, code in (
        (Offer(root, False, "", b""), "bad_branch"),
        (BranchLink(root), "bad_branch"),
        (BranchAdd(root, "again", Reference(as_object_id(root), BlockKey(root))), "branch_exists"),
    ):
        with pytest.raises(CommitRefused) as caught:
            repo.say("ann", body, repo.last)
        assert caught.value.code == code


@pytest.mark.parametrize("is_leaving", [False, True])
def test_what_holds_now_costs_no_more_comparisons_the_more_heads_there_are(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, is_leaving: bool
) -> None:
    asked = 0

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            nonlocal asked
            asked += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(Tangle, "_precedes", counting(Tangle._precedes))
    removed = repo.say("dan", Remove(USERS["cat"], None, ()), repo.last)
    costs: list[int] = []
    for _ in range(300):
        if is_leaving:
            repo.say("ben", Remove(USERS["ben"], None, ()), repo.last)
        else:
            repo.offer()
        asked = 0
        now = repo.membership.now()
        assert now.permission(USERS["dan"]) == Permission.ADMIN
        assert removed in now.counting
        costs.append(asked)
    assert max(costs[-100:]) <= max(costs[:100]) + 5
    assert len(repo.membership.now().heads) == 301


def test_judging_beside_many_heads_lists_none_of_them(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    # What follows another commit each time found all heads anew: a flood's square.
    offers = [repo.offer() for _ in range(20)]
    monkeypatch.delattr(Tangle, "tips")
    for offer in offers[:10]:
        repo.say("ben", Remove(USERS["ben"], None, ()), offer)


def test_a_prekey_is_judged_without_a_look_at_those_that_came_after_what_it_follows(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(number: int) -> None:
        repo.say("ben", Prekey(AgreementKey(bytes([number]) * 32)), repo.last)

    for number in range(2, 12):
        state(number)
    monkeypatch.delattr(Resolution, "is_within")
    state(12)


@st.composite
def _graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Return, for each commit after the first, what it follows, by number."""
    return [
        tuple(draw(st.sets(st.integers(0, number), min_size=1, max_size=3)))
        for number in range(draw(st.integers(1, 20)))
    ]


@given(graph=_graphs(), data=st.data())
def test_what_is_above_a_common_commit_is_found_in_one_walk(
    graph: list[tuple[int, ...]], data: st.DataObject
) -> None:
    ids = [as_commit_id(bytes([number * 37 % 251]) * 32) for number in range(len(graph) + 1)]
    tangle = Tangle(ids[0])
    for number, follows in enumerate(graph, start=1):
        tangle.add(ids[number], [ids[one] for one in follows])
    heads = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True))
    common = tangle.last_common(heads)
    expected = {
        one
        for one in ids
        if tangle.precedes(common, one) and any(one == head or tangle.precedes(one, head) for head in heads)
    }
    assert tangle.past_above(heads, common) == expected
    assert tangle.tips() == sorted(
        one for one in ids if not any(tangle.precedes(one, other) for other in ids)
    )


@pytest.mark.parametrize("is_direct", [False, True])
def test_removals_within_many_heads_are_those_that_one_of_them_follows(repo: Repo, is_direct: bool) -> None:
    removals = [repo.say("dan", Remove(USERS["ben"], None, ()), repo.last) for _ in range(30)]
    heads = [one if is_direct else repo.say("cat", Post("after it"), one) for one in removals]
    operations = repo.membership.operations
    common = operations[repo.last]

    def found(some: list[CommitId]) -> list[CommitId]:
        return [one.commit_id for one in operations.contestable_after(common, tuple(some))]

    assert found(heads[:2]) == removals[:2]
    assert found(heads[:20]) == removals[:20]
    assert found(sorted(heads)) == removals
    assert operations.contestable_after(operations[heads[-1]], (heads[-1],)) == []


def test_who_left_many_times_is_left_out_where_removals_are_aimed(repo: Repo) -> None:
    left = [repo.say("ben", Remove(USERS["ben"], None, ()), repo.last) for _ in range(3)]
    removed = repo.say("dan", Remove(USERS["ben"], None, ()), repo.last)
    operations = repo.membership.operations
    assert [one.commit_id for one in operations.removals_by_others(USERS["ben"])] == [removed]

    def named(found: "list[Operation]") -> list[CommitId]:
        return [one.commit_id for one in found]

    assert named(list(operations.removals_of(USERS["ben"]))) == [*left, removed]


def test_what_follows_leaves_and_another_head_remembers_no_set_of_them(repo: Repo) -> None:
    # Two readers make any number of such commits: each kept 45 bytes for each leave.
    beside = repo.say("cat", Post("beside"), repo.last)
    left = [repo.say("ben", Remove(USERS["ben"], None, ()), repo.last) for _ in range(20)]
    repo.say("cat", Post("after them"), beside, *left)
    membership = repo.membership
    assert membership.now().counting == frozenset()
    assert membership.now().permission(USERS["ben"]) is None
    assert all(membership.now().has_effect(membership.operations[one]) for one in left)


def test_a_leave_keeps_no_ends_of_feeds_in_memory(repo: Repo) -> None:
    # It voids nothing, so they say nothing: a reader's commit of 238 KB kept 600 KB.
    ends = tuple(FeedEnd(BranchId(bytes([n]) * 32), 1, as_commit_id(bytes(32))) for n in range(20))
    kept = [
        repo.membership.operations[repo.say(author, Remove(USERS["ben"], None, ends), repo.last)].body
        for author in ("ben", "dan")
    ]
    assert kept == [Remove(USERS["ben"], None, ()), Remove(USERS["ben"], None, ends)]


def _exclude_another(repo: Repo, number: int) -> None:
    user = public_key(UserSeed(number.to_bytes(32, "big")))
    repo.last = repo.say("ann", Grant(user, Permission.WRITE), repo.last)
    repo.last = repo.say("ann", Remove(user, None, ()), repo.last)


_FRIENDS = [UserSeed(bytes([number]) * 32) for number in range(1, RECOVERY_FRIEND_COUNT_MAX + 1)]


def _name_friends() -> RecoveryFriends:
    friends = (UserId(bytes([*public_key(seed)])) for seed in _FRIENDS)  # copies, as commits bring them
    return RecoveryFriends(tuple(sorted(friends)), RECOVERY_FRIEND_COUNT_MAX)


def _recover(repo: Repo) -> None:
    """Let a device of ben's in by all friends' signatures, beside all that ben did before."""
    naming = next(iter(repo.membership.operations.namings.get(USERS["ben"], ())), None)
    friends = repo.say("ben", _name_friends(), repo.last) if naming is None else naming.commit_id
    digest = recovery_digest(REPO, friends, USERS["eve"], Permission.READ)
    signed = sorted(
        (UserId(bytes([*public_key(seed)])), sign(key_pair(seed)[1], digest)) for seed in _FRIENDS
    )
    signatures = tuple(FriendSignature(*one) for one in signed)
    repo.say("ben", RecoveryGrant(friends, USERS["eve"], Permission.READ, signatures), friends)


_STATED_OFTEN: dict[str, tuple[int, Callable[[Repo, int], object]]] = {
    "exclusion": (5_000, _exclude_another),
    "leave": (
        500,
        lambda repo, _: repo.say("ben", Remove(UserId(bytes([*USERS["ben"]])), None, ()), repo.last),
    ),
    "offer": (500, lambda repo, _: repo.offer()),
    "unknown": (500, lambda repo, number: repo.say("cat", UnknownBody(f"later{number}"), repo.last)),
    "prekey": (
        800,
        lambda repo, number: repo.say("ben", Prekey(AgreementKey(number.to_bytes(16, "big") * 2)), repo.last),
    ),
    "naming": (1_700, lambda repo, _: repo.say("ben", _name_friends(), repo.last)),
    "recovery grant": (1_500, lambda repo, _: _recover(repo)),
}
"""Statements that anyone may repeat without end, each with the bytes of memory that it may take."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", _STATED_OFTEN)
def test_what_is_stated_often_takes_memory_by_its_number(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removals and prekeys kept the set of all before them: 330 MiB of 4,000, 1.6 GB of 20,000."""
    bytes_max, state = _STATED_OFTEN[kind]
    monkeypatch.setattr(offers, "OFFERS_OF_AUTHOR_MAX", 16)

    def measure(number: int) -> int:
        repo = Repo()
        gc.collect()
        tracemalloc.start()
        try:
            for one in range(number):
                state(repo, one + 2)
            repo.membership.now()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    measure(20)  # what is made once, that of a measurement of coverage too
    assert (measure(160) - measure(80)) / 80 < bytes_max


def test_what_device_removals_take_is_found_without_a_look_at_the_moves_to_their_author(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair may move beside all its other moves, and remove beside all its other removals, without end."""
    place = repo.membership.operations.grants_of(USERS["ben"])[0].commit_id
    lent = repo.say("ben", DeviceGrant(USERS["eve"], Permission.READ), repo.last)
    first = repo.say("ben", DeviceGrant(USERS["fay"], Permission.READ), lent)
    moves = [repo.say("ben", Move(USERS["eve"], place), first) for _ in range(3)]
    beside = repo.say("ben", DeviceGrant(USERS["fay"], Permission.READ), lent)
    for _ in range(3):
        repo.say("eve", Remove(USERS["fay"], None, ()), moves[0])
    monkeypatch.setattr(Operations, "with_forerunners", None)
    now = repo.membership.now()
    assert now.permission(USERS["fay"]) is None
    assert now.counts(repo.membership.operations[beside])


def test_who_was_let_in_by_friends_any_number_of_times_is_looked_at_once(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are facts that each change of the membership has found anew."""
    for _ in range(4):
        _recover(repo)
    asked: list[UserId] = []
    real = Resolution.credentials_of

    def credentials_of(now: Resolution, user: UserId) -> list[Operation]:
        asked.append(user)
        return real(now, user)

    monkeypatch.setattr(Resolution, "credentials_of", credentials_of)
    found = places.find_recovered(repo.membership.operations, repo.membership.now(), {})
    assert found == {USERS["eve"]: USERS["ben"]}
    assert asked == [USERS["eve"]]


def test_for_none_of_the_moves_all_others_are_gone_through(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = repo.membership.operations.grants_of(USERS["ben"])[0].commit_id
    lent = repo.say("ben", DeviceGrant(USERS["eve"], Permission.READ), repo.last)
    moved = repo.say("ben", Move(USERS["eve"], place), lent)
    lent = repo.say("eve", DeviceGrant(USERS["fay"], Permission.READ), moved)
    repo.say("eve", Move(USERS["fay"], moved), lent)
    operations, now = repo.membership.operations, repo.membership.now()

    class Heirs(dict[UserId, UserId]):
        def items(self) -> NoReturn:
            raise AssertionError("of thousands of moves all would be compared with all")

    monkeypatch.setattr(places, "find_heirs", lambda moves: Heirs(find_heirs(moves)))
    moves = find_moves(operations, now)
    unsigned = Signature(bytes(64))
    said = Device(USERS["ben"], USERS["fay"], 1, unsigned, unsigned)
    last = repo.say("cat", said, repo.last)
    words = [operations[last]]
    agreed = places.find_agreed(moves, words, repo.membership.now())
    assert [*agreed] == [USERS["eve"]], "it said to be the device of one whose place that had"


def test_a_removal_costs_no_more_the_more_a_writer_proposed_that_no_signer_approved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A refused removal costs its author nothing: at ten thousand proposals each took 70 ms.
    init = make_init(("ann", "eve"))
    certificate = certify_repo(REPO_SEED, init.name, init.owners, 2)
    council = CouncilInit(init.name, init.owners, certificate, init.states, 2)
    is_within, asked = Resolution.is_within, list[CommitId]()

    def note(resolution: Resolution, operation: Operation) -> bool:
        asked.append(operation.commit_id)
        return is_within(resolution, operation)

    monkeypatch.setattr(Resolution, "is_within", note)

    def measure(number: int) -> int:
        repo, exclusion = Repo(council), (USERS["ben"], None)
        for _ in range(number):
            repo.last = repo.say("cat", ProposeRemoval(*exclusion), repo.last)
        asked.clear()
        with pytest.raises(CommitRefused):
            repo.say("cat", Remove(*exclusion, ()), repo.last)
        return len(asked)

    assert measure(40) == measure(2)
