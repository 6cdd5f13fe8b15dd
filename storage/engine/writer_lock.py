"""Priority lock for the single writer: local writes go before writes on behalf of peers.

A *patient* writer (work for a peer, a slice at a time) waits while anyone else does. So a user's write waits for the slice
that is under way, and for no other; so many in a row, or users who write without end would keep peers out for good.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OVERTAKING_MAX: Final = 64
"""Writes that go before a patient one in a row: a tenth of a second of small ones."""


class WriterLock:
    """Lock that one thread holds at a time; patient ones let others go first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_held = False
        self._waiting = 0  # impatient ones
        self._patient = 0
        self._overtaken = 0  # times in a row that a patient one was passed over

    @contextmanager
    def held(self, *, is_patient: bool = False) -> Iterator[None]:
        """Hold the lock for the block."""
        with self._changed:
            (self._wait_patiently if is_patient else self._wait)()
            self._is_held = True
        try:
            yield
        finally:
            with self._changed:
                self._is_held = False
                self._changed.notify_all()

    def _wait(self) -> None:
        self._waiting += 1
        try:
            while self._is_held or self._is_patient_due:
                self._changed.wait()
            self._overtaken += bool(self._patient)
        finally:
            self._waiting -= 1

    def _wait_patiently(self) -> None:
        self._patient += 1
        try:
            while self._is_held or (self._waiting and not self._is_patient_due):
                self._changed.wait()
            self._overtaken = 0
        finally:
            self._patient -= 1
            self._changed.notify_all()

    @property
    def _is_patient_due(self) -> bool:
        return bool(self._patient) and self._overtaken >= OVERTAKING_MAX

    @property
    def pending_count(self) -> int:
        """Return how many threads wait, patient or not."""
        with self._changed:
            return self._waiting + self._patient
