"""One connection to the API's server, without a listener."""

import trio
from starlette.types import ASGIApp

from node.http.server import serve_connection
from node.http.strangers import Strangers


async def serve_alone(app: ASGIApp, stream: trio.SocketStream, strangers: Strangers | None = None) -> None:
    """Serve one connection to its end, as the only one of its listener."""
    await serve_connection(app, stream, strangers or Strangers())
