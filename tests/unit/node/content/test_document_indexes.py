"""Declared indexes of JSON documents: the order that they give, what keeps them level, and what they cost."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from sqlalchemy import Connection, Engine, delete, event, func, select, update
from trio.testing import MockClock

from node.care.fsck import check_store
from node.care.repair import repair_store
from node.content import document_indexes, document_queries
from node.content.document_filters import matches, parse_filter, value_at
from node.content.document_indexes import DocumentIndexes
from node.content.document_orders import find_range, parse_fields, place_of
from node.content.document_queries import DocumentQueries
from node.content.document_state import DocumentState
from node.content.document_windows import ResultWindow
from node.content.documents import Documents
from node.content.json_documents import JsonDocuments
from node.content.merging import Merging
from node.contract.json_documents import JsonChange
from node.ingest.replica import load_blocks_of
from node.runtime.errors import ServiceError
from protocol.formats.block import Block, decode_block
from protocol.formats.document_kinds import ValuesKind
from protocol.ids import BlockId, CommitId, ObjectId
from protocol.limits.users import DOCUMENT_INDEXES_MAX
from storage.commits.absent_bodies import Erasure, erase_bodies, fill_bodies
from storage.commits.commits import load_first_of_kinds
from storage.commits.document_index_rows import load_indexes
from storage.commits.document_making import MadeDocument
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch
from storage.schema.document_schema import document_index_entries
from storage.schema.document_schema import document_indexes as indexes_table
from storage.schema.document_schema import documents as documents_table
from storage.schema.schema import erasures
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes


class App:
    """A node's documents and indexes."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.documents = Documents(node.hub, node.author, node.branch)
        self.indexes = DocumentIndexes(node.hub, self.documents, node.branch)
        self.queries = DocumentQueries(self.documents, self.indexes)

    async def put(self, name: str, **fields: object) -> None:
        """Put fields of a document."""
        changes = [JsonChange("put", [key], value=value) for key, value in fields.items()]
        await JsonDocuments(self.documents).edit("main", name, changes, preview=False)

    async def find(self, where: object = None, sort: str = "", limit: int = 1000) -> list[str]:
        """Names of what a query finds, page after page."""
        names: list[str] = []
        cursor = ""
        while True:
            text = json.dumps(where or {})
            found = await self.queries.find("main", "card/", text, sort, cursor, limit)
            names += [one["name"].removeprefix("card/") for one in found["documents"]]
            if found["cursor"] is None:
                return names
            cursor = found["cursor"]

    def entries(self) -> int:
        """Number of entries of all indexes."""
        with self.node.replica.database.read() as connection:
            return connection.execute(select(func.count()).select_from(document_index_entries)).scalar_one()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no answer end early because the machine is slow."""
    monkeypatch.setattr(document_queries, "QUERY_SECONDS", 60.0)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield App(node)


async def _cards(app: App) -> None:
    for name, status, due in (("c", "open", 3), ("a", "open", 1), ("b", "done", 2), ("d", "open", 1)):
        await app.put(f"card/{name}", status=status, due=due)
    await app.put("list/a", status="open", due=0)


async def test_a_query_in_the_order_of_an_index_is_answered_page_after_page(app: App) -> None:
    with fail_after(30):
        await _cards(app)
        with pytest.raises(ServiceError, match="without an index"):
            await app.queries.find("main", "card/", "", "due", "pAA==", 1)
        declared = await app.indexes.declare("main", "card/", ["status", "due"])
        assert (declared["fields"], declared["ready"]) == (["status", "due"], True)
        assert await app.find(sort="status,due", limit=1) == ["b", "a", "d", "c"]
        assert await app.find({"status": "open"}, sort="due", limit=2) == ["a", "d", "c"]
        assert await app.find({"status": "open", "due": {"$gt": 1}}, sort="due") == ["c"]
        assert await app.find({"status": "open", "due": 1}, limit=1) == ["a", "d"], "by name"
        await app.put("card/a", due=9)
        await app.put("card/e", status="open", due=2)
        assert await app.find({"status": "open"}, sort="due", limit=1) == ["d", "e", "c", "a"]
        with pytest.raises(ServiceError, match="cursor"):
            await app.queries.find("main", "card/", "", "status,due", "no cursor", 1)


async def test_an_index_serves_more_documents_than_a_sorted_query_may_look_at(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_queries, "QUERY_SORTED_COUNT_MAX", 2)
    monkeypatch.setattr(document_queries, "LOOKED_AT_ONCE", 1)
    with fail_after(30):
        await _cards(app)
        with pytest.raises(ServiceError, match="declare an index"):
            await app.find(sort="-due")
        await app.indexes.declare("main", "", ["-due"])
        assert await app.find(sort="-due", limit=3) == ["c", "b", "a", "d"]


@pytest.mark.parametrize("fields", ["due", "-due", "status,-due", "-status,due"])
def test_the_part_of_an_order_that_a_query_asks_for_has_all_that_it_finds(fields: str) -> None:
    random = Random(1)
    values: list[object] = [None, True, 0, 1, 2.5, "", "a", "ab", "b\0", "\uffff", [1]]
    order = parse_fields(fields)
    sort = parse_fields(fields.rpartition(",")[2])
    cards = {
        str(number): {"status": random.choice(("x", "y")), "due": random.choice(values)}
        for number in range(80)
    }
    cards["none"] = {"status": "x"}
    places = {place_of(order, name, card): name for name, card in cards.items()}
    for _ in range(300):
        operator = random.choice(("$eq", "$lt", "$lte", "$gt", "$gte", "$prefix"))
        argument = random.choice(["", "a", "ab"] if operator == "$prefix" else values[:-1])
        where: dict[str, object] = {"due": {operator: argument}}
        if "status" in fields:
            where["status"] = "x"
        condition = parse_filter(where)
        part = find_range(order, condition, sort)
        assert part is not None
        inside = [places[place] for place in sorted(places) if part[0] <= place < part[1]]
        met = [
            name
            for name, card in cards.items()
            if matches(condition, partial(value_at, card), lambda _: False)
        ]
        assert set(met) <= set(inside)


async def test_an_index_that_changes_follow_gives_what_sorting_gives(app: App) -> None:
    random = Random(3)
    with fail_after(60):
        await app.indexes.declare("main", "card/", ["-due", "status"])
        for _ in range(12):
            for _ in range(random.randrange(4)):
                name = f"card/{random.randrange(9)}"
                await app.put(name, status=random.choice(("x", "y")), due=random.choice((1, 2, None, "1")))
            text = json.dumps({"status": "x"})
            query = document_queries.parse_query("card/", text, "-due,status", 100)
            plan = document_queries.Plan(query.sort, None, b"", b"", b"", is_ordered=False)
            window = ResultWindow(100, 0)
            await app.queries.fill("main", query, plan, window)
            expected = [one.document["name"].removeprefix("card/") for one in window.first()]
            assert await app.find({"status": "x"}, sort="-due,status", limit=2) == expected


async def test_a_query_by_index_costs_as_many_statements_in_many_documents_as_in_few(app: App) -> None:
    counts: list[int] = []
    with fail_after(60):
        await app.indexes.declare("main", "card/", ["due"])
        for size in (4, 30):
            for number in range(size):
                await app.put(f"card/{number}", due=number)
            await app.find(sort="due")
            heard: list[str] = []

            def hear(_: object, __: object, statement: str, *___: object, heard: list[str] = heard) -> None:
                heard.append(statement)

            await app.put("card/1", due=1.5)
            event.listen(Engine, "before_cursor_execute", hear)
            found = await app.queries.find("main", "card/", "", "due", "", 3)
            event.remove(Engine, "before_cursor_execute", hear)
            assert len(found["documents"]) == 3
            counts.append(len(heard))
    assert counts[0] == counts[1] > 0


async def test_a_query_waits_for_another_index_no_longer_than_for_its_own(
    app: App, autojump_clock: MockClock
) -> None:
    async def make_another(*, task_status: trio.TaskStatus[None]) -> None:
        async with app.indexes._levelling:
            task_status.started()
            await trio.sleep_forever()

    with fail_after(60):
        await _cards(app)
        async with trio.open_nursery() as nursery:
            await nursery.start(make_another)
            assert not (await app.indexes.declare("main", "card/", ["due"]))["ready"]
            with pytest.raises(ServiceError) as caught:
                await app.find(sort="due")
            nursery.cancel_scope.cancel()
        assert (caught.value.code, await app.find(sort="due")) == ("busy", ["a", "d", "b", "c"])


async def test_an_index_that_takes_too_long_is_made_by_several_requests(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30):
        await _cards(app)
        monkeypatch.setattr(document_indexes, "_AT_ONCE", 3)
        monkeypatch.setattr(document_indexes, "QUERY_WINDOW_SECONDS", -1.0)
        assert not (await app.indexes.declare("main", "card/", ["due"]))["ready"]
        with pytest.raises(ServiceError) as caught:
            await app.find(sort="due")
        assert caught.value.code == "busy"
        assert await app.find(sort="due") == ["a", "d", "b", "c"]


async def test_a_branch_has_a_bounded_number_of_indexes(app: App) -> None:
    await _cards(app)
    for number in range(DOCUMENT_INDEXES_MAX + 1):
        await app.indexes.declare("main", "card/", [f"field{number}"])
    with app.node.replica.database.read() as connection:
        found = load_indexes(connection, app.node.branch().num)
    assert [one.fields for one in found] == [f"field{1 + number}" for number in range(DOCUMENT_INDEXES_MAX)]
    assert app.entries() == 4 * DOCUMENT_INDEXES_MAX


async def test_a_cursor_is_good_where_another_index_answers(app: App) -> None:
    await _cards(app)
    await app.indexes.declare("main", "card/", ["status", "due"])
    where = json.dumps({"status": "open"})
    first = await app.queries.find("main", "card/", where, "due", "", 1)
    with app.node.replica.database.write() as connection:
        connection.execute(delete(document_index_entries))
        connection.execute(delete(indexes_table))
    await app.indexes.declare("main", "card/", ["due"])
    rest = await app.queries.find("main", "card/", where, "due", first["cursor"] or "", 9)
    assert [one["name"] for one in (*first["documents"], *rest["documents"])] == [
        "card/a",
        "card/d",
        "card/c",
    ]


async def test_an_index_of_a_fork_is_level_where_the_origin_has_documents_to_be_made_anew(app: App) -> None:
    with fail_after(30):
        await _cards(app)
        origin = app.node.branch()
        await Merging(app.node.hub, app.node.author, app.node.branch).fork("main", "draft", "")
        await app.indexes.declare("draft", "card/", ["due"])
        with app.node.replica.database.write() as connection:
            stale = update(documents_table).where(documents_table.c.branch_num == origin.num)
            connection.execute(stale.values(is_stale=True))
        found = await app.queries.find("draft", "card/", "", "due", "", 9)
        assert [one["name"] for one in found["documents"]] == ["card/a", "card/d", "card/b", "card/c"]


@pytest.mark.parametrize("fields", [["$a"], ["a", "b", "c", "d", "e"], ["a\0"], ["a,b"]])
async def test_what_is_no_order_is_refused(app: App, fields: list[str]) -> None:
    with pytest.raises(ServiceError) as caught:
        await app.indexes.declare("main", "", fields)
    assert caught.value.code == "bad_request"


async def test_a_body_that_is_erased_leaves_nothing_in_an_index_and_the_others_are_found(app: App) -> None:
    await _cards(app)
    await app.indexes.declare("main", "card/", ["due"])
    _erase_first(app)
    assert app.entries() == 3
    found = await app.queries.find("main", "card/", "", "due", "", 9)
    assert [one["name"] for one in found["documents"]] == ["card/d", "card/b", "card/c"]
    unsorted = await app.queries.find("main", "card/", "", "", "", 9)
    assert len(unsorted["documents"]) == 3
    assert unsorted["unreadable"] == ["card/a"]


async def test_a_document_that_cannot_be_read_is_tried_again_once_its_branch_has_changed(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _cards(app)
    tried: list[str] = []
    make = DocumentState._make

    def note(
        self: DocumentState, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> MadeDocument:
        tried.append(name)
        return make(self, connection, branch, kind, name)

    monkeypatch.setattr(DocumentState, "_make", note)
    body = _erase_first(app)
    await app.indexes.declare("main", "card/", ["due"])

    async def read() -> list[str]:
        tried.clear()
        found: list[str] = []
        for _ in range(3):
            await app.queries.find("main", "card/", "", "due", "", 9)
            found = (await app.queries.find("main", "card/", "", "", "", 9))["unreadable"]
        return found

    assert (await read(), tried) == (["card/a"], [])
    app.node.write(app.node.branch(), "something else")
    assert (await read(), tried) == (["card/a"], ["card/a"])
    with app.node.replica.database.write() as connection:
        connection.execute(update(erasures).values(is_missing=True))
        fill_bodies(app.node.replica.database, connection, body)
    assert (await read(), set(tried)) == ([], {"card/a"})


async def test_a_document_is_tried_again_when_its_body_came_and_another_went(app: App) -> None:
    await _cards(app)
    await app.indexes.declare("main", "card/", ["due"])
    body = _erase_first(app)

    async def read() -> list[str]:
        await app.queries.find("main", "card/", "", "due", "", 9)
        return (await app.queries.find("main", "card/", "", "", "", 9))["unreadable"]

    assert await read() == ["card/a"]
    with app.node.replica.database.write() as connection:
        connection.execute(update(erasures).values(is_missing=True))
        fill_bodies(app.node.replica.database, connection, body)
    _erase_first(app, place=2)
    assert await read() == ["card/b"], "as many bodies are absent as before"


def _erase_first(app: App, place: int = 1) -> dict[CommitId, Block]:
    branch = app.node.branch()
    with app.node.replica.database.write() as connection:
        row = load_first_of_kinds(connection, branch.num, {"json"}, 9)[place]
        blocks = load_blocks_of(connection, [row])[row.num]
        erased = Erasure(row.num, row.topic_num, row.block_nums, ObjectId(BlockId(b"1" * 32)))
        erase_bodies(connection, branch.num, [erased], 0)
    return {row.commit_id: decode_block(blocks[1])}


def _meanwhile(app: App, monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Let something happen between the next reading of documents and writing their places."""
    read, left = app.indexes._read_places, [happen]

    async def read_places(*args: Any) -> dict[str, bytes | None]:  # noqa: ANN401  # as the one in its place
        places = await read(*args)
        if left:
            left.pop()()
        return places

    monkeypatch.setattr(app.indexes, "_read_places", read_places)


