"""JSON documents from Python: edits by methods and together, live values, and schemas."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from protocol.formats.document_kinds import DICT_VALUE_SIZE_MAX, JSON_VALUE_SIZE_MAX
from protocol.formats.text import id_text
from ravel import AsyncClient, JsonEdits, RavelError, connect, connect_async
from ravel.json_documents import LiveResult, SchemaFault, find_faults
from ravel.types.json_documents import JsonDocumentView
from tests.support.machine import fail_after
from tests.support.served import TOKEN, Served, served

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"todo": {"type": "array", "items": {"$ref": "#/$defs/card"}}},
    "$defs": {"card": {"type": "object", "required": ["title"], "additionalProperties": False,
                       "properties": {"title": {"type": "string"}}}},
}  # fmt: skip


def _client(one: Served) -> AsyncClient:
    return connect_async(url=str(one.client.base_url), token=TOKEN)


async def test_a_document_is_edited_by_methods(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()

        def edit() -> None:
            with connect(url=str(one.client.base_url), token=TOKEN) as client:
                board = client.document("main", "board")
                board.put((), {"title": "Plan", "todo": []})
                first = board.insert("todo", {"title": "one"})
                board.insert("todo", {"title": "zero"}, before=first)
                board.add("votes", 2, item=first)
                board.put(["todo", 0, "title"], "nought")
                board.move(first, "done")
                board.remove("title")
                found = board.read()
                assert [card["title"] for card in found["value"]["todo"]] == ["nought"]
                assert found["value"]["done"] == [{"$id": first, "title": "one", "votes": 2}]
                assert "title" not in found["value"]
                board.remove(item=first)
                assert board.read()["value"]["done"] == []
                assert client.document("main").read()["value"] == {}, "another name is another document"

        await trio.to_thread.run_sync(edit)


async def test_a_value_that_is_too_large_is_refused_with_the_next_step_and_kept_as_a_file(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()
        board = client.document("main", "board")
        longest = "x" * (JSON_VALUE_SIZE_MAX - 2)  # with its quotes
        written = await board.write(JsonEdits().put((), {"long": longest, "n": 1}))
        assert (len(written["commits"]), (await board.read())["value"]) == (3, {"long": longest, "n": 1})
        [found] = await client.documents("main", where={"long": {"$prefix": "xxx"}}).read()
        assert found["value"] == {"long": longest, "n": 1}
        await client.edit_dict("main", put={"k": "x" * DICT_VALUE_SIZE_MAX})
        advice = []
        for write in (
            lambda: board.write(JsonEdits().put("long", f"{longest}x")),
            lambda: client.edit_dict("main", put={"k": "x" * (DICT_VALUE_SIZE_MAX + 1)}),
            lambda: client.edit_dict("main", put={"k": "\U0001f375" * (DICT_VALUE_SIZE_MAX // 2)}),
        ):
            with pytest.raises(RavelError) as caught:
                await write()
            assert caught.value.code == "too_large"
            advice.append(caught.value.advice)
        assert all(one.startswith("add it as a file (`add_file`") for one in advice)
        file = (await client.add_file("main", longest.encode() * 2, name="long.txt"))["file"]
        await board.write(JsonEdits().put("k", {"$file": file}))
        assert (await board.read())["value"]["k"] == {"$file": file}


async def test_a_document_is_followed_while_others_edit(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()
        board = client.document("main", "board")
        with fail_after(20):
            seen = []
            async with board.live() as states:
                async for state in states:
                    seen.append(state["value"])
                    if len(seen) == 3:
                        break
                    await board.write(JsonEdits().add("n").add("n", 2))
        assert seen == [{}, {"n": 3}, {"n": 6}]


async def test_documents_are_found_and_followed_by_their_fields(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()
        for name, status in (("a", "open"), ("b", "done"), ("c", "open")):
            await client.document("main", f"card/{name}").write(JsonEdits().put("status", status))
        query = client.documents("main", "card/", {"status": "open"})
        assert [found["name"] for found in await query.read()] == ["card/a", "card/c"]

        def read() -> list[str]:
            with connect(url=str(one.client.base_url), token=TOKEN) as waiting:
                found = waiting.documents("main", sort=["status"], limit=2)
                more = waiting.documents("main", sort="status", limit=2000)
                return [one["name"] for one in [*found, *more]]

        assert await trio.to_thread.run_sync(read) == ["card/b", "card/a", "card/b", "card/a", "card/c"]
        with fail_after(20):
            async with query.live() as results:
                first = await anext(results)
                assert first.added == ["card/a", "card/c"]
                await client.document("main", "card/b").write(JsonEdits().put("status", "open"))
                second = await anext(results)
                assert (second.added, second.changed, second.removed) == (["card/b"], [], [])
                assert [found["name"] for found in second.documents] == ["card/a", "card/b", "card/c"]


async def test_a_filter_that_no_address_holds_is_refused_in_words(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()
        with pytest.raises(RavelError, match="address is too long") as caught:
            await client.documents("main", where={"a": {"$in": ["\xe9" * 30] * 200}}).read()
        assert caught.value.code == "too_large"


async def test_documents_of_several_branches_are_found_and_followed_as_one_result(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        repo, main = one.node.create_repo()
        other, ingested = one.node.author.founding.create_branch(repo, "other")
        one.node.hub.announce(ingested)
        for branch, name in (("main", "b"), ("main", "a"), ("other", "a")):
            await client.document(branch, f"card/{name}").write(JsonEdits().put("status", "open"))
        main_key, other_key = (id_text(branch.branch_id) for branch in (main, other))
        equals = sorted((f"{main_key}/card/a", f"{other_key}/card/a"))
        query = client.documents(["main", "other"], "card/", {"status": "open"})
        assert [found["key"] for found in await query.read()] == [*equals, f"{main_key}/card/b"]
        assert len(await client.documents(repo="repo", limit=2).read()) == 2

        def read() -> list[str]:
            with connect(url=str(one.client.base_url), token=TOKEN) as waiting:
                first = next(waiting.documents(None, "card/").live())
                assert [found["key"] for found in first.documents] == [*equals, f"{main_key}/card/b"]
                return [found["branch"] for found in waiting.documents(["other"])]

        assert await trio.to_thread.run_sync(read) == [other_key]
        for branches, of in (([], ""), ("main", "repo"), (["main"], "repo")):
            with pytest.raises(RavelError, match="branches or a repo"):
                client.documents(branches, repo=of)
        with fail_after(20):
            async with query.live() as results:
                assert (await anext(results)).added == [*equals, f"{main_key}/card/b"]
                await client.document("other", "card/a").write(JsonEdits().put("status", "done"))
                second = await anext(results)
                assert (second.added, second.changed, second.removed) == ([], [], [f"{other_key}/card/a"])
                await client.document("main", "card/a").write(JsonEdits().put("votes", 1))
                third = await anext(results)
                assert third.changed == [f"{main_key}/card/a"]
                assert [found["value"] for found in third.documents] == [
                    {"status": "open", "votes": 1},
                    {"status": "open"},
                ]


@pytest.mark.parametrize("repos", [[], ["repo"]], ids=["all repos", "one repo"])
async def test_what_is_followed_by_the_name_main_is_where_main_points(
    tmp_path: Path, repos: list[str]
) -> None:
    async with served(tmp_path) as one, _client(one) as owner:
        repo, _ = one.node.create_repo()
        one.node.hub.announce(one.node.author.founding.create_branch(repo, "draft")[1])
        app = await owner.create_token("app", actions=["read", "write"], repos=repos)
        async with connect_async(url=str(one.client.base_url), token=app["token"]) as client:
            board = client.document("main", "board")
            await board.write(JsonEdits().put("n", 1))
            await client.document("draft", "board").write(JsonEdits().put("n", 2))
            with fail_after(20):
                async with (
                    board.live() as states,
                    client.documents("main").live() as found,
                    client.documents(["main"]).live() as listed,
                ):
                    assert await _numbers(states, found, listed) == [1, 1, 1]
                    await owner.point_main("draft")
                    assert await _numbers(states, found, listed) == [2, 2, 2]
                    await board.write(JsonEdits().put("n", 3))
                    assert await _numbers(states, found, listed) == [3, 3, 3]


async def _numbers(
    states: AsyncIterator[JsonDocumentView], *results: AsyncIterator[LiveResult]
) -> list[object]:
    value: Any = (await anext(states))["value"]
    found: list[Any] = [(await anext(one)).documents[0]["value"] for one in results]
    return [one["n"] for one in (value, *found)]


async def test_a_write_that_would_not_keep_to_the_schema_is_refused_and_what_others_wrote_is_shown(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()
        board = client.document("main", "board", SCHEMA)
        await board.write(JsonEdits().insert("todo", {"title": "one"}))
        with pytest.raises(SchemaFault, match="is a required property") as caught:
            await board.write(JsonEdits().insert("todo", {}))
        assert caught.value.code == "bad_input"
        assert len((await board.read())["value"]["todo"]) == 1
        await client.document("main", "board").write(JsonEdits().put(["todo", 0, "title"], 7))
        value = (await board.read())["value"]
        assert value["todo"][0]["title"] == 7
        assert board.faults(value) == ["$.todo[0].title: 7 is not of type 'string'"]


async def test_apps_see_the_schemas_that_others_stated(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()

        def state() -> None:
            with connect(url=str(one.client.base_url), token=TOKEN) as client:
                assert client.document("main", "board").stated_schemas() == []
                client.document("main", "board", SCHEMA).state_schema()
                assert client.document("main", "board").stated_schemas() == [SCHEMA]
                for text in ("no JSON", '{"not":' * 10_000 + "{}" + "}" * 10_000):
                    client.document("main", "schema/board").put("schema", text)
                    assert client.document("main", "board").stated_schemas() == []
                client.document("main", "schema/board").put([], None)
                assert client.document("main", "board").stated_schemas() == []

        await trio.to_thread.run_sync(state)


def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with connect(url="http://127.0.0.1:1", token=TOKEN) as client:
        for value in (circle, {"a": float("nan")}, {"a": {1, 2}}):
            for send in (
                partial(client.document("main", "board").put, "x", value),
                client.document("main", "board", schema=value).state_schema,
                partial(client.documents, "main", "", value),
            ):
                with pytest.raises(RavelError, match="cannot be sent as JSON") as caught:
                    send()
                assert caught.value.code == "bad_request"


def test_faults_are_counted_up_to_a_bound_and_nothing_is_fetched(tmp_path: Path) -> None:
    assert len(find_faults([*range(100)], {"items": {"type": "string"}})) == 16
    here = tmp_path / "schema.json"
    here.write_text("{}")
    for address in ("https://example.org/schema", here.as_uri()):
        with pytest.raises(RavelError, match="Unresolvable"):
            find_faults({}, {"$ref": address})


@pytest.mark.parametrize("schema", [{"type": 5}, {"pattern": "("}, {"$ref": "#"}, {"enum": 1}])
def test_a_schema_that_is_none_is_an_error_of_the_client(schema: dict[str, object]) -> None:
    with pytest.raises(RavelError, match="by that schema") as caught:
        find_faults("text", schema)
    assert caught.value.code == "bad_input"
