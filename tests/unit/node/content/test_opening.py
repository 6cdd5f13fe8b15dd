"""Documents, merges and single commits of a branch that is not kept: its bodies come when they are opened."""

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.api.edits import Edits
from node.api.event_streams import EventSource
from node.api.live_json import LiveJson
from node.api.live_texts import LiveTexts
from node.api.targets import Targets
from node.api.value_documents import edit_dict, edit_set, show_dict, show_set
from node.content import document_queries as queries_module
from node.content import texts as texts_module
from node.content.branch_queries import BranchQueries
from node.content.document_indexes import DocumentIndexes
from node.content.document_queries import DocumentQueries
from node.content.documents import Documents
from node.content.erasing import make_erasures
from node.content.json_documents import JsonDocuments
from node.content.merging import Merging
from node.content.posts import Posts
from node.content.texts import Texts
from node.contract.json_documents import JsonChange
from node.runtime.errors import ServiceError
from node.sync.body_fetching import OPENED_SECONDS, OPENED_SECONDS_MAX, BodyFetcher, fetch_opened
from node.sync.kept_parts import keep_contents
from node.timelines.commit_history import describe, list_past
from node.timelines.views import show_opened
from protocol.formats.body import kind_name
from protocol.formats.document_kinds import JsonEdit, TextUpdate
from protocol.formats.text import id_text
from protocol.ids import CommitId
from storage.commits.absent_bodies import count_erased, erase_bodies, load_spared
from storage.commits.commits import load_rows
from storage.export.rows import edit_batches
from storage.repos.repos import Branch
from tests.support.editors import Editor, client_of, editor_of
from tests.support.looking import look_here
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal

pytestmark = pytest.mark.slow
CARDS = ("card 0", "card 1", "card 2")


@pytest.fixture
async def nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> AsyncIterator[list[Node]]:
    """Alice, who writes to a branch design, and carol who keeps main alone and has the headers."""
    monkeypatch.setattr(texts_module, "run_worker", look_here)
    with open_nodes(tmp_path, "alice", "carol") as (alice, carol):
        await share(alice, carol)
        keep_contents(carol.replica, carol.repo(), {carol.branch("main").num})
        _, ingested = alice.author.founding.create_branch(alice.repo(), "design")
        alice.hub.announce(ingested)
        await edit_set(_documents(alice), "design", ["hammer", "saw"], ())
        await edit_set(_documents(alice), "design", ["nail"], ["saw"])
        await edit_dict(_documents(alice), "design", {"price": "3"}, ())
        for number, name in enumerate(CARDS):
            await _json(alice).edit("design", name, [JsonChange("put", ["n"], value=number)], preview=False)
        editor = editor_of(alice, "design")
        for word in ("plans ", "of a house"):
            await _texts(alice).push("design", editor.append(word))
        alice.write(alice.branch("design"), "a post")
        async with connected(carol, alice):
            for branch in ("root", "main", "design"):
                await until_equal(alice, carol, branch)
        yield [alice, carol]


@asynccontextmanager
async def _online(carol: Node, alice: Node) -> AsyncIterator[None]:
    with fail_after(60):
        async with connected(carol, alice), trio.open_nursery() as nursery:
            nursery.start_soon(BodyFetcher(carol.hub).run)
            await trio.sleep(5)  # topics are compared
            yield
            nursery.cancel_scope.cancel()


def _documents(node: Node) -> Documents:
    return Documents(node.hub, node.author, node.branch)


def _json(node: Node) -> JsonDocuments:
    return JsonDocuments(_documents(node))


def _live(node: Node) -> LiveJson:
    targets = Targets(node.replica, node.author.user)
    documents = Documents(node.hub, node.author, targets.branch)
    queries = DocumentQueries(documents, DocumentIndexes(node.hub, documents, targets.branch))
    return LiveJson(node.hub, JsonDocuments(documents), queries, BranchQueries(documents, queries), targets)


async def _next_of(source: EventSource) -> Any:  # noqa: ANN401  # data of one event, as its kind has it
    source.start()
    return await _next(source)


async def _next(source: EventSource) -> Any:  # noqa: ANN401  # as above
    [event] = await source.next()
    return event.data


def _texts(node: Node) -> Texts:
    return Texts(node.hub, node.author, node.branch)


def _absent(node: Node) -> int:
    with node.replica.database.read() as connection:
        return count_erased(connection, node.branch("design").num)


def _commits(node: Node, kind: str, document: str | None = None) -> list[CommitId]:
    with node.replica.database.read() as connection:
        return load_spared(connection, [node.branch("design").num], {kind}, document)


