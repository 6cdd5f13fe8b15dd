"""A writer sends what waits by one request, in order and bounded; what comes again after a lost answer is written once."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

import ravel
from ravel import RavelError
from ravel.exchange import Answer, Lost, Send
from ravel.operations import Request
from ravel.post_writers import OWED_MAX, PostWriter
from tests.support.served import TOKEN, Served, served


class _Daemon:
    """Answers each line with its text as the commit; refuses the text `bad`. Waits until it may."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()
        self.error: Exception | None = None

    def __call__(self, request: Request) -> bytes:
        lines = [json.loads(line) for line in (request.body or b"").splitlines()]
        self.requests.append([line["text"] for line in lines])
        assert len({line["key"] for line in lines}) == len(lines)
        self.asked.set()
        self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return b"".join(_answer(line["text"]) for line in lines)


def _answer(text: str) -> bytes:
    error = {"error": {"code": "not_permitted", "message": "no", "next": ""}}
    return json.dumps(error if text == "bad" else {"commit": text, "rank": 1, "branch": "b"}).encode() + b"\n"


def _code(act: Callable[[], object]) -> str:
    with pytest.raises(RavelError) as caught:
        act()
    return caught.value.code


def test_what_waits_goes_by_one_request_in_order() -> None:
    daemon = _Daemon()
    daemon.may_answer.clear()
    with PostWriter(daemon, "main") as writer:
        first = writer.post("0")
        daemon.asked.wait()
        others = [writer.post(str(number)) for number in range(1, 10)]
        daemon.may_answer.set()
        assert [one.result()["commit"] for one in (first, *others)] == [str(number) for number in range(10)]
    assert daemon.requests == [["0"], [str(number) for number in range(1, 10)]]


def test_no_more_posts_are_owed_than_the_node_takes() -> None:
    daemon = _Daemon()
    daemon.may_answer.clear()
    writer = PostWriter(daemon, "main")
    posted: list[object] = []

    def post_many() -> None:
        posted.extend(writer.post("text") for _ in range(OWED_MAX + 1))

    poster = threading.Thread(target=post_many)
    poster.start()
    with writer._changed:
        assert writer._changed.wait_for(lambda: writer._outbox.owed == OWED_MAX, 10)
    assert poster.is_alive(), "it waits with the one over"
    daemon.may_answer.set()
    poster.join()
    writer.close()
    assert sum(map(len, daemon.requests)) == OWED_MAX + 1
    assert max(map(len, daemon.requests)) <= OWED_MAX


def test_a_refused_post_ends_nothing_and_is_told_at_the_end_unless_it_was_asked_for() -> None:
    with PostWriter(_Daemon(), "main") as writer:
        refused = writer.post("bad")
        assert writer.post("good").result()["commit"] == "good"
        assert _code(refused.result) == "not_permitted"
    writer = PostWriter(_Daemon(), "main")
    writer.post("bad")
    writer.post("good")
    assert _code(writer.close) == "not_permitted"
    assert _code(lambda: writer.post("more")) == "bad_request"


def test_a_request_that_fails_fails_each_of_its_posts() -> None:
    for error, code in ((RavelError("not_running", "no"), "not_running"), (KeyError(), "internal")):
        daemon = _Daemon()
        daemon.error = error
        writer = PostWriter(daemon, "main")
        posted = [writer.post("a"), writer.post("b")]
        assert {_code(one.result) for one in posted} == {code}
        daemon.error = None
        assert writer.post("c").result()["commit"] == "c"
        writer.close()


def test_an_answer_of_another_length_is_incompatible() -> None:
    with PostWriter(lambda _: b"", "main") as writer:
        assert _code(writer.post("a").result) == "incompatible"


def test_a_text_that_is_none_is_refused_at_once() -> None:
    with PostWriter(_Daemon(), "main") as writer:
        assert _code(lambda: writer.post("\ud800")) == "bad_request"


async def _texts(one: Served) -> list[str]:
    answer = await one.client.get("/api/v1/branches/main/timeline", params={"limit": 1000})
    return [item["text"] for item in answer.json()["items"] if item["kind"] == "post"]


async def test_posts_whose_answers_were_lost_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        served(tmp_path) as one,
        ravel.connect_async(url=str(one.client.base_url), token=TOKEN) as client,
    ):
        one.node.create_repo()
        send, lost = client._send, 0

        async def lose(step: Send, content: None) -> Answer | Lost:
            nonlocal lost
            outcome = await send(step, content)
            if step.request.has_line_keys and lost < 2:
                lost += 1
                return Lost(was_sent=True)
            return outcome

        monkeypatch.setattr(client, "_send", lose)
        async with client.writer("main") as writer:
            posted = [await writer.post(str(number)) for number in range(5)]
            commits = [(await one_.result())["commit"] for one_ in posted]
        assert await _texts(one) == [str(number) for number in range(5)]
        assert len(set(commits)) == 5


async def test_both_writers_write_into_a_node(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        url = str(one.client.base_url)

        def write() -> None:
            with ravel.connect(url=url, token=TOKEN) as client, client.writer("main") as writer:
                for number in range(20):
                    writer.post(f"waiting {number}")

        await trio.to_thread.run_sync(write)
        async with ravel.connect_async(url=url, token=TOKEN) as client:
            async with client.writer("main") as writer:
                for number in range(OWED_MAX + 10):
                    await writer.post(f"awaiting {number}")
            with pytest.raises(RavelError) as caught:
                async with client.writer("elsewhere") as writer:
                    await writer.post("lost")
            assert caught.value.code == "not_found"
        expected = [f"waiting {number}" for number in range(20)]
        assert await _texts(one) == [*expected, *(f"awaiting {number}" for number in range(OWED_MAX + 10))]
