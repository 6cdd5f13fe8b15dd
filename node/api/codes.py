"""Codes that are good once and for a while, in memory: what gives a browser a token of its own."""

from collections.abc import Callable
from hmac import compare_digest

import trio

from node.runtime.errors import ServiceError


class OneTimeCodes:
    """Codes that were made and not yet used, at most `count_max`. After `tries_max` wrong tries all of them are
    invalid.

    `make` returns a new code. `advice` is the next step for a person whose code is invalid. `clock` counts seconds.
    """

    def __init__(
        self,
        make: Callable[[], str],
        *,
        seconds: float,
        count_max: int,
        tries_max: int | None,
        advice: str,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self._make = make
        self._seconds = seconds
        self._count_max = count_max
        self._tries_max = tries_max
        self._advice = advice
        self._clock = clock
        self._expires: dict[str, float] = {}
        self._makers: dict[str, str] = {}
        self._wrong = 0

    def make(self, maker: str = "") -> str:
        """Return a new code, made for a `maker`. Of too many, the oldest is good no more."""
        self._forget_old()
        while len(self._expires) >= self._count_max:
            del self._expires[next(iter(self._expires))]
        if not self._expires:
            self._wrong = 0  # they were for codes that are gone
        code = self._make()
        self._expires[code] = self._clock() + self._seconds
        self._makers[code] = maker
        return code

    def redeem(self, code: str) -> str:
        """Use a code up, and return for whom it was made. Raises ServiceError `unauthorized`."""
        self._forget_old()
        given = code.encode("utf-8", "surrogatepass")
        # All are compared, each in a time that does not depend on how much of it is right.
        found = [one for one in self._expires if compare_digest(one.encode(), given)]
        if not found:
            self._wrong += 1
            if self._tries_max is not None and self._wrong >= self._tries_max:
                self._expires.clear()
            raise ServiceError("unauthorized", "that code was used, or is too old, or is wrong", self._advice)
        del self._expires[found[0]]
        return self._makers.pop(found[0])

    def _forget_old(self) -> None:
        now = self._clock()
        self._expires = {one: until for one, until in self._expires.items() if until > now}
        self._makers = {one: maker for one, maker in self._makers.items() if one in self._expires}
