"""Names that users state: in every repo, once a minute at most; petnames stay on the node."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from node.authoring.drafting import Draft
from node.home.people_file import OwnProfile, PeopleFile, read_people
from node.ingest.ingest_result import IngestResult
from node.membership.profiles import ProfileKeeper
from node.runtime.errors import ServiceError
from protocol.formats.body import Body, Permission
from protocol.formats.profiles import Profile
from protocol.formats.text import id_text
from protocol.ids import AnyId, UserId
from protocol.limits.formats import PROFILE_INTERVAL_MS
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, members_of, open_nodes, together, until_equal
from tests.support.served import service_of

MINUTE = PROFILE_INTERVAL_MS
START = 100 * MINUTE


class Clock:
    """Milliseconds that the test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def keeper_of(node: Node, clock: Clock) -> ProfileKeeper:
    """Return the keeper that states the name of a node's user, by a clock of the test's."""
    return ProfileKeeper(node.replica, node.author, clock, node.replica.database.folder)


def call(keeper: ProfileKeeper, name: str | None, at: int) -> float | None:
    """Give the user a name from then on; return in how many seconds more can be stated."""
    keeper.keep(msgspec.structs.replace(keeper.file, me=OwnProfile(name, None, at)))
    return keeper.state(IngestResult())


def names(node: Node, of: Node) -> str:
    """Return how a node shows another's user in its one repo."""
    return node.replica.people.name(node.repo().repo_id, of.author.user)


def count_root(node: Node) -> int:
    """Commits of the root branch of the one repo."""
    return len(node.replica.membership(node.repo().repo_id).operations)


def say(node: Node, body: Body) -> None:
    """Write a body in the root branch of the one repo."""
    node.author.write(node.replica.root_branch(node.repo()), body)


def test_a_name_is_stated_once_in_each_repo_also_in_later_ones(nodes: list[Node]) -> None:
    alice, _ = nodes
    alice.create_repo("first")
    keeper = keeper_of(alice, Clock())
    keeper.state(IngestResult())
    assert count_root(alice) == 2, "who never said a name states none"
    assert call(keeper, "Alice", START) is None
    assert (names(alice, alice), count_root(alice)) == ("Alice", 3)
    keeper.state(IngestResult())
    assert count_root(alice) == 3
    repo, ingested = alice.author.founding.create_repo("second")
    alice.hub.announce(ingested)
    assert [keeper.statement_status(one) for one in alice.replica.repos.values()] == ["stated", "due"]
    keeper.state(IngestResult())
    assert alice.replica.people.name(repo.repo_id, alice.author.user) == "Alice"
    call(keeper, None, START + MINUTE)


def test_who_comes_back_has_the_name_of_before_until_another_is_said(nodes: list[Node]) -> None:
    alice, _ = nodes
    alice.create_repo("first")
    say(alice, Profile("Alice", 5))
    keeper = keeper_of(alice, Clock())
    keeper.state(IngestResult())
    assert (keeper.me.name, keeper.me.color, count_root(alice)) == ("Alice", 5, 3)
    assert read_people(alice.replica.database.folder).me == keeper.me
    later = Draft(Profile("Alice Lee", 6), timestamp=keeper.me.stated_at + MINUTE)
    repo, ingested = alice.author.founding.create_repo("second")
    alice.author.write_many(alice.replica.root_branch(repo), [later], stored=IngestResult())
    alice.hub.announce(ingested)
    keeper.state(IngestResult())
    assert (keeper.me.name, keeper.me.color) == ("Alice Lee", 6), "said in a repo that came after the first"
    call(keeper, "Alicia", keeper.next_stated_at())
    keeper.state(IngestResult())
    assert keeper.me.name == "Alicia"


def test_a_second_name_waits_for_the_next_minute(nodes: list[Node]) -> None:
    alice, _ = nodes
    alice.create_repo()
    clock = Clock()
    keeper = keeper_of(alice, clock)
    call(keeper, "Alice", START)
    clock.now += 10_000
    assert call(keeper, "Alicia", clock.now) == 50.0
    assert (names(alice, alice), count_root(alice)) == ("Alice", 3)
    assert keeper.statement_status(alice.repo()) == "due"
    clock.now = START + MINUTE
    assert keeper.state(IngestResult()) is None
    assert (names(alice, alice), count_root(alice)) == ("Alicia", 4)


