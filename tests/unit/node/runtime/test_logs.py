"""What is logged: one line an event, an exception whole."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio
from trio.testing import MockClock

from node.runtime import log_file, logs
from node.runtime.log_file import UnfailingFile
from node.runtime.logs import LineLimit
from protocol.limits.users import LOG_FILE_SIZE_MAX, LOG_LINES_AT_ONCE_MAX

_MANY_LINES = """
import os, sys
from pathlib import Path
from node.runtime import logs

logs.LOG_LINES_AT_ONCE_MAX = 1 << 30
logs.configure("info", Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    logs.structlog.get_logger().info("a line", number=number, text="x" * 900)
print("the end")
"""


def test_an_exception_is_logged_whole_and_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        logs.configure("info")
        try:
            raise KeyError("what was wrong")
        except KeyError:
            structlog.get_logger().exception("request failed")
        (line,) = capsys.readouterr().err.splitlines()
        assert "request failed" in line
        assert "Traceback" in line
        assert "what was wrong" in line
    finally:
        structlog.reset_defaults()


async def test_an_accept_without_descriptors_is_one_line_each_time_and_few_in_all(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Exhausted(trio.abc.Listener[trio.SocketStream]):
        async def accept(self) -> trio.SocketStream:
            raise OSError(errno.EMFILE, "Too many open files")

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()

    async def serve(_stream: trio.SocketStream) -> None:
        raise AssertionError("nothing is accepted")

    monkeypatch.setattr(logs, "LOG_LINES_AT_ONCE_MAX", 5)
    try:
        logs.configure("info")
        with trio.move_on_after(10):
            await trio.serve_listeners(serve, [Exhausted()])
    finally:
        structlog.reset_defaults()
    lines = capsys.readouterr().err.splitlines()
    assert 5 <= len(lines) <= 10
    assert all("no connection can be accepted" in line and "EMFILE" in line for line in lines)
    assert not any("Traceback" in line for line in lines)


def test_a_full_disk_behind_the_log_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "w")  # noqa: SIM115  # closing it fails, too
    monkeypatch.setattr("sys.stderr", full)
    try:
        logs.configure("info")
        for _ in range(3):
            structlog.get_logger().info("nobody reads this", text="x" * 10_000)
        assert "nobody reads this" in logs.recent_lines()[-1]
    finally:
        structlog.reset_defaults()
        with suppress(OSError):
            full.close()


def test_lines_of_one_kind_are_limited_and_those_left_out_are_counted() -> None:
    now = 0.0
    limit = LineLimit(lambda: now)

    def log(event: str) -> MutableMapping[str, Any] | None:
        try:
            return limit(None, "info", {"event": event, "peer": "somebody"})
        except structlog.DropEvent:
            return None

    passed = [log("disconnected") for _ in range(LOG_LINES_AT_ONCE_MAX + 50)]
    assert [line for line in passed if line] == [
        {"event": "disconnected", "peer": "somebody"}
    ] * LOG_LINES_AT_ONCE_MAX
    assert log("storage failed") == {"event": "storage failed", "peer": "somebody"}, "others are not counted"
    now = 2.0
    assert log("disconnected") == {"event": "disconnected", "peer": "somebody", "left_out_before": 50}
    assert log("disconnected") == {"event": "disconnected", "peer": "somebody"}
    assert log("disconnected") is None


@pytest.mark.slow
@pytest.mark.parametrize("is_own", [True, False])
def test_a_log_is_put_aside_while_the_daemon_runs(tmp_path: Path, is_own: bool) -> None:
    written, log = tmp_path / "written.log", tmp_path / "daemon.log"
    if is_own:
        written = log
    else:
        log.write_bytes(bytes(LOG_FILE_SIZE_MAX + 1))
    count = 3 * LOG_FILE_SIZE_MAX // 1000
    with written.open("ab") as file:
        subprocess.run(
            [sys.executable, "-c", _MANY_LINES, str(log), str(count)],
            stdout=file,
            stderr=file,
            check=True,
            cwd=Path(__file__).parents[4],
        )
    if not is_own:
        assert log.stat().st_size == LOG_FILE_SIZE_MAX + 1, "the log of another process"
        assert written.stat().st_size > LOG_FILE_SIZE_MAX
        return
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daemon.log", "daemon.log.1"]
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert max(sizes) < 2 * LOG_FILE_SIZE_MAX
    assert log.stat().st_mode & 0o077 == 0
    assert "the end" in log.read_text()
    assert f"number={count - 1}" in log.read_text()


@contextmanager
def _no_further_file() -> Iterator[None]:
    """This process may open none, as where it has too many open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_log_that_cannot_be_put_aside_stays_and_is_put_aside_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LOG_FILE_SIZE_MAX", 1000)
    log = tmp_path / "daemon.log"
    with log.open("a") as standard_error:
        monkeypatch.setattr(log_file, "_STANDARD", (standard_error.fileno(),))
        written = UnfailingFile(standard_error, log)

        def write(text: str, count: int) -> None:
            for _ in range(count):
                written.write(text.ljust(99) + "\n")
                written.flush()

        with _no_further_file():
            write("no room", 30)
        assert [path.name for path in tmp_path.iterdir()] == ["daemon.log"]
        assert log.read_text().count("no room") == 30, "nothing is lost"
        write("room", 30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daemon.log", "daemon.log.1"]
    assert log.stat().st_size < 2000
    assert os.path.getsize(tmp_path / "daemon.log.1") < 2000


def test_a_log_stays_where_what_was_put_aside_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LOG_FILE_SIZE_MAX", 1000)
    log = tmp_path / "daemon.log"
    (tmp_path / "daemon.log.1").mkdir()
    with log.open("a") as standard_error:
        monkeypatch.setattr(log_file, "_STANDARD", (standard_error.fileno(),))
        written = UnfailingFile(standard_error, log)
        for _ in range(30):
            written.write("x" * 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daemon.log", "daemon.log.1"]
    assert log.stat().st_size == 3000
