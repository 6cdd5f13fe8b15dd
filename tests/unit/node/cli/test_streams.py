"""Standard streams that fail: a full disk, a reader that has enough, none at all."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from node.cli.main import main
from node.cli.streams import lose_output
from node.runtime.errors import ERROR_KINDS
from tests.support.processes import RAVEL

FULL = Path("/dev/full")
FAILED = ERROR_KINDS["storage_failed"].exit_code
NOT_FOUND = ERROR_KINDS["not_initialised"].exit_code

Run = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command with this file as standard output or standard error, and gives the exit code."""
    opened: list[int] = []

    def call(*arguments: str, stdout: int | None = None, stderr: int | None = None) -> int:
        for name, handle in (("stdout", stdout), ("stderr", stderr)):
            if handle is not None:
                opened.append(handle)
                monkeypatch.setattr(sys, name, open(handle, "w", closefd=False))  # noqa: SIM115  # closed with the test
        monkeypatch.setattr(sys, "argv", ["ravel", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        return int(caught.value.code or 0)

    yield call
    for handle in opened:
        with suppress(OSError):
            os.close(handle)


def _pipe_without_a_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("log", "--help")], ids=" ".join)
def test_a_reader_that_has_enough_is_no_failure(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments, stdout=_pipe_without_a_reader()) == 0


def test_a_failure_keeps_its_exit_code_where_nobody_reads_it(run: Run, home: str) -> None:
    assert run("--home", home, "status", "--json", stdout=_pipe_without_a_reader()) == NOT_FOUND


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("log", "--help")], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_a_failure_with_advice(
    run: Run, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, stdout=os.open(FULL, os.O_WRONLY)) == FAILED
    said = capsys.readouterr().err
    assert "error: standard output cannot be written: No space left on device" in said
    assert "next:  make room" in said


def test_an_output_that_cannot_be_written_at_all_is_said(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--version", stdout=os.open(os.devnull, os.O_RDONLY)) == FAILED
    assert "Bad file descriptor" in capsys.readouterr().err


def test_an_output_that_another_program_made_non_blocking_is_waited_for(run: Run) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    child = os.fork()
    if not child:  # reads all, and so makes room
        os.close(writer)
        while os.read(reader, 1 << 20):
            pass
        os._exit(0)
    os.close(reader)
    assert run("--version", stdout=writer) == 0
    os.close(writer)
    os.waitpid(child, 0)


@pytest.mark.parametrize("handle", [_pipe_without_a_reader, lambda: os.open(FULL, os.O_WRONLY)])
def test_messages_that_cannot_be_written_change_no_exit_code(
    run: Run, home: str, handle: Callable[[], int]
) -> None:
    assert run("--home", home, "status", stderr=handle()) == NOT_FOUND


def test_a_daemon_goes_on_where_its_output_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open(FULL, os.O_WRONLY)
    monkeypatch.setattr(sys, "stdout", open(full, "w", closefd=False))  # noqa: SIM115  # closed with the test
    lose_output()
    print("ready", flush=True)
    os.close(full)


_COMMANDS = {
    "join": (("repo", "join", "-"), NOT_FOUND),
    "init": (("init", "--clear"), 0),
    "id": (("id",), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed, commands",
    [
        pytest.param("<&-", ["join"], marks=pytest.mark.extended),
        (">&-", ["init"]),
        pytest.param("2>&-", ["join"], marks=pytest.mark.extended),
        pytest.param("<&- >&- 2>&-", [*_COMMANDS], marks=pytest.mark.extended),
    ],
)
def test_a_stream_that_is_closed_is_as_the_null_device(home: str, closed: str, commands: list[str]) -> None:
    """Each in an interpreter of its own, which takes a second: Python has no stream where none was open as it began."""
    for arguments, code in map(_COMMANDS.__getitem__, commands):
        script = f'exec "$@" {closed}'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *RAVEL, "--home", home, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
