"""The listener for other machines: its certificate, the names it answers to, and what strangers may cost it.

Requests that reach it carry it in their extensions (`REMOTE`), so that `authentication` knows which rules hold: another
scheme, other names, no token of the node's own, and bounds for each subnet. Left to others: `server` serves the
connections, `node.api.browsers` pairs.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio
from starlette.types import Scope

from node.home.config_values import Network
from node.home.home import Home
from node.home.listen_addresses import host_of_name, is_address
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from node.runtime.subnets import subnet_of
from node.runtime.token_bucket import TokenBucket
from protocol.limits.users import (
    PAIRING_TRIES_AT_ONCE_MAX,
    PAIRING_TRY_SECONDS,
    REMOTE_OPENED_AT_ONCE_MAX,
    REMOTE_OPENED_PER_SECOND_MAX,
    REMOTE_REQUESTS_AT_ONCE_MAX,
    REMOTE_REQUESTS_PER_SECOND_MAX,
    REMOTE_SUBNETS_MAX,
    TLS_LOOK_SECONDS,
)

if TYPE_CHECKING:
    from node.home.certificate import Certificate

log = structlog.get_logger()

REMOTE: Final = "ravel.remote"
"""In a request's extensions: the `Remote` by which it came. Requests of this machine have none."""
_HTTPS_PORT: Final = 443


class Remote:
    """The listener. Its certificate is loaded when it is made, which blocks. `clock` counts unix seconds.

    `list_hosts` gives the hosts of this machine, those first that most can reach. Raises ServiceError `bad_config`,
    `storage_failed`.
    """

    def __init__(self, home: Home, clock: Callable[[], float], list_hosts: Callable[[], list[str]]) -> None:
        # Imported here: reading certificates takes 1 MB and 50 ms, and few nodes have this listener.
        from node.home.certificate import load_certificate, make_context

        self._home = home
        self._clock = clock
        self._list_hosts = list_hosts
        self._names = frozenset(map(host_of_name, home.config.api.tls_names))
        self._proxies = home.config.api.trusted_proxies
        self.certificate: Certificate = load_certificate(home, clock())
        self.context = make_context(self.certificate)
        self.limits = StrangerLimits()
        self.port = 0
        """Where it listens, once it does."""

    def has_name(self, host: str) -> bool:
        """Return True if the host of a `Host` header is this node.

        A name could be an attacker's, which now leads here (DNS rebinding). An address cannot be led elsewhere.
        """
        host = host.lower()
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host == "localhost" or host in self._names or host in self.certificate.names
        return True

    def subnet_of(self, scope: Scope) -> str:
        """Return the subnet that a request counts for: of its connection, or of the client that a trusted proxy names."""
        host = str((scope.get("client") or ("",))[0])
        if self.is_proxy(host):
            said = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            host = said[-1].decode("latin-1").rpartition(",")[2].strip() if said else host
        return subnet_of(f"{host}:0")

    def is_proxy(self, host: str) -> bool:
        """Return True if a connection's other end is a proxy of the configuration."""
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(_holds(network, address) for network in self._proxies)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate as browsers show it: pairs of digits with colons."""
        return self.certificate.fingerprint.hex(":").upper()

    def addresses(self) -> list[str]:
        """Addresses of the page, the first the one that is best to give away."""
        named = self._home.config.api.tls_names
        return [_address(name, self.port) for name in named or self._list_hosts()]

    async def run(self, run_blocking: RunBlocking) -> None:
        """Take the certificate's files again when they have changed, until cancelled. Unusable ones are passed over."""
        while True:
            await trio.sleep(TLS_LOOK_SECONDS)
            try:
                await run_blocking(self.look)
            except ServiceError as error:
                log.warning("the certificate is not changed", error=error.message)

    def look(self) -> None:
        """Take another certificate if there is one, for connections from now on. Blocks. Raises ServiceError."""
        from node.home.certificate import load_certificate, make_context  # as above

        before = self.certificate
        is_own = not self._home.config.api.tls_certificate
        if not before.has_changed and not is_own:
            return
        found = load_certificate(self._home, self._clock())
        if found.stamp == before.stamp:
            return
        self.context, self.certificate = make_context(found), found
        log.info("certificate taken", fingerprint=found.fingerprint.hex())


@dataclass(slots=True)
class _Subnet:
    """Budget of one subnet: connections, requests and tries of codes."""

    opened: TokenBucket = field(
        default_factory=partial(TokenBucket, REMOTE_OPENED_AT_ONCE_MAX, REMOTE_OPENED_PER_SECOND_MAX)
    )
    requests: TokenBucket = field(
        default_factory=partial(TokenBucket, REMOTE_REQUESTS_AT_ONCE_MAX, REMOTE_REQUESTS_PER_SECOND_MAX)
    )
    tries: TokenBucket = field(
        default_factory=partial(TokenBucket, PAIRING_TRIES_AT_ONCE_MAX, 1 / PAIRING_TRY_SECONDS)
    )


class StrangerLimits:
    """Counts what costs without a token, for each subnet: at most REMOTE_SUBNETS_MAX of them. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = trio.current_time) -> None:
        self._clock = clock
        self._subnets: OrderedDict[str, _Subnet] = OrderedDict()  # which came longest ago first

    def may_connect(self, subnet: str) -> bool:
        """Count a connection. False: it is one too many."""
        return self._find(subnet).opened.try_acquire(self._clock())

    def take_request(self, subnet: str) -> None:
        """Count a request without a token. Raises ServiceError `busy` for one too many."""
        self._take(self._find(subnet).requests, "too many requests without a token came from your network")

    def take_try(self, subnet: str) -> None:
        """Count a code that is tried, right or wrong. Raises ServiceError `busy` for one too many."""
        self._take(self._find(subnet).tries, "too many codes were tried from your network")

    def _find(self, subnet: str) -> _Subnet:
        found = self._subnets.pop(subnet, None) or _Subnet()
        while len(self._subnets) >= REMOTE_SUBNETS_MAX:
            self._subnets.popitem(last=False)
        self._subnets[subnet] = found
        return found

    def _take(self, bucket: TokenBucket, problem: str) -> None:
        if not bucket.try_acquire(self._clock()):
            raise ServiceError("busy", problem, "wait for a minute")


def _holds(network: Network, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address in network  # of another version it is not


def _address(name: str, port: int) -> str:
    """Return the page's address at a host, which may have a port of its own."""
    if is_address(name):
        host, _, said = name.rpartition(":")
        port = int(said)
    else:
        host = f"[{name}]" if ":" in name and not name.startswith("[") else name
    return f"https://{host}" if port == _HTTPS_PORT else f"https://{host}:{port}"
