"""Asking to be let into a repo: by a link without a secret of it, answered by its admins, bounded against strangers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from node.api.services import Services
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.home.people_file import OwnProfile
from node.ingest import membership_effects
from node.membership.lobbies import FORGOTTEN_AFTER_MS, find_repo
from node.observe.sentences import standing_sentence
from node.runtime.errors import ServiceError
from protocol.codec import encode
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Join, Permission
from protocol.formats.links import AskLink, InvitationLink, ask_link_text, invitation_text, parse_ask_link
from protocol.formats.lobbies import encode_note
from protocol.formats.proofs import prove_invitation
from protocol.formats.text import id_text
from protocol.limits.peers import LOBBY_COMMIT_COUNT_MAX, LOBBY_COUNT_MAX
from storage.repos.repos import Repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes
from tests.support.served import assert_listed_as_new, service_of

DAY = 86_400


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "ann", "bob", "cat") as made:
        for node, name in zip(made, ("Ann", "Bob", "Cat"), strict=True):
            node.joiner.profiles.keep(node.joiner.profiles.file.__class__(OwnProfile(name, None, 0)))
        yield made


class People:
    """Ann's repo, and the services of all."""

    def __init__(self, nodes: list[Node], folder: Path) -> None:
        self.ann, self.bob, self.cat = nodes
        self.of = {node: service_of(node, folder) for node in nodes}
        self.repo, self.main = self.ann.create_repo("photos")
        self.ann.write(self.main, "hello")

    def service(self, node: Node) -> Services:
        """Return a node's service."""
        return self.of[node]

    async def link(self, uses: int = 16, expires: int = DAY, permission: str = "write") -> AskLink:
        """Return a link that asks of Ann's."""
        made = await self.service(self.ann).people.requests.make_link("photos", permission, expires, uses)
        return parse_ask_link(made["link"])

    async def ask(self, node: Node, link: AskLink) -> None:
        """Take up a link, and meet Ann."""
        await node.joiner.begin_asking(link)
        await settle(self.ann, node)
        await self.check_lists()

    async def check_lists(self) -> None:
        """Check that each node shows its repos as they are: requests come with commits of other repos, and go with time."""
        for service in self.of.values():
            await assert_listed_as_new(service)

    async def received(self, node: Node | None = None) -> dict[str, str]:
        """Status by name, as an admin's node shows it."""
        answer = await self.service(node or self.ann).people.requests.list_received("photos")
        return {one["name"]: one["status"] for one in answer["requests"]}

    async def made(self, node: Node) -> list[str]:
        """Return what became of a user's own requests."""
        return [one["status"] for one in (await self.service(node).people.requests.list_all())["made"]]

    async def answer(self, name: str, *, accepts: bool = True, node: Node | None = None) -> str:
        """Answer a request; gives its status then."""
        service = self.service(node or self.ann)
        answered = (await service.people.requests.answer("photos", name, accepts=accepts))["status"]
        await self.check_lists()
        return answered

    def held(self, node: Node, by: Node | None = None) -> Permission | None:
        """Return what a user may do in the repo, as a node knows."""
        repo = find_repo((by or node).replica, self.repo.repo_id)
        return None if repo is None else (by or node).replica.permission(repo, node.author.user)

    async def make_admin(self, node: Node) -> None:
        """Make a user an admin of the repo."""
        link = self.ann.invite(self.repo)
        await node.joiner.begin(link)
        await settle(self.ann, node)
        await self.service(self.ann).people.members.grant("photos", id_text(node.author.user), "admin")
        await settle(self.ann, node)


@pytest.fixture
def people(nodes: list[Node], tmp_path: Path) -> People:
    return People(nodes, tmp_path)


async def settle(*nodes: Node) -> None:
    """Connect all to the first for a while, twice."""
    first, *others = nodes
    with fail_after(120):
        for other in [*others, *others]:
            async with connected(other, first):
                await trio.sleep(10)


def lobby_of(node: Node, link: AskLink) -> Repo | None:
    """Return the lobby of a link, where it is here."""
    return find_repo(node.replica, link.opened().repo)


def root_count(node: Node, link: AskLink) -> int:
    """Commits of the lobby on a node."""
    with node.replica.membership_lock:
        return len(node.replica.membership(link.opened().repo).operations)


def forge_request(
    node: Node, lobby: Repo, link: InvitationLink, seed: bytes, *, after: bool = False, name: str = "x"
) -> None:
    """Ask as somebody of that seed, through a node's own store; `after` follows the invitation alone."""
    author = Author(node.replica, UserSeed(seed), node.hub.clock_ms)
    body = Join(link.invitation, prove_invitation(link.invitation_seed, lobby.repo_id, author.user))
    acks = (link.invitation,) if after else None
    draft = Draft(body, acks, metadata=encode_note(name))
    node.hub.announce(author.write(node.replica.root_branch(lobby), draft)[1])


