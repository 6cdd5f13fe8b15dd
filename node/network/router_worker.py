"""Isolated process that asks the router to forward a port: by PCP, NAT-PMP or UPnP.

Whatever answers on the local network may be no router, and UPnP's answers are HTTP and XML read by a library in C. So this
is a process of its own with little memory, which writes no file, holds no key and is ended after a deadline. It gets what to
ask for in one line of JSON, answers with one line, and ends. The daemon believes nothing of the answer unchecked.

PCP (RFC 6887) and NAT-PMP (RFC 6886) are two small packets to the gateway, by UDP. UPnP is spoken by miniupnpc, where it is
installed. Runs as a file and imports nothing of ours, so that it starts fast.
"""

import json
import os
import resource
import secrets
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

_MEMORY_SIZE_MAX: Final = 128 << 20
"""Bytes of address space: it needs a quarter of them."""
_PORT: Final = 5351
_WAITS_SECONDS: Final = (0.25, 0.5, 1.0)
"""Seconds for which an answer to each of three packets is waited for (RFC 6886, 3.1, goes on for a minute)."""
_DISCOVERY_MILLISECONDS: Final = 2000
_PORTS_TRIED_MAX: Final = 4
_ROUTES: Final = Path("/proc/net/route")
_GATEWAY_FLAG: Final = 2
_TCP: Final = 6


class NoMapping(Exception):
    """The router forwards no port, and why."""


def main() -> None:
    """Ask, and print the answer."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_SIZE_MAX, _MEMORY_SIZE_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    print(json.dumps(_ask(json.loads(sys.stdin.readline()))), flush=True)
    os._exit(0)  # a library's threads are not waited for


def _ask(wanted: dict[str, Any]) -> dict[str, str | int]:
    """`wanted`: port, external (port), seconds; gateway ([host, port]) and description (a URL) where they are known."""
    problems = []
    gateway = wanted.get("gateway") or _find_gateway()
    if gateway:
        try:
            return ask_gateway(tuple(gateway), wanted["port"], wanted["external"], wanted["seconds"])
        except (NoMapping, OSError) as error:
            problems.append(f"PCP and NAT-PMP: {error}")
    try:
        return _ask_upnp(wanted)
    except NoMapping as error:
        problems.append(f"UPnP: {error}")
    return {"problem": "; ".join(problems)[:500]}


def _find_gateway() -> tuple[str, int] | None:
    """Return the default route's gateway, where Linux tells it."""
    try:
        return parse_gateway(_ROUTES.read_text(encoding="ascii"))
    except OSError:
        return None


def parse_gateway(table: str) -> tuple[str, int] | None:
    """Return the gateway of the first default route in the kernel's table, whose numbers are as this machine keeps them."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[1] == "00000000" and int(fields[3], 16) & _GATEWAY_FLAG:
            return socket.inet_ntoa(struct.pack("=I", int(fields[2], 16))), _PORT
    return None


# --- PCP and NAT-PMP ---


def ask_gateway(gateway: tuple[str, int], port: int, external: int, seconds: int) -> dict[str, str | int]:
    """Ask by PCP, or by NAT-PMP where the gateway speaks that. Raises NoMapping, OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect(gateway)  # so that only the gateway is heard
        nonce = secrets.token_bytes(12)
        own = socket.inet_aton(udp.getsockname()[0])
        answer = _exchange(udp, pcp_request(own, nonce, port, external, seconds), is_pcp_answer)
        if answer[0] == 2:
            return read_pcp(answer, nonce, port)
        host = read_host(_exchange(udp, b"\0\0", lambda data: _is_answer(data, 128, 12)))
        request = struct.pack("!BBHHHI", 0, 2, 0, port, external, seconds)
        return read_mapping(_exchange(udp, request, lambda data: _is_answer(data, 130, 16)), host, port)


def _exchange(udp: socket.socket, request: bytes, is_answer: Callable[[bytes], bool]) -> bytes:
    for seconds in _WAITS_SECONDS:
        udp.send(request)
        udp.settimeout(seconds)
        try:
            data = udp.recv(1100)
        except TimeoutError:
            continue
        if is_answer(data):
            return data
    raise NoMapping("no answer")


def pcp_request(own: bytes, nonce: bytes, port: int, external: int, seconds: int) -> bytes:
    """Build a MAP request for a TCP port (RFC 6887, 7.1 and 11.1); `own` is this machine's IPv4 address."""
    header = struct.pack("!BBHI", 2, 1, 0, seconds) + bytes(10) + b"\xff\xff" + own
    return header + nonce + struct.pack("!B3xHH", _TCP, port, external) + bytes(10) + b"\xff\xff" + bytes(4)


