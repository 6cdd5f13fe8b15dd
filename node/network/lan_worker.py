"""Isolated process that speaks mDNS: announces this node, and reports other nodes.

Whatever any machine on that network sends is read by a library for this, and kept by it for as long as it says. So this
is a process of its own with little memory, which the daemon ends and starts anew every hour; it holds no key and opens no
file. It gets what to announce in one line of JSON and answers with a line for each address heard. It ends when its input
does, or on SIGTERM, and then takes the announcement back.

Runs as a file and imports nothing of ours, so that it starts fast.
"""

import asyncio
import ipaddress
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Final

import ifaddr
from zeroconf import InterfaceChoice, IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

_KIND: Final = "_ravel._tcp.local."
_MEMORY_SIZE_MAX: Final = 128 << 20
"""Bytes of address space: it needs a quarter of them."""
_NAMES_MAX: Final = 256
"""Announced names that are asked about in the life of one process."""
_ASKED_AT_ONCE_MAX: Final = 8
_ANSWER_MILLISECONDS: Final = 3000


def main() -> None:
    """Announce and listen until told to end."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_SIZE_MAX, _MEMORY_SIZE_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asyncio.run(_run(json.loads(sys.stdin.readline())))


async def _run(wanted: dict[str, str]) -> None:
    """`wanted`: the host and port that the node listens on, and name, salt and mark to announce, as hexadecimal texts."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    loop.add_reader(sys.stdin, lambda: _end_with_input(end))
    host = ipaddress.ip_address(wanted["host"])
    mdns = AsyncZeroconf(
        interfaces=InterfaceChoice.All if host.is_unspecified else [wanted["host"]],
        ip_version=IPVersion.V4Only if host.version == 4 else IPVersion.V6Only,
    )
    heard = _Heard(mdns.zeroconf, wanted["name"])
    browser = AsyncServiceBrowser(mdns.zeroconf, [_KIND], handlers=[heard.changed])
    announcement = AsyncServiceInfo(
        _KIND,
        f"{wanted['name']}.{_KIND}",
        port=int(wanted["port"]),
        properties={"v": "1", "s": wanted["salt"], "m": wanted["mark"]},
        server=f"{wanted['name']}.local.",
        parsed_addresses=_own_addresses(host),
    )
    await mdns.async_register_service(announcement)
    await end.wait()
    await browser.async_cancel()
    with suppress(TimeoutError):
        await asyncio.wait_for(mdns.async_close(), 1)


def _end_with_input(end: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        end.set()


class _Heard:
    """Listener for other nodes' announcements: it asks for their content and reports it."""

    def __init__(self, mdns: Zeroconf, own_name: str) -> None:
        self._mdns = mdns
        self._names = {f"{own_name}.{_KIND}"}
        self._places = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        """Report a name that came or went. Called by the library."""
        if state_change is ServiceStateChange.Removed or name in self._names or len(self._names) > _NAMES_MAX:
            return
        self._names.add(name)
        task = asyncio.ensure_future(self._ask(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, name: str) -> None:
        async with self._places:
            info = AsyncServiceInfo(_KIND, name)
            if not await info.async_request(self._mdns, _ANSWER_MILLISECONDS) or info.port is None:
                return
        said = {key: info.decoded_properties.get(key) or "" for key in ("s", "m")}
        for host in info.parsed_addresses()[:8]:
            shown = f"[{host}]" if ":" in host else host
            line = {"address": f"{shown}:{info.port}", "salt": said["s"], "mark": said["m"]}
            print(json.dumps(line), flush=True)


def _own_addresses(host: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[str]:
    """List addresses at which this machine can be dialed, if the node listens on this host."""
    if not host.is_unspecified:
        return [str(host)]
    found = [
        ipaddress.ip_address(one.ip if isinstance(one.ip, str) else one.ip[0])
        for adapter in ifaddr.get_adapters()
        for one in adapter.ips
    ]
    return [
        str(one)
        for one in found
        if one.version == host.version and not one.is_loopback and not one.is_link_local
    ]


if __name__ == "__main__":
    main()
