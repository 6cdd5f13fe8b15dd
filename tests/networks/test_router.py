"""A node behind a real router: Debian's miniupnpd with the kernel's NAT, in network namespaces of their own.

The node is told nothing of the network. A node on the other side joins by the link alone.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import Peer, until
from tests.networks.lines import Place, PlacedPeer
from tests.networks.namespaces import entered_namespace

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_TOOLS: Final = ("ip", "nft", "miniupnpd", "unshare", "nsenter", "sysctl")
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_INSIDE, _ROUTER, _PUBLIC, _OUTSIDE = "192.168.77.2", "192.168.77.1", "8.8.4.4", "8.8.4.5"
_RULES: Final = """
table inet filter {
  chain forward { type filter hook forward priority 0; policy drop;
    ct state established,related accept; iifname "inner" accept; jump miniupnpd; }
  chain miniupnpd { }
  chain prerouting { type nat hook prerouting priority -100; jump prerouting_miniupnpd; }
  chain postrouting { type nat hook postrouting priority 100; jump postrouting_miniupnpd;
    oifname "outer" masquerade; }
  chain prerouting_miniupnpd { }
  chain postrouting_miniupnpd { }
}
"""
_CONFIG: Final = """
ext_ifname=outer
listening_ip=inner
http_port=0
enable_natpmp={pcp}
enable_upnp={upnp}
secure_mode=yes
upnp_table_name=filter
upnp_nat_table_name=filter
upnp_forward_chain=miniupnpd
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
uuid=8f5d9c6e-1b1e-4b3e-9d2f-000000000001
allow 1024-65535 192.168.77.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""
_HELD_SECONDS: Final = 600


class RouterNet:
    """Three namespaces: a machine, its router, and a machine outside."""

    def __init__(self, folder: Path, way: str, ending: ExitStack) -> None:
        """Raises CalledProcessError where that is not allowed."""
        self._folder = folder
        self._ending = ending
        self._inside, self._router, self._outside = (self._hold() for _ in range(3))
        self._link(self._inside, "lan", self._router, "inner")
        self._link(self._router, "outer", self._outside, "wan")
        for pid, device, host in (
            (self._inside, "lan", _INSIDE),
            (self._router, "inner", _ROUTER),
            (self._router, "outer", _PUBLIC),
            (self._outside, "wan", _OUTSIDE),
        ):
            self._in(pid, "ip", "address", "add", f"{host}/24", "dev", device)
            for up in ("lo", device):
                self._in(pid, "ip", "link", "set", up, "up")
        self._in(self._inside, "ip", "route", "add", "default", "via", _ROUTER)
        self._in(self._router, "ip", "route", "add", "default", "via", _OUTSIDE)
        self._in(self._router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        rules, config = folder / "rules", folder / "miniupnpd.conf"
        rules.write_text(_RULES)
        self._in(self._router, "nft", "-f", str(rules))
        config.write_text(
            _CONFIG.format(pcp="no" if way == "upnp" else "yes", upnp="yes" if way == "upnp" else "no")
        )
        self._start(
            *_nsenter(self._router), "miniupnpd", "-d", "-f", str(config), "-P", str(folder / "miniupnpd.pid")
        )

    def place(self, number: int) -> tuple[str, Place]:
        """The machine inside (0), which listens everywhere, or the one outside, which nobody dials."""
        pid = (self._inside, self._outside)[number]
        listen = "127.0.0.1:0" if number else "*:7474"
        return listen, lambda: entered_namespace(Path(f"/proc/{pid}/ns/net"))

    def _hold(self) -> int:
        """A namespace for a while: the process that it belongs to."""
        process = self._start("unshare", "-n", "sleep", str(_HELD_SECONDS))
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{process.pid}/ns/net") == own:  # until it has it
            if process.poll() is not None:
                raise subprocess.CalledProcessError(process.returncode, "unshare")
            time.sleep(0.01)
        return process.pid

    def _link(self, first: int, name: str, second: int, other: str) -> None:
        self._in(
            first, "ip", "link", "add", name, "type", "veth", "peer", "name", other, "netns", str(second)
        )

    def _in(self, pid: int, *command: str) -> None:
        subprocess.run([*_nsenter(pid), *command], check=True, capture_output=True, env=_environment())

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        log = self._ending.enter_context((self._folder / "router.log").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment())

        def end() -> None:
            process.kill()
            process.wait()

        self._ending.callback(end)
        return process


class _Machine(PlacedPeer):
    """A daemon in one of the namespaces."""

    def __init__(self, home: Path, listen: str, place: Place) -> None:
        """Not started yet. Its net has no lines that could be cut."""
        self.place = place
        Peer.__init__(self, home, listen=listen)


def _nsenter(pid: int) -> tuple[str, ...]:
    return ("nsenter", "-t", str(pid), "-n")


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": _PATH}


@contextmanager
def routed(folder: Path, way: str) -> Iterator[RouterNet]:
    """The net, or the test is skipped, which says why."""
    absent = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
    if absent:
        pytest.skip(f"no {', '.join(absent)}: a real router was not tried here")
    with ExitStack() as ending:
        try:
            net = RouterNet(folder, way, ending)
        except (subprocess.CalledProcessError, OSError) as error:
            said = error.stderr if isinstance(error, subprocess.CalledProcessError) else b""
            pytest.skip(f"no network namespaces with NAT here: {error} {(said or b'').decode()}")
        yield net


@pytest.mark.parametrize("way", ["pcp", "upnp"])
def test_a_link_reaches_a_node_behind_a_router_that_forwards_a_port(tmp_path: Path, way: str) -> None:
    with routed(tmp_path, way) as net:
        inside, outside = (
            _Machine(tmp_path / name, *net.place(number)) for number, name in enumerate(("inside", "outside"))
        )
        try:
            inside.start()
            outside.start()
            until(
                lambda: inside.client.show_status()["router"]["state"] != "asking", "the router has answered"
            )
            status = inside.client.show_status()
            assert status["router"] == {"state": "mapped", "detail": way}
            assert status["addresses"][0] == {
                "address": f"{_PUBLIC}:7474",
                "reach": "anywhere",
                "found_by": "router",
            }
            repo = str(inside.client.create_repo("shared")["repo"])
            link = inside.client.create_invitation(
                repo, permission="write", expires_seconds=3600, reach="anywhere"
            )
            assert link["addresses"] == [f"{_PUBLIC}:7474", f"{_INSIDE}:7474"]
            outside.client.join_repo(link["invitation"])
            (peer,) = outside.client.list_peers()["peers"]
            assert (peer["address"], peer["state"]) == (f"{_PUBLIC}:7474", "connected")
        finally:
            for one in (inside, outside):
                one.close()
