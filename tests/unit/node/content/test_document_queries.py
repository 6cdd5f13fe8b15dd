"""Queries of JSON documents: names, filters, orders, cursors, what is refused; and results that are followed."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TypeVar, cast

import pytest
import trio
from trio.testing import MockClock

from node.api.live_json import LiveJson, QuerySource, find_changes
from node.api.targets import Targets
from node.authoring.drafting import Draft
from node.content import document_queries, document_state
from node.content.branch_queries import BranchQueries
from node.content.document_indexes import DocumentIndexes
from node.content.document_list import ListedDocuments
from node.content.document_queries import DocumentQueries
from node.content.document_windows import Found
from node.content.documents import REMOVED, Documents
from node.content.json_documents import JsonDocuments
from node.contract.json_documents import JsonChange
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON, SET
from protocol.ids import BlockId, ObjectId
from ravel.types.document_queries import FoundDocument, ResultChangeEvent
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.commits import load_first_of_kinds
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.served import AUTH, served

T = TypeVar("T")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no answer end early because the machine is slow."""
    monkeypatch.setattr(document_queries, "QUERY_SECONDS", 60.0)


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _documents(node: Node) -> JsonDocuments:
    return JsonDocuments(Documents(node.hub, node.author, node.branch))


def _queries(node: Node) -> DocumentQueries:
    documents = Documents(node.hub, node.author, node.branch)
    return DocumentQueries(documents, DocumentIndexes(node.hub, documents, node.branch))


async def _put(node: Node, name: str, **fields: object) -> None:
    changes = [JsonChange("put", [key], value=value) for key, value in fields.items()]
    await _documents(node).edit("main", name, changes, preview=False)


async def _cards(node: Node) -> None:
    for name, status, votes in (("c", "open", 1), ("a", "open", 3), ("b", "done", 2), ("ä", "open", 2)):
        await _put(node, f"card/{name}", status=status, votes=votes)
    await _put(node, "list/a", status="open")


async def _find(
    node: Node, where: object = None, sort: str = "", prefix: str = "card/", limit: int = 10
) -> list[str]:
    text = "" if where is None else json.dumps(where)
    found = await _queries(node).find("main", prefix, text, sort, "", limit)
    assert found["cursor"] is None
    return [one["name"].removeprefix("card/") for one in found["documents"]]


async def test_documents_are_found_by_name_and_fields_in_an_order(alice: Node) -> None:
    with fail_after(30):
        await _cards(alice)
        assert await _find(alice) == ["a", "b", "c", "ä"], "by bytes"
        assert await _find(alice, {"status": "open"}) == ["a", "c", "ä"]
        assert await _find(alice, {"votes": {"$gte": 2}}, sort="votes") == ["b", "ä", "a"]
        assert await _find(alice, sort="-votes,status") == ["a", "b", "ä", "c"]
        assert await _find(alice, sort="-votes", limit=1) == ["a"]
        assert await _find(alice, {"votes": 9}) == []
        assert await _find(alice, prefix="list/") == ["list/a"]
        beside = JSON.edit.make({"\0status": '"done"'}, (), {})  # by who has not seen the other
        alice.author.write_many(alice.branch(), lambda _: [Draft(beside, document="card/a")])
        assert await _find(alice, {"status": {"$conflict": True}}) == ["a"]
        assert await _find(alice, {"$conflict": True}) == ["a"]
        assert await _find(alice, {"votes": {"$conflict": True}}) == []
        assert await _find(alice, {"$conflict": False, "status": "open"}) == ["c", "ä"]


async def test_names_that_begin_with_a_dot_are_found_as_little_as_they_are_listed(alice: Node) -> None:
    for name in (".hidden", "-", "a", ".titles"):
        await _put(alice, name, status="open")
    assert await _find(alice, prefix="", limit=2) == ["-", "a"], "and they take no place of an answer"
    assert await _find(alice, prefix=".") == []