async def test_a_body_that_is_erased_while_its_document_is_entered_leaves_nothing_in_an_index(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _cards(app)
    monkeypatch.setattr(document_indexes, "QUERY_WINDOW_SECONDS", -1.0)  # one round a request
    _meanwhile(app, monkeypatch, partial(_erase_first, app))
    await app.indexes.declare("main", "card/", ["due"])
    assert app.entries() == 3


async def test_an_index_that_is_replaced_while_it_is_made_leaves_nothing(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _cards(app)

    def drop() -> None:
        with app.node.replica.database.write() as connection:
            connection.execute(delete(indexes_table))

    _meanwhile(app, monkeypatch, drop)
    with pytest.raises(ServiceError, match="replaced"):
        await app.indexes.declare("main", "card/", ["due"])
    assert app.entries() == 0


async def test_documents_that_cannot_be_read_keep_no_others_from_being_made_anew(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_indexes, "_AT_ONCE", 1)
    await _cards(app)
    await app.indexes.declare("main", "card/", ["due"])
    _erase_first(app)
    with app.node.replica.database.write() as connection:
        connection.execute(
            update(documents_table).where(documents_table.c.name == "card/d").values(is_stale=True)
        )
        connection.execute(delete(document_index_entries).where(document_index_entries.c.name == "card/d"))
    found = await app.queries.find("main", "card/", "", "due", "", 9)
    assert [one["name"] for one in found["documents"]] == ["card/d", "card/b", "card/c"]


@pytest.mark.slow
async def test_a_check_names_an_index_that_says_otherwise_and_a_repair_makes_it_anew(app: App) -> None:
    with fail_after(60):
        await _cards(app)
        await app.indexes.declare("main", "card/", ["due"])
        folder = app.node.replica.database.folder
        assert not check_store(folder, STORE_KEY).problems
        app.node.is_damaged = True
        with app.node.replica.database.write() as connection:
            connection.execute(update(document_index_entries).values(place=b"\0"))
        assert {one.kind for one in check_store(folder, STORE_KEY).problems} == {"document index"}
        app.node.replica.close()
        assert repair_store(folder, STORE_KEY).changed == {"document indexes": 1}
        app.node.open()
        app = App(app.node)
        assert not check_store(folder, STORE_KEY).problems
        assert app.entries() == 0
        assert await app.find(sort="due") == ["a", "d", "b", "c"]
        app.node.is_damaged = False
        with app.node.replica.database.write() as connection:
            connection.execute(delete(document_index_entries))
        assert {one.kind for one in check_store(folder, STORE_KEY).problems} == {"document index"}


async def test_a_repo_that_is_forgotten_takes_its_indexes_along(app: App) -> None:
    await _cards(app)
    await app.indexes.declare("main", "card/", ["due"])
    repo = app.node.repo()
    with app.node.replica.database.write() as connection:
        forget_repo(connection, repo.num)
        assert connection.execute(select(func.count()).select_from(indexes_table)).scalar_one() == 0
    app.node.is_damaged = True
    assert app.entries() == 0
