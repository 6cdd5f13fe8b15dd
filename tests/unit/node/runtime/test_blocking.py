"""Blocking work in threads: its result or error, the caller's context, few at a time, and cancellation that waits."""

import platform
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest
import trio
import trio.testing

from node.runtime import blocking
from tests.support.machine import fail_after

_ASKED_BY = ContextVar("asked_by", default="")


def _fail() -> None:
    raise LookupError("of the work")


async def test_work_gives_its_result_or_raises_and_sees_who_asks() -> None:
    run = blocking.threads()
    _ASKED_BY.set("the test")
    with fail_after(30):
        assert await run(divmod, 7, 2) == (3, 1)
        assert await run(threading.get_ident) != threading.get_ident()
        assert await run(_ASKED_BY.get) == "the test"
        await run(_ASKED_BY.set, "the work")
        assert _ASKED_BY.get() == "the test", "the work has a copy"
        with pytest.raises(LookupError, match="of the work"):
            await run(_fail)


async def test_so_many_works_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "_THREADS_MAX", 2)
    run, lock, both = blocking.threads(), threading.Lock(), threading.Barrier(2)
    here, most = 0, 0

    def work() -> None:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
        both.wait(30)  # two are here at a time, or this fails
        with lock:
            here -= 1

    with fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(run, work)
    assert (most <= 2, here) == (True, 0)


async def test_who_is_cancelled_waits_for_the_work() -> None:
    run, begun, may_end = blocking.threads(), threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        begun.set()
        assert may_end.wait(30)
        ended.append("the work")

    async def ask() -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await run(work)
        ended.append("the caller")

    scopes: list[trio.CancelScope] = []
    with fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await run(begun.wait, 30)
            scopes[0].cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert ended == []
            may_end.set()
        with trio.CancelScope() as scope:  # before it has begun, there is nothing to wait for
            scope.cancel()
            await run(ended.append, "never")
    assert ended == ["the work", "the caller"]


_MANY_THREADS = """
import ctypes, threading
from node.runtime.blocking import tune_interpreter

tune_interpreter()
waiting = threading.Barrier(9)

def work():
    kept = [bytes(1000) for _ in range(1000)]
    waiting.wait()
    waiting.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
waiting.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
waiting.wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries of C have no arenas")
def test_threads_share_few_arenas() -> None:
    """Each would keep what the largest work of its thread took."""
    done = subprocess.run(
        [sys.executable, "-c", _MANY_THREADS],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    assert 1 <= done.stdout.count("<heap nr=") <= 2
