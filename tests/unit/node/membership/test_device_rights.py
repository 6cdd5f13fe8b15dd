"""Rights of devices: given and taken back by their person alone, in repos of others too, and taken along with the person."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.authoring.writing import write_commit
from node.membership.members import Members
from node.runtime.errors import ServiceError
from protocol.formats.body import DeviceGrant, Grant, Invite, Permission
from protocol.formats.profiles import Profile
from protocol.ids import InvitationKey, UserId
from storage.commits.commits import load_timeline
from storage.repos.repos import Branch, Repo
from tests.support.devices import held, join, member_of, persons, repo_of, settle, user
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,  # rules are not about rows
]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "laptop", "phone", "thief", "boss") as nodes:
        yield nodes


def main_of(node: Node, repo: Repo) -> Branch:
    """Return a node's main branch of a repo."""
    here = repo_of(node, repo)
    assert here is not None
    return next(one for one in node.replica.branches_in(here.num) if one.name == "main")


def root_of(node: Node, repo: Repo) -> Branch:
    """Return a node's root branch of a repo."""
    here = repo_of(node, repo)
    assert here is not None
    return node.replica.root_branch(here)


def count_posts(node: Node, repo: Repo, author: Node) -> int:
    """Count what a node shows of an author's in the main branch, beside the branch's own first commit."""
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, main_of(node, repo).num, 0, 100)
    return sum(row.author == author.author.user for row in rows[1:])


def members(node: Node, folder: Path) -> Members:
    """Return what changes the members of a node's repos."""
    return service_of(node, folder).people.members


async def test_a_device_of_a_writer_writes_without_an_admin(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    assert held(laptop, work, phone) is Permission.WRITE
    phone.write(main_of(phone, work), "from the phone")
    await write_commit(phone.hub, phone.author, root_of(phone, work), Profile("Pocket", None))
    await settle(laptop, phone, boss)
    await settle(laptop, phone)
    for node in (boss, laptop, phone):
        assert count_posts(node, work, phone) == 1
        assert persons(node, work) == {phone.author.user: laptop.author.user}
    listed = await service_of(laptop, tmp_path).people.pairing.list_all()
    (stands,) = listed["devices"][1]["repos"]
    assert (stands["permission"], stands["shown"], stands["lacking"]) == ("write", True, False)
    changes = (await service_of(boss, tmp_path).people.member_changes.list_latest("work", 9, 0))["changes"]
    told = [(one["kind"], one["user"], one["author"], one["device_name"]) for one in changes]
    assert ("device_added", user(phone), user(laptop), "Pocket") in told


@pytest.mark.parametrize("permission", [Permission.READ, Permission.WRITE])
async def test_a_device_is_removed_by_its_person_alone(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock, permission: Permission
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop, permission)
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop)
    boss.write(main_of(boss, work), "for readers")
    await settle(boss, laptop, phone)
    assert held(boss, work, phone) is permission
    assert count_posts(phone, work, boss) == 1
    people_in = {
        one["user"]: one["person"] for one in (await members(boss, tmp_path).list_all("work"))["members"]
    }
    assert people_in[user(phone)] == user(laptop), "though a device of a reader states nothing"
    done = (await service_of(laptop, tmp_path).people.pairing.remove(user(phone)))["repos"]
    (of_work,) = [one for one in done if one["name"] == "work"]
    assert (of_work["excluded"], of_work["advice"]) == (True, "")
    assert of_work["renewed"] is (permission is Permission.WRITE), "a reader leaves that to who writes"
    await settle(laptop, boss)
    boss.write(main_of(boss, work), "after the removal")
    await settle(boss, laptop, phone)
    assert held(boss, work, phone) is None
    assert [count_posts(node, work, boss) for node in (laptop, phone)] == [2, 1]
    changes = (await service_of(boss, tmp_path).people.member_changes.list_latest("work", 9, 0))["changes"]
    assert changes[-1]["kind"] == "device_removed"


