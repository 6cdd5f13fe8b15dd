"""Who listens on a port."""

import os
import socket
import sys

import pytest

from node.runtime.port_holders import find_holder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def test_this_process_is_found_while_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        holder = find_holder(port)
        assert holder is not None
        assert holder[0] == os.getpid()
    assert find_holder(port) is None
