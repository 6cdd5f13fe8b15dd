"""Waiting for a daemon that starts. What runs for real is in `tests/e2e/test_up.py`."""

import json
import os
from pathlib import Path

import pytest

from node.home import starting
from node.home.home import lock_home
from node.home.starting import stop_daemon, wait_for_daemon
from node.runtime.errors import ServiceError
from ravel.home import RUN_NAME


def _never(text: str) -> None:
    raise AssertionError(text)


def test_a_folder_that_no_process_holds_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="no daemon runs") as caught:
        wait_for_daemon(tmp_path, _never)
    assert caught.value.code == "not_running"
    assert stop_daemon(tmp_path) is None


def test_a_starting_daemon_is_waited_for_and_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_SILENT_SECONDS", -1.0)
    told: list[str] = []

    def begin(text: str) -> None:
        told.append(text)
        run = {"pid": os.getpid(), "api": "127.0.0.1:1", "listen": "127.0.0.1:2", "peer": "p"}
        (tmp_path / RUN_NAME).write_text(json.dumps(run))

    with lock_home(tmp_path):
        assert wait_for_daemon(tmp_path, begin).api == "127.0.0.1:1"
    assert told == [f"waiting for process {os.getpid()}, which holds {tmp_path}, to be ready"]


def test_what_holds_the_folder_and_never_answers_is_waited_for_no_longer_than_that(tmp_path: Path) -> None:
    with lock_home(tmp_path), pytest.raises(ServiceError, match=f"process {os.getpid()} holds") as caught:
        wait_for_daemon(tmp_path, _never, seconds_max=-1)
    assert caught.value.code == "not_running"
    assert "log" in caught.value.advice


def test_what_holds_the_folder_and_is_no_daemon_is_not_stopped(tmp_path: Path) -> None:
    with lock_home(tmp_path), pytest.raises(ServiceError, match="no daemon runs"):
        stop_daemon(tmp_path)
