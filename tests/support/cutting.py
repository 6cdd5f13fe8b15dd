"""A proxy on the loopback that loses answers: the daemon does what it was asked for, and the client never hears."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.machine import patience


class CuttingProxy:
    """Carries connections to the address that `find` gives, and cuts some."""

    def __init__(self, find: Callable[[], str]) -> None:
        self._find = find
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.losses: list[Callable[[], None]] = []
        """For each answer to a POST that is lost: what happens when the daemon has said it."""
        self._carried: list[socket.socket] = []

    def cut(self) -> None:
        """Cut all connections that there are."""
        for one in self._carried:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._carried.clear()

    def serve(self) -> None:
        """Carry connections until the listener is closed."""
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        parts = urlsplit(self._find())
        with client, suppress(OSError):
            daemon = socket.create_connection((parts.hostname or "", parts.port or 0), patience(20))
            with daemon:
                self._carried += [client, daemon]
                lost = threading.Event()
                back = threading.Thread(target=self._carry_back, args=(daemon, client, lost), daemon=True)
                back.start()
                while data := client.recv(65536):
                    if data.startswith(b"POST") and self.losses:
                        lost.set()
                    daemon.sendall(data)
                daemon.shutdown(socket.SHUT_WR)
                back.join()

    def _carry_back(self, daemon: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := daemon.recv(65536):
                if lost.is_set():
                    self.losses.pop(0)()
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(find: Callable[[], str]) -> Iterator[CuttingProxy]:
    """A proxy that carries while the block runs."""
    proxy = CuttingProxy(find)
    serving = threading.Thread(target=proxy.serve, daemon=True)
    serving.start()
    try:
        yield proxy
    finally:
        # Closing alone does not wake an accept.
        proxy.listener.shutdown(socket.SHUT_RDWR)
        proxy.listener.close()
        proxy.cut()
        serving.join(patience(20))
