"""A stream of posts answers each line once it is durable; a bad line ends nothing, and what comes again is written once."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message, Scope
from trio.testing import MockClock, wait_all_tasks_blocked

from node.api import post_streams as post_streams_module
from node.api.callers import CALLER, HOME
from node.api.post_streams import LineCutter, PostStreams
from node.api.repeats import Repeats
from node.http.connection import BodyStopped
from node.runtime.errors import ServiceError
from protocol.limits.formats import TEXT_SIZE_MAX
from protocol.limits.users import (
    EVENT_SEND_SECONDS,
    WRITE_STREAM_COUNT_MAX,
    WRITE_STREAM_LINE_SIZE_MAX,
    WRITE_STREAM_SIZE_MAX,
)
from ravel.types.commits import StreamedOutcome
from storage.engine.errors import StorageError
from tests.support.answers import check_value
from tests.support.served import TOKEN, Served, served

STREAM: Final = "/api/v1/branches/main/commits/stream"


def _line(text: str, key: str = "") -> bytes:
    return json.dumps({"text": text, **({"key": key} if key else {})}).encode() + b"\n"


def _read(content: bytes) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in content.splitlines()]
    for one in found:
        check_value(one, StreamedOutcome)
    return found


def _codes(answers: list[dict[str, Any]]) -> list[str]:
    return [one["error"]["code"] if "error" in one else "written" for one in answers]


async def _send(one: Served, *lines: bytes, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    answer = await one.client.post(STREAM, content=b"".join(lines), headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    return _read(answer.content)


async def _items(one: Served) -> list[dict[str, Any]]:
    answer = await one.client.get("/api/v1/branches/main/timeline", params={"limit": 1000})
    return [item for item in answer.json()["items"] if item["kind"] == "post"]


async def test_each_line_is_a_commit_behind_the_one_before_it(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        before = one.node.replica.database.commit_count
        answers = await _send(one, *(_line(f"post {number}") for number in range(70)))
        assert one.node.replica.database.commit_count - before <= 70 // 10, "they share transactions"
        items = await _items(one)
        assert [item["text"] for item in items] == [f"post {number}" for number in range(70)]
        assert [item["commit"] for item in items] == [answer["commit"] for answer in answers]
        assert [item["acks"] for item in items[1:]] == [[item["commit"]] for item in items[:-1]]


async def test_a_line_that_is_refused_ends_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        longest = "x" * TEXT_SIZE_MAX
        answers = await _send(
            one,
            _line("first"),
            b"no json\n",
            b'{"text":1}\n',
            b'{"text":"a","text":"b"}\n',
            b"\n",
            _line(" "),
            _line(longest),
            _line(longest + "x"),
            b"{" + b" " * WRITE_STREAM_LINE_SIZE_MAX + b"}\n",
            _line("a key", "with space"),
            _line("last").removesuffix(b"\n"),
        )
        refused = ["bad_request"] * 4
        expected = ["written", *refused, "written", "bad_request", "too_large", "bad_request", "written"]
        assert _codes(answers) == expected
        assert [item["text"] for item in await _items(one)] == ["first", longest, "last"]


async def test_a_branch_that_is_not_there_refuses_each_line(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        answer = await one.client.post("/api/v1/branches/no/commits/stream", content=_line("a") + _line("b"))
        assert _codes(_read(answer.content)) == ["not_found", "not_found"]


async def test_a_rename_sends_no_line_of_a_stream_elsewhere(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _connected(one) as stream:
        one.node.create_repo()
        for number, text in enumerate(("a", "b")):
            line = _line(text)
            await stream.send_all(b"%x\r\n%b\r\n" % (len(line), line))
            await _receive_until(stream, b"}\n")
            if not number:
                path = "/api/v1/branches/main/edits"
                (await one.client.post(path, json={"name": "hall"})).raise_for_status()
        answer = await one.client.get("/api/v1/branches/hall/timeline", params={"limit": 1000})
        assert [item["text"] for item in answer.json()["items"] if item["kind"] == "post"] == ["a", "b"]


@asynccontextmanager
async def _connected(one: Served) -> AsyncIterator[trio.SocketStream]:
    async with await trio.open_tcp_stream("127.0.0.1", one.client.base_url.port or 0) as stream:
        head = f"POST {STREAM} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        await stream.send_all(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        yield stream


async def _receive_until(stream: trio.SocketStream, end: bytes) -> bytes:
    got = b""
    while end not in got:
        got += await stream.receive_some()
    return got


async def test_a_line_is_answered_while_more_may_come(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _connected(one) as stream:
        one.node.create_repo()
        for text in ("one", "two"):
            line = _line(text)
            await stream.send_all(b"%x\r\n%b\r\n" % (len(line), line))
            assert b'"commit"' in await _receive_until(stream, b"}\n")
            assert (await _items(one))[-1]["text"] == text, "it is durable"
        await stream.send_all(b"0\r\n\r\n")
        await _receive_until(stream, b"0\r\n\r\n")
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200" in await _receive_until(stream, b"ok"), "the connection serves further requests"


async def test_a_line_that_comes_again_by_its_key_is_written_once(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        first = await _send(one, _line("a", "k1"), _line("b", "k2"))
        again = await _send(one, _line("b", "k2"), _line("other", "k1"), _line("c", "k3"), _line("c", "k3"))
        assert again[0] == first[1]
        assert again[1]["error"]["code"] == "key_reused"
        assert again[2] == again[3]
        assert [item["text"] for item in await _items(one)] == ["a", "b", "c"]


async def test_a_stream_for_another_run_of_the_daemon_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        run = (await one.client.get("/healthz")).headers["ravel-run"]
        assert _codes(await _send(one, _line("a", "k1"), headers={"Ravel-Run": run})) == ["written"]
        refused = await one.client.post(STREAM, content=_line("a", "k1"), headers={"Ravel-Run": "another"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "answer_lost")


async def test_two_streams_that_write_the_same_lines_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        lines = [_line(str(number), f"k{number}") for number in range(30)]
        answers: list[list[dict[str, Any]]] = []

        async def send(order: list[bytes]) -> None:
            answers.append(await _send(one, *order))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, lines)
            nursery.start_soon(send, lines[::-1])
        assert len(await _items(one)) == 30
        assert {answer["commit"] for answer in answers[0]} == {answer["commit"] for answer in answers[1]}


async def test_a_token_that_is_revoked_writes_nothing_more(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        made = await one.client.post("/api/v1/tokens", json={"name": "app", "actions": ["write"]})
        pieces, more = trio.open_memory_channel[bytes](1)
        answers: list[dict[str, Any]] = []

        async def send() -> None:
            answer = await one.client.post(
                STREAM, content=more, headers={"Authorization": f"Bearer {made.json()['token']}"}
            )
            answers.extend(_read(answer.content))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await pieces.send(_line("before"))
            while not await _items(one):
                await trio.lowlevel.checkpoint()
            assert (await one.client.delete("/api/v1/tokens/app")).status_code == 200
            await pieces.send(_line("after"))
            await pieces.aclose()
        assert _codes(answers) == ["written", "unauthorized"]


class _Posts:
    """Writes nothing, and waits until it may go on."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.resolved = 0
        self.gate = trio.Event()
        self.error: Exception | None = None

    def resolve(self, branch: str) -> str:
        self.resolved += 1
        return branch

    async def write_each(self, _branch: str, texts: Sequence[str]) -> list[object]:
        self.groups.append([*texts])
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return [{"commit": text} for text in texts]


