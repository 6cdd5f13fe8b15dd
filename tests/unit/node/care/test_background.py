"""Commands in processes of their own: what they answer, what they refuse, and that they end with the daemon."""

import sys
from pathlib import Path

import pytest
import trio

from node.care import background
from node.care.background import Background, run_command
from node.home.home import create_home
from node.runtime.errors import ServiceError
from tests.support.machine import fail_after


@pytest.mark.slow
async def test_a_command_answers_and_refuses_as_in_a_terminal(tmp_path: Path) -> None:
    with fail_after(30):
        create_home(tmp_path / "home")
        ran = await run_command(tmp_path / "home", "key", "show", seconds_max=30)
        assert (ran.exit_code, ran.answer["protection"]) == (0, "none")
        with pytest.raises(ServiceError, match="there is no node") as refused:
            await run_command(tmp_path / "other", "key", "show", seconds_max=30)
        assert refused.value.code == "not_initialised"


async def test_a_command_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "hangs"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(background, "_END_SECONDS", 0.1)  # a shell that `nohup` started heeds no interrupt
    with fail_after(30), pytest.raises(ServiceError, match="was ended after") as refused:
        await run_command(tmp_path, "doctor", seconds_max=1.0)
    assert refused.value.code == "incomplete"
    assert (tmp_path / "child").exists(), "which holds the pipe of the answer as long as it lives"


async def test_work_waits_for_no_request_and_is_refused_while_the_daemon_starts() -> None:
    work = Background()
    with pytest.raises(ServiceError, match="starts or stops"):
        work.start(trio.lowlevel.checkpoint)
    done = trio.Event()

    async def finish() -> None:
        await trio.lowlevel.checkpoint()
        done.set()

    with fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work.run)
            await trio.testing.wait_all_tasks_blocked()
            work.start(finish)
            await done.wait()
            nursery.cancel_scope.cancel()


async def test_work_that_fails_ends_no_other_work() -> None:
    work, done = Background(), trio.Event()

    async def fail() -> None:
        raise KeyError("commits")

    async def finish() -> None:
        await trio.lowlevel.checkpoint()
        done.set()

    with fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work.run)
            await trio.testing.wait_all_tasks_blocked()
            work.start(fail)
            await trio.testing.wait_all_tasks_blocked()
            work.start(finish)
            await done.wait()
            nursery.cancel_scope.cancel()
