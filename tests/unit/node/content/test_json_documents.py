"""JSON documents over the API and on whole nodes: edits, conflicts, merges, snapshots, and what is refused."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from sqlalchemy import Connection
from trio.testing import MockClock

from node.api.live_json import LiveJson
from node.api.targets import Targets
from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content import document_snapshots, document_state, documents, json_documents
from node.content.branch_queries import BranchQueries
from node.content.document_indexes import DocumentIndexes
from node.content.document_operations import DocumentOperationReader, OpenedBody
from node.content.document_queries import DocumentQueries
from node.content.documents import Documents, Look
from node.content.json_documents import JsonDocuments
from node.contract.json_documents import JsonChange
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON
from ravel.types.json_documents import JsonDocumentView
from storage.commits.commits import TimelineRow
from storage.commits.document_reading import Tip
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, share, together
from tests.support.served import AUTH, Served, served
from tests.unit.node.content.test_documents import documents_of
from verifier.documents import DocumentEntry
from verifier.json_contents import Json
from verifier.json_edits import JsonEditor
from verifier.json_registers import HeldRegisters


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _documents(node: Node) -> JsonDocuments:
    return JsonDocuments(Documents(node.hub, node.author, node.branch))


async def _edit(node: Node, *edits: JsonChange) -> list[str]:
    """Return the ids of new items."""
    return (await _documents(node).edit("main", "", edits, preview=False))["items"]


async def _value(node: Node) -> Any:  # noqa: ANN401  # any JSON
    return (await _documents(node).show("main", ""))["value"]


async def _post(app: Served, *edits: dict[str, Any]) -> Any:  # noqa: ANN401  # any JSON
    answer = await app.client.post("/api/v1/branches/main/json", headers=AUTH, json={"edits": list(edits)})
    return answer.json()


async def test_a_document_is_edited_and_shown_over_the_api(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        written = await _post(
            app,
            {"edit": "put", "value": {"title": "Board", "columns": []}},
            {"edit": "insert", "path": ["columns"], "value": {"title": "Doing", "cards": []}},
            {"edit": "insert", "path": ["columns", 0, "cards"], "value": {"title": "one"}},
            {"edit": "add", "path": ["edits"], "by": 3},
        )
        column, card = written["items"]
        assert len(written["commits"]) == 1
        shown = (await app.client.get("/api/v1/branches/main/json", headers=AUTH)).json()
        assert shown == {
            "branch": written["branch"],
            "value": {
                "columns": [{"$id": column, "cards": [{"$id": card, "title": "one"}], "title": "Doing"}],
                "edits": 3,
                "title": "Board",
            },
            "conflicts": [],
            "conflict_count": 0,
            "unplaced": [],
        }


@pytest.mark.parametrize(
    "edit, expected",
    [
        ({"edit": "put", "path": ["a", "b"], "value": 1}, "edit 1: 'a' of the document is no map"),
        ({"edit": "move", "moved": "a" * 16, "path": ["l"]}, "edit 1: there is no item 'aaaaaaaaaaaaaaaa'"),
        ({"edit": "insert", "path": ["a"], "value": 1}, "edit 1: 'a' of the document is no list"),
        ({"edit": "remove", "path": ["c"]}, "edit 1: nothing is at 'c' of the document"),
        ({"edit": "put", "path": ["n"], "value": 2**53}, "edit 1: a value is no JSON"),
    ],
)
async def test_edits_that_cannot_be_are_refused_and_nothing_is_written(
    tmp_path: Path, edit: dict[str, Any], expected: str
) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        refused = await _post(app, {"edit": "put", "path": ["a"], "value": "text"}, edit)
        assert refused["error"]["code"] == "bad_input"
        assert refused["error"]["message"].startswith(expected)
        assert (await app.client.get("/api/v1/branches/main/json", headers=AUTH)).json()["value"] == {}


async def test_a_place_that_no_database_counts_to_is_one_that_the_list_has_not(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        await _post(app, {"edit": "insert", "path": ["l"], "value": 1})
        for edit in (
            {"edit": "insert", "path": ["l"], "value": 2, "index": 2**64},
            {"edit": "put", "path": ["l", -(2**64)], "value": 2},
        ):
            refused = await _post(app, edit)
            assert refused["error"]["code"] == "bad_input", refused


async def test_json_too_deep_to_be_read_is_a_bad_request(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        content = '{"edits":[{"edit":"put","value":' + "[" * 100_000 + "]" * 100_000 + "}]}"
        headers = {**AUTH, "Content-Type": "application/json"}
        answer = await app.client.post("/api/v1/branches/main/json", headers=headers, content=content)
        assert answer.json()["error"]["code"] == "bad_request"


async def test_a_wide_map_takes_several_commits_and_keys_that_look_alike_are_told_apart(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        wide: dict[str, Json] = {f"k{number}": number for number in range(600)}
        alike: dict[str, Json] = {"\xe9": 1, "e\u0301": 2, "a": 3, "\u0430": 4, "a\u200d": 5, "A": 6}
        commits = (
            await _documents(alice).edit("main", "", [JsonChange("put", value=wide | alike)], preview=False)
        )["commits"]
        assert len(commits) == -(-606 // 256), "with as many registers each as a body may have"
        assert await _value(alice) == wide | alike, "keys are the bytes that were put"


async def test_a_preview_shows_what_edits_come_to_and_writes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        edits = [{"edit": "insert", "path": ["l"], "value": {"t": 1}}, {"edit": "add", "path": ["n"]}]
        answer = await app.client.post(
            "/api/v1/branches/main/json", headers=AUTH, json={"edits": edits, "preview": True}
        )
        found = answer.json()
        assert found["value"] == {"l": [{"$id": found["items"][0], "t": 1}], "n": 1}
        assert found["commits"] == []
        assert (await app.client.get("/api/v1/branches/main/json", headers=AUTH)).json()["value"] == {}


async def test_nothing_is_written_twice(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await _edit(alice, JsonChange("put", ["a"], value={"b": 1}))
        again = await _documents(alice).edit(
            "main", "", [JsonChange("put", ["a"], value={"b": 1})], preview=False
        )
        assert again["commits"] == []


@pytest.mark.slow
async def test_two_nodes_that_edit_apart_show_the_same_with_conflicts(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        await _edit(alice, JsonChange("put", value={"todo": [{"t": "x"}], "done": [], "votes": 0}))
        await together(alice, bob)
        (item,) = [card["$id"] for card in (await _value(bob))["todo"]]
        for node, to in ((alice, "done"), (bob, "late")):
            await _edit(
                node,
                JsonChange("move", [to], moved=item),
                JsonChange("add", ["votes"], by=1),
                JsonChange("put", ["title"], value=to),
            )
        await together(alice, bob)
        shown = await _documents(alice).show("main", "")
        assert shown == await _documents(bob).show("main", "")
        value = shown["value"]
        assert value["votes"] == 2
        assert len([*value["done"], *value.get("late", [])]) == 1
        assert {(one["place"], tuple(one["path"])) for one in shown["conflicts"]} == {
            (True, ()),
            (False, ("title",)),
        }
        title = value["title"]
        await _edit(bob, JsonChange("put", ["title"], value=title), JsonChange("move", ["done"], moved=item))
        await together(alice, bob)
        shown = await _documents(alice).show("main", "")
        assert (shown["conflicts"], shown["value"]["done"]) == ([], [{"$id": item, "t": "x"}])


async def test_an_edit_of_an_item_reads_no_more_however_many_items_its_list_has(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    read: list[int] = []

    def count(load: Callable[..., Collection[object]]) -> Callable[..., object]:
        def counted(*args: object, **more: object) -> object:
            found = load(*args, **more)
            read.append(len(found))
            return found

        return counted

    for module, name in (
        (document_state, "load_tips"),
        (document_state, "load_tips_between"),
        (documents, "load_positions"),
    ):
        monkeypatch.setattr(module, name, count(getattr(module, name)))
    counts: dict[int, list[int]] = {}
    with fail_after(60):
        alice.create_repo()
        for size in (5, 80):
            (item,) = await _edit(alice, JsonChange("insert", ["todo"], value={"title": "x", "votes": 0}))
            await _edit(alice, *[JsonChange("insert", ["todo"], value=1) for _ in range(size)])
            read.clear()
            await _edit(alice, JsonChange("put", ["title"], value="y", item=item))
            await _edit(alice, JsonChange("add", ["votes"], by=1, item=item))
            await _edit(alice, JsonChange("remove", ["title"], item=item))
            await _edit(alice, JsonChange("insert", ["todo"], value=2))
            await _edit(alice, JsonChange("insert", ["todo"], value=2, after=item))
            await _edit(alice, JsonChange("insert", ["todo"], value=2, index=2))
            await _edit(alice, JsonChange("move", ["todo"], moved=item, index=-1))
            await _edit(alice, JsonChange("put", ["todo", 2], value=3))
            await _edit(alice, JsonChange("remove", ["todo", -1]))
            counts[size] = list(read)
    assert counts[5] == counts[80]
    assert sum(counts[5]) < 60


async def test_a_counter_costs_no_more_however_often_it_was_added_to(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    read: list[int] = []
    load: Callable[..., list[Tip]] = vars(document_state)["load_tips"]
    open_bodies = DocumentOperationReader.open

    def count_tips(connection: Connection, num: int, keys: Sequence[bytes], limit: int) -> list[Tip]:
        found = load(connection, num, keys, limit)
        read.append(len(found))
        return found

    def count_bodies(
        reader: DocumentOperationReader, connection: Connection, rows: Sequence[TimelineRow]
    ) -> list[tuple[TimelineRow, OpenedBody]]:
        found = open_bodies(reader, connection, rows)
        read.append(len(found))
        return found

    monkeypatch.setattr(document_state, "load_tips", count_tips)
    monkeypatch.setattr(DocumentOperationReader, "open", count_bodies)
    counts: list[list[int]] = []
    with fail_after(60):
        alice.create_repo()
        await _edit(alice, JsonChange("put", ["votes"], value=1))
        for size, expected in ((5, 8), (80, 90)):
            drafts = [Draft(JSON.edit.make({"\0votes": '{"add":1}'}, (), {})) for _ in range(size)]
            alice.author.write_many(alice.branch(), drafts)
            read.clear()
            await _edit(alice, JsonChange("add", ["votes"], by=2))
            assert await _value(alice) == {"votes": expected}
            counts.append(list(read))
        assert counts[0] == counts[1]
        await _edit(alice, JsonChange("put", ["votes"], value=5))
        assert await _value(alice) == {"votes": 5}, "it names each increment"
        await _edit(alice, JsonChange("add", ["votes"]))
        shown = await _documents(alice).show("main", "")
        assert (shown["value"], shown["conflict_count"]) == ({"votes": 6}, 0)
        assert check_store(alice.replica.database.folder, STORE_KEY).problems == []


async def test_edits_of_what_is_stored_are_those_of_the_document_as_it_is_read(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, random = nodes[0], Random(4)
    refused = 0
    with fail_after(60):
        alice.create_repo()
        for number in range(60):
            seen = (await _documents(alice).show("main", ""))["value"]
            items = ["", *re.findall("[$]id': '(.{16})", str(seen))]
            changes = [_change_at_random(random, items) for _ in range(random.randint(1, 3))]
            before = await documents_of(alice).look(JSON, "main", "", _everything)
            expected = JsonEditor(HeldRegisters(before[1]), Random(number).randrange)
            monkeypatch.setattr("secrets.randbelow", Random(number).randrange)
            try:
                json_documents._edit(expected, changes, [])
            except ServiceError:
                refused += 1
                with pytest.raises(ServiceError, match="edit"):
                    await _edit(alice, *changes)
                continue
            previewed = await _documents(alice).edit("main", "", changes, preview=True)
            assert previewed["value"] == expected.value()
            monkeypatch.setattr("secrets.randbelow", Random(number).randrange)
            await _edit(alice, *changes)
            assert await _value(alice) == expected.value()
    assert 0 < refused < 50


def _everything(look: Look) -> dict[str, DocumentEntry]:
    keys = list(look.load_between("", "{", None)) if look.held is None else list(look.held)
    return look.load(keys)


def _change_at_random(random: Random, items: list[str]) -> JsonChange:
    near: dict[str, Any] = random.choice(
        [{}, {"index": random.randint(-3, 3)}, {"after": random.choice(items)}]
    )
    return JsonChange(
        random.choice(["put", "add", "insert", "insert", "move", "remove"]),
        random.choice([[], ["a"], ["a"], ["b"], ["a", 0], ["b", -1], ["a", 1, "b"]]),
        item=random.choice(items),
        value=random.choice([1, {}, {"a": 1}, [1, {"b": [2]}], [1, 2, 3]]),
        moved=random.choice(items),
        **near,
    )


async def test_a_snapshot_changes_nothing_that_shows(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        (item,) = await _edit(alice, JsonChange("insert", ["l"], value={"t": 1}))
        await _edit(alice, JsonChange("add", ["n"], by=2), JsonChange("put", ["l", 0, "t"], value=2))
        await _edit(alice, JsonChange("add", ["n"], by=2), JsonChange("insert", ["l"], value="gone"))
        await _edit(alice, JsonChange("remove", ["l", 1]))
        before = await _documents(alice).show("main", "")
        assert before["value"] == {"l": [{"$id": item, "t": 2}], "n": 4}
        assert len((await _documents(alice).snapshot("main", ""))["commits"]) == 1
        assert await _documents(alice).show("main", "") == before
        await _edit(alice, JsonChange("add", ["n"], by=1))
        assert (await _value(alice))["n"] == 5


async def test_a_counter_of_more_increments_than_a_snapshot_restates_is_summed_up_by_who_added(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (documents, document_snapshots):
        monkeypatch.setattr(module, "SNAPSHOT_COMMIT_COUNT_MAX", 4)
    monkeypatch.setattr(documents, "REPLACED_COUNT_MAX", 3)
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        await _edit(alice, JsonChange("put", value={"votes": 100, "few": 1}))
        await together(alice, bob)
        for node, count in ((alice, 8), (bob, 5)):  # beside each other
            drafts = [Draft(JSON.edit.make({"\0votes": '{"add":1}'}, (), {})) for _ in range(count)]
            node.author.write_many(node.branch(), drafts)
        await _edit(alice, JsonChange("add", ["few"], by=2))
        await together(alice, bob)
        expected = {"votes": 113, "few": 3}
        with pytest.raises(ServiceError, match="too long for one commit") as caught:
            await _documents(alice).snapshot("main", "")  # of bob's there are too many
        assert "who added to the counter" in caught.value.advice
        assert await _value(alice) == expected
        await together(alice, bob)
        assert await _value(bob) == expected, "what alice summed up counts once"
        await _edit(alice, JsonChange("add", ["votes"]))  # which bob has not seen
        assert len((await _documents(bob).snapshot("main", ""))["commits"]) > 1
        await together(alice, bob)
        for node in nodes:
            assert await _value(node) == {"votes": 114, "few": 3}
            assert await _documents(node).show("main", "") == await _documents(alice).show("main", "")
            assert check_store(node.replica.database.folder, STORE_KEY).problems == [], (
                "rows are the reduction"
            )
        again = await _documents(alice).snapshot("main", "")
        assert (await _documents(alice).snapshot("main", ""))["commits"] == []
        assert len(again["commits"]) == 2, "the two keys, of which each fills a snapshot"
        assert await _value(alice) == {"votes": 114, "few": 3}


def _live(node: Node) -> LiveJson:
    targets = Targets(node.replica, node.author.user)
    documents = Documents(node.hub, node.author, targets.branch)
    queries = DocumentQueries(documents, DocumentIndexes(node.hub, documents, targets.branch))
    return LiveJson(node.hub, JsonDocuments(documents), queries, BranchQueries(documents, queries), targets)


async def test_who_follows_a_document_that_takes_long_to_read_leaves_others_half_of_the_time(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, read, began = nodes[0], JsonDocuments.show, list[float]()

    async def show(self: JsonDocuments, branch: str, name: str) -> JsonDocumentView:
        began.append(trio.current_time())
        await trio.sleep(3)
        return await read(self, branch, name)

    monkeypatch.setattr(JsonDocuments, "show", show)
    with fail_after(60):
        alice.create_repo()
        source = _live(alice).follow(alice.branch, "", "")
        source.start()
        for number in range(2):
            await source.next()
            await _edit(alice, JsonChange("put", ["n"], value=number))
        await source.next()
        source.stop()
    assert [round(later - one) for one, later in pairwise(began)] == [6, 6]


async def test_a_follower_gets_the_newest_document_and_goes_on_where_it_was_cut(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice = nodes[0]
    live = _live(alice)
    with fail_after(30):
        alice.create_repo()
        source = live.follow(alice.branch, "board", "")
        source.start()
        (first,) = await source.next()
        assert (first.name, first.data["value"]) == ("document", {})
        for number in range(3):
            await _documents(alice).edit(
                "main", "board", [JsonChange("put", ["n"], value=number)], preview=False
            )
        (second,) = await source.next()
        assert second.data["value"] == {"n": 2}, "what a slow follower missed comes as one"
        await _documents(alice).edit("main", "other", [JsonChange("put", ["n"], value=1)], preview=False)
        with trio.move_on_after(5) as nothing:
            await source.next()
        assert nothing.cancelled_caught, "another document is none of its own"
        source.stop()
        again = live.follow(alice.branch, "board", second.cursor)
        again.start()
        with trio.move_on_after(5) as nothing:
            await again.next()
        assert nothing.cancelled_caught, "it has this one"
        again.stop()
        late = live.follow(alice.branch, "board", first.cursor)
        assert [one.data["value"] for one in await late.next()] == [{"n": 2}]
