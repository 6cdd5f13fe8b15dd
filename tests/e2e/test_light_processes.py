"""What a process imports is what it needs: commands start at once, and an idle daemon holds little.

Times and sizes differ between machines and runs; what is imported does not. benchmarks/bench_processes.py has the figures.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.machine import patience

_ENDED: Final = """
import json, sys
sys.argv = ["ravel", *sys.argv[2:]]
from node.cli.main import main
try:
    main()
finally:
    json.dump(sorted(sys.modules), open({out!r}, "w"))
"""
"""The command, which at its end says what it has imported."""

_HEAVY: Final = frozenset(
    ("alembic", "fsspec", "httpx", "numpy", "pandas", "pyarrow", "pydantic", "pygments", "rich", "tomlkit")
)
"""Nothing that a user waits for needs these."""
NEITHER_FOR_COMMANDS: Final = _HEAVY | {
    "asyncio",
    "cryptography",
    "nacl",
    "node.home.config",
    "secrets",
    "sqlalchemy",
    "sqlite3",
    "starlette",
    "storage.repos",
    "trio",
    "verifier",
}
NEITHER_FOR_DAEMONS: Final = _HEAVY | {"pycrdt", "segno", "sqlalchemy.dialects.postgresql", "zeroconf"}


def _command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-c", _ENDED.format(out=str(out)), "--", *arguments]


@contextmanager
def _daemon(home: Path, out: Path) -> Iterator[None]:
    """A daemon that is ready. What it has imported stands in `out` afterwards."""
    told = [_command(out, "--home", str(home), word) for word in ("init", "run")]
    ports = ("--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
    subprocess.run([*told[0], "--clear", *ports], check=True, capture_output=True, timeout=patience(30))
    with subprocess.Popen(told[1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield
        finally:
            process.terminate()
    assert process.returncode == 0


def _modules(out: Path) -> set[str]:
    found: list[str] = json.loads(out.read_text())
    return set(found)


@pytest.mark.extended
@pytest.mark.slow
def test_a_daemon_and_a_command_import_only_what_they_need(tmp_path: Path) -> None:
    by_daemon, by_status, by_version = (tmp_path / name for name in ("daemon", "status", "version"))
    with _daemon(tmp_path / "home", by_daemon):
        status = _command(by_status, "--home", str(tmp_path / "home"), "status")
        done = subprocess.run(status, capture_output=True, text=True, timeout=patience(30), check=True)
    assert "this computer · all well" in done.stdout
    subprocess.run(_command(by_version, "--version"), capture_output=True, timeout=patience(30), check=True)

    assert _modules(by_status).isdisjoint(NEITHER_FOR_COMMANDS)
    commands = {name for name in _modules(by_status) if name.endswith("_commands")}
    assert commands == {"node.cli.node_commands"}
    assert "ravel.transport" in _modules(by_status), "it asked the daemon"
    assert _modules(by_version).isdisjoint({*NEITHER_FOR_COMMANDS, "ravel.client", "node.cli.node_commands"})
    assert _modules(by_daemon) & NEITHER_FOR_DAEMONS == set()
    assert "sqlalchemy" in _modules(by_daemon), "it has opened its store"
