"""The daemon's process: how many files it may open, who holds a port, and what the service manager hears."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from node.runtime.process import READY, find_holder, notify
from protocol.limits.users import OPEN_FILES_WANTED
from tests.support.machine import patience

CODE = """
import resource, sys
from node.runtime.process import allow_open_files
allowed, most = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
print(allow_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "allowed, most, then",
    [
        (256, OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED),
        (OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED + 1),
        (256, 512, 512),
    ],
)
def test_as_many_files_as_are_needed_or_allowed(allowed: int, most: int, then: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(allowed), str(most)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{then} {then} {most}"
    assert ("few files may be open" in done.stdout + done.stderr) == (then < OPEN_FILES_WANTED)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_process_is_found_while_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        holder = find_holder(port)
        assert holder is not None
        assert holder[0] == os.getpid()
    assert find_holder(port) is None


@pytest.mark.parametrize("is_abstract", [False, True])
def test_readiness_is_one_datagram(tmp_path: Path, is_abstract: bool) -> None:
    name = f"@ravel-test-{tmp_path}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if is_abstract else name)
        notify(READY, "STATUS=at work", environment={"NOTIFY_SOCKET": name})
        manager.settimeout(patience(5))
        assert manager.recv(1000) == b"READY=1\nSTATUS=at work"


def test_a_node_runs_without_a_service_manager(tmp_path: Path) -> None:
    notify(READY, environment={})
    notify(READY, environment={"NOTIFY_SOCKET": str(tmp_path / "nobody listens")})
