"""`DirectStream`: a socket's stream that hands bytes to the system at once, for connections of this machine.

trio's own lets all other tasks run after each send, tries to read before there can be anything, and looks after its use by
several tasks: together a quarter of what a request costs beside its answer. Here a send that the system takes at once is no
checkpoint. A read always is one.
"""

import os

import trio


class DirectStream(trio.abc.HalfCloseableStream):
    """The socket of a trio.SocketStream. Nothing else may use that stream meanwhile."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._socket = stream.socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes, at most `max_bytes`; empty at the end. Raises as any stream of trio."""
        while True:
            if self._socket.fileno() < 0:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return os.read(self._socket.fileno(), max_bytes or 65536)
            except BlockingIOError:  # the system may say so of what it then throws away
                continue
            except OSError as error:
                raise trio.BrokenResourceError(str(error)) from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send it. No checkpoint where the system takes all of it at once. Raises as any stream of trio."""
        try:
            sent = os.write(self._socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise trio.BrokenResourceError(str(error)) from error
        if sent < len(data):
            await self._stream.send_all(memoryview(data)[sent:])

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a send would not block (trio's interface)."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Send the end of the stream (trio's interface)."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close the stream (trio's interface)."""
        await self._stream.aclose()