def is_pcp_answer(data: bytes) -> bool:
    """Return True if it answers a MAP request: by PCP, or by NAT-PMP, which does not know PCP's version."""
    return (len(data) >= 60 and data[0] == 2 and data[1] == 0x81) or (len(data) >= 4 and data[0] == 0)


def _is_answer(data: bytes, operation: int, size: int) -> bool:
    """Return True if it answers a request of NAT-PMP; one of an error is as long."""
    return (
        len(data) >= 4
        and data[0] == 0
        and data[1] == operation
        and (len(data) >= size or data[2:4] != b"\0\0")
    )


def read_pcp(data: bytes, nonce: bytes, port: int) -> dict[str, str | int]:
    """Parse the mapping that a PCP answer grants. Raises NoMapping."""
    code, seconds = data[3], struct.unpack("!I", data[4:8])[0]
    if code != 0:
        raise NoMapping(f"refused (PCP code {code})")
    internal, external = struct.unpack("!HH", data[40:44])
    if data[24:36] != nonce or data[36] != _TCP or internal != port:
        raise NoMapping("an answer to another request")
    host = data[44:60]
    if host[:12] != bytes(10) + b"\xff\xff":
        raise NoMapping("no IPv4 address")
    return {"way": "pcp", "host": socket.inet_ntoa(host[12:]), "port": external, "seconds": seconds}


def read_host(data: bytes) -> str:
    """Parse the public address that a NAT-PMP answer names. Raises NoMapping."""
    _check(data)
    return socket.inet_ntoa(data[8:12])


def read_mapping(data: bytes, host: str, port: int) -> dict[str, str | int]:
    """Parse the mapping that a NAT-PMP answer grants. Raises NoMapping."""
    _check(data)
    internal, external, seconds = struct.unpack("!HHI", data[8:16])
    if internal != port:
        raise NoMapping("an answer to another request")
    return {"way": "nat-pmp", "host": host, "port": external, "seconds": seconds}


def _check(data: bytes) -> None:
    code = struct.unpack("!H", data[2:4])[0]
    if code != 0:
        raise NoMapping(f"refused (NAT-PMP code {code})")


# --- UPnP ---


class _Upnp(Protocol):
    """Interface of miniupnpc, as far as it is used."""

    lanaddr: str

    def externalipaddress(self) -> str:
        """Return the router's public address."""
        ...

    def getspecificportmapping(self, external: int, protocol: str) -> tuple[str, int, str, bool, int] | None:
        """Return where a port leads: host, port, description, whether it is on, and for how long; None: nowhere."""
        ...

    def addportmapping(
        self, external: int, protocol: str, host: str, port: int, description: str, remote: str, seconds: int
    ) -> bool:
        """Ask the router to forward a port. Raises Exception."""
        ...


def _ask_upnp(wanted: dict[str, Any]) -> dict[str, str | int]:
    try:
        import miniupnpc  # type: ignore[import-not-found]  # a library in C, without stubs
    except ImportError:
        raise NoMapping("miniupnpc is not installed") from None
    router = miniupnpc.UPnP()
    router.discoverdelay = _DISCOVERY_MILLISECONDS
    try:
        if wanted.get("description"):
            router.selectigd(wanted["description"])
        else:
            if router.discover() == 0:
                raise NoMapping("no router answers")
            router.selectigd()
        return _map(router, wanted["port"], wanted["external"], wanted["seconds"])
    except NoMapping:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise NoMapping(upnp_problem(error)) from None


def upnp_problem(error: Exception) -> str:
    """Explain an error of miniupnpc. Where no router answers, it gives the system's last error, which is none."""
    said = str(error)
    return "no router answers" if said in ("", "Success") else said


def _map(router: "_Upnp", port: int, external: int, seconds: int) -> dict[str, str | int]:
    host = router.externalipaddress()
    tried = [external, *(20_000 + secrets.randbelow(40_000) for _ in range(_PORTS_TRIED_MAX - 1))]
    for candidate in tried:
        held = router.getspecificportmapping(candidate, "TCP")
        if held and tuple(held[:2]) != (router.lanaddr, port):
            continue  # another machine's
        lasts = _add(router, candidate, port, seconds)
        return {"way": "upnp", "host": str(host), "port": candidate, "seconds": lasts}
    raise NoMapping("other machines hold the ports that were tried")


def _add(router: "_Upnp", external: int, port: int, seconds: int) -> int:
    """Ask the router to forward a port for so many seconds (0: until the router forgets it)."""
    try:
        router.addportmapping(external, "TCP", router.lanaddr, port, "Ravel", "", seconds)
    except Exception as error:  # the library raises nothing narrower
        if "OnlyPermanentLeasesSupported" not in str(error):
            raise
        router.addportmapping(external, "TCP", router.lanaddr, port, "Ravel", "", 0)
        return 0
    return seconds


if __name__ == "__main__":
    main()
