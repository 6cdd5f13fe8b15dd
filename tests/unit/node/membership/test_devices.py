"""Devices of one person: joined by one link, given all repos, shown as one person, and removed again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.authoring import writing
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commit
from node.membership import pairing
from node.membership.devices import find_devices, find_home
from node.membership.offers import COMMENTS_REPO
from node.membership.sharing import Sharing
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body, Join, Permission
from protocol.formats.devices import DevicesRepo, HandOn
from protocol.formats.links import device_link_text, parse_device_link
from protocol.formats.profiles import Profile
from protocol.formats.proofs import prove_invitation
from protocol.ids import root_branch
from protocol.limits.formats import DEVICE_COUNT_MAX
from storage.repos.repos import Repo
from tests.support.devices import add, held, join, member_of, persons, repo_of, settle, user
from tests.support.nodes import Node, connected, open_nodes
from tests.support.served import service_of


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "laptop", "phone", "tablet", "boss") as nodes:
        yield nodes


async def test_a_client_that_leaves_while_devices_are_founded_leaves_them_whole(
    people: list[Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, create = people[0], writing.create_repo
    with trio.CancelScope() as scope:

        async def leave(*arguments: Any, **options: Any) -> Repo:  # noqa: ANN401  # passed on as they are
            made = await create(*arguments, **options)
            scope.cancel()
            return made

        monkeypatch.setattr(pairing, "create_repo", leave)
        await add(laptop, tmp_path)
    monkeypatch.undo()
    await add(laptop, tmp_path)
    assert [repo.name for repo in laptop.replica.repos.values()] == ["devices"]


@pytest.mark.slow
async def test_a_restart_at_any_point_loses_nothing(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop, Permission.READ)
    mine, _ = laptop.create_repo("mine")
    link = await add(laptop, tmp_path)
    await phone.joiner.begin(link.opened(), link.person)
    for seconds in (0.0, 0.05, 0.2, 1.0, 10.0, 10.0):  # cut anywhere, the first times before much was said
        for node in (laptop, phone):
            node.replica.close()
            node.open()
        async with connected(phone, laptop):
            await trio.sleep(seconds)
    assert held(phone, mine, phone) is Permission.OWNER
    assert persons(laptop, mine) == {phone.author.user: laptop.author.user}
    assert repo_of(phone, work) is not None
    home = find_home(laptop.replica, laptop.author.user)
    assert home is not None
    with laptop.replica.membership_lock:
        words = laptop.replica.membership(home.repo.repo_id).device_statements
    handed = [one.body.repo for one in words if isinstance(one.body, HandOn)]
    assert len(handed) == len(set(handed)) == 3, "each repo once, whenever it was cut"


@pytest.mark.slow
async def test_of_two_who_use_one_link_the_first_alone_is_a_device(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, thief, _ = people
    repo, _ = laptop.create_repo("mine")
    link = await join(phone, laptop, tmp_path)
    await thief.joiner.begin(
        link.opened(), link.person
    )  # who has not seen the phone's join, and is let in by it
    thief.replica.close()
    thief.open()
    await settle(laptop, thief, phone)
    assert repo_of(thief, repo) is None
    assert held(laptop, repo, thief) is None
    home = find_home(laptop.replica, laptop.author.user)
    assert home is not None
    assert find_devices(laptop.replica, home, laptop.hub.clock_ms()) == [phone.author.user]
    joined = service_of(phone, tmp_path).people.pairing
    with pytest.raises(ServiceError, match=f"this is a device of {user(laptop)} already") as refused:
        await joined.join(device_link_text(link))
    assert refused.value.code == "already_exists"
    await write_commit(laptop.hub, laptop.author, laptop.replica.root_branch(home.repo), Profile("Ann", None))
    await settle(laptop, phone)
    for asked in (lambda: joined.join(device_link_text(link)), lambda: joined.add(3600)):
        with pytest.raises(ServiceError, match="this is a device of Ann already"):
            await asked()
    with pytest.raises(ServiceError, match="this is the first device of others"):
        await service_of(laptop, tmp_path).people.pairing.join(device_link_text(link))


@pytest.mark.slow
async def test_a_link_that_has_expired_makes_no_device_whatever_the_join_says_of_its_date(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone = people[:2]
    repo, _ = laptop.create_repo("mine")
    link = await add(laptop, tmp_path)
    expires_at = link.opened().expires_at
    laptop.replica.close()
    laptop.open(now=expires_at + 1)  # the phone's clock is an hour behind
    await phone.joiner.begin(link.opened(), link.person)
    await settle(laptop, phone)
    home = find_home(laptop.replica, laptop.author.user)
    assert home is not None
    assert laptop.replica.permission(home.repo, phone.author.user) is Permission.WRITE, "it has joined"
    assert held(laptop, repo, phone) is None


@pytest.mark.slow
async def test_who_is_invited_as_a_member_is_no_device(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone = people[:2]
    laptop.create_repo("mine")
    link = await add(laptop, tmp_path)
    await phone.joiner.begin(link.opened())
    await settle(laptop, phone)
    assert len(phone.replica.repos) == 1
    assert find_home(phone.replica, phone.author.user) is None
    # And who says so in a repo of somebody else's takes nothing up there.
    repo, _ = people[3].create_repo("trap")
    await phone.joiner.begin(people[3].invite(repo), laptop.author.user)
    await settle(people[3], phone)
    assert find_home(phone.replica, phone.author.user) is None


@pytest.mark.slow
async def test_what_was_taken_from_a_device_comes_back_by_sync_alone(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone = people[:2]
    repo, _ = laptop.create_repo("mine")
    await join(phone, laptop, tmp_path)
    service = service_of(laptop, tmp_path)
    await service.people.members.remove("mine", user(phone), "read")
    await settle(laptop, phone)
    assert held(laptop, repo, phone) is Permission.READ
    (given,) = (await service.people.pairing.sync())["given"]
    assert (given["device"], given["name"], given["advice"]) == (user(phone), "mine", "")
    assert held(laptop, repo, phone) is Permission.OWNER
    await settle(laptop, phone)
    assert (await service.people.pairing.sync())["given"] == []


@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_a_removed_device_is_out_everywhere_and_comes_back_by_a_new_link(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    mine, _ = laptop.create_repo("mine")
    link = await join(phone, laptop, tmp_path)
    await settle(boss, laptop, phone)
    assert persons(boss, work) == {phone.author.user: laptop.author.user}
    service = service_of(laptop, tmp_path)
    removed = (await service.people.pairing.remove(user(phone)[:10]))["repos"]
    told = {
        one["name"]: (one["taken_back"], one["excluded"], one["renewed"], one["advice"]) for one in removed
    }
    assert told == dict.fromkeys(["mine", "devices", "work"], (True, True, True, ""))
    await settle(boss, laptop, phone)
    await settle(laptop, phone)
    assert held(laptop, mine, phone) is held(boss, work, phone) is None
    assert persons(boss, work) == persons(laptop, work) == persons(laptop, mine) == {}
    assert find_home(phone.replica, phone.author.user) is None
    listed = await service_of(phone, tmp_path).people.pairing.list_all()
    assert (listed["devices"], listed["removed_by"]) == ([], user(laptop))
    later, _ = laptop.create_repo("later")
    await phone.joiner.begin(link.opened(), link.person)  # the old link is of no use
    await settle(laptop, phone)
    assert held(laptop, later, phone) is None
    await join(phone, laptop, tmp_path)
    await settle(boss, laptop, phone)
    for repo in (mine, later, work):
        assert persons(laptop, repo) == {phone.author.user: laptop.author.user}, repo.name
    assert held(phone, later, phone) is Permission.OWNER


@pytest.mark.slow
async def test_a_device_leaves_its_person_and_keeps_its_repos(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone = people[:2]
    repo, _ = laptop.create_repo("mine")
    await join(phone, laptop, tmp_path)
    service = service_of(phone, tmp_path)
    with pytest.raises(ServiceError, match="device of"):
        await service.people.pairing.add(3600)
    with pytest.raises(ServiceError, match="device of"):
        await service.people.pairing.join("ravel:device:anything")
    removed = (await service.people.pairing.remove(user(phone)))["repos"]
    assert {one["name"]: (one["taken_back"], one["excluded"], one["left"]) for one in removed} == {
        "mine": (True, False, False),
        "devices": (True, False, True),
    }
    await settle(laptop, phone)
    assert persons(laptop, repo) == {}
    assert held(laptop, repo, phone) is Permission.OWNER
    assert len((await service_of(laptop, tmp_path).people.pairing.list_all())["devices"]) == 1


@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_when_the_first_is_lost_another_begins_anew(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    await service_of(boss, tmp_path).people.members.grant("work", user(laptop), "admin")
    await settle(boss, laptop)
    mine, _ = laptop.create_repo("my notes")
    laptop.create_repo("ours", others=[boss.author.user], council=2)
    await join(phone, laptop, tmp_path)
    await settle(boss, phone)
    removed = (await service_of(phone, tmp_path).people.pairing.remove(user(laptop)))["repos"]
    told = {one["name"]: one for one in removed}
    assert not told["work"]["excluded"], "the first device made it an admin, and is senior"
    again = (
        f"`ravel member exclude work {user(laptop)}` and then `ravel member grant work {user(phone)} admin`"
    )
    assert again in told["work"]["advice"]
    assert f"senior to {user(laptop)[:12]}: {user(boss)[:12]}" in told["work"]["advice"]
    assert not told["my notes"]["excluded"]
    assert "repo fork" in told["my notes"]["advice"], "a founding owner is excluded by nobody"
    assert "propose-removal" in told["ours"]["advice"], "but by a council"
    assert "nobody may" not in told["ours"]["advice"]
    members = service_of(boss, tmp_path).people.members
    assert (await members.remove("work", user(laptop), ""))["devices"] == [user(phone)]
    await members.grant("work", user(phone), "write")
    await settle(boss, phone)
    assert held(boss, work, laptop) is None
    assert persons(phone, mine) == {}
    await join(tablet, phone, tmp_path)
    await settle(boss, phone)
    assert persons(boss, work) == {tablet.author.user: phone.author.user}
    # What it holds as a device it does not give on by itself.
    (given,) = [
        one
        for one in (await service_of(phone, tmp_path).people.pairing.sync())["given"]
        if one["name"] == "my notes"
    ]
    assert f"`ravel member grant 'my notes' {user(tablet)} owner`" in given["advice"]


@pytest.mark.slow
async def test_excluding_one_device_tells_of_the_others(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    service = service_of(boss, tmp_path)
    await settle(boss, laptop, phone)
    await settle(boss, phone)
    done = await service.people.members.remove("work", user(phone), "read", person=False)
    assert (done["devices"], done["other_devices"]) == ([], [user(laptop)])
    done = await service.people.members.remove("work", user(phone), "")
    assert (done["devices"], done["other_devices"]) == ([user(laptop)], [])
    assert held(boss, work, laptop) is held(boss, work, phone) is None


@pytest.mark.slow
async def test_what_a_person_comments_stays_in_one_repo_that_the_devices_share(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone = people[:2]
    laptop.create_repo("work")
    comments = service_of(laptop, tmp_path).branches.comments
    first = await comments.write("work:main", "before the phone came")
    await join(phone, laptop, tmp_path)
    second = await comments.write("work:main", "after it")
    await settle(laptop, phone)
    on_phone = service_of(phone, tmp_path).branches.comments
    await on_phone.write("work:main", "on it")
    for node in (laptop, phone):
        assert [one.name for one in node.replica.repos.values()].count(COMMENTS_REPO) == 1
        listed = (await service_of(node, tmp_path).branches.repo_list.list())["repos"]
        codes = {one["name"]: [part["code"] for part in one["standing"]["parts"]] for one in listed}
        assert (codes[COMMENTS_REPO], codes["work"][0]) == (["own_comments"], "alone")
    for one in (first, second):
        with pytest.raises(ServiceError, match="no comment of yours"):
            await on_phone.edit("work:main", one["commit"], "what the laptop said")
        assert (await comments.delete("work:main", one["commit"]))["offer"] == one["offer"]


@pytest.mark.slow
async def test_a_person_adds_so_many_devices(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop = people[0]
    service = service_of(laptop, tmp_path)
    for number in range(DEVICE_COUNT_MAX - 1):
        link = parse_device_link((await service.people.pairing.add(3600))["link"]).opened()
        other = Author(laptop.replica, UserSeed(f"device {number}".encode().ljust(32)), laptop.hub.clock_ms)
        proof = prove_invitation(link.invitation_seed, link.repo, other.user)
        bodies: list[Body] = [Join(link.invitation, proof), DevicesRepo(laptop.author.user)]
        root = next(
            one for one in laptop.replica.branches.values() if one.branch_id == root_branch(link.repo)
        )
        drafts = [Draft(body) for body in bodies]
        other.write_many(root, drafts)
    assert len((await service.people.pairing.list_all())["devices"]) == DEVICE_COUNT_MAX
    with pytest.raises(ServiceError, match="at most"):
        await service.people.pairing.add(3600)


@pytest.mark.slow
async def test_a_refused_link_for_a_device_leaves_nothing_of_that_person_here(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, phone, other, _ = people

    async def reach(*_: object) -> None:
        """Dial nobody: the two are connected."""

    monkeypatch.setattr(Sharing, "_reach", reach)
    link = device_link_text(await join(phone, laptop, tmp_path))
    async with connected(other, laptop):
        with pytest.raises(ServiceError, match="the link makes you no device: it has been used up"):
            await service_of(other, tmp_path).people.pairing.join(link)
    assert not other.replica.repos
