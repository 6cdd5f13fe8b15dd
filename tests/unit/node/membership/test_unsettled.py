"""What members have to settle: a place that two claim, signers who left, a key that friends let in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.ingest.people import SHORT_ID_LENGTH
from node.membership.unsettled import find_next_step, find_unsettled
from node.observe.sentences import standing_sentence
from protocol.formats.body import Permission
from ravel.types.repos import RepoStanding, StandingPart
from storage.repos.repos import Repo
from tests.support.devices import held, join, member_of, persons, repo_of, settle, user
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of
from tests.support.stores import KeptFolder
from tests.unit.node.membership.test_recovery import friends_of_ann, recovery, signed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,  # rules are not about rows
]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "laptop", "phone", "tablet", "boss") as nodes:
        yield nodes


@pytest.fixture
def friends(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "ann", "new", "ben", "cat", "dan") as nodes:
        yield nodes


async def standing(node: Node, folder: Path, repo: Repo) -> RepoStanding:
    """Return how a repo stands, as a node tells it."""
    listed = (await service_of(node, folder).branches.repo_list.list())["repos"]
    return next(one["standing"] for one in listed if one["name"] == repo.name)


async def parts(node: Node, folder: Path, repo: Repo) -> dict[str, StandingPart]:
    """Return what a node tells of a repo that is to be settled."""
    told = (await standing(node, folder, repo))["parts"]
    return {one["code"]: one for one in told if one["code"] in ("place_claimed", "signers_gone", "let_in")}


async def test_of_two_who_claim_a_place_nobody_is_shown_to_have_it_until_one_is_excluded(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await join(tablet, laptop, tmp_path)
    await settle(laptop, boss, phone, tablet)
    KeptFolder(laptop.folder).write_to(tmp_path / "copy")
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone)
    thief = Node(tmp_path / "copy", "laptop")
    try:
        await service_of(thief, tmp_path / "copy").people.pairing.promote(user(tablet))
        await settle(thief, tablet)
    finally:
        thief.replica.close()
    await settle(boss, phone, tablet)
    await settle(boss, phone, tablet)
    assert persons(boss, work) == {}, "neither is shown as the laptop's user"
    ids = {user(phone)[:SHORT_ID_LENGTH], user(tablet)[:SHORT_ID_LENGTH]}
    (claim,) = (await service_of(boss, tmp_path).people.members.list_all("work"))["claims"]
    assert (claim["user"], {one[:SHORT_ID_LENGTH] for one in claim["claimants"]}) == (user(laptop), ids)
    told = (await parts(boss, tmp_path, work))["place_claimed"]
    assert set(told["people"][1:]) == ids
    said = standing_sentence(await standing(boss, tmp_path, work))
    assert "each claim the place of" in said
    first = {one["user"]: one["first"] for one in (await _devices(phone, tmp_path))}
    assert first[user(phone)], "who holds the phone knows which of the two is right"

    done = await service_of(boss, tmp_path).people.members.remove("work", user(tablet), "")
    assert done["devices"] == [user(laptop)], "the key that was copied goes along"
    assert persons(boss, work) == {laptop.author.user: phone.author.user}
    assert held(boss, work, phone) is Permission.WRITE
    assert await parts(boss, tmp_path, work) == {}
    assert (await service_of(boss, tmp_path).people.members.list_all("work"))["claims"] == []


async def _devices(node: Node, folder: Path) -> list[dict[str, object]]:
    return [{**one} for one in (await service_of(node, folder).people.pairing.list_all())["devices"]]


async def test_owners_are_told_of_signers_whose_place_passed_on(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await service_of(boss, tmp_path).people.quorums.name(
        "work", [user(laptop), user(boss)], 1, removals=False
    )
    await join(phone, laptop, tmp_path)
    await settle(laptop, boss, phone)
    assert await parts(boss, tmp_path, work) == {}
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, boss, phone)
    assert (await parts(boss, tmp_path, work))["signers_gone"]["people"] == [user(laptop)[:SHORT_ID_LENGTH]]
    assert "`ravel quorum set` names the signers anew" in standing_sentence(
        await standing(boss, tmp_path, work)
    )
    assert await parts(phone, tmp_path, work) == {}, "it may not name signers"
    await service_of(boss, tmp_path).people.quorums.name("work", [user(phone), user(boss)], 1, removals=False)
    assert await parts(boss, tmp_path, work) == {}


async def test_a_key_that_friends_let_in_is_told_who_gives_it_a_place_of_its_own(
    friends: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    _, new, ben, cat, _ = friends
    work = await friends_of_ann(friends, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    (done,) = (await recovery(ben, tmp_path).finish(texts))["repos"]
    command = f"ravel member grant work {user(new)} write"
    assert (done["grant"], done["grantors"]) == (command, ["Ben"])
    await new.joiner.follow(ben.capability())
    await settle(ben, new)
    told = (await parts(new, tmp_path, work))["let_in"]
    assert (told["people"], told["reason"]) == (["Ben"], command)
    (let_in,) = (await service_of(new, tmp_path).people.pairing.list_all())["let_in"]
    assert (let_in["grant"], let_in["grantors"]) == (command, ["Ben"])
    await service_of(ben, tmp_path).people.members.grant("work", user(new), "write")
    await settle(ben, new)
    assert await parts(new, tmp_path, work) == {}
    (again,) = (await recovery(ben, tmp_path).finish(texts))["repos"]
    assert (again["already"], again["grant"]) == (True, "")


async def test_a_key_that_friends_let_in_as_the_only_owner_gives_itself_a_place(
    friends: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    """No admin is left to do it, and none is needed: a device holds all that a grant needs."""
    ann, new, ben, cat, dan = friends
    club, _ = ann.create_repo("club")
    for one in (ben, cat):
        await one.joiner.begin(ann.invite(repo_of(ann, club) or club, Permission.WRITE))
    await settle(ann, ben, cat)
    await recovery(ann, tmp_path).name_friends([user(ben), user(cat)], 2, "")
    await settle(ann, ben, cat)
    texts = [(await recovery(one, tmp_path).sign(user(ann), user(new)))["texts"][0] for one in (ben, cat)]
    (done,) = (await recovery(ben, tmp_path).finish(texts))["repos"]
    assert (done["grant"], done["grantors"]) == (f"ravel member grant club {user(new)} owner", [])
    await new.joiner.follow(ben.capability())
    await settle(ben, new)
    own = service_of(new, tmp_path).people
    await own.members.grant("club", user(new), "owner")
    assert await parts(new, tmp_path, club) == {}
    await join(dan, new, tmp_path)
    await settle(new, dan)
    assert held(new, club, dan) is Permission.OWNER, "with a place of its own it has devices"


async def test_where_no_admin_is_left_the_repo_is_forked(
    friends: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    _, new, ben, cat, _ = friends
    work = await friends_of_ann(friends, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    await recovery(ben, tmp_path).finish(texts)
    await service_of(ben, tmp_path).people.members.leave("work", force=True)
    step = find_next_step(ben.replica, repo_of(ben, work) or work, new.author.user)
    assert step is not None
    assert step.command == ""
    assert find_unsettled(ben.replica, repo_of(ben, work) or work, ben.author.user).next_step is None
