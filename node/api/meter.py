"""API metrics middleware: counts statuses and latencies, only of requests that passed authentication."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.observe.watching import Watching


class Meter:
    """Reports every request's method, status and time to the first byte of the answer."""

    def __init__(self, application: ASGIApp, watching: Watching) -> None:
        self._application = application
        self._watching = watching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        began = time.perf_counter()

        async def reporting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._watching.answered(
                    _method(scope["method"]), message["status"], time.perf_counter() - began
                )
            await send(message)

        await self._application(scope, receive, reporting)


def _method(name: str) -> str:
    """One of a few: a client may call anything a method."""
    return name if name in ("GET", "POST", "PUT", "DELETE") else "other"
