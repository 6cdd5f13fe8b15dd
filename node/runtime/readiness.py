"""Reports readiness to systemd (sd_notify).

Where nobody asked to be told (no NOTIFY_SOCKET), nothing happens.
"""

import os
import socket
from collections.abc import Mapping
from typing import Final

import structlog

log = structlog.get_logger()

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
_VARIABLE: Final = "NOTIFY_SOCKET"


def notify(*assignments: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send assignments (`READY=1`) in one datagram. What cannot be told is logged: a node runs without its manager."""
    name = environment.get(_VARIABLE, "")
    if not name:
        return
    # A name that begins with @ is of the abstract namespace, where it begins with a zero byte.
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            sender.sendto("\n".join(assignments).encode(), address)
    except OSError as error:
        log.warning("service manager not told", error=str(error))
