"""When a request is sent again, and when it is not: the rules of both clients, played without a daemon."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from ravel import RavelError
from ravel.exchange import Answer, Lost, Memory, Outcome, Step, Wait, exchange
from ravel.operations import Request
from ravel.target import Target

READ = Request("GET", "/api/v1/repos")
WRITE = Request("POST", "/api/v1/repos", body=b"{}", key="k")
CUT = Lost(was_sent=True)
NOT_SENT = Lost(was_sent=False)


def _memory(run: str = "r1") -> Memory:
    return Memory(Target("http://127.0.0.1:1", "t", run=run))


def _play(
    steps: Generator[Step, Outcome, bytes], outcomes: list[Answer | Lost]
) -> tuple[bytes, list[Request], list[float]]:
    """The content, what was sent, and what was waited."""
    sent: list[Request] = []
    waits: list[float] = []
    outcome: Outcome = None
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as done:
            assert not outcomes
            return done.value, sent, waits
        if isinstance(step, Wait):
            waits.append(step.seconds)
            outcome = None
        else:
            sent.append(step.request)
            outcome = outcomes.pop(0)


def _code(steps: Generator[Step, Outcome, bytes], outcomes: list[Answer | Lost]) -> str:
    with pytest.raises(RavelError) as caught:
        _play(steps, outcomes)
    assert not outcomes, "it gave up before"
    return caught.value.code


def test_a_read_is_repeated_for_a_while() -> None:
    content, sent, waits = _play(exchange(_memory(), READ), [CUT, NOT_SENT, Answer(200, b"[]")])
    assert (content, len(sent), waits) == (b"[]", 3, [0.1, 0.4])
    assert _code(exchange(_memory(), READ), [CUT] * 4) == "not_running"


def test_lines_with_keys_of_their_own_are_repeated_for_the_run_that_they_were_sent_to() -> None:
    lines = Request("POST", "/api/v1/branches/main/commits/stream", body=b"{}", has_line_keys=True)
    _, sent, _ = _play(exchange(_memory(), lines), [CUT, Answer(200, b"{}")])
    assert [one.headers for one in sent] == [{}, {"Ravel-Run": "r1"}]
    refused = Answer(409, b'{"error":{"code":"answer_lost","message":"m","next":"n"}}', "r2")
    assert _code(exchange(_memory(), lines), [CUT, refused]) == "answer_lost"


def test_a_write_is_repeated_with_its_key_for_the_run_that_it_was_sent_to() -> None:
    _, sent, _ = _play(exchange(_memory(), WRITE), [CUT, Answer(200, b"{}")])
    assert sent[0].headers == {"Idempotency-Key": "k"}
    assert sent[1] == replace(sent[0], headers={"Idempotency-Key": "k", "Ravel-Run": "r1"})


def test_a_write_that_was_not_sent_is_for_any_run() -> None:
    memory = _memory()
    _, sent, _ = _play(exchange(memory, WRITE), [NOT_SENT, Answer(200, b"{}", "r2")])
    assert sent[1].headers == {"Idempotency-Key": "k"}
    assert memory.target.run == "r2"


def test_a_client_of_an_address_asks_for_the_run_before_its_first_write() -> None:
    memory = _memory(run="")
    _, sent, _ = _play(exchange(memory, WRITE), [Answer(200, b"{}", "r1"), CUT, Answer(200, b"{}", "r1")])
    assert [one.path for one in sent] == ["/healthz", WRITE.path, WRITE.path]
    assert sent[2].headers["Ravel-Run"] == "r1"
    assert len(_play(exchange(memory, WRITE), [Answer(200, b"{}")])[1]) == 1, "it knows it now"


def test_a_write_to_an_older_daemon_is_not_repeated() -> None:
    memory = _memory(run="")
    assert _code(exchange(memory, WRITE), [Answer(200, b"{}"), CUT]) == "answer_lost"
    assert _code(exchange(memory, WRITE), [CUT]) == "answer_lost", "it is asked for its run once"


@pytest.mark.parametrize("request_", [replace(WRITE, key=""), replace(WRITE, method="DELETE", key="")])
def test_a_write_without_a_key_is_not_repeated(request_: Request) -> None:
    assert _code(exchange(_memory(), request_), [CUT]) == "answer_lost"
    _play(exchange(_memory(), request_), [NOT_SENT, Answer(200, b"{}")])


def test_an_upload_is_repeated_only_where_nothing_was_sent() -> None:
    request = replace(WRITE, key="", body=None)
    assert _code(exchange(_memory(), request, is_streamed=True), [CUT]) == "interrupted"
    assert _code(exchange(_memory(), request, is_streamed=True), [NOT_SENT, CUT]) == "interrupted"


def test_what_is_slow_is_not_asked_again() -> None:
    assert _code(exchange(_memory(), WRITE), [Lost(was_sent=True, is_slow=True)]) == "not_running"


def test_a_refusal_is_the_answer() -> None:
    refused = Answer(409, b'{"error":{"code":"answer_lost","message":"m","next":"n"}}', "r2")
    assert _code(exchange(_memory(), WRITE), [CUT, refused]) == "answer_lost"


@pytest.mark.parametrize("content", [b"", b"<html>", b'{"error":1}', b"[" * 100_000])
def test_an_error_that_is_none_of_the_apis_is_incompatible(content: bytes) -> None:
    assert _code(exchange(_memory(), READ), [Answer(502, content)]) == "incompatible"
