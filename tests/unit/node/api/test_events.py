"""Edits and events over the API: in windows, as they come, resumed, bounded, and ended."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
import trio.lowlevel
import trio.testing
from sqlalchemy import Engine, event
from trio.testing import MockClock

from node.api import edits as edits_module
from node.api import event_streams
from node.api.edits import EditSource, SharedReads, read_window
from node.api.event_streams import Event
from node.home.folder_mark import store_name, write_mark
from node.http import server as http_server
from node.sync.hub import Hub
from protocol.formats.text import id_text, parse_id
from protocol.limits.formats import TEXT_SIZE_MAX
from ravel import connect_async
from ravel.event_streams import AsyncEventStream, StreamEvent
from storage.commits.edits import START, Cursor
from storage.commits.void_marks import load_judged, mark_void
from storage.repos.repos import Branch
from tests.support.answers import check_event
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import ids, open_nodes
from tests.support.served import TOKEN, Served, served

EDITS = "/api/v1/branches/main/edits"
JsonObject = dict[str, Any]


class _Stream:
    """An open event stream. Not by httpx, whose generators cannot be left in the middle under trio."""

    def __init__(self, transport: trio.SocketStream) -> None:
        self._transport = transport
        self._http = h11.Connection(h11.CLIENT)
        self._text = ""

    async def ask(self, request: h11.Request) -> h11.Response:
        """Send a request; the answer's head."""
        await self._transport.send_all(self._http.send(request))
        await self._transport.send_all(self._http.send(h11.EndOfMessage()))
        answer = await self._event()
        assert isinstance(answer, h11.Response)
        return answer

    async def next(self) -> StreamEvent:
        """The next event, or a comment as one."""
        while "\n\n" not in self._text:
            part = await self._event()
            assert isinstance(part, h11.Data), "the stream has ended"
            self._text += part.data.decode()
        block, _, self._text = self._text.partition("\n\n")
        said = dict(line.split(": ", 1) for line in block.split("\n"))
        if "retry" in said:
            return await self.next()
        event = StreamEvent(
            said.get("event", "comment"), said.get("id", ""), json.loads(said.get("data", "{}"))
        )
        check_event(event.name, event.data)
        return event

    async def edits(self, count: int) -> list[JsonObject]:
        """The data of so many edits."""
        found: list[JsonObject] = []
        while len(found) < count:
            event = await self.next()
            if event.name == "edit":
                assert event.cursor == event.data["cursor"]
                found.append(event.data)
        return found

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._transport.receive_some(65536))
        return event


def _text_of(event: Event) -> str:
    """The text that an edit inserts, as an event states it."""
    text: str = json.loads(json.dumps(event.data))["item"]["text"]
    return text


def _request(one: Served, path: str, **headers: str) -> h11.Request:
    return h11.Request(
        method="GET",
        target=path,
        headers=[
            ("Host", f"127.0.0.1:{one.client.base_url.port}"),
            ("Authorization", one.client.headers["authorization"]),
            ("Accept", "text/event-stream"),
            *((name.replace("_", "-"), text) for name, text in headers.items()),
        ],
    )


@asynccontextmanager
async def _streamed(one: Served, path: str = EDITS, **headers: str) -> AsyncIterator[_Stream]:
    request = _request(one, path, **headers)
    async with await trio.open_tcp_stream("127.0.0.1", one.client.base_url.port or 0) as transport:
        stream = _Stream(transport)
        answer = await stream.ask(request)
        assert answer.status_code == 200
        assert (b"content-type", b"text/event-stream; charset=utf-8") in list(answer.headers)
        yield stream


def _void(one: Served, position: int) -> None:
    branch, database = one.node.branch(), one.node.replica.database
    commit_id = parse_id(ids(one.node)[position])
    with database.write() as connection:
        (judged,) = load_judged(connection, branch.num, [as_commit_id(commit_id)])
        mark_void(database, connection, branch.num, [judged.num], is_void=True)


