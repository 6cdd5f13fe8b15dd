"""A stolen copy of a home, an owner who was replaced and a lost phone read nothing new, though they hear everything.

Each time members then write in every way that there is, and the outsider gets all of it: by sessions with members, from a
relay, and as a bundle.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import trio
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.content import texts as texts_module
from node.content.search import Question
from node.content.search_indexer import SearchIndexer
from node.content.search_words import parse_query
from node.contract.json_documents import JsonChange
from node.ingest.ingest_result import IngestResult
from node.membership.quorums import Quorums
from protocol.formats.body import Permission
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT, SET
from protocol.formats.links import parse_device_link
from protocol.formats.text import id_text
from protocol.ids import RepoId
from storage.repos.repos import Branch, Repo
from tests.support.blocking import inline
from tests.support.editors import Editor
from tests.support.exports import export_node
from tests.support.looking import look_here
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, members_of, open_nodes, renewing_of, share
from tests.support.relays import open_relay
from tests.support.served import service_of
from tests.support.stores import KeptFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.sqlite,  # what is copied is a folder, and its rows lie in it
]
LATER = "afterwards"
"""A word that nobody wrote before."""
_MANY, _AT_ONCE = 10_000, 500
"""Posts after the theft, and those of one write."""


class Room:
    """A repo as one node has it, in which a branch is called main."""

    def __init__(self, node: Node, folder: Path, repo_id: RepoId) -> None:
        self.node, self._folder, self._repo_id = node, folder / f"service of {node.folder.name}", repo_id
        self.service = service_of(node, self._folder).branches

    @property
    def repo(self) -> Repo:
        """Return the repo."""
        return next(one for one in self.node.replica.repos.values() if one.repo_id == self._repo_id)

    @property
    def main(self) -> Branch:
        """Return its main branch."""
        return next(one for one in self.node.replica.branches_in(self.repo.num) if one.name == "main")

    async def write(self) -> None:
        """Write in every way that there is."""
        branch, service = id_text(self.main.branch_id), self.service
        await service.posts.write(branch, LATER)
        await service.files.add(branch, f"{LATER}.txt", _pieces(LATER.encode()))
        await service.documents.edit(SET, branch, {LATER: ""})
        await service.documents.edit(DICT, branch, {"key": LATER})
        await service.json_documents.edit(
            branch, "", [JsonChange("put", ["key"], value=LATER)], preview=False
        )
        client = (await service.texts.open(branch))["client"]
        await service.texts.push(branch, Editor(client).write(0, LATER))

    async def read(self) -> dict[str, str]:
        """Return what the node shows, by the way in which it does."""
        branch, service = id_text(self.main.branch_id), self.service
        indexer = SearchIndexer(self.node.hub, is_enabled=True)
        while indexer.work():
            pass
        export_node(self.node.replica.database, self._folder / "export", "node", 1)
        parts = sorted((self._folder / "export").rglob("commits*/**/*.parquet"))
        exported = [repr(row) for part in parts for row in pq.read_table(part).to_pylist()]
        shown = {
            "timeline": await service.timelines.window(branch, 0, 1000),
            "files": await service.files.window(branch, 0, 1000),
            "set": (await service.documents.read_window(SET, branch, 0, 100)).entries,
            "dict": (await service.documents.read_window(DICT, branch, 0, 100)).entries,
            "json": await service.json_documents.show(branch, ""),
            "text": (await service.texts.pull(branch, "t"))["text"],
            "search": (await service.search.find(Question(parse_query(LATER), [self.main], 20))).hits,
        }
        return {name: repr(one) for name, one in shown.items()} | {"export": repr(sorted(exported))}

    async def bundle(self) -> bytes:
        """Return all of the repo as a file."""
        branches = self.node.replica.branches_in(self.repo.num)
        parts = write_bundle(self.node.replica, self.repo, branches, None, inline())
        return b"".join([part async for part in parts])


async def _pieces(*contents: bytes) -> AsyncGenerator[bytes]:
    for content in contents:
        yield content


def _quorums_of(node: Node) -> Quorums:
    return Quorums(node.hub, node.author, lambda _: node.repo(), node.branch)


async def _meet(*nodes: Node) -> None:
    """Connect all to the first for a while, twice."""
    first, *others = nodes
    for other in [*others, *others]:
        async with connected(other, first):
            await trio.sleep(10)


async def assert_reads_nothing(outsider: Room, *members: Room, folder: Path) -> None:
    """Assert that members read what they write now, and that the outsider, who hears all of it, reads as much as before."""
    before = await outsider.read()
    nodes = [one.node for one in members]
    with open_relay(folder) as relay:
        for one in members:
            await one.write()
            await _meet(relay, *nodes)
        await _meet(outsider.node, relay, *nodes)
    await read_bundle(outsider.node.hub, outsider.node.joiner, _pieces(await members[0].bundle()))
    for one in members:
        assert all(LATER in said for name, said in (await one.read()).items() if name != "export")
    after = await outsider.read()
    assert not [name for name, said in after.items() if LATER in said]
    assert after == before
    known = {one.epoch_id for one in outsider.node.replica.tables.epochs.values()}
    assert members[0].node.replica.writing_epoch(members[0].repo).epoch_id not in known


@pytest.fixture(autouse=True)
def _texts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "run_worker", look_here)


async def test_a_copied_home_reads_nothing_after_a_fresh_key_and_the_next_epoch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob), fail_after(600):
        await share(alice, bob)
        KeptFolder(tmp_path / "bob").write_to(tmp_path / "copy")
        thief = Node(tmp_path / "copy", "bob")
        try:
            await renewing_of(bob).refresh("")
            bob.write(bob.branch(), "once")
            await _meet(alice, bob)
            await renewing_of(alice).renew("")
            await _meet(alice, bob, thief)
            for begin in range(0, _MANY, _AT_ONCE):
                drafts = [Draft(Post(f"{LATER} {number}")) for number in range(begin, begin + _AT_ONCE)]
                alice.author.write_many(alice.branch(), drafts, stored=IngestResult())
            rooms = [Room(one, tmp_path, alice.repo().repo_id) for one in (thief, alice, bob)]
            await assert_reads_nothing(*rooms, folder=tmp_path / "relays")
        finally:
            thief.replica.close()


async def test_an_owner_whom_two_others_replaced_reads_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol), fail_after(600):
        repo, _ = alice.create_repo(others=[bob.author.user, carol.author.user], council=2)
        link = alice.invite(repo)
        for other in (bob, carol):
            await other.joiner.begin(link)
            await _meet(alice, other)
        proposed = await _quorums_of(bob).propose_removal("", id_text(alice.author.user), "")
        await _meet(bob, carol)
        await _quorums_of(carol).approve("", proposed["proposal"])
        await members_of(carol).remove("", id_text(alice.author.user), "")
        await _meet(carol, bob, alice)
        rooms = [Room(one, tmp_path, repo.repo_id) for one in (alice, bob, carol)]
        await assert_reads_nothing(*rooms, folder=tmp_path / "relays")


@pytest.mark.parametrize("permission", [None, Permission.WRITE])
async def test_a_lost_phone_reads_nothing_once_it_is_removed(
    tmp_path: Path, autojump_clock: MockClock, permission: Permission | None
) -> None:
    """Also in a repo of somebody else's, where its person only writes."""
    names = ["laptop", "phone", *([] if permission is None else ["boss"])]
    with open_nodes(tmp_path, *names) as nodes, fail_after(600):
        laptop, phone, *others = nodes
        repo, _ = (others or [laptop])[0].create_repo()
        if permission is not None:
            await laptop.joiner.begin(others[0].invite(repo, permission))
            await _meet(laptop, *others)
        pairing = service_of(laptop, tmp_path / "pairing").people.pairing
        link = parse_device_link((await pairing.add(3600))["link"])
        await phone.joiner.begin(link.opened(), link.person)
        await _meet(laptop, phone)
        await _meet(laptop, phone)
        rooms = [Room(one, tmp_path, repo.repo_id) for one in (phone, laptop, *others)]
        await rooms[0].service.posts.write(id_text(rooms[0].main.branch_id), "from the phone")
        await _meet(laptop, phone, *others)
        removed = await pairing.remove(id_text(phone.author.user))
        assert all(one["excluded"] and one["renewed"] for one in removed["repos"])
        await _meet(laptop, phone, *others)
        await assert_reads_nothing(*rooms, folder=tmp_path / "relays")


