"""Network namespaces joined by the kernel's own devices, made with `ip`: for its NAT, and for machines that move."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

import pytest

from tests.e2e.cluster import Peer
from tests.networks.lines import Place, PlacedPeer
from tests.networks.namespaces import entered_namespace

_TOOLS: Final = ("ip", "unshare", "nsenter")
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_HELD_SECONDS: Final = 3600


class KernelNet:
    """Namespaces, each named by the process that it belongs to."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        """`folder` takes what programs print."""
        self._folder = folder
        self._ending = ending

    def hold(self) -> int:
        """A namespace for a while: the process that it belongs to."""
        process = self.start("unshare", "-n", "sleep", str(_HELD_SECONDS))
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{process.pid}/ns/net") == own:  # until it has it
            if process.poll() is not None:
                raise subprocess.CalledProcessError(process.returncode, "unshare")
            time.sleep(0.01)  # nothing tells of it
        self.run(process.pid, "ip", "link", "set", "lo", "up")
        return process.pid

    def link(self, first: int, name: str, second: int, other: str) -> None:
        """A cable between two namespaces, with a device of a name at each end."""
        peer = ("type", "veth", "peer", "name", other, "netns", str(second))
        self.run(first, "ip", "link", "add", name, *peer)
        self.run(first, "ip", "link", "set", name, "up")
        self.run(second, "ip", "link", "set", other, "up")

    def give(self, pid: int, device: str, host: str) -> None:
        """Give a device this address and no other."""
        self.run(pid, "ip", "address", "flush", "dev", device)
        self.run(pid, "ip", "address", "add", f"{host}/24", "dev", device)

    def run(self, pid: int, *command: str) -> None:
        """Run a command in a namespace. Raises CalledProcessError."""
        entering = ("nsenter", "-t", str(pid), "-n")
        subprocess.run([*entering, *command], check=True, capture_output=True, env=_environment())

    def start(self, *command: str, pid: int | None = None) -> subprocess.Popen[bytes]:
        """Start a program, in a namespace if one is named; it is ended with the net."""
        log = self._ending.enter_context((self._folder / "programs.log").open("ab"))
        entering = () if pid is None else ("nsenter", "-t", str(pid), "-n")
        process = subprocess.Popen([*entering, *command], stdout=log, stderr=log, env=_environment())

        def end() -> None:
            process.kill()
            process.wait()

        self._ending.callback(end)
        return process


class Machine(PlacedPeer):
    """A daemon in a namespace."""

    def __init__(
        self,
        home: Path,
        pid: int,
        listen: str = "*:7474",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Not started yet. Its net has no lines that could be cut."""
        place: Place = lambda: entered_namespace(Path(f"/proc/{pid}/ns/net"))  # noqa: E731  # a method takes no pid
        self.place = place
        Peer.__init__(self, home, listen=listen, environment=environment)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": _PATH}


@contextmanager
def kernel_net(folder: Path, tools: Sequence[str] = ()) -> Iterator[KernelNet]:
    """A net that also needs these tools, or the test is skipped, which says why, and fails in CI."""
    absent = [tool for tool in (*_TOOLS, *tools) if shutil.which(tool, path=_PATH) is None]
    if absent:
        not_tried(f"no {', '.join(absent)}: this was not tried here")
    with ExitStack() as ending:
        net = KernelNet(folder, ending)
        try:
            net.run(net.hold(), "ip", "link", "add", "bridge", "type", "bridge")
        except (subprocess.CalledProcessError, OSError) as error:
            not_tried(f"no network namespaces here: {error}")
        yield net


def not_tried(reason: str) -> NoReturn:
    """Skip a test that this machine does not allow. CI has to allow it, or nothing would tell that it is never run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