class _Callers:
    def check(self, _caller: object) -> None:
        """Refuse nobody."""


class _Client:
    """Sends pieces to a stream, and reads its answers."""

    def __init__(self, posts: _Posts, repeats: Repeats | None = None) -> None:
        self.pieces, self._more = trio.open_memory_channel[bytes | BaseException](1000)
        self.answers = b""
        self.read: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": STREAM,
            "headers": [],
            "query_string": b"",
            "path_params": {"branch": "main"},
            CALLER: HOME,
            "server": ("127.0.0.1", 1),
        }
        self._scope = scope
        self.request = Request(scope, self._receive, self._send)
        self._streams = PostStreams(posts, repeats or Repeats("run"), _Callers(), _run_here)  # type: ignore[arg-type]
        self.taken = 0

    async def run(self) -> None:
        """Serve the stream to its end."""
        response = await self._streams.open(self.request)
        await response(self._scope, self._receive, self._send)

    async def _receive(self) -> Message:
        piece = await self._more.receive()
        if isinstance(piece, BodyStopped):
            raise piece
        self.taken += 1
        if isinstance(piece, BaseException):
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    async def _send(self, message: Message) -> None:
        await self.read()
        self.answers += message.get("body", b"")


async def _run_here(job: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401  # the job's answer
    return job(*arguments)


@pytest.mark.parametrize(
    "text, held",
    [("short", WRITE_STREAM_COUNT_MAX), ("x" * (TEXT_SIZE_MAX // 2), None)],
    ids=["count", "bytes"],
)
async def test_a_stream_reads_on_while_it_owes_few_answers(text: str, held: int | None) -> None:
    posts = _Posts()
    client = _Client(posts)
    line = _line(text)
    held = held or -(-WRITE_STREAM_SIZE_MAX // (len(line) - 1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        for _ in range(held + 20):
            await client.pieces.send(line)
        await wait_all_tasks_blocked()
        assert client.taken == held + 1, "one more was read, and waits"
        posts.gate.set()
        await client.pieces.send(b"")
    assert len(client.answers.splitlines()) == held + 20
    assert max(map(len, posts.groups)) <= WRITE_STREAM_COUNT_MAX // 2, (
        "further lines come while these are written"
    )
    assert posts.resolved == 1 < len(posts.groups), "the branch is looked up once"


async def test_a_client_that_reads_no_answers_is_cut(autojump_clock: MockClock) -> None:
    posts = _Posts()
    posts.gate.set()
    client = _Client(posts)
    await client.pieces.send(_line("one"))
    began = trio.current_time()

    async def begin_to_stall() -> None:
        client.read = trio.sleep_forever

    client.read = begin_to_stall  # after the head
    await client.run()
    assert trio.current_time() - began == 2 * EVENT_SEND_SECONDS


async def test_a_stream_ends_when_nothing_comes_for_long() -> None:
    posts = _Posts()
    posts.gate.set()
    client = _Client(posts)
    await client.pieces.send(_line("one"))
    await client.pieces.send(BodyStopped())
    await client.run()
    assert len(client.answers.splitlines()) == 1


async def test_what_a_client_has_left_behind_is_not_begun() -> None:
    posts = _Posts()
    client = _Client(posts)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        await client.pieces.send(_line("one"))
        await wait_all_tasks_blocked()
        await client.pieces.send(_line("two"))
        await client.pieces.send(ConnectionError())
        await wait_all_tasks_blocked()
        posts.gate.set()
    assert posts.groups == [["one"]]


async def test_a_failure_is_each_lines_and_a_repetition_tries_again() -> None:
    posts, repeats = _Posts(), Repeats("run")
    posts.gate.set()
    for error, code in (
        (StorageError("the disk is full"), "storage_failed"),
        (ServiceError("incomplete", "not yet"), "incomplete"),
        (KeyError("a defect"), "internal"),
        (None, "written"),
        (KeyError("not asked"), "written"),
    ):
        posts.error = error
        client = _Client(posts, repeats)
        await client.pieces.send(_line("a" * 52, "k1"))
        await client.pieces.send(b"")
        await client.run()
        assert _codes([json.loads(client.answers)]) == [code]


async def test_keys_of_lines_far_back_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_streams_module, "WRITE_STREAM_KEYS_MAX", 3)
    posts, repeats = _Posts(), Repeats("run")
    posts.gate.set()
    client = _Client(posts, repeats)
    for number in range(5):
        await client.pieces.send(_line("text", f"k{number}"))
    await client.pieces.send(b"")
    await client.run()
    assert [key for _, key in repeats._kept] == ["k2", "k3", "k4"]


async def test_a_stream_that_is_cancelled_says_that_nobody_knows() -> None:
    posts, repeats = _Posts(), Repeats("run")
    client = _Client(posts, repeats)
    await client.pieces.send(_line("text", "k1"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    again = _Client(posts, repeats)
    await again.pieces.send(_line("text", "k1"))
    await again.pieces.send(b"")
    await again.run()
    assert _codes([json.loads(again.answers)]) == ["answer_lost"]


@pytest.mark.same_examples
@settings(max_examples=50)
@given(st.lists(st.binary(max_size=12), max_size=8), st.lists(st.integers(0, 60), max_size=6))
def test_lines_are_the_same_however_the_body_is_cut(lines: list[bytes], cuts: list[int]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    body = b"\n".join(lines)
    places = sorted({0, *(min(cut, len(body)) for cut in cuts), len(body)})
    cutter = LineCutter(size_max=8)
    found = [line for start, stop in itertools.pairwise(places) for line in cutter.add(body[start:stop])]
    found += cutter.finish()
    said = [line if len(line) > 8 else line.strip() for line in lines]
    assert found == [line if len(line) <= 8 else None for line in said if line], "blank ones are passed over"
