"""A person's place passes to another device: one person everywhere, and what the old key still does beside it."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import pytest
from trio.testing import MockClock

from node.authoring.writing import write_commit
from node.membership.members import Members
from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.formats.links import device_link_text, parse_invitation
from protocol.formats.profiles import Profile
from protocol.ids import AnyId
from storage.commits.commits import load_timeline
from storage.engine.errors import StorageError
from storage.repos.repos import Branch, Repo
from tests.support.devices import add, held, join, member_of, persons, repo_of, settle, user
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of
from tests.support.stores import KeptFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,  # rules are not about rows
]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "laptop", "phone", "tablet", "boss") as nodes:
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


def shown(node: Node, repo: Repo, author: Node) -> tuple[str, str]:
    """Return how a node names an author in a repo, and that one's person."""
    here = repo_of(node, repo)
    assert here is not None
    names, told = node.replica.people, node.replica.persons(repo.repo_id)
    one = author.author.user
    return names.name(repo.repo_id, one), names.name(repo.repo_id, told.get(one, one))


def count_posts(node: Node, repo: Repo, author: Node) -> int:
    """Count what a node shows of an author's in the main branch, beside the branch's own first commit."""
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, main_of(node, repo).num, 0, 100)
    return sum(row.author == author.author.user and not row.is_void for row in rows[1:])


def members(node: Node, folder: Path) -> Members:
    """Return what changes the members of a node's repos."""
    return service_of(node, folder).people.members


