"""What is logged: one line an event, an exception whole."""

from contextlib import suppress

import pytest
import structlog

from node.runtime import logs


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