async def test_what_a_thief_does_with_a_device_beside_its_removal_is_void(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, thief, boss = people
    work = await member_of(boss, laptop)
    await members(boss, tmp_path).grant("work", user(laptop), "admin")
    await settle(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop, phone)
    assert held(boss, work, phone) is Permission.ADMIN
    invitation = Invite(InvitationKey(bytes(thief.author.user)), Permission.WRITE, 1, 2**52)
    for body in (Grant(thief.author.user, Permission.WRITE), invitation):
        phone.author.write(root_of(phone, work), body)
    phone.write(main_of(phone, work), "by the thief")
    await service_of(laptop, tmp_path).people.pairing.remove(user(phone))
    await settle(boss, laptop)
    await settle(boss, phone, laptop)
    for node in (boss, laptop):
        assert held(node, work, thief) is held(node, work, phone) is None
        assert count_posts(node, work, phone) == 0
    listed = (await members(boss, tmp_path).invitations("work"))["invitations"]
    assert {one["author"]: one["revoked"] for one in listed}[user(phone)]


async def test_a_stolen_device_gives_nothing_on_and_removes_none_that_came_before(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, later, boss = people
    work = await member_of(boss, laptop)
    await members(boss, tmp_path).grant("work", user(laptop), "admin")
    await settle(boss, laptop)
    await join(phone, laptop, tmp_path)
    laptop.author.write(root_of(laptop, work), DeviceGrant(later.author.user, Permission.ADMIN))
    await settle(laptop, phone)
    thief = members(phone, tmp_path)
    with pytest.raises(ServiceError, match="M17"):
        phone.author.write(root_of(phone, work), DeviceGrant(UserId(bytes(range(32))), Permission.READ))
    with pytest.raises(ServiceError, match="not senior"):
        await thief.remove("work", user(laptop), "")
    await thief.remove("work", user(later), "")
    assert held(phone, work, later) is None, "as an admin it removes who came after it"


async def test_a_device_gets_what_its_person_gets_later(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop, Permission.READ)
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop)
    ruling = members(boss, tmp_path)
    for permission in ("write", "admin"):
        await ruling.grant("work", user(laptop), permission)
        await settle(boss, laptop)
        await settle(boss, laptop)
        assert held(boss, work, phone) is Permission[permission.upper()]
    # A person's own choice for a device stays, and what takes down both comes back with the person.
    await members(laptop, tmp_path).remove("work", user(phone), "read")
    await settle(boss, laptop)
    assert held(boss, work, phone) is Permission.READ
    done = await ruling.remove("work", user(laptop), "")
    assert done["devices"] == [user(phone)]
    await settle(boss, laptop)
    assert held(boss, work, phone) is None
    await ruling.grant("work", user(laptop), "write")
    await settle(boss, laptop)
    await settle(boss, laptop)
    assert held(boss, work, phone) is Permission.WRITE


async def test_what_an_admin_took_from_one_device_comes_back_by_sync_alone(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop, phone)
    ruling = members(boss, tmp_path)
    done = await ruling.remove("work", user(phone), "", person=False)
    assert done["other_devices"] == [user(laptop)]
    await ruling.grant("work", user(laptop), "manage")
    await settle(boss, laptop)
    await settle(boss, laptop)
    assert held(boss, work, phone) is None
    pairing = service_of(laptop, tmp_path).people.pairing
    (stands,) = (await pairing.list_all())["devices"][1]["repos"]
    assert (stands["permission"], stands["lacking"]) == (None, True)
    (given,) = (await pairing.sync())["given"]
    assert given["advice"] == ""
    await settle(boss, laptop)
    assert held(boss, work, phone) is Permission.MANAGE


async def test_excluding_a_person_takes_along_who_says_nothing_of_whose_it_is(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, silent, raised, boss = people
    work = await member_of(boss, laptop)
    await raised.joiner.begin(boss.invite(work, Permission.READ))
    await settle(boss, raised, laptop)
    for other in (silent, raised):
        laptop.author.write(root_of(laptop, work), DeviceGrant(other.author.user, Permission.WRITE))
    await settle(boss, laptop)
    assert persons(boss, work) == {}
    listed = {
        one["user"]: one["person"] for one in (await members(boss, tmp_path).list_all("work"))["members"]
    }
    assert listed[user(silent)] == user(silent), "nobody speaks for who did not say so"
    assert listed[user(raised)] == user(raised)
    done = await members(boss, tmp_path).remove("work", user(laptop), "")
    assert set(done["devices"]) == {user(silent), user(raised)}
    assert held(boss, work, silent) is None
    assert held(boss, work, raised) is Permission.READ, "what another gave it stays"


async def test_under_a_quorum_each_device_gets_its_proposal(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    quorums = service_of(boss, tmp_path).people.quorums
    await quorums.name("work", [user(boss)], 1, removals=True)
    await settle(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop)
    proposed = await quorums.propose_removal("work", user(laptop), "")
    assert proposed["devices"] == [user(phone)]
    done = await members(boss, tmp_path).remove("work", user(laptop), "")
    assert done["devices"] == [user(phone)]
    assert held(boss, work, laptop) is held(boss, work, phone) is None


async def test_who_leaves_takes_the_devices_along(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop, Permission.READ)
    await join(phone, laptop, tmp_path)
    done = await members(laptop, tmp_path).leave("work", force=False)
    assert (done["devices"], done["other_devices"]) == ([user(phone)], [])
    await settle(laptop, boss)
    assert held(boss, work, phone) is held(boss, work, laptop) is None


async def test_a_device_with_a_right_of_its_own_keeps_it_where_its_person_is_no_admin(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await members(boss, tmp_path).grant("work", user(phone), "read")
    await settle(boss, laptop)
    await join(phone, laptop, tmp_path)
    assert held(laptop, work, phone) is Permission.WRITE
    done = (await service_of(laptop, tmp_path).people.pairing.remove(user(phone)))["repos"]
    (of_work,) = [one for one in done if one["name"] == "work"]
    assert not of_work["excluded"]
    assert (
        f"others gave it the permission read; ask an admin for `ravel member exclude work {user(phone)}`"
        in of_work["advice"]
    )
    assert held(laptop, work, phone) is Permission.READ
    (stayed,) = (await service_of(laptop, tmp_path).people.pairing.list_all())["stayed"]
    assert (stayed["device"], stayed["name"], stayed["permission"]) == (user(phone), "work", "read")
    assert stayed["advice"] == f"an admin may: `ravel member exclude work {user(phone)}`"


async def test_who_leaves_takes_back_what_it_gave_a_device_that_others_let_in_too(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await members(boss, tmp_path).grant("work", user(phone), "read")
    await settle(boss, laptop)
    await join(phone, laptop, tmp_path)
    assert held(laptop, work, phone) is Permission.WRITE
    done = await members(laptop, tmp_path).leave("work", force=False)
    assert (done["devices"], done["other_devices"]) == ([], [user(phone)])
    assert held(laptop, work, phone) is Permission.READ


async def test_what_a_person_excluded_a_device_from_comes_back_with_the_person_alone(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    own, ruling = members(laptop, tmp_path), members(boss, tmp_path)
    await own.remove("work", user(phone), "", person=False)
    await settle(boss, laptop)
    await ruling.grant("work", user(laptop), "manage")
    await settle(boss, laptop)
    await settle(boss, laptop)
    assert held(boss, work, phone) is None, "the person chose so"
    await own.leave("work", force=False)
    await settle(boss, laptop)
    await ruling.grant("work", user(laptop), "write")
    await settle(boss, laptop)
    await settle(boss, laptop)
    assert held(boss, work, phone) is Permission.WRITE
