"""Network namespaces and the wire between them, made by system calls: no `ip`, no `tc`.

Each namespace has a tun device, whose packets `tests.networks.wire` carries to the others.

A namespace lives as long as something is open in it. Entering one changes the calling thread alone.
"""

import ctypes
import fcntl
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.networks.lines import Line, Place
from tests.networks.wire import Wire, open_tun

_CLONE_NEWNET: Final = 0x40000000
_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_IFF_UP: Final = 0x1
_PORT: Final = 7777
_RETRY_SECONDS: Final = 2
"""The longest pause of TCP between two tries. Else, after half a minute without answers, a test would wait as long again."""

_libc = ctypes.CDLL(None, use_errno=True)


def are_allowed() -> bool:
    """Whether this process may make namespaces and tun devices."""
    try:
        net = NamespaceNet(1)
    except OSError:
        return False
    net.close()
    return True


class NamespaceNet:
    """Namespaces 10.77.0.1, .2 and so on, and the wire between them."""

    def __init__(self, count: int, seed: int = 1) -> None:
        """Raises OSError where it is not allowed."""
        self._namespaces: list[_Namespace] = []
        self._wire: Wire | None = None
        try:
            for number in range(count):
                self._namespaces.append(_Namespace(f"10.77.0.{number + 1}"))
        except OSError:
            self.close()
            raise
        self._lines: dict[tuple[str, str], Line] = {}
        tuns = {one.address: one.tun for one in self._namespaces}
        self._wire = Wire(tuns, self._lines, random.Random(seed))

    def place(self, number: int) -> tuple[str, Place]:
        """An address of its own."""
        namespace = self._namespaces[number]
        return f"{namespace.address}:{_PORT}", namespace.entered

    def lead_to(self, address: str) -> None:
        """The first one listens where it was told to."""
        assert address == self.place(0)[0]

    def address(self, dialer: int) -> str:
        """The first one's own, for anyone who dials it."""
        assert dialer, "the first is dialed"
        return f"{self._namespaces[0].address}:{_PORT}"

    def set_line(self, sender: int, receiver: int, line: Line) -> None:
        """Change one direction."""
        self._lines[self._pair(sender, receiver)] = line

    def line(self, sender: int, receiver: int) -> Line:
        """How one direction is now."""
        return self._lines.get(self._pair(sender, receiver), Line())

    def set_interface(self, number: int, *, is_up: bool) -> None:
        """Take the device of a namespace down, or up again, as by `ip link set`."""
        self._namespaces[number].set_up("ravel0", is_up=is_up)

    @property
    def lost(self) -> int:
        """Packets that did not arrive."""
        return 0 if self._wire is None else self._wire.lost

    def close(self) -> None:
        """Stop the wire and give up the namespaces."""
        if self._wire is not None:
            self._wire.stop()
        for namespace in self._namespaces:
            namespace.close()

    def _pair(self, sender: int, receiver: int) -> tuple[str, str]:
        return self._namespaces[sender].address, self._namespaces[receiver].address


class _Namespace:
    def __init__(self, address: str) -> None:
        self.address = address
        with open_namespace(Path("/proc/thread-self/ns/net")) as home:
            _check(_libc.unshare(_CLONE_NEWNET))
            try:
                self._descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
                self.tun = open_tun("ravel0")
                _configure(_SIOCSIFADDR, address)
                _configure(_SIOCSIFNETMASK, "255.255.255.0")
                _set_up("lo", is_up=True)
                _set_up("ravel0", is_up=True)
                with suppress(OSError):  # Linux 6.15 and later
                    Path("/proc/sys/net/ipv4/tcp_rto_max_ms").write_text(str(_RETRY_SECONDS * 1000))
            finally:
                _check(_libc.setns(home, _CLONE_NEWNET))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What this thread opens and starts belongs to the namespace."""
        with open_namespace(Path("/proc/thread-self/ns/net")) as home:
            _check(_libc.setns(self._descriptor, _CLONE_NEWNET))
            try:
                yield
            finally:
                _check(_libc.setns(home, _CLONE_NEWNET))

    def set_up(self, device: str, *, is_up: bool) -> None:
        with self.entered():
            _set_up(device, is_up=is_up)

    def close(self) -> None:
        os.close(self.tun)
        os.close(self._descriptor)


@contextmanager
def open_namespace(path: Path) -> Iterator[int]:
    """The namespace that a path names, to come back to."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def entered_namespace(path: Path) -> Iterator[None]:
    """What this thread opens and starts belongs to the namespace that a path names."""
    with open_namespace(Path("/proc/thread-self/ns/net")) as home, open_namespace(path) as there:
        _check(_libc.setns(there, _CLONE_NEWNET))
        try:
            yield
        finally:
            _check(_libc.setns(home, _CLONE_NEWNET))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _configure(request: int, address: str) -> None:
    packed = struct.pack("16sHH4s8x", b"ravel0", socket.AF_INET, 0, socket.inet_aton(address))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, request, packed)


def _set_up(device: str, *, is_up: bool) -> None:
    asked = struct.pack("16sH14x", device.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, asked), 16)[0]
        flags = flags | _IFF_UP if is_up else flags & ~_IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", device.encode(), flags))
