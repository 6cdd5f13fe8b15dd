"""Waiting for a daemon that starts. What runs for real is in `tests/e2e/test_up.py`."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from node.home import starting
from node.home.home import UNWRITABLE_ADVICE, lock_home
from node.home.starting import stop_daemon, wait_for_daemon
from node.runtime.errors import ERROR_KINDS, ServiceError
from ravel.holder import Holder
from ravel.home import LOCK_NAME, RUN_NAME, read_run_file
from ravel.target import find_target


def _never(text: str) -> None:
    raise AssertionError(text)


def _write_run_file(home: Path, holder: Holder) -> None:
    run = {"holder": holder.as_json(), "api": "127.0.0.1:1", "listen": "127.0.0.1:2", "peer": "p", "run": "r"}
    (home / RUN_NAME).write_text(json.dumps(run))


@contextmanager
def _held_by(home: Path, holder: Holder) -> Iterator[None]:
    """The folder is held by this process, and says that another does."""
    with lock_home(home):
        (home / LOCK_NAME).write_text(json.dumps(holder.as_json()))
        _write_run_file(home, holder)
        yield


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
        _write_run_file(tmp_path, Holder.this())

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


_ELSEWHERE: dict[str, dict[str, Any]] = {
    "another container": {"pid_space": "pid:[1]", "net_space": "net:[1]"},
    "another network": {"net_space": "net:[1]"},
    "another machine": {"boot": "another"},
}


@pytest.mark.parametrize("place", _ELSEWHERE)
def test_a_daemon_out_of_reach_is_neither_asked_nor_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    holder = replace(Holder.this(), **_ELSEWHERE[place])
    with _held_by(tmp_path, holder):
        for ask in (read_run_file, find_target, stop_daemon, lambda home: wait_for_daemon(home, _never)):
            with pytest.raises(ServiceError, match="another container or on another machine") as caught:
                ask(tmp_path)
            assert caught.value.code == "already_running"
            assert "there" in caught.value.advice


def test_a_daemon_with_other_processes_and_the_same_network_is_asked_and_not_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    with _held_by(tmp_path, replace(Holder.this(), pid=1, pid_space="pid:[1]")):
        assert read_run_file(tmp_path).api == "127.0.0.1:1"
        with pytest.raises(ServiceError, match="another container"):
            stop_daemon(tmp_path)
        with (
            pytest.raises(ServiceError, match="a process of another container or machine uses"),
            lock_home(tmp_path),
        ):
            raise AssertionError("held twice")


def test_a_number_that_is_another_process_by_now_is_not_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    for holder in (replace(Holder.this(), started="1"), replace(Holder.this(), pid=2**22 + 1)):
        with _held_by(tmp_path, holder), pytest.raises(ServiceError, match="no daemon runs"):
            stop_daemon(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"pid": "x"}', "123\n"])
def test_a_holder_that_does_not_say_who_it_is_is_still_told(tmp_path: Path, content: str) -> None:
    with lock_home(tmp_path):
        (tmp_path / LOCK_NAME).write_text(content)
        with pytest.raises(ServiceError, match="a process uses"), lock_home(tmp_path):
            raise AssertionError("held twice")


def test_a_system_that_tells_no_namespaces_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **_options: object) -> str:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(os, "readlink", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    holder = Holder.this()
    assert holder == Holder(os.getpid(), "", "", "", "")
    assert holder.shares_processes
    assert holder.shares_network
    assert holder.is_alive


def test_a_daemon_that_had_no_room_even_to_say_so_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, failed = tmp_path / "daemon.log", ERROR_KINDS["storage_failed"].exit_code
    log.write_text("of earlier\n")
    assert "look at" in starting._failure(failed, log, log.stat().st_size).advice
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    error = starting._failure(failed, log, log.stat().st_size)
    assert error.code == "storage_failed"
    assert "could not be read or written" in error.message
    assert error.advice == f"make room on the disk of {tmp_path}, which has 0 MiB free"
    monkeypatch.setattr(os, "access", lambda *_: False)
    advice = starting._failure(failed, log, log.stat().st_size).advice
    assert advice == UNWRITABLE_ADVICE, "a disk that takes no writes has room, and needs no backup"
    with log.open("a") as file:
        file.write("error: what it said\nnext:  what it advised\n")
    assert starting._failure(failed, log, 0).advice == "what it advised"