async def test_an_answer_that_is_full_goes_on_from_its_cursor(alice: Node) -> None:
    with fail_after(30):
        await _cards(alice)
        found = await _queries(alice).find("main", "card/", "", "", "", 3)
        cursor = f"{found['branch']}.ncard/c"
        assert (len(found["documents"]), found["cursor"]) == (3, cursor)
        await _put(alice, "card/0", status="open")
        rest = await _queries(alice).find("main", "card/", "", "", cursor, 3)
        assert ([one["name"] for one in rest["documents"]], rest["cursor"]) == (["card/ä"], None)


async def test_a_cursor_of_another_branch_is_refused(alice: Node) -> None:
    """Main may have come to mean another one between two answers."""
    with fail_after(30):
        await _cards(alice)
        other, ingested = alice.author.founding.create_branch(alice.replica.repos[1], "draft")
        alice.hub.announce(ingested)
        found = await _queries(alice).find("main", "card/", "", "", "", 1)
        documents = Documents(alice.hub, alice.author, lambda _: other)
        queries = DocumentQueries(documents, DocumentIndexes(alice.hub, documents, lambda _: other))
        with pytest.raises(ServiceError, match="main may mean another"):
            await queries.find("main", "card/", "", "", found["cursor"] or "", 1)
        with pytest.raises(ServiceError, match="no answer to this query"):
            await _queries(alice).find("main", "card/", "", "", f"{found['branch']}.card/c", 1)


async def test_a_query_looks_at_a_bounded_number_and_for_a_bounded_time(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30):
        await _cards(alice)
        monkeypatch.setattr(document_queries, "LOOKED_AT_ONCE", 1)
        monkeypatch.setattr(document_queries, "QUERY_COUNT_MAX", 2)
        monkeypatch.setattr(document_queries, "QUERY_SORTED_COUNT_MAX", 3)
        found = await _queries(alice).find("main", "card/", '{"votes":9}', "", "", 9)
        assert (found["documents"], found["cursor"]) == ([], f"{found['branch']}.ncard/b")
        with pytest.raises(ServiceError, match="over 3 documents"):
            await _find(alice, sort="votes")
        monkeypatch.setattr(document_queries, "QUERY_COUNT_MAX", 100)
        monkeypatch.setattr(document_queries, "QUERY_SECONDS", -1.0)
        found = await _queries(alice).find("main", "card/", '{"votes":9}', "", "", 9)
        monkeypatch.setattr(document_queries, "QUERY_WINDOW_SECONDS", -1.0)
        with pytest.raises(ServiceError, match="takes over"):
            await _find(alice, sort="votes", prefix="card/")
        with pytest.raises(ServiceError, match="takes over"):
            await _queries(alice).follow("main", document_queries.parse_query("card/", "", "", 9)).look()
        assert found["cursor"] == f"{found['branch']}.ncard/a", (
            "at least one is looked at, so that it ends some time"
        )


async def test_the_documents_of_an_answer_have_a_bounded_number_of_bytes(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30):
        for number in range(4):
            await _put(alice, f"card/{number}", text="x" * 100)
        size = len('{"name":"card/0","value":{"text":""},"conflict_count":0}') + 100
        monkeypatch.setattr(document_queries, "QUERY_SIZE_MAX", 2 * size)
        queries = _queries(alice)
        assert await _find(alice, sort="text", limit=2) == ["0", "1"]
        with pytest.raises(ServiceError, match="bytes together"):
            await _find(alice, sort="text", limit=3)
        with pytest.raises(ServiceError, match="bytes together"):
            await queries.follow("main", document_queries.parse_query("card/", "", "", 3)).look()
        monkeypatch.setattr(document_queries, "QUERY_SIZE_MAX", 2 * size - 1)
        sizes, cursor = [], ""
        while True:
            found = await queries.find("main", "card/", "", "", cursor, 9)
            sizes.append(len(found["documents"]))
            if found["cursor"] is None:
                break
            cursor = found["cursor"]
        assert sizes == [1, 1, 1, 1]
        monkeypatch.setattr(document_queries, "QUERY_SIZE_MAX", 1)
        assert await _find(alice, sort="text", limit=1) == ["0"], "one is answered whatever it has"


