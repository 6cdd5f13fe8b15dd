"""Relations that a header states to other posts, and whose word hides one."""

from typing import Final

import msgspec
import pytest

from protocol.codec import DecodeError, encode
from protocol.formats.body import Body, Hide, Permission, Remove, UnknownBody, decode_body, encode_body
from protocol.formats.commit import Commit, TanglePlace
from protocol.formats.content import Imported, Post
from protocol.formats.declared_kind import declare_kind
from protocol.ids import BranchId, CommitId, UserId
from protocol.limits.formats import HIDDEN_COUNT_MAX
from tests.support.memberships import USERS, commit_id, make_commit, replay
from tests.support.memberships import parse as steps_of
from verifier.posts import PostRelation, Relation, devices_of, find_hidden, find_relation, make_place
from verifier.refusal import CommitRefused

ONE, TWO, THREE = map(commit_id, (201, 202, 203))
BRANCH: Final = BranchId(b"b" * 32)
GROUP: Final = TanglePlace("group", ONE, (ONE,))


def _commit(*places: TanglePlace, body: Body | None = None) -> Commit:
    content = msgspec.structs.replace(
        make_commit(5, "ann", ()).content,
        tangles=tuple(sorted((GROUP, *places), key=lambda place: place.kind)),
        metadata=declare_kind(body or Post("")),
    )
    return msgspec.structs.replace(make_commit(5, "ann", ()), content=content)


@pytest.mark.parametrize(
    "places,expected",
    [
        ((), None),
        ((make_place(Relation.EDIT, ONE),), PostRelation(Relation.EDIT, ONE)),
        ((make_place(Relation.DELETE, ONE),), PostRelation(Relation.DELETE, ONE)),
        ((make_place(Relation.REPLY, ONE, TWO),), PostRelation(Relation.REPLY, ONE, TWO)),
        ((make_place(Relation.REPLY, ONE),), PostRelation(Relation.REPLY, ONE, ONE)),
        ((TanglePlace("reply", ONE, ()),), None),
        ((TanglePlace("reply", ONE, (ONE, TWO)),), None),
        ((TanglePlace("edit", ONE, ()),), PostRelation(Relation.EDIT, ONE)),
        ((TanglePlace("edit", ONE, (ONE, TWO)),), PostRelation(Relation.EDIT, ONE)),
        ((TanglePlace("thread", ONE, (TWO,)),), None),
        ((make_place(Relation.EDIT, ONE), make_place(Relation.DELETE, ONE)), None),
        ((make_place(Relation.EDIT, ONE), make_place(Relation.REPLY, ONE)), None),
        (
            (make_place(Relation.EDIT, ONE), TanglePlace("thread", ONE, (TWO,))),
            PostRelation(Relation.EDIT, ONE),
        ),
    ],
)
def test_a_header_states_one_relation_or_none(
    places: tuple[TanglePlace, ...], expected: PostRelation | None
) -> None:
    assert find_relation(_commit(*places), is_root_branch=False) == expected


def test_only_a_post_outside_the_root_branch_states_one() -> None:
    place = make_place(Relation.EDIT, ONE)
    assert find_relation(_commit(place), is_root_branch=True) is None
    assert find_relation(_commit(place, body=Imported("1", "ann", 0, "")), is_root_branch=False) is None


class Repo:
    """A repo of ann's with ben and dan, who are admins, and cat, who writes; each commit follows the one that is named."""

    def __init__(self) -> None:
        steps = "ann + ben admin < 0\nann + cat write < 1\nann + dan admin < 2\nann + eve read < 3"
        self.membership = replay(steps_of(steps)).real
        self._number = 4

    def say(self, author: str, body: Body | UnknownBody, *, after: int | None = None) -> int:
        """Write a body; gives its number. Raises CommitRefused."""
        acks = self.membership.operations.heads() if after is None else (commit_id(after),)
        self._number += 1
        commit = msgspec.structs.replace(make_commit(self._number, author, ()), acks=acks)
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        return self._number

    def hidden(self) -> dict[CommitId, UserId]:
        """Return what is hidden of the branch."""
        return dict(find_hidden(self.membership).get(BRANCH, {}))


def _hide(*commits: CommitId, hides: bool = True) -> Hide:
    return Hide(BRANCH, commits, hides)


def test_admins_hide_and_show() -> None:
    repo = Repo()
    repo.say("ben", _hide(ONE, TWO))
    assert repo.hidden() == {ONE: USERS["ben"], TWO: USERS["ben"]}
    repo.say("ann", _hide(ONE, hides=False))
    assert repo.hidden() == {TWO: USERS["ben"]}
    repo.say("ann", _hide(TWO))
    assert repo.hidden() == {TWO: USERS["ann"]}
    repo.say("ann", _hide(THREE, hides=False))
    assert repo.hidden() == {TWO: USERS["ann"]}


def test_a_writers_word_is_accepted_and_hides_nothing() -> None:
    repo = Repo()
    repo.say("cat", _hide(ONE))
    assert repo.hidden() == {}
    with pytest.raises(CommitRefused, match="M5"):  # as an unknown body of a reader's
        repo.say("eve", _hide(ONE))
    with pytest.raises(CommitRefused, match="M5"):
        repo.say("eve", UnknownBody("hide1"))


@pytest.mark.parametrize("keeps", [None, Permission.WRITE])
def test_who_was_admin_no_more_hides_nothing(keeps: Permission | None) -> None:
    repo = Repo()
    before = repo.say("ben", _hide(ONE))
    unseen = repo.say("ben", _hide(TWO), after=before)
    assert repo.hidden() == {ONE: USERS["ben"], TWO: USERS["ben"]}
    repo.say("ann", Remove(USERS["ben"], keeps, ()), after=before)
    assert repo.hidden() == {ONE: USERS["ben"]}, "what the removal has not seen counts no more"
    if keeps is not None:
        repo.say("ben", _hide(THREE))
        assert THREE not in repo.hidden()
    assert unseen


def test_of_concurrent_words_the_last_in_canonical_order_holds() -> None:
    repo = Repo()
    start = repo.say("ann", _hide(TWO))
    said = {
        commit_id(repo.say(name, body, after=start)): name
        for name, body in (("ben", _hide(ONE)), ("dan", _hide(ONE, hides=False)))
    }
    assert (ONE in repo.hidden()) == (said[max(said)] == "ben")


def test_bounds_and_bad_bytes() -> None:
    ids = tuple(commit_id(number) for number in range(HIDDEN_COUNT_MAX + 1))
    assert decode_body(encode_body(_hide(*ids[:-1]))) == _hide(*ids[:-1])
    for bad in (_hide(*ids), _hide()):
        assert decode_body(encode(bad)) == UnknownBody("hide1"), "as of a kind that is not known"
    with pytest.raises(DecodeError):
        decode_body(encode(Post("x" * 600_000)))


def test_devices_of_a_person_stand_together() -> None:
    ann, ben, cat, dan = (USERS[name] for name in ("ann", "ben", "cat", "dan"))
    persons = {ben: ann, cat: ann}
    found = devices_of(persons, [ben, dan])
    assert set(found[ben]) == {ann, ben, cat}
    assert found[dan] == (dan,)
    assert devices_of(persons, [ann])[ann] == (ann, ben, cat)