# --- asking ---


@pytest.mark.slow
async def test_a_link_that_asks_opens_nothing_and_an_acceptance_opens_the_repo(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link()
    epoch = people.ann.replica.writing_epoch(people.repo)
    assert epoch.writers_secret is not None
    for secret in (epoch.key, epoch.writers_secret, people.repo.init_key):
        assert bytes(secret) not in encode(link)
    await people.ask(people.bob, link)
    assert find_repo(people.bob.replica, people.repo.repo_id) is None
    assert await people.received() == {"Bob": "waiting"}
    assert await people.made(people.bob) == ["waiting"]
    [seen] = (await people.service(people.ann).people.requests.list_received("photos"))["requests"]
    [own] = (await people.service(people.bob).people.requests.list_all())["made"]
    assert seen["code"] == own["code"]
    assert len(seen["code"].split()) == 6
    assert (own["admin"], own["repo_name"]) == (id_text(people.ann.author.user), "photos")
    assert await people.answer("Bob") == "accepted"
    await settle(people.ann, people.bob)
    assert people.held(people.bob) is Permission.WRITE
    assert await people.made(people.bob) == []
    assert lobby_of(people.bob, link) is None, "it is over"


@pytest.mark.slow
async def test_lists_show_a_request_and_no_lobby(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link()
    await people.ask(people.bob, link)
    [ann] = (await people.service(people.ann).branches.repo_list.list())["repos"]
    [bob] = (await people.service(people.bob).branches.repo_list.list())["repos"]
    assert (ann["name"], ann["requests"]) == ("photos", 1)
    assert "1 user asks to be let in" in standing_sentence(ann["standing"])
    assert (bob["repo"], bob["name"], bob["permission"]) == (ann["repo"], "photos", "joining")
    assert "waiting for an answer; code: " in standing_sentence(bob["standing"])
    assert (await people.service(people.ann).node.show_status())["repos"] == 1
    with pytest.raises(ServiceError, match="photos \\(requests\\)"):
        people.service(people.ann).targets.repo("photos (requests)")
    [view] = (await people.service(people.ann).people.requests.list_links("photos"))["links"]
    assert (view["requests"], view["closed"], view["full"], view["here"]) == (1, False, False, True)


@pytest.mark.slow
async def test_who_is_refused_is_told_and_may_be_accepted_later(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link(permission="read")
    await people.ask(people.bob, link)
    assert await people.answer("Bob", accepts=False) == "refused"
    assert await people.answer("Bob", accepts=False) == "refused"  # said once
    await settle(people.ann, people.bob)
    assert await people.made(people.bob) == ["refused"]
    assert await people.answer("Bob") == "accepted"
    await settle(people.ann, people.bob)
    assert people.held(people.bob) is Permission.READ


@pytest.mark.slow
async def test_a_request_is_taken_back(autojump_clock: trio.testing.MockClock, people: People) -> None:
    link = await people.link()
    await people.ask(people.bob, link)
    await people.ask(people.cat, link)
    await people.service(people.bob).people.requests.cancel("photos")
    assert await people.made(people.bob) == []
    await settle(people.ann, people.bob)
    assert await people.received() == {"Bob": "withdrawn", "Cat": "waiting"}
    with pytest.raises(ServiceError, match="took the request back"):
        await people.answer("Bob")
    assert await people.answer("Cat") == "accepted"  # in the lobby's next epoch, which the leave has made due
    await settle(people.ann, people.cat)
    assert people.held(people.cat) is Permission.WRITE
    assert people.held(people.bob, people.ann) is None


async def test_a_request_that_never_went_out_is_forgotten(people: People) -> None:
    link = await people.link()
    await people.bob.joiner.begin_asking(link)
    assert await people.made(people.bob) == ["sending"]
    await people.service(people.bob).people.requests.cancel("photos")
    assert dict(people.bob.replica.repos) == {}
    await people.bob.joiner.begin_asking(link)  # so the same link can be taken up again
    assert await people.made(people.bob) == ["sending"]


# --- several admins ---


@pytest.mark.slow
async def test_two_admins_accept_at_once(autojump_clock: trio.testing.MockClock, people: People) -> None:
    await people.make_admin(people.cat)
    link = await people.link()
    await people.ask(people.bob, link)
    await settle(people.ann, people.cat)
    assert await people.received(people.cat) == {"Bob": "waiting"}
    assert await people.answer("Bob") == "accepted"
    assert await people.answer("Bob", node=people.cat) == "accepted"  # neither has seen the other's answer
    await settle(people.ann, people.cat, people.bob)
    assert people.held(people.bob) is Permission.WRITE
    assert await people.received() == await people.received(people.cat) == {"Bob": "accepted"}


@pytest.mark.slow
async def test_accepting_twice_writes_nothing_more(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link()
    await people.ask(people.bob, link)
    assert await people.answer("Bob") == "accepted"
    lobby, root = root_count(people.ann, link), people.ann.digest(people.ann.replica.root_branch(people.repo))
    assert await people.answer("Bob") == "accepted"
    assert root_count(people.ann, link) == lobby
    assert people.ann.digest(people.ann.replica.root_branch(people.repo)) == root
    with pytest.raises(ServiceError, match="was accepted"):
        await people.answer("Bob", accepts=False)


@pytest.mark.slow
async def test_an_excluded_admin_lets_nobody_in(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    # The link of an excluded admin is of no use with any node that knows of the exclusion; other admins' links are.
    await people.make_admin(people.cat)
    made = await people.service(people.cat).people.requests.make_link("photos", "write", DAY, 16)
    link = parse_ask_link(made["link"])
    await settle(people.ann, people.cat)
    assert lobby_of(people.ann, link) is not None
    await people.service(people.ann).people.members.remove("photos", id_text(people.cat.author.user), "")
    await settle(people.ann)
    await people.bob.joiner.begin_asking(link)
    await settle(people.cat, people.bob)  # cat has not heard of it
    assert await people.answer("Bob", node=people.cat) == "accepted"
    await settle(people.cat, people.bob)
    await settle(people.ann, people.bob, people.cat)
    assert lobby_of(people.ann, link) is None
    assert people.held(people.bob, people.ann) is None
    assert people.held(people.bob) is None
    with pytest.raises(ServiceError, match="needs the permission admin"):
        await people.answer("Bob", node=people.cat)


async def test_only_admins_make_links_and_answer(people: People) -> None:
    await people.link()
    other = Author(people.ann.replica, UserSeed(b"o" * 32), people.ann.hub.clock_ms)
    requests = people.service(people.ann).people.requests
    requests._author = other
    for call in (
        requests.make_link("photos", "write", DAY, 1),
        requests.close_link("photos", "x"),
        requests.answer("photos", "Bob", accepts=True),
    ):
        with pytest.raises(ServiceError, match="needs the permission admin"):
            await call


# --- links ---


@pytest.mark.slow
async def test_nobody_is_accepted_by_a_link_that_was_ended(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link()
    await people.ask(people.bob, link)
    [view] = (
        await people.service(people.ann).people.requests.close_link("photos", id_text(link.opened().repo))
    )["links"]
    assert view["closed"]
    with pytest.raises(ServiceError, match="ended after that user asked"):
        await people.answer("Bob")
    await settle(people.ann, people.bob)
    assert await people.made(people.bob) == ["closed"]
    await people.ask(people.cat, link)
    assert await people.made(people.cat) == ["failed"]
    assert await people.received() == {"Bob": "closed"}


@pytest.mark.slow
async def test_an_expired_link_asks_nothing_and_its_requests_are_over(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link(expires=1)
    await people.ask(people.bob, link)
    people.ann.hub.clock_ms = lambda: link.opened().expires_at + 1
    assert await people.received() == {"Bob": "expired"}
    with pytest.raises(ServiceError, match="has expired"):
        await people.answer("Bob")
    service = people.service(people.cat)
    service.people.sharing._clock = lambda: (link.opened().expires_at + 1) / 1000
    with pytest.raises(ServiceError, match=r"the link has expired.*the clock here says") as caught:
        await service.branches.repos.join(ask_link_text(link))
    assert "if the clock is wrong" in caught.value.advice
    with pytest.raises(
        ServiceError, match=r"the invitation has expired: it was good until.*the clock here says"
    ):
        await service.branches.repos.join(invitation_text(link.opened()))
    people.ann.joiner.lobbies._clock_ms = lambda: link.opened().expires_at + FORGOTTEN_AFTER_MS
    assert not people.ann.joiner.lobbies.forget_ended()
    people.ann.joiner.lobbies._clock_ms = lambda: link.opened().expires_at + FORGOTTEN_AFTER_MS + 1
    assert people.ann.joiner.lobbies.forget_ended()
    assert lobby_of(people.ann, link) is None
    assert people.ann.joiner.lobbies.find_stated(people.ann.replica.repos.values()) == []


@pytest.mark.slow
async def test_a_link_that_names_another_repo_than_its_lobby_asks_nothing(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    link = await people.link()
    other, _ = people.bob.create_repo("other")
    forged = AskLink(other.repo_id, "other", 2, link.lobby)
    await people.ask(people.cat, forged)
    [view] = (await people.service(people.cat).people.requests.list_all())["made"]
    assert (view["status"], view["reason"]) == ("failed", "the link names another repo than its lobby does")
    assert await people.received() == {}


async def test_what_is_not_there_names_the_command_that_lists_it(people: People) -> None:
    requests = people.service(people.ann).people.requests
    for call, command in (
        (requests.answer("photos", "nobody", accepts=True), "ravel requests list"),
        (requests.cancel("photos"), "ravel requests list"),
        (requests.close_link("photos", "none"), "ravel requests links REPO"),
    ):
        with pytest.raises(ServiceError) as error:
            await call
        assert (error.value.code, error.value.advice) == ("not_found", f"`{command}` shows what there is")


async def test_a_member_asks_nothing(people: People) -> None:
    link = await people.link()
    with pytest.raises(ServiceError, match="you are a member of photos"):
        await people.service(people.ann).branches.repos.join(ask_link_text(link))


async def test_a_node_follows_so_many_links_at_once_and_no_more(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.membership.requests.LOBBY_COUNT_MAX", 2)
    assert LOBBY_COUNT_MAX == 64
    await people.link()
    await people.link()
    with pytest.raises(ServiceError, match="follows 2 links that ask") as error:
        await people.link()
    assert error.value.code == "too_large"


# --- strangers who hold a link ---


@pytest.mark.slow
async def test_who_asks_ten_thousand_times_fills_one_lobby_to_its_bound(
    autojump_clock: trio.testing.MockClock, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same rule at a bound of 24 instead of 256: what comes beyond is dropped, and owners still answer.
    assert LOBBY_COMMIT_COUNT_MAX == 256
    link = await people.link(uses=128)
    await people.ask(people.bob, link)
    lobby = lobby_of(people.bob, link)
    assert lobby is not None
    for number in range(40):  # concurrent ones pass the rules, whatever the link says
        forge_request(people.bob, lobby, link.opened(), bytes([number + 1]) * 32, after=True)
    assert root_count(people.bob, link) > 40
    monkeypatch.setattr(membership_effects, "LOBBY_COMMIT_COUNT_MAX", 24)
    monkeypatch.setattr("node.membership.requests.LOBBY_COMMIT_COUNT_MAX", 24)
    await settle(people.ann, people.bob)
    assert root_count(people.ann, link) == 24
    assert people.ann.hub.totals.refused["lobby_full"] > 0
    [view] = (await people.service(people.ann).people.requests.list_links("photos"))["links"]
    assert view["full"]
    assert await people.answer("Bob") == "accepted"
    assert root_count(people.ann, link) == 25
    monkeypatch.setattr(membership_effects, "LOBBY_OWN_COUNT_MAX", 25)
    request = next(
        one["request"]
        for one in (await people.service(people.ann).people.requests.list_received("photos"))["requests"]
        if one["status"] == "waiting"
    )
    with pytest.raises(ServiceError, match="as much as a link may"):
        await people.answer(request, accepts=False)


@pytest.mark.slow
async def test_a_replayed_request_is_the_same_one_and_one_of_another_link_is_none(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    first, second = await people.link(), await people.link()
    await people.ask(people.bob, first)
    await people.ask(people.bob, first)
    lobby = lobby_of(people.ann, second)
    assert lobby is not None
    proof = prove_invitation(first.opened().invitation_seed, first.opened().repo, people.bob.author.user)
    stolen = Author(people.ann.replica, people.bob.user_seed, people.ann.hub.clock_ms)
    for invitation in (first.opened().invitation, second.opened().invitation):
        with pytest.raises(ServiceError, match="M4"):
            stolen.write(people.ann.replica.root_branch(lobby), Join(invitation, proof))
    assert await people.received() == {"Bob": "waiting"}


@pytest.mark.slow
async def test_a_huge_name_and_one_that_looks_like_a_members(
    autojump_clock: trio.testing.MockClock, people: People
) -> None:
    await people.service(people.ann).people.profiles.state_me("Ann", None)
    link = await people.link()
    await people.ask(people.bob, link)
    lobby = lobby_of(people.ann, link)
    assert lobby is not None
    forge_request(people.ann, lobby, link.opened(), b"1" * 32, name="x" * 65)
    forge_request(
        people.ann, lobby, link.opened(), b"2" * 32, name="\u0410nn"
    )  # begins with a Cyrillic letter
    found = (await people.service(people.ann).people.requests.list_received("photos"))["requests"]
    assert [(one["name"], one["looks_alike"]) for one in found] == [
        ("Bob", False),
        ("", False),
        ("\u0410nn", True),
    ]