@pytest.mark.parametrize("sort, limit", [("", 3), ("-votes,status", 2)])
async def test_a_result_that_follows_changes_is_the_one_that_a_new_query_finds(
    alice: Node, monkeypatch: pytest.MonkeyPatch, sort: str, limit: int
) -> None:
    monkeypatch.setattr(document_queries, "LOOKED_AT_ONCE", 2)
    monkeypatch.setattr(document_queries, "QUERY_CHANGES_MAX", 3)
    random = Random(limit)
    listed = ListedDocuments(alice.hub, Documents(alice.hub, alice.author, alice.branch), alice.branch)
    query = document_queries.parse_query("card/", '{"status":"open"}', sort, limit)
    with fail_after(120):
        await _cards(alice)
        followed = _queries(alice).follow("main", query)
        for _ in range(12):
            for _ in range(random.choice((1, 1, 1, 2, 5))):
                name = f"card/{random.randrange(8)}"
                if random.random() < 0.1:
                    with suppress(ServiceError):  # it is not there, or was removed
                        await listed.remove("main", "json", name)
                else:
                    status = random.choice(("open", "open", "done"))
                    await _put(alice, name, status=status, votes=random.randrange(4))
            shown = [one.document for one in await followed.look()]
            found = await _queries(alice).follow("main", query).look()
            assert shown == [one.document for one in found]