async def _until_ended(one: Served) -> None:
    """Wait until the server has noticed that all streams have ended."""
    while one.streams.count:
        await trio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_windows_of_edits_make_the_timeline(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        _, branch = one.node.create_repo()
        for text in ("a", "b", "c"):
            one.node.write(branch, text)
        found: dict[str, str] = {}
        cursor, more = "", True
        while more:
            answer = (await one.client.get(EDITS, params={"since": cursor, "limit": 2})).json()
            assert answer["reset"] == (cursor == "")
            found |= {edit["place"]: edit["commit"] for edit in answer["edits"]}
            cursor, more = answer["cursor"], answer["more"]
        assert [commit for _, commit in sorted(found.items())] == ids(one.node)
        assert cursor == answer["last"]
        assert answer["edits"][-1]["item"]["text"] == "c"


@pytest.mark.slow
async def test_a_request_with_a_token_is_at_work_until_its_answer_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others give way to it, and would do so for ever to a stream."""
    async with served(tmp_path) as one:
        requests, begun = one.node.hub.user_requests, 0
        at_work = requests.at_work

        def count() -> AbstractContextManager[None]:
            nonlocal begun
            begun += 1
            return at_work()

        monkeypatch.setattr(requests, "at_work", count)
        await one.client.get("/healthz", headers={"Authorization": ""})
        await one.client.get("/api/v1/status", headers={"Authorization": "Bearer wrong"})
        assert begun == 0
        await one.client.get("/api/v1/status")
        await one.client.get("/api/v1/no-such-endpoint")
        assert begun == 2
        one.node.create_repo()
        async with _streamed(one) as stream:
            assert (await stream.next()).name == "reset"
            assert begun == 3
            assert not requests.are_at_work


@pytest.mark.slow
async def test_a_stream_tells_what_comes_and_resumes_by_its_last_id(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        _, branch = one.node.create_repo()
        one.node.write(branch, "a")
        async with _streamed(one) as stream:
            assert (await stream.next()).name == "reset"
            first = await stream.edits(2)
            one.node.write(branch, "b")
            (live,) = await stream.edits(1)
        one.node.write(branch, "c")
        _void(one, 1)
        async with _streamed(one, last_event_id=live["cursor"]) as stream:
            missed = await stream.edits(2)
        assert [edit["item"]["text"] for edit in (first[1], live, missed[0])] == ["a", "b", "c"]
        assert (missed[1]["edit"], missed[1]["commit"]) == ("remove", first[1]["commit"])
        async with _streamed(one, last_event_id=first[0]["cursor"]) as stream:
            again = await stream.next()
            assert again.data["commit"] == first[1]["commit"], "in the middle of a snapshot, of its moment"


async def test_a_stream_of_main_begins_anew_where_main_is_pointed(tmp_path: Path) -> None:
    async with served(tmp_path) as one, connect_async(url=str(one.client.base_url), token=TOKEN) as client:
        repo, main = one.node.create_repo()
        draft, ingested = one.node.author.founding.create_branch(repo, "draft")
        one.node.hub.announce(ingested)
        one.node.write(main, "said in main")
        one.node.write(draft, "said in draft")
        async with client.watch_edits("main") as events:
            assert [await _told(events) for _ in range(3)] == ["reset", "branch-root", "said in main"]
            await client.point_main("draft")
            assert [await _told(events) for _ in range(3)] == ["reset", "branch-root", "said in draft"]
            await client.write_post("main", "said after")
            assert await _told(events) == "said after"
            kept = events.cursor
        assert not (await client.follow_edits("main", since=kept))["reset"]
        await client.point_main(id_text(main.branch_id))
        window = await client.follow_edits("main", since=kept)
        assert window["reset"], "the cursor is of the branch that main meant then"
        assert [edit["item"]["text"] for edit in window["edits"][1:]] == ["said in main"]
        async with client.watch_edits("main", since=kept) as events:
            assert [await _told(events) for _ in range(3)] == ["reset", "branch-root", "said in main"]


async def _told(events: AsyncEventStream) -> str:
    event = await anext(events)
    item = event.data.get("item", {})
    return str(item.get("text") or item.get("kind") or event.name)


@pytest.mark.slow
async def test_more_streams_than_are_served_are_refused_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "EVENT_STREAMS_MAX", 1)
    async with served(tmp_path) as one:
        one.node.create_repo()
        async with _streamed(one):
            answer = await one.client.get(EDITS, headers={"Accept": "text/event-stream"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["connection"] == "close", "it holds no connection that others wait for"
            assert (await one.client.get(EDITS)).status_code == 200, "windows are served"
        await _until_ended(one)
        assert (await one.client.head(EDITS)).status_code == 200, "and has an end"
        async with _streamed(one):
            pass


@pytest.mark.slow
async def test_far_more_streams_than_there_are_connections_are_all_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "EVENT_STREAMS_MAX", 4)
    monkeypatch.setattr(http_server, "API_CONNECTIONS_MAX", 6)
    async with served(tmp_path) as one:
        _, branch = one.node.create_repo()
        statuses: list[int] = []
        done = trio.Event()

        async def open_one() -> None:
            async with await trio.open_tcp_stream("127.0.0.1", one.client.base_url.port or 0) as transport:
                stream = _Stream(transport)
                answer = await stream.ask(_request(one, EDITS))
                statuses.append(answer.status_code)
                if answer.status_code == 200:  # and is kept open
                    while (await stream.edits(1))[0]["item"]["text"] != "after all of them":
                        pass
                    await done.wait()

        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(open_one)
            while len(statuses) < 60:
                assert (await one.client.get("/api/v1/status")).status_code == 200, "whatever else is asked"
            one.node.write(branch, "after all of them")
            done.set()
        assert sorted(statuses) == [200] * 4 + [503] * 56


async def test_streams_end_with_a_word_when_the_node_stops(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        async with _streamed(one) as stream, _streamed(one, "/api/v1/events") as other:
            await stream.edits(1)
            await other.next()
            await one.streams.close()
            assert (await stream.next()).name == "closing"
            while (event := await other.next()).name != "closing":
                assert event.name in ("peers", "repos")
        assert (await one.client.get(EDITS, headers={"Accept": "text/event-stream"})).status_code == 503


@pytest.mark.slow
async def test_a_stream_that_is_not_read_is_cut_and_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "EVENT_SEND_SECONDS", 0.5)
    async with served(tmp_path) as one:
        _, branch = one.node.create_repo()
        for _ in range(40):
            one.node.write(branch, "x" * TEXT_SIZE_MAX)
        port = one.client.base_url.port or 0
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            lines = [f"GET {EDITS} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: text/event-stream"]
            lines += [f"Authorization: {one.client.headers['authorization']}", "", ""]
            await stream.send_all("\r\n".join(lines).encode())
            assert await stream.receive_some(1)
            one.node.write(branch, "meanwhile")
            await _until_ended(one)
        monkeypatch.undo()
        async with _streamed(one) as again:
            assert len(await again.edits(42)) == 42


async def test_a_stream_without_news_says_that_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "EVENT_SILENCE_SECONDS", 0.01)
    async with served(tmp_path) as one:
        one.node.create_repo()
        async with _streamed(one) as stream:
            await stream.edits(1)
            assert (await stream.next()).name == "comment"


@pytest.mark.slow
async def test_edits_are_read_in_pieces_for_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits_module, "EVENT_WINDOW", 2)
    async with served(tmp_path) as one:
        _, branch = one.node.create_repo()
        for number in range(5):
            one.node.write(branch, str(number))
        async with _streamed(one) as stream:
            assert [edit["item"]["text"] for edit in await stream.edits(6)] == [None, *"01234"]


@pytest.mark.slow
async def test_large_edits_are_read_in_smaller_pieces_for_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(6):
            alice.write(branch, str(number) * 1000)
        monkeypatch.setattr(edits_module, "EVENT_WINDOW_SIZE", 3500)
        shared, counts = SharedReads(alice.hub), list[int]()
        cursor, has_more = START, True
        while has_more:
            window, events = await shared.read(branch, cursor)
            assert window.is_reset == (cursor == START)
            cursor, has_more = window.next, window.has_more
            counts.append(len(events) - window.is_reset)
        assert sum(counts) == 7
        assert max(counts[1:]) == 2, "each of some 1,300 bytes"
        monkeypatch.setattr(edits_module, "EVENT_WINDOW_SIZE", 0)
        assert [one.name for one in (await shared.read(branch, START))[1]] == ["reset", "edit"], (
            "one that is larger goes alone"
        )


@pytest.mark.slow
async def test_sources_at_one_cursor_share_a_read_and_miss_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Cursor] = []

    def counted(
        hub: Hub, branch: Branch, since: Cursor, limit: int, *, positions: bool, size_max: int
    ) -> edits_module.Window:
        reads.append(since)
        return read_window(hub, branch, since, limit, positions=positions, size_max=size_max)

    monkeypatch.setattr(edits_module, "read_window", counted)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        shared = SharedReads(alice.hub)
        since = Cursor((await shared.read(branch, START))[0].next.change)
        texts: list[str] = []

        async def follow(source: EditSource, first: int) -> None:
            source.start()
            found: list[str] = []
            while len(found) < 20:
                found += [_text_of(event) for event in await source.next()]
                if first == 0 and len(found) < 20:  # written while the others read what was before
                    alice.write(branch, str(len(found)))
            source.stop()
            assert found == [str(number) for number in range(20)]
            texts.extend(found)

        monkeypatch.setattr(event_streams, "EVENT_PAUSE_SECONDS_MIN", 0)
        monkeypatch.setattr(event_streams, "EVENT_PAUSE_SECONDS", 0)
        reads.clear()
        alice.write(branch, "0")
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(follow, EditSource(alice.hub, shared, lambda: branch, since), number)
        assert len(texts) == 200
        assert len(reads) < 100, "ten sources read what two would"


@pytest.mark.parametrize("others, pause", [(0, 0.04), (31, 0.1), (63, 0.2), (1000, 0.2)])
async def test_a_change_after_a_quiet_time_is_told_at_once_and_more_after_a_pause(
    tmp_path: Path, others: int, pause: float, autojump_clock: MockClock
) -> None:
    """Few who follow are told sooner: what all of them take has a bound."""
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        shared = SharedReads(alice.hub)
        since = Cursor((await shared.read(branch, START))[0].next.change)
        sources = [EditSource(alice.hub, shared, lambda: branch, since) for _ in range(others + 1)]
        for source in sources:
            source.start()
        following = sources[0]
        assert await _no_event(following)
        await trio.sleep(10)
        alice.write(branch, "first")
        began = trio.current_time()
        assert [_text_of(event) for event in await following.next()] == ["first"]
        assert trio.current_time() == began
        for text in ("second", "third"):
            alice.write(branch, text)
        assert [_text_of(event) for event in await following.next()] == ["second", "third"]
        assert trio.current_time() - began == pytest.approx(pause)
        for source in sources:
            source.stop()
        assert shared.pause == 0.04


async def _no_event(source: EditSource) -> bool:
    with trio.move_on_after(5) as waiting:
        await source.next()
    return waiting.cancelled_caught


async def test_a_look_at_one_new_commit_runs_few_statements(tmp_path: Path) -> None:
    """It stands between a write and its being visible, once for each write of a single client."""
    said: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        since = read_window(alice.hub, branch, START, 64)[0].next
        alice.write(branch, "new")
        event.listen(Engine, "before_cursor_execute", note)
        try:
            _, edits = read_window(alice.hub, branch, since, 64, size_max=1000)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        assert [edit["edit"] for edit in edits] == ["insert"]
        assert len(said) <= 12, said


async def test_a_read_from_before_a_change_is_not_shared_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        shared, go_on, counts = SharedReads(alice.hub), trio.Event(), dict[str, int]()
        since = Cursor((await shared.read(branch, START))[0].next.change)

        async def run_slowly(work: Callable[..., Any], *arguments: object) -> object:
            result = work(*arguments)
            await go_on.wait()
            return result

        async def read(name: str) -> None:
            counts[name] = len((await shared.read(branch, since))[1])

        monkeypatch.setattr(alice.hub, "run_blocking", run_slowly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, "before")
            await trio.testing.wait_all_tasks_blocked()
            alice.write(branch, "meanwhile")
            nursery.start_soon(read, "after")
            await trio.testing.wait_all_tasks_blocked()
            go_on.set()
        assert counts == {"before": 0, "after": 1}


async def test_the_cursor_of_a_store_that_was_made_anew_begins_anew(tmp_path: Path) -> None:
    """Its numbers are of other commits there: what came meanwhile would be left out and nothing said."""
    async with served(tmp_path) as one, connect_async(url=str(one.client.base_url), token=TOKEN) as client:
        _, main = one.node.create_repo()
        one.node.write(main, "before")
        kept = (await client.follow_edits("main"))["cursor"]
        assert not (await client.follow_edits("main", since=kept))["reset"]
        write_mark(tmp_path / "alice")
        one.node.hub.store_name = store_name(tmp_path / "alice")
        window = await client.follow_edits("main", since=kept)
        assert window["reset"]
        assert [edit["item"]["kind"] for edit in window["edits"]] == ["branch-root", "post"]
        async with client.watch_edits("main", since=kept) as events:
            assert [await _told(events) for _ in range(3)] == ["reset", "branch-root", "before"]


@pytest.mark.parametrize(
    "end", ["", "7", "1-", "1--1", "1-1.", "1-1.2.3", "1-" + "1" * 17, "1-\u0661", "g-1-1"]
)
async def test_what_is_no_cursor_is_refused(tmp_path: Path, end: str) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        cursor = f"{one.node.hub.store_name}-{end}"
        for headers in ({}, {"Accept": "text/event-stream"}):
            answer = await one.client.get(EDITS, params={"since": cursor}, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.slow
async def test_the_node_s_events_are_peers_and_repos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo("first")
        async with _streamed(one, "/api/v1/events") as stream:
            events = [await stream.next(), await stream.next()]
            assert [event.name for event in events] == ["peers", "repos"]
            assert events[0].data["peers"] == []
            one.node.create_repo("second")
            event = await stream.next()
            assert {repo["name"] for repo in event.data["repos"]} == {"first", "second"}
        now = (await one.client.get("/api/v1/events")).json()
        assert {"peers", "repos"} <= set(now)
