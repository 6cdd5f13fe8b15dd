"""The writer's lock: what is asked for here goes before work for peers, so many times in a row."""

import threading
from collections.abc import Callable

import pytest

from storage.engine.writer_lock import OVERTAKING_MAX, WriterLock

pytestmark = pytest.mark.sqlite  # a lock, without rows


def _wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        pass


def _run(lock: WriterLock, patient: int, impatient: int) -> list[str]:
    """Return in which order threads get the lock that all wait, the patient ones first."""
    order: list[str] = []

    def work(name: str, *, is_patient: bool) -> None:
        with lock.held(is_patient=is_patient):
            order.append(name)

    threads: list[threading.Thread] = []
    with lock.held():
        for number in range(patient + impatient):
            is_patient = number < patient
            name = "patient" if is_patient else "impatient"
            threads.append(threading.Thread(target=work, args=(name,), kwargs={"is_patient": is_patient}))
            threads[-1].start()
        _wait_until(lambda: lock.pending_count == patient + impatient)
    for thread in threads:
        thread.join()
    return order


def test_a_waiting_local_write_takes_the_writer_next() -> None:
    assert _run(WriterLock(), 3, 3) == ["impatient"] * 3 + ["patient"] * 3


def test_patient_work_is_overtaken_only_so_often() -> None:
    order = _run(WriterLock(), 1, OVERTAKING_MAX + 2)
    assert order.index("patient") == OVERTAKING_MAX
    assert len(order) == OVERTAKING_MAX + 3
