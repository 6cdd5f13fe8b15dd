"""Carries IP packets between tun devices in network namespaces, and loses, delays and reorders them on the way.

So what the daemons' kernel sends is lost, late or out of order one packet at a time, and TCP's own timers and windows
answer. (Kernels without `netem`, such as those of small virtual machines, can do no more than this; those that have it
could do no less.)
"""

import fcntl
import heapq
import os
import random
import selectors
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from tests.networks.lines import Line

_TUNSETIFF: Final = 0x400454CA
_IFF_TUN: Final = 0x0001
_IFF_NO_PI: Final = 0x1000
_PACKET_SIZE_MAX: Final = 65536
_QUEUE_SECONDS: Final = 0.5
"""What a line of limited rate holds back; what comes beyond it is lost, as at a full router."""


def open_tun(name: str) -> int:
    """A tun device in the namespace of this thread, which is gone once its descriptor is closed. Raises OSError."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError:
        os.close(tun)
        raise
    return tun


class Wire:
    """Carries packets from tun to tun, in a thread, by the address that they are for. Others lead nowhere."""

    def __init__(
        self,
        tuns: Mapping[str, int],
        lines: Mapping[tuple[str, str], Line],
        chance: random.Random,
        default: Line | None = None,
    ) -> None:
        """`tuns`: descriptors by address; a device may have several, and another one later.

        `lines`: by the first addresses of sender and receiver, else the `default`.
        """
        self._lines = lines  # read while others change it: each line is replaced whole
        self._default = Line() if default is None else default
        self.lost = 0
        """Packets that did not arrive."""
        self.carried = 0
        """Bytes that were taken to be carried."""
        self._tuns = tuns
        self._chance = chance
        self._due: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._free: dict[tuple[str, str], float] = {}  # when a line of limited rate is free again
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Carry nothing more."""
        self._is_stopping = True
        self._thread.join()

    def _run(self) -> None:
        # Of several addresses the first: it is the last to be put in.
        senders = {tun: address for address, tun in reversed(list(self._tuns.items()))}
        with selectors.DefaultSelector() as selector:
            for tun, address in senders.items():
                selector.register(tun, selectors.EVENT_READ, address)
            while not self._is_stopping:
                pause = max(0.0, self._due[0][0] - time.monotonic()) if self._due else 0.05
                for key, _ in selector.select(min(pause, 0.05)):
                    with suppress(BlockingIOError):
                        while True:
                            self._take(key.data, os.read(key.fd, _PACKET_SIZE_MAX))
                self._deliver()

    def _take(self, sender: str, packet: bytes) -> None:
        receiver = _receiver(packet)
        tun = self._tuns.get(receiver)
        if tun is None:
            return  # the kernel looks around for IPv6 routers, or a private address means nothing here
        pair = (sender, receiver)
        line = self._lines.get(pair, self._default)
        now = time.monotonic()
        starts = max(now, self._free.get(pair, 0.0))
        if line.is_cut or self._chance.random() < line.loss or starts - now > _QUEUE_SECONDS:
            self.lost += 1
            return
        self._free[pair] = starts + len(packet) / line.rate
        self._count += 1
        self.carried += len(packet)
        due = self._free[pair] + line.delay + self._chance.random() * line.jitter
        heapq.heappush(self._due, (due, self._count, tun, packet))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, tun, packet = heapq.heappop(self._due)
            with suppress(OSError):  # the device is down, or its queue is full: lost
                os.write(tun, packet)


def _receiver(packet: bytes) -> str:
    if packet[0] >> 4 == 6:
        return socket.inet_ntop(socket.AF_INET6, packet[24:40])
    return socket.inet_ntoa(packet[16:20])