async def test_a_follower_reads_what_has_changed_and_no_more_however_much_there_is(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    state = document_state.DocumentState
    monkeypatch.setattr(
        state,
        "read_whole",
        lambda *args, whole=state.read_whole, **more: _counted(read, whole(*args, **more)),
    )
    counts: list[int] = []
    with fail_after(60):
        for count in (5, 20):
            for number in range(count):
                await _put(alice, f"card/{number:02}", status="open", votes=number)
            for sort in ("", "votes"):
                query = document_queries.parse_query("card/", '{"status":"open"}', sort, 10)
                followed = _queries(alice).follow("main", query)
                await followed.look()
                read.clear()
                await _put(alice, "card/03", votes=f"{count} {sort}")
                assert len(await followed.look()) == min(count, 10)
                counts.append(len(read))
    assert counts == [1, 1, 1, 1]


def _counted(read: list[int], entries: Iterator[T]) -> Iterator[T]:
    for one in entries:
        read.append(1)
        yield one


@pytest.mark.parametrize(
    "where, sort",
    [
        ("{", ""),
        ('{"a":1,"a":2}', ""),
        ('{"a":{"$where":1}}', ""),
        ("[" * 3000, ""),
        (f'{{"a":"{"x" * 4096}"}}', ""),
        ("", "a,b,c,d,e"),
        ("", "$a"),
    ],
)
async def test_what_is_no_query_is_a_bad_request(alice: Node, where: str, sort: str) -> None:
    with pytest.raises(ServiceError) as caught:
        await _queries(alice).find("main", "", where, sort, "", 10)
    assert caught.value.code == "bad_request"


async def test_documents_are_found_over_the_api(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        app.node.create_repo()
        await _cards(app.node)
        query = {"prefix": "card/", "where": '{"votes":3}'}
        answer = (
            await app.client.get("/api/v1/branches/main/json/documents", headers=AUTH, params=query)
        ).json()
        assert answer["documents"] == [
            {"name": "card/a", "value": {"status": "open", "votes": 3}, "conflict_count": 0}
        ]


async def _changes(source: QuerySource) -> dict[str, list[str]]:
    (event,) = await source.next()
    assert event.name == "changes"
    data = cast("ResultChangeEvent", event.data)
    names = {
        "added": [one["name"] for one in data["added"]],
        "changed": [one["name"] for one in data["changed"]],
        "moved": data["moved"],
        "removed": data["removed"],
    }
    return {what: found for what, found in names.items() if found}


async def test_a_follower_is_told_what_is_added_changed_moved_and_removed(
    alice: Node, autojump_clock: MockClock
) -> None:
    targets = Targets(alice.replica, alice.author.user)
    documents = Documents(alice.hub, alice.author, targets.branch)
    queries = DocumentQueries(documents, DocumentIndexes(alice.hub, documents, targets.branch))
    live = LiveJson(alice.hub, JsonDocuments(documents), queries, BranchQueries(documents, queries), targets)
    with fail_after(60):
        await _cards(alice)
        source = live.follow_query(alice.branch, "card/", '{"status":"open"}', "votes", 10, "")
        source.start()
        (first,) = await source.next()
        assert first.name == "result"
        await _put(alice, "card/b", status="open")
        assert await _changes(source) == {"added": ["card/b"]}
        await _put(alice, "card/c", votes=7)
        assert await _changes(source) == {"changed": ["card/c"], "moved": ["card/c"]}
        await _put(alice, "card/a", status="done")
        await _put(alice, "card/ä", title="x")
        assert await _changes(source) == {"changed": ["card/ä"], "removed": ["card/a"]}, "both at once"
        await _put(alice, "list/b", status="open")
        with trio.move_on_after(5) as nothing:
            await source.next()
        assert nothing.cancelled_caught, "nothing of the result has changed"
        source.stop()
        late = live.follow_query(alice.branch, "card/", '{"status":"open"}', "votes", 10, first.cursor)
        (again,) = await late.next()
        assert again.name == "result", "who was cut gets the whole of it"


def test_changes_of_a_result_make_the_new_one_of_the_old_one_with_few_moves() -> None:
    random = Random(1)

    def result(numbers: list[int]) -> list[Found]:
        documents: list[FoundDocument] = [
            {"name": str(number), "value": random.randrange(2), "conflict_count": 0} for number in numbers
        ]
        return [Found.of(b"", one, json.dumps(one).encode()) for one in documents]

    for _ in range(300):
        before, after = (result(random.sample(range(8), random.randint(0, 8))) for _ in range(2))
        found = find_changes(before, after)
        values = {one.key: one.document for one in before if one.key not in found["removed"]}
        values |= {one["name"]: one for one in (*found["added"], *found["changed"])}
        assert [values[name] for name in found["order"]] == [one.document for one in after]
        assert values.keys() == set(found["order"])
        kept = [one.key for one in before if one.key in values and one.key not in found["moved"]]
        assert kept == [name for name in found["order"] if name in kept]
    moved = find_changes(result([1, 2, 3, 4, 5]), result([2, 3, 4, 5, 1]))["moved"]
    assert moved == ["1"]


async def test_a_document_that_was_removed_is_found_again_once_it_is_written_to(alice: Node) -> None:
    await _cards(alice)
    listed = ListedDocuments(alice.hub, Documents(alice.hub, alice.author, alice.branch), alice.branch)
    await listed.remove("main", "json", "card/a")
    assert await _find(alice) == ["b", "c", "ä"]
    assert [one["name"] for one in (await listed.list_all("main", "json", "", 0, 10))["documents"]] == [
        "card/c",
        "card/b",
        "card/ä",
        "list/a",
    ]
    await _put(alice, "card/a", votes=4)
    assert await _find(alice) == ["a", "b", "c", "ä"]


async def test_removals_that_cannot_be_read_hide_nothing_and_stop_nobody(alice: Node) -> None:
    await _cards(alice)
    documents = Documents(alice.hub, alice.author, alice.branch)
    listed = ListedDocuments(alice.hub, documents, alice.branch)
    await listed.remove("main", "json", "card/a")
    with alice.replica.database.write() as connection:
        branch = alice.branch("main")
        row = load_first_of_kinds(connection, branch.num, {"set"}, 1)[0]
        erased = Erasure(row.num, row.topic_num, row.block_nums, ObjectId(BlockId(b"1" * 32)))
        erase_bodies(connection, branch.num, [erased], 0)
    with pytest.raises(ServiceError) as caught:
        await documents.read_window(SET, "main", 0, 10, REMOVED)
    assert caught.value.code == "incomplete"
    assert await _find(alice) == ["a", "b", "c", "ä"]
    assert len((await listed.list_all("main", "json", "", 0, 10))["documents"]) == 5
    await _put(alice, "card/d", status="open")
