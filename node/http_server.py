"""Serves the ASGI application under trio, with hypercorn, on a loopback port that is reported."""

import socket

import hypercorn.trio
import trio
from hypercorn.config import Config
from starlette.types import ASGIApp

from protocol.limits import KIB

_HEADERS_SIZE_MAX = 16 * KIB
_READ_TIMEOUT_SECONDS = 30
_SHUTDOWN_SECONDS = 2.0


async def serve_api(
    app: ASGIApp, host: str, port: int, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve until cancelled; reports the bound port. Raises OSError when the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
        config = Config()
        # hypercorn makes its own socket object of the descriptor and closes it; ours stays ours.
        config.bind = [f"fd://{socket.dup(listener.fileno())}"]
        config.accesslog = None
        config.errorlog = None
        config.h11_max_incomplete_size = _HEADERS_SIZE_MAX
        config.read_timeout = _READ_TIMEOUT_SECONDS
        config.graceful_timeout = _SHUTDOWN_SECONDS
        config.include_server_header = False
        task_status.started(listener.getsockname()[1])
        await hypercorn.trio.serve(app, config, shutdown_trigger=trio.sleep_forever)  # type: ignore[arg-type]  # its ASGI types are its own
