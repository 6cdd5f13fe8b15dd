"""What is logged: one line an event, an exception whole."""

import pytest
import structlog

from node import logs


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
