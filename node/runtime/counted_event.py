"""`CountedEvent`: something that happens again and again, which tasks wait for without missing one."""

import trio


class CountedEvent:
    """Event that happens many times: a count, and a way to wait for the next time."""

    def __init__(self) -> None:
        self.count = 0
        self._next = trio.Event()

    def ring(self) -> None:
        """Count one more time, and wake all that wait."""
        self.count += 1
        self._next.set()
        self._next = trio.Event()

    async def wait(self, after: int) -> None:
        """Return once it has happened since `count` was `after`. The caller sets the deadline.

        Take the count before looking at the watched state: a change during the look would otherwise be missed.
        """
        if self.count == after:
            await self._next.wait()
