"""Serves the ASGI application under trio, with hypercorn, on a loopback socket that is opened before."""

import socket

import hypercorn.trio
import trio
from hypercorn.config import Config
from starlette.types import ASGIApp

from protocol.limits import KIB

_HEADERS_SIZE_MAX = 16 * KIB
_READ_TIMEOUT_SECONDS = 30
_SHUTDOWN_SECONDS = 2.0
_BACKLOG = 128


def open_api_listener(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError when the address is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve_api(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until cancelled, then close the listener."""
    with listener:
        config = Config()
        # hypercorn makes its own socket object of the descriptor and closes it; ours stays ours.
        config.bind = [f"fd://{socket.dup(listener.fileno())}"]
        config.accesslog = None
        config.errorlog = None
        config.h11_max_incomplete_size = _HEADERS_SIZE_MAX
        config.read_timeout = _READ_TIMEOUT_SECONDS
        config.graceful_timeout = _SHUTDOWN_SECONDS
        config.include_server_header = False
        await hypercorn.trio.serve(app, config, shutdown_trigger=trio.sleep_forever)  # type: ignore[arg-type]  # its ASGI types are its own
