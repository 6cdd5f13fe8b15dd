"""One connection to the API's server, without a listener."""

import trio
from starlette.types import ASGIApp

from node.api.connection_watch import ConnectionWatch
from node.api.http_server import Strangers, serve_connection


async def serve_alone(app: ASGIApp, stream: trio.SocketStream, strangers: Strangers | None = None) -> None:
    """Serve one connection to its end, as the only one of its listener."""
    watch, strangers = ConnectionWatch(), strangers or Strangers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        nursery.start_soon(strangers.run)
        await serve_connection(app, stream, strangers, watch)
        nursery.cancel_scope.cancel()
