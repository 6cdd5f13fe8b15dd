"""`Opener`: opens what this node encodes, by worker processes while more is being encoded.

What this user writes passes parsing and validation as others' commits do, which takes about as long as making it. A part
of a long batch is therefore given to a worker (`node.ingest.reading_workers`), and another core reads it. A few commits,
and all where there are no workers, are opened where they were made.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from node.ingest.publication_parsing import OpenedBatch, open_batch, opening_keys, settle_batch
from node.ingest.reading_worker import WorkerReading
from node.ingest.reading_workers import WORTH_A_TRIP, ReadingWorkers, UnreadableBatch
from node.runtime.errors import ServiceError
from storage.repos.repos import Branch

PART_COUNT: Final = 64
"""Commits that a worker opens at a time: some 10 ms of work, while as many are encoded."""
Opening = Callable[[], OpenedBatch]
"""Waits for what is being opened. Raises ServiceError where it is no legal publication."""


class Opener:
    """Opens batches of this node's own. `workers` may be none."""

    def __init__(self, workers: ReadingWorkers | None = None) -> None:
        self._workers = workers
        self.is_apart = workers is not None and workers.count > 0
        """Whether there are workers that open a part while this thread goes on."""

    def begin(self, branch: Branch, items: Sequence[bytes]) -> Opening:
        """Have these publications opened. Raises ServiceError, or what it gives does."""
        if self._workers is None or not self.is_apart or len(items) < WORTH_A_TRIP:
            opened = open_own(branch, items)
            return lambda: opened
        workers = self._workers
        answer: Future[WorkerReading | None] = Future()

        def read() -> None:
            try:
                answer.set_result(workers.read(opening_keys(branch), items, wait_while=lambda: True))
            except BaseException as error:  # raised where the answer is waited for
                answer.set_exception(error)

        threading.Thread(target=read, name="own batch", daemon=True).start()

        def wait() -> OpenedBatch:
            try:
                reading = answer.result()
            except UnreadableBatch as error:
                raise ServiceError("internal", f"what was written cannot be read: {error}") from error
            if reading is None:  # no worker is free
                return open_own(branch, items)
            return _check(settle_batch(reading.batch, reading.claims_hold))

        return wait


def open_own(branch: Branch, items: Sequence[bytes]) -> OpenedBatch:
    """What was encoded, read here as what others send is. Raises ServiceError."""
    return _check(open_batch(branch, items))


def _check(batch: OpenedBatch) -> OpenedBatch:
    if batch.dropped or batch.rejected:
        reasons = [*batch.dropped, *(item.code for item in batch.rejected)]
        raise ServiceError("bad_request", f"the commit is not a legal one: {', '.join(reasons)}")
    return batch
