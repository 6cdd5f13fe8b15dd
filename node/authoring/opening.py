"""`OwnBatchReader`: opens what this node encodes, by worker processes while more is being encoded.

What this user writes passes parsing and validation as others' commits do, which takes about as long as making it. A part
of a long batch is therefore given to a worker (`node.ingest.reading_workers`), and another core reads it. A few commits,
and all where there are no workers, are opened where they were made.

A worker is asked by a thread, since the pipe to it blocks. There is one such thread for each worker at most, whatever the
length of the batches. A thread takes parts from one queue, oldest first, and ends when no part waits.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from node.ingest.publication_parsing import OpenedBatch, open_batch, opening_keys, settle_batch
from node.ingest.reading_worker import WorkerReading
from node.ingest.reading_workers import WORTH_A_TRIP, ReadingWorkers, UnreadableBatch
from node.runtime.errors import ServiceError
from storage.repos.epochs import Topic

PART_COUNT: Final = 64
"""Commits that a worker opens at a time: some 10 ms of work, while as many are encoded."""
_WAIT_SECONDS: Final = 2.0
"""Longest wait for one part: others wait for the store meanwhile. A worker that hangs is given up after half a minute."""


class OwnBatch:
    """Publications of this node's own that are being opened, or wait for it."""

    def __init__(self, topic: Topic, items: Sequence[bytes], note_late: Callable[[], object]) -> None:
        """Encoded publications on a topic, of which a reader is to give the answer.

        `note_late` is called when that does not come in time.
        """
        self._note_late = note_late
        self.topic = topic
        self.items = items
        self.answer: Future[WorkerReading | None] = Future()
        """What a worker has read; None: no worker is free."""
        self._opened: OpenedBatch | None = None

    def wait(self) -> OpenedBatch:
        """Wait until it is open. Raises ServiceError where it is no legal publication, or workers died of it."""
        if self._opened is None:
            self._opened = self._settle()
        return self._opened

    def _settle(self) -> OpenedBatch:
        try:
            reading = self.answer.result(_WAIT_SECONDS)
        except TimeoutError:
            self.drop()
            self._note_late()  # what waits behind it would wait as long
            reading = None
        except UnreadableBatch as error:
            raise ServiceError("internal", f"what was written cannot be read: {error}") from error
        if reading is None:
            return open_own(self.topic, self.items)
        return _check(settle_batch(reading.batch, reading.claims_hold))

    def drop(self) -> None:
        """Give up waiting: it is not opened, unless that has begun."""
        self.answer.cancel()


class OwnBatchReader:
    """Reader of this node's own batches. `workers` may be none. Thread-safe."""

    def __init__(self, workers: ReadingWorkers | None = None) -> None:
        self._workers = workers
        self.is_apart = workers is not None and workers.count > 0
        """True if there are workers that open a part while this thread goes on."""
        self._lock = threading.Lock()
        self._waiting: deque[OwnBatch] = deque()  # a group's parts: its caller holds all of them in any case
        self._reader_count = 0

    def begin(self, topic: Topic, items: Sequence[bytes]) -> OwnBatch:
        """Have these publications opened: by a worker where that pays, else here. Raises ServiceError as `wait`."""
        opening = OwnBatch(topic, items, self._give_up_waiting)
        if self._workers is None or not self.is_apart or len(items) < WORTH_A_TRIP:
            opening.answer.set_result(None)
            opening.wait()
            return opening
        with self._lock:
            self._waiting.append(opening)
            needs_reader = self._reader_count < self._workers.count
            self._reader_count += needs_reader
        if needs_reader:
            try:
                threading.Thread(
                    target=self._read_all, args=(self._workers,), name="own batch", daemon=True
                ).start()
            except RuntimeError:  # the system has no thread left
                self._end_reader()
        return opening

    def _read_all(self, workers: ReadingWorkers) -> None:
        """Read what waits until nothing does."""
        while (opening := self._next()) is not None:
            if not opening.answer.set_running_or_notify_cancel():
                continue  # dropped
            try:
                reading = workers.read(opening_keys(opening.topic), opening.items, wait_while=lambda: True)
            except BaseException as error:  # the caller waits: it must hear of any failure, and raises it
                opening.answer.set_exception(error)
                continue
            opening.answer.set_result(reading)
            if reading is None:  # what waits behind it has waited as long
                self._give_up_waiting()

    def _next(self) -> OwnBatch | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._reader_count -= 1
            return None

    def _end_reader(self) -> None:
        with self._lock:
            self._reader_count -= 1
            is_last = not self._reader_count
        if is_last:
            self._give_up_waiting()

    def _give_up_waiting(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for opening in waiting:
            if opening.answer.set_running_or_notify_cancel():
                opening.answer.set_result(None)


def open_own(topic: Topic, items: Sequence[bytes]) -> OpenedBatch:
    """Read here what was encoded, as what others send is read. Raises ServiceError."""
    return _check(open_batch(topic, items))


def _check(batch: OpenedBatch) -> OpenedBatch:
    if batch.dropped or batch.rejected:
        reasons = [*batch.dropped, *(item.code for item in batch.rejected)]
        raise ServiceError("bad_request", f"the commit is not a legal one: {', '.join(reasons)}")
    return batch
