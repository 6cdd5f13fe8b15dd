"""What the service manager is told, over a real socket."""

import socket
from pathlib import Path

import pytest

from node.runtime.readiness import READY, notify
from tests.support.machine import patience


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
