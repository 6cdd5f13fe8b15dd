"""Queries of JSON documents of several branches: one order, cursors, bounds; and results that are followed."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.api.live_json import LiveJson, QuerySource
from node.api.targets import Targets
from node.content import branch_queries, document_queries
from node.content.branch_queries import BranchQueries
from node.content.document_indexes import DocumentIndexes
from node.content.document_list import ListedDocuments
from node.content.document_queries import DocumentQueries, parse_query
from node.content.documents import Documents
from node.content.json_documents import JsonDocuments
from node.contract.json_documents import JsonChange
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from ravel import RavelError, connect_async
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch, Repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.served import AUTH, served

BRANCHES = ("main", "red", "blue")


class Asked:
    """A node with three branches in two repos, beside an empty one, and what asks it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.repo, _ = node.create_repo()
        self.other, _ = node.create_repo("other")  # and its `main`
        self.documents = Documents(node.hub, node.author, self.find)
        self.indexes = DocumentIndexes(node.hub, self.documents, self.find)
        queries = DocumentQueries(self.documents, self.indexes)
        self.queries = BranchQueries(self.documents, queries)
        self.targets = Targets(node.replica, node.author.user)
        self.live = LiveJson(node.hub, JsonDocuments(self.documents), queries, self.queries, self.targets)
        self.add(self.repo, "red")
        self.add(self.other, "blue")

    def add(self, repo: Repo, name: str) -> None:
        _, ingested = self.node.author.founding.create_branch(repo, name)
        self.node.hub.announce(ingested)

    def find(self, text: str) -> Branch:
        return self.targets.branch(text if ":" in text else self.name(text))

    def name(self, name: str) -> str:
        of = {branch.name: branch for branch in self.node.replica.branches.values()}
        main = next(one for one in self.node.replica.branches_in(self.repo.num) if one.name == "main")
        return self.targets.name(main if name == "main" else of[name])

    async def put(self, branch: str, name: str, **fields: object) -> None:
        changes = [JsonChange("put", [key], value=value) for key, value in fields.items()]
        await JsonDocuments(self.documents).edit(self.name(branch), name, changes, preview=False)

    def names(self, *branches: str) -> list[str]:
        return sorted(self.name(one) for one in branches or BRANCHES)

    def follow(self, where: str = "", sort: str = "", limit: int = 10, cursor: str = "") -> QuerySource:
        def find() -> list[Branch]:
            found = [one for one in self.node.replica.branches.values() if not one.facts.is_root_branch]
            return sorted(found, key=self.targets.name)

        return self.live.follow_anywhere(find, "card/", where, sort, limit, cursor)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no answer end early because the machine is slow."""
    monkeypatch.setattr(document_queries, "QUERY_SECONDS", 60.0)
    monkeypatch.setattr(branch_queries, "QUERY_WINDOW_SECONDS", 60.0)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    with open_nodes(tmp_path, "alice") as (node,):
        yield Asked(node)


async def test_documents_of_several_branches_are_found_in_one_order_page_after_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as app:
        node = app.node
        repo, main = node.create_repo()
        other, ingested = node.author.founding.create_branch(repo, "other")
        node.hub.announce(ingested)
        documents = Documents(node.hub, node.author, node.branch)
        for branch, name, votes in (
            *(("main", "b", 1), ("main", "c", 2), ("other", "a", 2)),
            *(("other", "b", 1), ("other", "d", 0)),
        ):
            change = JsonChange("put", ["votes"], value=votes)
            await JsonDocuments(documents).edit(branch, name, [change], preview=False)
        names = {id_text(main.branch_id): "main", id_text(other.branch_id): "other"}
        first, second = sorted(names.values(), key=lambda name: id_text(node.branch(name).branch_id))

        async def find(**query: str | int) -> list[str]:
            found: list[str] = []
            cursor = ""
            while True:
                answer = await app.client.get(
                    "/api/v1/json/documents", headers=AUTH, params={**query, "cursor": cursor}
                )
                data = answer.json()
                found += [f"{names[one['branch']]} {one['name']}" for one in data["documents"]]
                if data["cursor"] is None:
                    return found
                cursor = data["cursor"]

        by_name = ["other a", f"{first} b", f"{second} b", "main c", "other d"]
        by_votes = ["other d", f"{first} b", f"{second} b", "other a", "main c"]
        for limit in (1, 2, 3, 100):
            assert await find(limit=limit) == by_name
            assert await find(limit=limit, sort="votes", branches="main,other") == by_votes
        assert await find(branches="other", where='{"votes":2}') == ["other a"]
        await app.client.post(
            f"/api/v1/branches/{id_text(other.branch_id)}/json/indexes",
            headers=AUTH,
            json={"fields": ["votes"]},
        )
        for limit in (1, 2, 100):
            assert await find(limit=limit, sort="votes", repo="repo") == by_votes, "one of them by an index"
        refused = await app.client.get("/api/v1/json/documents", headers=AUTH, params={"cursor": "x"})
        assert refused.json()["error"]["code"] == "bad_request"
        monkeypatch.setattr(branch_queries, "QUERY_BRANCHES_MAX", 1)
        refused = await app.client.get("/api/v1/json/documents", headers=AUTH)
        assert refused.json()["error"]["code"] == "too_large"


async def _changes(asked: Asked, source: QuerySource) -> dict[str, list[str]]:
    (event,) = await source.next()
    assert event.name == "changes"
    of = {
        asked.name(one).partition(":")[2]: one
        for one in ("main", "red", "blue", "green")
        if _is_there(asked, one)
    }

    def show(key: str) -> str:
        branch, _, name = key.partition("/")
        return f"{of[branch]} {name.removeprefix('card/')}"

    data: Any = event.data
    names = {
        "added": [show(one["key"]) for one in data["added"]],
        "changed": [show(one["key"]) for one in data["changed"]],
        "moved": [show(key) for key in data["moved"]],
        "removed": [show(key) for key in data["removed"]],
        "order": [show(key) for key in data["order"]],
    }
    return {what: found for what, found in names.items() if found}


def _is_there(asked: Asked, name: str) -> bool:
    return any(branch.name == name for branch in asked.node.replica.branches.values())


async def test_a_follower_of_branches_is_told_what_changes_in_the_one_result_of_all(
    asked: Asked, autojump_clock: MockClock
) -> None:
    with fail_after(60):
        for branch, name, votes in (("main", "a", 1), ("red", "b", 2), ("blue", "c", 3)):
            await asked.put(branch, f"card/{name}", status="open", votes=votes)
        source = asked.follow('{"status":"open"}', "votes")
        source.start()
        (first,) = await source.next()
        shown: Any = first.data["documents"]
        assert [one["name"] for one in shown] == ["card/a", "card/b", "card/c"]
        assert [f"{one['repo']}:{one['branch']}" for one in shown] == [asked.name(one) for one in BRANCHES]
        await asked.put("red", "card/a", status="open", votes=9)
        assert await _changes(asked, source) == {
            "added": ["red a"],
            "order": ["main a", "red b", "blue c", "red a"],
        }, "the same name in another branch is another document"
        await asked.put("main", "card/a", votes=10)
        await asked.put("blue", "card/c", status="done")
        assert await _changes(asked, source) == {
            "changed": ["main a"],
            "moved": ["main a"],
            "removed": ["blue c"],
            "order": ["red b", "red a", "main a"],
        }, "both at once"
        asked.add(asked.other, "green")
        with trio.move_on_after(5) as nothing:
            await source.next()
        assert nothing.cancelled_caught, "an empty branch changes nothing"
        await asked.put("green", "card/x", status="open", votes=0)
        told = await _changes(asked, source)
        assert told["added"] == ["green x"], "of a branch that came since it began"
        source.stop()


async def test_a_stream_that_was_cut_goes_on_exactly(asked: Asked, autojump_clock: MockClock) -> None:
    with fail_after(60):
        await asked.put("main", "card/a", votes=1)
        await asked.put("blue", "card/b", votes=1)
        source = asked.follow()
        source.start()
        (first,) = await source.next()
        source.stop()
        again = asked.follow(cursor=first.cursor)
        again.start()
        with trio.move_on_after(5) as nothing:
            await again.next()
        assert nothing.cancelled_caught, "who has the result is told nothing"
        await asked.put("blue", "card/b", votes=2)
        assert (await _changes(asked, again))["changed"] == ["blue b"]
        again.stop()
        late = asked.follow(cursor=first.cursor)
        (whole,) = await late.next()
        assert whole.name == "result", "who has an older one gets the whole of it"
        shown: Any = whole.data["documents"]
        assert sorted(one["value"]["votes"] for one in shown) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("sort, limit", [("", 3), ("-votes,status", 4)])
async def test_a_followed_result_of_branches_is_the_one_that_a_new_query_finds(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, sort: str, limit: int
) -> None:
    monkeypatch.setattr(branch_queries, "LOOKED_AT_ONCE", 2)
    monkeypatch.setattr(branch_queries, "QUERY_CHANGES_MAX", 3)
    random = Random(limit)
    listed = ListedDocuments(asked.node.hub, asked.documents, asked.find)
    where, branches = '{"status":"open"}', asked.names()
    with fail_after(120):
        await asked.indexes.declare(asked.name("red"), "card/", ["status", "-votes", "status"])
        await asked.indexes.declare(asked.name("red"), "card/", ["status"])
        followed = asked.queries.follow(parse_query("card/", where, sort, limit))
        for _ in range(12):
            changed = set()
            for _ in range(random.choice((1, 1, 2, 6))):
                branch, name = random.choice(BRANCHES), f"card/{random.randrange(4)}"
                changed.add(asked.name(branch))
                if random.random() < 0.1:
                    with suppress(ServiceError):  # it is not there, or was removed
                        await listed.remove(asked.name(branch), "json", name)
                else:
                    status = random.choice(("open", "open", "done"))
                    await asked.put(branch, name, status=status, votes=random.randrange(3))
            shown = [one.document for one in await followed.look(branches, changed)]
            found = await asked.queries.find(branches, "card/", where, sort, "", limit)
            assert shown == found["documents"]
        fewer = asked.names("main", "blue")
        shown = [one.document for one in await followed.look(fewer, ())]
        assert shown == (await asked.queries.find(fewer, "card/", where, sort, "", limit))["documents"]


async def test_a_query_of_branches_holds_what_it_answers_and_looks_no_further_than_it_must(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    look = DocumentQueries.look

    async def counted(*args: Any) -> Any:  # noqa: ANN401  # passes on what it gets
        batch = await look(*args)
        looked.append(batch.count)
        return batch

    monkeypatch.setattr(DocumentQueries, "look", counted)
    monkeypatch.setattr(document_queries, "LOOKED_AT_ONCE", 4)
    with fail_after(60):
        first, *others = (asked.name(name) for name in BRANCHES)
        for number in range(12):
            await asked.put("main", f"card/1{number:02}", votes=1)
            for branch in ("red", "blue"):
                await asked.put(branch, f"card/2{number:02}", votes=1)
        found = await asked.queries.find([first, *others], "card/", "", "", "", 2)
        assert [one["name"] for one in found["documents"]] == ["card/100", "card/101"]
        assert looked == [3, 3, 3], "a batch of each"


async def test_a_query_of_branches_has_bounds(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    with fail_after(60):
        for branch in BRANCHES:
            await asked.put(branch, "card/a", text="x" * 100)
            await asked.put(branch, "card/b", text="x" * 100)
        (one, *_) = (await asked.queries.find(asked.names(), "card/", "", "", "", 1))["documents"]
        size = len(json.dumps(one, separators=(",", ":")))
        query = parse_query("card/", "", "", 3)
        monkeypatch.setattr(branch_queries, "QUERY_SIZE_MAX", 3 * size)
        assert len(await asked.queries.follow(query).look(asked.names(), ())) == 3
        monkeypatch.setattr(branch_queries, "QUERY_SIZE_MAX", 3 * size - 200)
        with pytest.raises(ServiceError, match="bytes together"):
            await asked.queries.follow(query).look(asked.names(), ())
        keys, cursor = [], ""
        while True:  # a page has fewer then
            found = await asked.queries.find(asked.names(), "card/", "", "", cursor, 3)
            keys.append([one["key"] for one in found["documents"]])
            if found["cursor"] is None:
                break
            cursor = found["cursor"]
        assert len({key for page in keys for key in page}) == 6
        assert max(map(len, keys)) == 2
        monkeypatch.setattr(branch_queries, "QUERY_SORTED_COUNT_MAX", 1)
        monkeypatch.setattr(document_queries, "LOOKED_AT_ONCE", 1)
        with pytest.raises(ServiceError, match="over 1 documents"):
            await asked.queries.find(asked.names(), "card/", "", "text", "", 3)
        monkeypatch.setattr(branch_queries, "QUERY_BRANCHES_MAX", 4)
        source = asked.follow()
        asked.add(asked.other, "green")
        for stream in (source, asked.follow()):
            with pytest.raises(ServiceError, match="at most 4 branches"):
                await stream.next()
        for cursor in ("x", f"{urlsafe_b64encode(bytes([255])).decode()}.b.card/a", "Yg==.b.card/a"):
            with pytest.raises(ServiceError) as caught:
                await asked.queries.find(asked.names(), "card/", "", "", cursor, 3)
            assert caught.value.code == "bad_request"


async def test_a_stream_of_named_branches_ends_with_a_reason_when_one_is_deleted(
    asked: Asked, autojump_clock: MockClock
) -> None:
    with fail_after(60):
        await asked.put("main", "card/a", votes=1)
        named = [asked.find("main"), asked.find("blue")]
        source = asked.live.follow_anywhere(lambda: named, "card/", "", "", 10, "")
        source.start()
        assert [event.name for event in await source.next()] == ["result"]
        with asked.node.replica.change() as change:
            forget_repo(change.connection, asked.other.num)
            change.changed_repos.add(asked.other.repo_id)
        asked.node.hub.topics_changed()
        with pytest.raises(ServiceError) as caught:
            await source.next()
        assert caught.value.code == "not_found"
        source.stop()


async def test_a_token_for_one_repo_follows_its_branches_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as app:
        asked = Asked(app.node)
        await asked.put("main", "card/a", votes=1)
        await asked.put("blue", "card/b", votes=1)
        body = {"name": "app", "actions": ["read"], "repos": ["repo"]}
        token = (await app.client.post("/api/v1/tokens", headers=AUTH, json=body)).json()["token"]
        async with connect_async(url=str(app.client.base_url), token=token) as client:
            with fail_after(20):
                async with client.documents(prefix="card/").live() as results:
                    first = await anext(results)
                    assert [one["name"] for one in first.documents] == ["card/a"]
                    await asked.put("blue", "card/b", votes=2)
                    await asked.put("red", "card/c", votes=1)
                    red = asked.name("red").partition(":")[2]
                    assert (await anext(results)).added == [f"{red}/card/c"]
            with pytest.raises(RavelError) as caught:
                await client.documents(["other:blue"]).read()
            assert caught.value.code == "not_found"
