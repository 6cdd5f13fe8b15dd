"""Events of a stream, and how it goes on after a cut, with a daemon that says exactly what a test tells it to."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from ravel import RavelError
from ravel.callers import operation_of
from ravel.calls.all_calls import AllCalls
from ravel.event_streams import EventStream, Following, StreamCut, StreamEvent
from ravel.exchange import Memory, Send
from ravel.operations import request_of
from ravel.target import Target

Script = list[str] | RavelError


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What streams have waited, in no time."""
    found: list[float] = []
    monkeypatch.setattr("ravel.event_streams.time.sleep", found.append)
    return found


def _opener(*scripts: Script) -> tuple[Callable[[Send], AbstractContextManager[Iterator[str]]], list[Send]]:
    """Opens streams that say these lines and are cut, or fails; and what was asked for."""
    asked: list[Send] = []
    left = list(scripts)

    @contextmanager
    def open_lines(send: Send) -> Iterator[Iterator[str]]:
        asked.append(send)
        script = left.pop(0) if left else RavelError("not_running", "gone")
        if isinstance(script, RavelError):
            raise script
        yield _cut(script)

    return open_lines, asked


def _cut(lines: list[str]) -> Iterator[str]:
    yield from lines
    raise StreamCut


def _stream(*scripts: Script, reconnect: bool = True, since: str = "") -> tuple[EventStream, list[Send]]:
    request = request_of(operation_of(AllCalls.follow_edits), {"branch": "b", "since": since})
    open_lines, asked = _opener(*scripts)
    following = Following(Memory(Target("http://127.0.0.1:1", "t")), request, reconnect=reconnect)
    return EventStream(following, open_lines), asked


def _edit(number: int) -> list[str]:
    return [f"id: {number}", "event: edit", json.dumps({"n": number}).join(("data: ", "")), ""]


def test_events_are_read_and_their_end_is_told() -> None:
    lines = ["retry: 2000", "", ": still here", "", "later: x", *_edit(7), "event: closing", "data: {}", ""]
    stream, _ = _stream(lines, reconnect=False)
    with stream as events:
        assert next(events) == StreamEvent("edit", "7", {"n": 7})
        with pytest.raises(RavelError, match="ended") as caught:
            next(events)
    assert (caught.value.code, events.cursor) == ("interrupted", "7")


def test_an_error_of_the_daemon_ends_the_stream() -> None:
    error = {"error": {"code": "storage_failed", "message": "disk full", "next": "free some"}}
    stream, _ = _stream(["event: error", f"data: {json.dumps(error)}", ""])
    with stream as events, pytest.raises(RavelError, match="disk full") as caught:
        next(events)
    assert (caught.value.code, caught.value.advice) == ("storage_failed", "free some")


@pytest.mark.parametrize("nonsense", ["x", "[1]", "[" * 100_000])
def test_an_event_that_is_no_object_is_incompatible(nonsense: str) -> None:
    stream, _ = _stream([f"data: {nonsense}", ""])
    with stream as events, pytest.raises(RavelError) as caught:
        next(events)
    assert caught.value.code == "incompatible"


def test_a_cut_stream_goes_on_after_the_last_whole_event(waits: list[float]) -> None:
    cut_amid = [*_edit(1), "id: 2", "event: edit"]
    stream, asked = _stream(
        cut_amid, RavelError("busy", "full"), ["data: x"], [*_edit(2), *_edit(3)], since="0"
    )
    with stream as events:
        assert [next(events).data["n"] for _ in range(3)] == [1, 2, 3]
    assert [send.request.headers.get("Last-Event-ID") for send in asked] == [None, "1", "1", "1"]
    assert {send.request.query["since"] for send in asked} == {"0"}
    assert waits == [0.2, 0.5, 1.0]


def test_a_stream_gives_up_after_a_minute_and_at_once_where_waiting_helps_nothing(waits: list[float]) -> None:
    stream, _ = _stream([])
    with stream as events, pytest.raises(RavelError) as caught:
        next(events)
    assert caught.value.code == "not_running"
    assert 60 <= sum(waits) < 62
    stream, asked = _stream([], RavelError("token_expired", "no"))
    with stream as events, pytest.raises(RavelError) as caught:
        next(events)
    assert (caught.value.code, len(asked)) == ("token_expired", 2)


def test_what_keeps_a_stream_alive_begins_the_minute_anew(waits: list[float]) -> None:
    stream, asked = _stream(*[[": still here"]] * 20, _edit(1))
    with stream as events:
        assert next(events).cursor == "1"
    assert (len(asked), set(waits)) == (21, {0.2})


def test_a_stream_that_is_cut_behind_its_first_event_is_asked_for_ever_more_seldom(
    waits: list[float],
) -> None:
    """Streams of a node begin with a list of all, which is no sign that they last."""
    stream, _ = _stream(*[["event: peers", "data: {}", ""]] * 5)
    with stream as events:
        assert [next(events).name for _ in range(5)] == ["peers"] * 5
    assert waits == [0.2, 0.5, 1.0, 2.0]


def test_an_error_at_the_first_asking_is_raised_at_once() -> None:
    stream, _ = _stream(RavelError("not_found", "no such branch"))
    with pytest.raises(RavelError, match="no such branch"), stream:
        pass