async def test_a_phone_takes_the_place_of_its_person(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    own, _ = laptop.create_repo("own")
    await join(phone, laptop, tmp_path)
    await join(tablet, laptop, tmp_path)
    await settle(laptop, boss, phone, tablet)
    await write_commit(laptop.hub, laptop.author, root_of(laptop, work), Profile("Ann", 3))
    await write_commit(phone.hub, phone.author, root_of(phone, work), Profile("Pocket", None))
    laptop.write(main_of(laptop, work), "from the laptop")
    await settle(laptop, phone, tablet)
    done = (await service_of(laptop, tmp_path).people.pairing.promote("Pocket"))["repos"]
    assert {one["name"]: (one["moved"], one["advice"]) for one in done} == dict.fromkeys(
        ["work", "own", "devices"], (True, "")
    )
    assert done[-1]["name"] == "devices", "the last, so that the command can be repeated"
    again = (await service_of(laptop, tmp_path).people.pairing.promote("Pocket"))["repos"]
    assert [one["already"] for one in again] == [True, True, True]
    with pytest.raises(ServiceError, match="your place has passed to the computer Pocket") as refused:
        laptop.write(main_of(laptop, work), "too late")
    assert refused.value.advice == "write there"
    # The boss was offline all the while, and hears of it from the phone.
    await settle(laptop, phone, tablet)
    await settle(phone, boss, tablet)
    await settle(phone, boss, tablet)
    for node in (boss, phone, tablet):
        assert [held(node, work, one) for one in (laptop, phone, tablet)] == [
            None,
            Permission.WRITE,
            Permission.WRITE,
        ]
        assert persons(node, work) == dict.fromkeys(
            (laptop.author.user, tablet.author.user), phone.author.user
        ), node.seed
        assert shown(node, work, laptop) == shown(node, work, phone) == ("Ann", "Ann")
        assert count_posts(node, work, laptop) == 1
    assert (await service_of(phone, tmp_path).people.profiles.show_me())["shown"] == "Ann"
    assert (await service_of(boss, tmp_path).people.profiles.show_me())["shown"] == ""
    boss.replica.people.set_petnames({AnyId(laptop.author.user): "Anna"}, {})
    assert shown(boss, work, phone) == ("Anna", "Anna"), "a petname of the old key is the person's"
    rows = (await members(boss, tmp_path).list_all("work"))["members"]
    assert {one["user"]: (one["person"], one["petname"]) for one in rows if one["user"] != user(boss)} == {
        user(phone): (user(phone), "Anna"),
        user(tablet): (user(phone), "Anna"),
    }
    changes = (await service_of(boss, tmp_path).people.member_changes.list_latest("work", 9, 0))["changes"]
    (moved,) = [one for one in changes if one["kind"] == "moved"]
    assert (moved["user"], moved["author"], moved["device_name"]) == (user(phone), user(laptop), "Pocket")
    # Secrets that the old key has not: who acts first starts the epoch.
    phone.write(main_of(phone, work), "from the phone")
    phone.write(main_of(phone, own), "from the phone")
    await settle(phone, boss, laptop, tablet)
    assert [count_posts(node, work, phone) for node in (boss, tablet, laptop)] == [1, 1, 0]
    listed = await service_of(laptop, tmp_path).people.pairing.list_all()
    assert (listed["devices"], listed["moved_to"], listed["moved_to_name"]) == ([], user(phone), "Pocket")

    # The old key founds no second person: it makes no devices, removes none, and comes back by no link.
    pairing, link = service_of(laptop, tmp_path).people.pairing, await add(phone, tmp_path)
    for asked in (
        lambda: pairing.add(3600),
        lambda: pairing.remove(user(phone)),
        lambda: pairing.join(device_link_text(link)),
    ):
        with pytest.raises(ServiceError, match="your place has passed to the computer Pocket on"):
            await asked()
    assert (await pairing.list_all())["moved_to"] == user(phone)


async def test_a_place_that_passed_in_some_repos_passes_to_no_other_device(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    laptop.create_repo("own")
    await join(phone, laptop, tmp_path)
    await join(tablet, laptop, tmp_path)
    await settle(laptop, boss, phone, tablet)
    pairing = service_of(laptop, tmp_path).people.pairing
    full = Mock(wraps=laptop.author.write_many, side_effect=[DEFAULT, StorageError("the disk is full")])
    with monkeypatch.context() as patched:
        patched.setattr(laptop.author, "write_many", full)
        with pytest.raises(StorageError):
            await pairing.promote(user(phone))
    assert held(laptop, work, laptop) is None, "it passed here before the failure"
    with pytest.raises(ServiceError, match=f"your place in work has passed to {user(phone)}") as refused:
        await pairing.promote(user(tablet))
    assert f"`ravel device promote {user(phone)}`" in refused.value.advice
    done = (await pairing.promote(user(phone)))["repos"]
    assert [(one["name"], one["moved"], one["already"]) for one in done] == [
        ("work", False, True),
        ("own", True, False),
        ("devices", True, False),
    ]


async def test_where_others_let_the_device_in_an_admin_takes_it_out_first(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(laptop, boss, phone)
    await members(boss, tmp_path).grant("work", user(phone), "admin")
    await settle(laptop, boss)
    pairing = service_of(laptop, tmp_path).people.pairing
    first, devices = (await pairing.promote(user(phone)))["repos"]
    assert (first["moved"], devices["moved"]) == (False, True)
    assert first["advice"] == (
        "others let the device in here; have an admin run "
        f"`ravel member exclude --alone work {user(phone)}`; run this again once that has come here"
    )
    await members(boss, tmp_path).remove("work", user(phone), "", person=False)
    await settle(laptop, boss)
    first, devices = (await pairing.promote(user(phone)))["repos"]
    assert (first["moved"], devices["already"]) == (True, True)
    assert held(laptop, work, phone) is Permission.WRITE


async def test_the_new_first_device_adds_and_removes_others(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(laptop, boss, phone)
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone, boss)
    await settle(phone, boss)
    await join(tablet, phone, tmp_path)
    await settle(phone, tablet, boss)
    await settle(phone, tablet, boss)
    assert held(boss, work, tablet) is Permission.WRITE
    assert persons(boss, work)[tablet.author.user] == phone.author.user
    later, _ = phone.create_repo("later")
    await settle(phone, tablet)
    await settle(phone, tablet)
    assert held(phone, later, tablet) is Permission.OWNER
    done = (await service_of(phone, tmp_path).people.pairing.remove(user(tablet)))["repos"]
    assert {one["name"]: (one["excluded"], one["advice"]) for one in done} == dict.fromkeys(
        ["work", "devices", "later"], (True, "")
    )


async def test_devices_that_the_old_key_let_in_are_the_new_ones_to_remove(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, boss = people
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await join(tablet, laptop, tmp_path)
    await settle(laptop, boss, phone, tablet)
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone, boss, tablet)
    await settle(phone, boss, tablet)
    done = (await service_of(phone, tmp_path).people.pairing.remove(user(tablet)))["repos"]
    assert {one["name"]: (one["excluded"], one["advice"]) for one in done} == dict.fromkeys(
        ["work", "devices"], (True, "")
    )
    await settle(phone, boss)
    assert held(boss, work, tablet) is None
    assert persons(boss, work) == {laptop.author.user: phone.author.user}


async def test_who_excludes_a_person_stops_the_key_from_which_its_place_came(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, _, boss = people
    await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(laptop, boss, phone)
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone, boss)
    await settle(phone, boss)
    ruling = members(boss, tmp_path)
    done = await ruling.remove("work", user(phone), "")
    assert done["devices"] == [user(laptop)]
    with pytest.raises(ServiceError, match="no more"):
        await ruling.remove("work", user(laptop), "")


async def test_a_device_that_a_copy_of_the_old_key_lets_in_gets_nothing_from_the_new_one(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, tablet, _ = people
    own, _ = laptop.create_repo("own")
    await join(phone, laptop, tmp_path)
    KeptFolder(laptop.folder).write_to(tmp_path / "copy")
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone)
    thief = Node(tmp_path / "copy", "laptop")
    try:
        await join(tablet, thief, tmp_path / "copy")
        await settle(phone, tablet)
        later, _ = phone.create_repo("later")
        await settle(phone, tablet)
    finally:
        thief.replica.close()
    assert held(phone, own, tablet) is Permission.OWNER, "which the copy gave it"
    assert held(phone, later, tablet) is None
    listed = (await service_of(phone, tmp_path).people.pairing.list_all())["devices"]
    assert user(tablet) in [one["user"] for one in listed], "so that it is seen"
    await service_of(phone, tmp_path).people.pairing.remove(user(tablet))
    assert held(phone, own, tablet) is None


async def test_a_link_of_the_old_key_ends_with_its_last_use(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Its maker wanted new secrets then, and has another key by now."""
    laptop, phone, _, other = people
    own, _ = laptop.create_repo("own")
    await join(phone, laptop, tmp_path)
    await settle(laptop, phone)
    made = await service_of(laptop, tmp_path).people.invite("own", "write", 3600, 1, "machine", True)
    link = parse_invitation(made["invitation"])
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone)
    await other.joiner.begin(link)
    await settle(phone, other)
    assert held(phone, own, other) is Permission.WRITE
    membership = phone.replica.membership(own.repo_id)
    (invitation,) = membership.operations.invitations
    assert [one.author for one in membership.operations.revocations_of(invitation.commit_id)] == [
        phone.author.user
    ]


async def test_somebody_who_left_is_excluded_by_name(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, _, _, boss = people
    work = await member_of(boss, laptop)
    await write_commit(laptop.hub, laptop.author, root_of(laptop, work), Profile("Ben", None))
    await members(laptop, tmp_path).leave("work", force=False)
    await settle(laptop, boss)
    ruling = members(boss, tmp_path)
    with pytest.raises(ServiceError, match=r"nobody|no member"):
        await ruling.remove("work", "Cat", "")
    await ruling.remove("work", "Ben", "")
    changes = (await service_of(boss, tmp_path).people.member_changes.list_latest("work", 9, 0))["changes"]
    assert [one["kind"] for one in changes][-2:] == ["left", "excluded"]
    with pytest.raises(ServiceError, match="no member"):
        await ruling.remove("work", "Ben", "")


async def test_a_copy_of_the_old_key_writes_beside_the_move_until_it_is_excluded(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    laptop, phone, copy, boss = people
    copy.replica.close()
    copy.user_seed = laptop.user_seed
    copy.open()
    work = await member_of(boss, laptop)
    await join(phone, laptop, tmp_path)
    await settle(laptop, boss, phone)
    await copy.joiner.follow(boss.capability())
    await settle(boss, copy)
    await service_of(laptop, tmp_path).people.pairing.promote(user(phone))
    await settle(laptop, phone, boss)
    copy.replica.own_feeds.uncertain = frozenset()  # a thief's node asks nobody
    copy.write(main_of(copy, work), "beside the move")
    await settle(boss, copy)
    assert count_posts(boss, work, laptop) == 1, "it acts by an older past"

    # Exclusion of the person names the old key too: what it writes without knowing of it is void.
    await members(boss, tmp_path).remove("work", user(phone), "")
    assert count_posts(boss, work, laptop) == 1, "what the excluder had seen stays"
    with pytest.raises(ServiceError):
        copy.write(main_of(copy, work), "after it has heard of the move")
