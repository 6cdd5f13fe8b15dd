"""Lines on loopback: a proxy for each daemon that dials the first one, which delays, slows and cuts their streams.

A stream loses nothing, so what a line loses costs it the time after which TCP tries again.
"""

import random
import socket
import threading
import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

from tests.e2e.cluster import ANY_PORT
from tests.networks.lines import Line, Place

_PIECE_SIZE: Final = 16384
_RETRY_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 0.02


class LoopbackNet:
    """Daemons on 127.0.0.1, and a proxy before the first one for each of the others."""

    def __init__(self, count: int, seed: int = 1) -> None:
        """Opens the proxies."""
        self._first = ""
        self._lines: dict[tuple[int, int], Line] = {}
        self._chance = random.Random(seed)
        self._sockets: list[socket.socket] = []
        self._proxies: dict[int, socket.socket] = {}
        for number in range(1, count):
            proxy = self._proxies[number] = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=partial(self._serve, number, proxy), daemon=True).start()

    def place(self, _number: int) -> tuple[str, Place]:
        """Any port."""
        return ANY_PORT, nullcontext

    def lead_to(self, address: str) -> None:
        """Where the first one listens."""
        self._first = address

    def address(self, dialer: int) -> str:
        """That of the dialer's proxy."""
        host, port = self._proxies[dialer].getsockname()
        return f"{host}:{port}"

    def set_line(self, sender: int, receiver: int, line: Line) -> None:
        """Change one direction."""
        self._lines[sender, receiver] = line

    def line(self, sender: int, receiver: int) -> Line:
        """How one direction is now."""
        return self._lines.get((sender, receiver), Line())

    def close(self) -> None:
        """End all streams."""
        for one in [*self._proxies.values(), *self._sockets]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self, dialer: int, proxy: socket.socket) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = proxy.accept()
                self._sockets.append(near)
                host, _, port = self._first.rpartition(":")
                try:
                    far = socket.create_connection((host, int(port)))
                except OSError:
                    near.close()
                    continue
                self._sockets.append(far)
                for source, target, pair in ((near, far, (dialer, 0)), (far, near, (0, dialer))):
                    threading.Thread(target=self._carry, args=(source, target, *pair), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, sender: int, receiver: int) -> None:
        with suppress(OSError):  # either side has left
            while data := source.recv(_PIECE_SIZE):
                line = self.line(sender, receiver)
                lost = self._chance.random() < line.loss
                time.sleep(line.delay + len(data) / line.rate + lost * _RETRY_SECONDS)  # this is the line
                while self.line(sender, receiver).is_cut:
                    time.sleep(_LOOK_SECONDS)  # and this the cut
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
