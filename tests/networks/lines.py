"""What a line between two daemons does to what travels on it, and the networks that are made of such lines.

Where it is allowed (Linux, root, /dev/net/tun), each daemon lives in a network namespace of its own, and the wire between
them (`tests.networks.namespaces`) loses, delays and reorders packets, so that the kernel's TCP has to make up for it. Where
it is not, daemons share the loopback, and a proxy (`tests.networks.proxies`) delays and cuts their streams.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from msgspec import structs

from protocol.formats.links import invitation_text, parse_invitation
from ravel import Client
from ravel.exchange import Answer, Lost, Send
from ravel.target import find_target
from tests.e2e.cluster import Peer, run_ravel

Place = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Line:
    """One direction of a line."""

    loss: float = 0.0
    """Share of packets that are lost."""
    delay: float = 0.0
    """Seconds that each packet takes."""
    jitter: float = 0.0
    """Seconds that some take longer, so that packets overtake one another."""
    rate: float = float("inf")
    """Bytes a second."""
    is_cut: bool = False
    """Nothing arrives, and nobody is told."""


BAD = Line(loss=0.05, delay=0.02, jitter=0.02, rate=2_500_000)
"""A poor radio link: 5 % lost, 40 to 80 ms there and back, out of order, 20 Mbit/s."""


class Net(Protocol):
    """Daemons and the lines between them. The first one is dialed by all the others."""

    def place(self, number: int) -> tuple[str, Place]:
        """Where the daemon of this number listens, and the surroundings in which its process and its clients run."""

    def lead_to(self, address: str) -> None:
        """The first one listens there now."""

    def address(self, dialer: int) -> str:
        """Where this one dials the first."""

    def set_line(self, sender: int, receiver: int, line: Line) -> None:
        """Change one direction."""

    def line(self, sender: int, receiver: int) -> Line:
        """How one direction is now."""

    def close(self) -> None:
        """Give everything up."""


class PlacedClient(Client):
    """Calls a daemon from where it is."""

    place: Place = staticmethod(nullcontext)

    def _send(self, step: Send, content: Iterable[bytes] | None) -> Answer | Lost:
        with self.place():
            return super()._send(step, content)


class PlacedPeer(Peer):
    """A daemon somewhere in a net."""

    forks = False  # a fork would be where the server of forks is

    def __init__(self, home: Path, number: int, net: Net) -> None:
        """Not started yet."""
        listen, self.place = net.place(number)
        super().__init__(home, listen=listen)
        self.number = number
        self.net = net

    @property
    def client(self) -> Client:
        """The API of the running daemon, called from where that is."""
        if self._client is None:
            client = PlacedClient(find_target(self.home))
            client.place = self.place
            self._client = client
        return self._client

    def start(self, *options: str) -> None:
        """Start it in its place."""
        with self.place():
            super().start(*options)

    def run(self, *arguments: str) -> str:
        """What a command beside it prints."""
        with self.place():
            return run_ravel(self, *arguments).stdout

    def join(self, link: str) -> None:
        """Join by the first one's link, over the line to it."""
        invitation = parse_invitation(link)
        first = structs.replace(invitation.peers[0], address=self.net.address(self.number))
        self.client.join_repo(invitation_text(structs.replace(invitation, peers=(first,))))


@contextmanager
def daemons(net: Net, folder: Path, *names: str) -> Iterator[list[PlacedPeer]]:
    """Running daemons, the first of which the others will dial; all are stopped at the end."""
    made: list[PlacedPeer] = []
    try:
        with ThreadPoolExecutor() as pool:
            made += pool.map(lambda at: PlacedPeer(folder / at[1], at[0], net), enumerate(names))
            list(pool.map(PlacedPeer.start, made))
        net.lead_to(made[0].listen)
        yield made
    finally:
        for peer in made:
            peer.close()
        net.close()


def set_lines(net: Net, first: int, second: int, line: Line) -> None:
    """Make both directions like this."""
    net.set_line(first, second, line)
    net.set_line(second, first, line)


def cut(net: Net, sender: int, receiver: int) -> None:
    """Let nothing more arrive in this direction."""
    net.set_line(sender, receiver, replace(net.line(sender, receiver), is_cut=True))


def heal(net: Net, first: int, second: int) -> None:
    """Let both directions carry again."""
    for pair in ((first, second), (second, first)):
        net.set_line(*pair, replace(net.line(*pair), is_cut=False))