def test_what_another_node_of_the_user_said_later_stays(nodes: list[Node]) -> None:
    alice, _ = nodes
    alice.create_repo()
    say(alice, Profile("later", None))
    clock = Clock()
    keeper = keeper_of(alice, clock)
    known = alice.replica.people.stated(alice.repo().repo_id)[alice.author.user]
    call(keeper, "earlier", known.stated_at - 1)
    assert (names(alice, alice), keeper.statement_status(alice.repo())) == ("later", "stated")
    clock.now = known.stated_at - 5 * MINUTE
    assert keeper.next_stated_at() == known.stated_at + 1, "also by a clock that is behind"
    call(keeper, "now", keeper.next_stated_at())
    assert names(alice, alice) == "now"


def test_memory_shows_what_the_store_has(nodes: list[Node]) -> None:
    alice, _ = nodes
    alice.create_repo()
    for number in range(30):
        say(alice, Profile(f"name {number}", number % 16))
    shown = dict(alice.replica.people.stated(alice.repo().repo_id))
    assert len(shown) == 1
    alice.replica.close()
    alice.open()
    assert dict(alice.replica.people.stated(alice.repo().repo_id)) == shown


@pytest.mark.slow
async def test_members_see_the_names_of_others_and_readers_state_none(
    nodes: list[Node], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    alice, bob = nodes
    repo, _ = alice.create_repo()
    with fail_after(60):
        await service_of(alice, tmp_path).people.profiles.state_me("Alice", 3)
        await bob.joiner.begin(alice.invite(repo, Permission.READ))
        async with connected(bob, alice):
            await until_equal(alice, bob, "root")
            await until_equal(alice, bob)
        await together(alice, bob)
        people = service_of(bob, tmp_path).people.profiles
        assert names(bob, alice) == "Alice"
        own = await people.state_me("Bob", None)
        assert [one["state"] for one in own["repos"]] == ["not_permitted"]
        await members_of(alice).grant("", id_text(bob.author.user), "write")
        await together(alice, bob)  # bob's node states it by itself
        assert (names(alice, bob), names(bob, bob)) == ("Bob", "Bob")
        petnames = service_of(alice, tmp_path).people.profiles
        await petnames.set_petname("Bob", "Robert", peer=False)
        with pytest.raises(ServiceError, match="who states that name is called 'Robert'"):
            await members_of(alice).remove("", "Bob", "")
        await petnames.set_petname("Robert", None, peer=False)
        await members_of(alice).remove("", "Bob", "")
        assert names(alice, bob) == "Bob", "a former member is shown by its name"
        (member,) = (await members_of(alice).list_all(""))["members"]
        assert (member["name"], member["stated_name"], member["color"]) == ("Alice", "Alice", 3)


async def test_petnames_stay_in_the_folder_and_are_found_again(nodes: list[Node], tmp_path: Path) -> None:
    alice, bob = nodes
    alice.create_repo()
    people = service_of(alice, tmp_path).people.profiles
    other = id_text(bob.author.user)
    await people.set_petname(other, "Bob from work", peer=False)
    await people.set_petname(id_text(bob.key), "Bob's laptop", peer=True)
    assert (names(alice, bob), count_root(alice)) == ("Bob from work", 2)
    assert (await people.list_petnames()) == {
        "petnames": [{"user": other, "name": "Bob from work"}],
        "peers": [{"user": id_text(bob.key), "name": "Bob's laptop"}],
    }
    folder = alice.replica.database.folder
    assert read_people(folder).names() == (
        {AnyId(bob.author.user): "Bob from work"},
        {AnyId(bob.key): "Bob's laptop"},
    )
    keeper_of(alice, Clock())
    assert names(alice, bob) == "Bob from work", "as a start reads it"
    await people.set_petname("bob from work", None, peer=False)
    await people.set_petname("Bob's laptop", None, peer=True)
    await people.set_petname(id_text(bob.key), "Zoe\u0308", peer=True)
    await people.set_petname("Zoe\u0308", None, peer=True)
    await people.set_petname(id_text(UserId(bytes(32))), "Zo\xeb", peer=False)  # a user of no repo
    await people.set_petname("Zoe\u0308", None, peer=False)
    assert (names(alice, bob), read_people(folder).petnames) == ("", {})
    with pytest.raises(ServiceError, match="nobody here"):
        await people.set_petname("Bob", "Robert", peer=False)


async def test_what_is_no_name_is_refused_before_anything_is_kept(nodes: list[Node], tmp_path: Path) -> None:
    alice, bob = nodes
    alice.create_repo()
    people = service_of(alice, tmp_path).people.profiles
    for name in ("", " ", "A\u202eB", "x" * 65, "\u200b", id_text(bob.author.user)):
        with pytest.raises(ServiceError) as caught:
            await people.state_me(name, None)
        assert caught.value.code == "bad_request"
        with pytest.raises(ServiceError):
            await people.set_petname(id_text(bob.author.user), name, peer=False)
    assert read_people(alice.replica.database.folder) == PeopleFile()
    assert count_root(alice) == 2
