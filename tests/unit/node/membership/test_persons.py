"""Users of one person in a repo, and those that go along when one of them is removed."""

from typing import Final

import pytest

from node.membership.persons import find_companions, find_persons_in
from tests.support.memberships import NAME_OF, USERS, parse, replay

CIRCLE_OF_TWO: Final = """
ann + dan read < 0
ann + eve read < 1
d: dan - dan < 2
e: eve - eve < 2
dan * eve read < e
eve * dan read < d
"""
CIRCLE_OF_FOUR: Final = """
ann + dan read < 0
ann + eve read < 1
ann + fay read < 2
ann + gus read < 3
d: dan - dan < 4
e: eve - eve < 4
f: fay - fay < 4
g: gus - gus < 4
dan * eve read < e
eve * fay read < f
fay * gus read < g
gus * dan read < d
"""


@pytest.mark.parametrize("history", [CIRCLE_OF_TWO, CIRCLE_OF_FOUR])
def test_members_who_left_and_let_each_other_in_are_one_person(history: str) -> None:
    membership = replay(parse(history)).real
    users = membership.now().members().keys() - {USERS["ann"]}
    persons = find_persons_in(membership, {})
    assert persons == {user: min(users) for user in users if user != min(users)}
    for user in users:
        assert find_companions(membership, persons, USERS["ann"], user, None).keys() == users - {user}


def test_the_end_of_a_chain_is_the_first_device() -> None:
    membership = replay(
        parse("""
            ann + dan read < 0
            ann + eve read < 1
            eve * fay read < 2
            e: eve - eve < 2
            dan * eve read < e
        """)
    ).real
    persons = find_persons_in(membership, {})
    named = {NAME_OF[user]: NAME_OF[person] for user, person in persons.items()}
    assert named == {"eve": "dan", "fay": "dan"}


def test_who_removes_a_person_keeps_what_a_device_grant_of_it_gave() -> None:
    membership = replay(
        parse("""
            ann + ben admin < 0
            ann + cat owner < 1
            cat * ben owner < 2
            cat * tab owner < 3
            ann - cat write < 4
        """)
    ).real
    found = find_companions(membership, {}, USERS["ben"], USERS["cat"], None)
    assert found == {USERS["tab"]: None}


def test_who_may_write_is_shown_as_somebody_s_device_by_its_own_word_alone() -> None:
    membership = replay(
        parse("""
            ann + dan write < 0
            dan * eve write < 1
            dan * fay read < 2
        """)
    ).real
    dan, eve, fay = (USERS[name] for name in ("dan", "eve", "fay"))
    assert find_persons_in(membership, {}) == {fay: dan}
    assert find_persons_in(membership, {eve: dan}) == {eve: dan, fay: dan}
    assert find_companions(membership, {fay: dan}, USERS["ann"], dan, None).keys() == {eve, fay}
    assert find_companions(membership, {fay: dan}, USERS["ann"], eve, None) == {}, (
        "nobody goes along who let one in"
    )


def test_who_was_let_in_by_who_was_let_in_goes_along() -> None:
    membership = replay(parse(CIRCLE_OF_FOUR.replace("read", "write"))).real
    users = membership.now().members().keys() - {USERS["ann"]}
    assert find_persons_in(membership, {}) == {}
    for user in users:
        assert find_companions(membership, {}, USERS["ann"], user, None).keys() == users - {user}


def test_who_came_by_who_was_excluded_before_stays() -> None:
    membership = replay(
        parse("""
            ann + dan write < 0
            dan * eve read < 1
            ann + eve write < 2
            eve * fay write < 3
            ann - eve < 4
        """)
    ).real
    assert find_companions(membership, {}, USERS["ann"], USERS["dan"], None) == {}