async def test_a_copied_home_whose_person_gave_its_place_to_a_phone_reads_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Who only listens with the old key: the move is a leave, by which new secrets are due."""
    with open_nodes(tmp_path, "alice", "bob", "phone") as (alice, bob, phone), fail_after(600):
        await share(alice, bob)
        pairing = service_of(bob, tmp_path / "pairing").people.pairing
        link = parse_device_link((await pairing.add(3600))["link"])
        await phone.joiner.begin(link.opened(), link.person)
        await _meet(bob, phone, alice)
        await _meet(bob, phone, alice)
        repo_id = alice.repo().repo_id
        KeptFolder(tmp_path / "bob").write_to(tmp_path / "copy")
        thief = Node(tmp_path / "copy", "bob")
        try:
            await pairing.promote(id_text(phone.author.user))
            await _meet(bob, phone, alice)
            rooms = [Room(one, tmp_path, repo_id) for one in (thief, alice, phone)]
            await rooms[2].service.posts.write(id_text(rooms[2].main.branch_id), "from the phone")
            await _meet(phone, alice, thief)
            await assert_reads_nothing(*rooms, folder=tmp_path / "relays")
        finally:
            thief.replica.close()


async def test_a_stolen_home_whose_person_friends_let_in_again_reads_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    names = ("alice", "bob", "carol", "new")
    with open_nodes(tmp_path, *names) as (alice, bob, carol, new), fail_after(600):
        await share(alice, bob, carol)
        repo_id = alice.repo().repo_id
        services = {
            one.seed: service_of(one, tmp_path / f"keys {number}").people
            for number, one in enumerate((alice, bob, carol))
        }
        lost, key = id_text(bob.author.user), id_text(new.author.user)
        friends = [id_text(one.author.user) for one in (alice, carol)]
        await _meet(alice, bob, carol)
        (named,) = (await services[bob.seed].recovery.name_friends(friends, 2, ""))["repos"]
        assert (named["changed"], named["advice"]) == (True, "")
        await _meet(bob, alice, carol)
        texts = [(await services[one.seed].recovery.sign(lost, key))["texts"][0] for one in (alice, carol)]
        (done,) = (await services[alice.seed].recovery.finish(texts))["repos"]
        assert (done["let_in"], done["grantors"] != []) == (True, True)
        await new.joiner.follow(alice.capability())
        await _meet(alice, new, carol)
        await services[alice.seed].members.grant(alice.repo().name, key, "write")
        await services[alice.seed].members.remove(alice.repo().name, lost, "")
        await _meet(alice, new, carol, bob)
        assert alice.replica.permission(alice.repo(), new.author.user) is Permission.WRITE
        rooms = [Room(one, tmp_path, repo_id) for one in (bob, alice, new)]
        await assert_reads_nothing(*rooms, folder=tmp_path / "relays")
