"""`GroupLane`: requests that come while an earlier one is at work are worked on together, once it is done.

The first that waits is the *leader*. It waits for the lock, takes all that wait by then, and hands each its answer. The
next request finds the lane empty and leads the next group. A cancelled request leaves the lane, and if it led, the next one
leads. A request that a group has taken is worked on to the end, as work in a thread is.

Clients that were answered together ask again together, a moment later. A lane may therefore gather for a moment before it
takes a group, where the last one had requests of several. A lone client never waits.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import trio

Q = TypeVar("Q")
A = TypeVar("A")


class _Waiting(Generic[Q, A]):
    def __init__(self, request: Q, client: object) -> None:
        self.request = request
        self.client = client
        self.woken = trio.Event()  # it is answered, or leads
        self.answers: list[A | Exception] = []


class GroupLane(Generic[Q, A]):
    """Queue of requests; one task serves all that wait together."""

    def __init__(
        self, lock: AbstractAsyncContextManager[None], count_max: int, gather_seconds: float = 0.0
    ) -> None:
        """`lock` is held while a group is worked on, and `gather_seconds` before where the last one was of several clients.

        A group has at most `count_max` requests; the rest form the next.
        """
        self._lock = lock
        self._count_max = count_max
        self._gather_seconds = gather_seconds
        self._last_clients = 0
        self._waiting: deque[_Waiting[Q, A]] = deque()

    async def run(self, request: Q, work: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]) -> A:
        """Return the answer to a request. `work` gives an answer, or an error to raise, for each request in order.

        What `work` itself raises is raised for each request of the group. All requests of a lane bring the same `work`.
        """
        [answer] = await self.run_each([request], work)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run_each(
        self, requests: Sequence[Q], work: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]
    ) -> list[A | Exception]:
        """Return the answer to each of one client's requests, which are worked on in this order, or its error."""
        client = object()
        waiting: list[_Waiting[Q, A]] = [_Waiting(request, client) for request in requests]
        self._waiting += waiting
        try:
            for own in waiting:
                await self._wait_to_lead(own)
                if not own.answers:
                    async with self._lock:
                        await self._gather()
                        await self._work_on_group(work)
        finally:
            for own in reversed(waiting):
                self._leave(own)
        return [own.answers[0] for own in waiting]

    async def _wait_to_lead(self, own: _Waiting[Q, A]) -> None:
        """Return when it leads, or is answered."""
        if own.answers or self._waiting[0] is own:
            return
        try:
            await own.woken.wait()
        except trio.Cancelled:
            if own in self._waiting:
                raise
            # A group works on it. A caller that cleaned up now would delete what the transaction refers to.
            with trio.CancelScope(shield=True):
                await own.woken.wait()

    async def _gather(self) -> None:
        if self._gather_seconds and self._last_clients > 1 and len(self._waiting) < self._count_max:
            await trio.sleep(self._gather_seconds)

    async def _work_on_group(self, work: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]) -> None:
        group = [self._waiting.popleft() for _ in range(min(self._count_max, len(self._waiting)))]
        self._last_clients = len({id(one.client) for one in group})
        if self._waiting:
            self._waiting[0].woken.set()
        answers: Sequence[A | Exception] = [RuntimeError("the group was given up")] * len(group)
        try:
            with trio.CancelScope(shield=True):  # others wait for it, who were not cancelled
                answers = await work([one.request for one in group])
        except Exception as error:  # each request of the group must learn it, whatever it is
            answers = [error] * len(group)
        finally:  # when the process is ending too: they would wait for ever
            for one, answer in zip(group, answers, strict=True):
                one.answers.append(answer)
                one.woken.set()

    def _leave(self, own: _Waiting[Q, A]) -> None:
        """Take a request out that was cancelled before a group took it."""
        if own in self._waiting:
            was_first = self._waiting[0] is own
            self._waiting.remove(own)
            if was_first and self._waiting:
                self._waiting[0].woken.set()