async def test_a_document_that_is_opened_comes_and_no_other(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    before = _absent(carol)
    async with _online(carol, alice):
        items = (await show_set(_documents(carol), "design", 0, 9))["items"]
        assert [row["item"] for row in items] == ["hammer", "nail"]
        assert _absent(carol) == before - 2, "the two edits of the set"
        assert (await _json(carol).show("design", "card 1"))["value"] == {"n": 1}
        assert _absent(carol) == before - 3
        assert (await _texts(carol).pull("design", "t"))["text"] == "plans of a house"
        assert _absent(carol) == before - 5
        entries = (await show_dict(_documents(carol), "design", 0, 9))["entries"]
        assert [(row["key"], row["value"]) for row in entries] == [("price", "3")]
    assert (await _texts(carol).pull("design", "t"))["text"] == "plans of a house", "it stays"


async def test_what_is_written_to_a_document_that_was_not_opened_rests_on_all_of_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with _online(carol, alice):
        await _json(carol).edit("design", "card 2", [JsonChange("add", ["n"], by=5)], preview=False)
        await edit_set(_documents(carol), "design", (), ["hammer"])
        editor = Editor(client_of(carol, "design"))
        editor.take(b64decode((await _texts(carol).pull("design", None))["update"]))
        await _texts(carol).push("design", editor.append(", and of a garden"))
        await until_equal(alice, carol, "design")
    assert (await _json(alice).show("design", "card 2"))["value"] == {"n": 7}
    assert [row["item"] for row in (await show_set(_documents(alice), "design", 0, 9))["items"]] == ["nail"]
    assert (await _texts(alice).pull("design", "t"))["text"] == "plans of a house, and of a garden"


@pytest.mark.parametrize("sort", ["", "n"])
async def test_a_query_opens_all_documents_of_its_kind_at_once(
    nodes: list[Node], sort: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    monkeypatch.setattr(
        queries_module, "QUERY_SECONDS", 60.0
    )  # what is slow here pays in the clock of the test
    documents = _documents(carol)
    queries = DocumentQueries(documents, DocumentIndexes(carol.hub, documents, carol.branch))
    async with _online(carol, alice):
        found = await queries.find("design", "", "", sort, "", 9)
        assert [one["name"] for one in found["documents"]] == list(CARDS)
    assert _commits(carol, kind_name(TextUpdate)), "others were not opened"


async def test_a_query_of_branches_opens_those_of_all_together_and_not_in_its_own_time(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    monkeypatch.setattr(queries_module, "LOOKED_AT_ONCE", 1)
    _, ingested = alice.author.founding.create_branch(alice.repo(), "garden")
    alice.hub.announce(ingested)
    await _json(alice).edit("garden", "card 3", [JsonChange("put", ["n"], value=3)], preview=False)

    def find(text: str) -> Branch:
        return carol.branch(text.rpartition(":")[2])

    documents = Documents(carol.hub, carol.author, find)
    queries = BranchQueries(
        documents, DocumentQueries(documents, DocumentIndexes(carol.hub, documents, find))
    )
    async with connected(carol, alice):  # nothing asks for bodies
        await until_equal(alice, carol, "garden")
        await trio.sleep(5)
        began = trio.current_time()
        found = await queries.find(["repo:design", "repo:garden"], "", "", "", "", 9)
        assert OPENED_SECONDS <= trio.current_time() - began < 2 * OPENED_SECONDS
    assert (found["documents"], found["unreadable"]) == ([], 4)


async def test_a_query_that_names_no_branch_fetches_nothing(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    before = _absent(carol)

    def find() -> list[Branch]:
        return [carol.branch("main"), carol.branch("design")]

    async with _online(carol, alice):
        source = _live(carol).follow_anywhere(find, "", "", "", 9, "", opens=False)
        assert (await _next_of(source))["documents"] == []
        await _json(alice).edit("design", "card 1", [JsonChange("put", ["n"], value=9)], preview=False)
        await _json(alice).edit("main", "card", [JsonChange("put", ["n"], value=1)], preview=False)
        assert [one["name"] for one in (await _next(source))["added"]] == ["card"]
        assert _absent(carol) == before + 1
        named = _live(carol).follow_anywhere(find, "", "", "", 9, "")
        assert len((await _next_of(named))["documents"]) == 4
        assert len((await _next(source))["added"]) == 3, "they are here now"


async def test_without_a_peer_it_is_said_at_once_and_comes_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    began = trio.current_time()
    for _ in range(2):
        with pytest.raises(ServiceError) as refused:
            await _json(carol).show("design", "card 0")
        assert refused.value.code == "incomplete"
    assert trio.current_time() - began < OPENED_SECONDS
    async with _online(carol, alice):
        await trio.sleep(5)
        assert (await _json(carol).show("design", "card 0"))["value"] == {"n": 0}


async def test_a_peer_without_the_bodies_is_waited_for_once_and_not_for_long(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with connected(carol, alice):  # nothing asks
        await trio.sleep(5)  # topics are compared
        began = trio.current_time()
        for _ in range(3):
            with pytest.raises(ServiceError):
                await _texts(carol).pull("design", "t")
        assert OPENED_SECONDS <= trio.current_time() - began < 2 * OPENED_SECONDS


async def test_a_peer_that_sends_one_body_now_and_then_is_waited_for_a_bounded_time(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    left = count(-1, -1)  # fewer each time, and never none
    monkeypatch.setattr("node.sync.body_fetching.count_bodies_missing", lambda *_: next(left))
    async with connected(carol, alice), trio.open_nursery() as nursery:

        async def ring() -> None:
            while True:
                await trio.sleep(OPENED_SECONDS * 0.9)
                carol.hub.absences.ring()

        nursery.start_soon(ring)
        await trio.sleep(5)  # topics are compared
        began = trio.current_time()
        assert await fetch_opened(carol.hub, _commits(carol, kind_name(JsonEdit)))
        assert OPENED_SECONDS < trio.current_time() - began <= OPENED_SECONDS_MAX
        nursery.cancel_scope.cancel()


async def test_what_never_comes_keeps_nobody_from_opening_what_is_older(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    [post] = _commits(carol, "post")
    branch = alice.branch("design")
    with alice.replica.database.write() as connection:
        rows = list(load_rows(connection, [post]).values())
        erase_bodies(connection, branch.num, list(make_erasures(alice.replica, connection, rows)), 1)
    async with _online(carol, alice):
        shown = await show_opened(carol.hub, lambda: describe(carol.replica, id_text(post)))
        assert shown["text"] is None
        assert (await _json(carol).show("design", "card 0"))["value"] == {"n": 0}


async def test_a_merge_of_it_opens_all(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, carol = nodes
    fork = await Merging(alice.hub, alice.author, alice.branch).fork("design", "fork", "")
    await edit_set(_documents(alice), fork.name, ["screw"], ())
    alice.write(alice.branch("fork"), "a post of the fork")
    async with _online(carol, alice):
        await until_equal(alice, carol, "root")
        await until_equal(alice, carol, "fork")
        merged = await Merging(carol.hub, carol.author, carol.branch).merge("fork", "design")
    assert merged["carried"] == 2


async def test_a_fork_of_the_repo_is_made_with_all_of_it_or_not_at_all(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    merging = Merging(carol.hub, carol.author, carol.branch)
    with pytest.raises(ServiceError) as caught:
        await merging.fork_repo(carol.repo(), "mine")
    assert caught.value.code == "incomplete"
    assert [repo.name for repo in carol.replica.repos.values()] == ["repo"], "half of it would look whole"
    async with _online(carol, alice):
        made = await merging.fork_repo(carol.repo(), "mine")
    assert sorted(one["carried"] > 0 for one in made["branches"]) == [False, True]


async def test_a_commit_that_is_opened_alone_comes(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, carol = nodes
    [post] = _commits(carol, "post")
    text = id_text(post)
    posts = Posts(carol.hub, carol.author, carol.branch)
    async with _online(carol, alice):
        assert (await show_opened(carol.hub, lambda: describe(carol.replica, text)))["text"] == "a post"
    assert [one["text"] for one in (await posts.thread(text, limit=9))["items"]] == ["a post"]
    assert [one["text"] for one in (await posts.versions(text, limit=9))["versions"]] == ["a post"]


@pytest.mark.parametrize("way", ["thread", "versions", "past", "state"])
async def test_each_way_to_see_a_post_opens_it(
    nodes: list[Node], way: str, autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    [post] = _commits(carol, "post")
    text, posts = id_text(post), Posts(carol.hub, carol.author, carol.branch)
    async with _online(carol, alice):
        if way == "thread":
            await posts.thread(text, limit=9)
        elif way == "versions":
            await posts.versions(text, limit=9)
        elif way == "past":
            await show_opened(carol.hub, lambda: list_past(carol.replica, carol.branch("design"), text, 1))
        else:
            await Merging(carol.hub, carol.author, carol.branch).state("design", 9, "post")
        assert _commits(carol, "post") == []
    with carol.replica.database.read() as connection:
        assert count_erased(connection, carol.branch("design").num) > 0


async def test_a_followed_document_and_query_open_what_is_written_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with _online(carol, alice):
        one = _live(carol).follow(partial(carol.branch, "design"), "card 1", "")
        query = _live(carol).follow_query(partial(carol.branch, "design"), "", "", "", 9, "")
        assert (await _next_of(one))["value"] == {"n": 1}
        assert len((await _next_of(query))["documents"]) == 3
        await _json(alice).edit("design", "card 1", [JsonChange("put", ["n"], value=9)], preview=False)
        assert (await _next(one))["value"] == {"n": 9}
        changes = await _next(query)
        assert [found["value"] for found in changes["changed"]] == [{"n": 9}]
        assert changes["removed"] == []


async def test_streams_of_documents_go_on_with_contents_that_come_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    with fail_after(60):
        async with connected(carol, alice):
            await trio.sleep(5)  # topics are compared
            one = _live(carol).follow(partial(carol.branch, "design"), "card 1", "")
            late = _live(carol).follow(partial(carol.branch, "design"), "card 1", "what it was told")
            query = _live(carol).follow_query(partial(carol.branch, "design"), "", "", "", 9, "")
            texts = LiveTexts(carol.hub, _texts(carol), carol.branch)
            text, known = texts.follow("design", "", ""), texts.follow("design", "AA==", "")
            with pytest.raises(ServiceError):
                await _next_of(one)
            assert (await _next_of(query))["documents"] == [], "nothing comes"
            with pytest.raises(ServiceError):
                await _next_of(text)
            got: list[str] = []

            async def wait(source: EventSource) -> None:
                names = ["presence"]  # of a text, and tells of no contents
                while names == ["presence"]:
                    names = [event.name for event in await source.next()]
                got.extend(names)

            late.start()
            known.start()
            async with trio.open_nursery() as fetching:
                async with trio.open_nursery() as waiting:
                    for source in (late, query, known):
                        waiting.start_soon(wait, source)
                    await trio.sleep(20)
                    assert got == [], "who was told before is not ended"
                    fetching.start_soon(BodyFetcher(carol.hub).run)
                fetching.cancel_scope.cancel()
            assert sorted(got) == ["changes", "document", "update"]


async def test_streams_of_a_fork_go_on_with_contents_of_the_branch_it_continues(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    await Merging(alice.hub, alice.author, alice.branch).fork("design", "fork", "")
    async with connected(carol, alice), trio.open_nursery() as fetching:
        await until_equal(alice, carol, "root")
        await until_equal(alice, carol, "fork")
        await trio.sleep(5)  # topics are compared
        sources: dict[str, EventSource] = {
            "document": _live(carol).follow(partial(carol.branch, "fork"), "card 1", "what it was told"),
            "update": LiveTexts(carol.hub, _texts(carol), carol.branch).follow("fork", "AA==", ""),
            "changes": _live(carol).follow_query(partial(carol.branch, "fork"), "", "", "", 9, ""),
            "anywhere": _live(carol).follow_anywhere(lambda: [carol.branch("fork")], "", "", "", 9, ""),
        }
        got: dict[str, str] = {}

        async def wait(name: str) -> None:
            got[name] = next(event.name for event in await sources[name].next())

        for name in ("changes", "anywhere"):
            assert (await _next_of(sources[name]))["documents"] == []
        sources["document"].start()
        sources["update"].start()
        assert [event.name for event in await sources["update"].next()] == ["presence"]
        with fail_after(60):
            async with trio.open_nursery() as waiting:
                for name in sources:
                    waiting.start_soon(wait, name)
                await trio.sleep(20)
                assert got == {}
                fetching.start_soon(BodyFetcher(carol.hub).run)
        assert got == {name: "changes" if name == "anywhere" else name for name in sources}
        fetching.cancel_scope.cancel()


async def test_what_was_opened_while_nobody_was_there_comes_once_somebody_is(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    posts, before = _commits(carol, "post"), _absent(carol)
    with fail_after(60):
        async with trio.open_nursery() as fetching:
            fetching.start_soon(BodyFetcher(carol.hub).run)
            await trio.sleep(5)
            assert not await fetch_opened(carol.hub, posts), "there is nobody to ask"
            await trio.sleep(5)
            async with connected(carol, alice):
                await trio.sleep(5)
                assert _absent(carol) == before - len(posts), "no second opening asks for it"
            fetching.cancel_scope.cancel()


async def test_a_timeline_tells_of_contents_that_come_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    [post] = _commits(carol, "post")
    edits = Edits(carol.hub, carol.branch)
    known = await edits.window("design", "", 99)
    [before] = [one for one in known["edits"] if one["commit"] == id_text(post)]
    source = edits.follow(partial(carol.branch, "design"), known["last"], positions=True)
    async with _online(carol, alice):
        assert await fetch_opened(carol.hub, [post])
        told = await _next_of(source)
    assert (before["item"]["text"], told["item"]["text"]) == (None, "a post")
    assert (told["edit"], told["commit"], told["place"]) == ("move", id_text(post), before["place"])
    assert told["position"] == told["position_before"], "it stands where it stood"
    with carol.replica.database.read() as connection:
        exported = edit_batches(connection, 0, 1 << 40)
        assert sum(batch.num_rows for batch in exported) == 0, "it has not moved"
