"""Requests, their repetition and their outcome: the rules of both clients, without input or output.

A client runs `exchange`, which yields what to do next and is sent the outcome. A request is sent again where its
answer was lost, and only where nothing can be done twice by that: it reads, or it had not been sent, or the daemon knows
it by its idempotency key.
"""

import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from ravel.errors import RavelError, error_of
from ravel.operations import Request
from ravel.target import Target

KEY_HEADER: Final = "Idempotency-Key"
RUN_HEADER: Final = "Ravel-Run"
"""Of an answer: the run of the daemon, another after each start. Of a request: it is for that run alone."""
_WAITS: Final = (0.1, 0.4, 1.0)
"""Seconds before each further attempt: a daemon that is being started again is back within them, mostly."""
ANSWER_SIZE_MAX: Final = 1 << 28
"""Bytes of an answer that is held whole: far more than any JSON of a node. Files are streamed."""
_HEALTH: Final = Request("GET", "/healthz")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to a daemon, and say what came: an Answer, or a Lost."""

    target: Target
    request: Request


@dataclass(frozen=True, slots=True)
class Wait:
    """Instruction to wait this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The daemon's answer. `run` is the one that it states."""

    status: int
    content: bytes
    run: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer, or not the whole of it. `was_sent`: a part of the request may have reached the daemon."""

    was_sent: bool
    is_slow: bool = False
    """It did not come in time; what was asked for may go on."""


Step = Send | Wait
Outcome = Answer | Lost | None


class Memory:
    """Knowledge of a client about its daemon: its address, and the latest run that it stated."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.has_asked = False
        """True if the daemon was asked for its run. An older one states none."""

    def note(self, answer: Answer) -> None:
        """Remember what an answer states about the daemon."""
        if answer.run and answer.run != self.target.run:
            self.target = replace(self.target, run=answer.run)


def too_slow() -> RavelError:
    """Return the error where no answer comes in time. What was asked for may go on."""
    return RavelError("not_running", "the daemon does not answer in time", "look at its log")


def check_size(size: int) -> None:
    """Raise RavelError `too_large` where an answer has more bytes than are held."""
    if size > ANSWER_SIZE_MAX:
        raise RavelError(
            "too_large", f"the answer has over {ANSWER_SIZE_MAX} bytes", "read files with get_file"
        )


def new_key() -> str:
    """Return an idempotency key: 128 random bits."""
    return os.urandom(16).hex()


def exchange(
    memory: Memory, request: Request, *, is_streamed: bool = False
) -> Generator[Step, Outcome, bytes]:
    """Yield the content of the answer. `is_streamed`: the request's content is gone once it was sent.

    Raises RavelError as the daemon does, and `not_running`; `answer_lost` where nothing tells whether a write
    was done, and `interrupted` where that is an upload.
    """
    has_key = bool(request.key) or request.has_line_keys
    if has_key and not memory.target.run and not memory.has_asked:  # an address alone does not tell it
        memory.has_asked = True
        found = yield Send(memory.target, _HEALTH)
        if isinstance(found, Answer):
            memory.note(found)
    headers = {**request.headers, **({KEY_HEADER: request.key} if request.key else {})}
    was_sent, run = False, ""
    for wait in (*_WAITS, None):
        if not was_sent:
            run = memory.target.run
        outcome = yield Send(memory.target, replace(request, headers=headers))
        if isinstance(outcome, Answer):
            memory.note(outcome)
            if outcome.status >= HTTPStatus.BAD_REQUEST:
                raise error_of(outcome.status, outcome.content)
            return outcome.content
        assert outcome is not None, "a request has an answer or none"
        was_sent = was_sent or outcome.was_sent
        if outcome.is_slow:
            raise too_slow()
        is_known = has_key and bool(run)
        if wait is None or (was_sent and (is_streamed or not (request.method == "GET" or is_known))):
            break
        if is_known and was_sent:
            headers = {**headers, RUN_HEADER: run}  # a daemon that was started since has forgotten the key
        memory.target = memory.target.found_again()
        yield Wait(wait)
    memory.target = memory.target.found_again()
    if was_sent and request.method != "GET":
        raise RavelError(
            "interrupted" if is_streamed else "answer_lost",
            "the connection was lost before the answer came",
            "look whether it was done before you do it again",
        )
    raise memory.target.lost()
