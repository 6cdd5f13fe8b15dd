"""`ravel` in processes of their own, forked from one that has imported it already.

A daemon imports for some 0.7 s before its first line runs, and a command for 0.3 s. Where a test is not about the start of
an interpreter, the process is forked instead. It is a real one, with its own memory, signals and exit code.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Final

import typer.main
from typer.core import TyperGroup

from node.cli.main import app, main

RAVEL: Final = [sys.executable, "-P", "-m", "node.cli.main"]
"""The command in an interpreter of its own."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_COMMANDS: Final = typer.main.get_command(app)
"""The top level, whose commands each process would else import anew."""
assert isinstance(_COMMANDS, TyperGroup)
assert all(_COMMANDS.commands.values()), "looking them up imports them"


class RavelProcess:
    """One `ravel` at work: what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str | bytes],
        *,
        output: Path,
        errors: Path,
        stdin: Path = Path(os.devnull),
        environment: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Start it. What it writes is added to `output` and `errors`."""
        told = {**os.environ, **environment}
        argv = ["ravel", *(os.fsdecode(argument) for argument in arguments)]
        streams = (str(stdin), str(output), str(errors))
        self._process: BaseProcess = _context().Process(target=_run, args=(argv, told, os.getcwd(), streams))
        self._process.start()
        assert self._process.pid is not None
        self.pid: Final = self._process.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs. Of one that a signal ended: the number, negative."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("ravel", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self.send_signal(signal.SIGKILL)


def run_command(
    arguments: Sequence[str | bytes],
    *,
    stdin: str = "",
    environment: Mapping[str, str] = _NOTHING,
    forks: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end: forked, or in an interpreter of its own, which reads the environment as it starts."""
    told = {"NO_COLOR": "1", **environment}
    if not forks:
        return subprocess.run(
            [*RAVEL, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **told},
        )
    with tempfile.TemporaryDirectory(prefix="ravel-command-") as folder:
        given, output, errors = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin, encoding="utf-8")
        process = RavelProcess(arguments, output=output, errors=errors, stdin=given, environment=told)
        code = process.wait()
        texts = [path.read_text(encoding="utf-8", errors="backslashreplace") for path in (output, errors)]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


@cache
def _context() -> ForkServerContext:
    """One process to fork from for each process of tests. It ends with that."""
    context = multiprocessing.get_context("forkserver")
    # Also what a command imports when it runs.
    context.set_forkserver_preload(
        ["node.cli.main", "node.daemon", "ravel.client", "httpx", "click.core", "pydantic", __name__]
    )
    return context


def _run(argv: list[str], environment: Mapping[str, str], folder: str, streams: tuple[str, str, str]) -> None:
    """In the new process: be `ravel` with these arguments."""
    flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2)
    for number, (path, flag) in enumerate(zip(streams, flags, strict=True)):
        opened = os.open(path, flag, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    # The server's own standard streams were opened in another process and may be closed ones.
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False)  # noqa: SIM115  # they stay open as long as the process runs
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = argv
    vars(typer.main)["get_command"] = lambda _app: _COMMANDS
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
