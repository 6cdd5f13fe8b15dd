"""Calls: bundles. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Iterable

    from ravel.types.bundles import BundleReading

WRITE_BUNDLE: Final[Operation[bytes]] = Operation(
    "GET", "/repos/{repo}/bundle", defaults={"since": None, "branches": ""}, seconds_max=3600.0
)
READ_BUNDLE: Final[Operation[BundleReading]] = Operation(
    "POST", "/bundles", "bundles.BundleReading", takes_bytes=True, seconds_max=3600.0
)


class BundlesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def read_bundle(self, content: bytes | Iterable[bytes]) -> BundleReading:
        """Read a bundle: take what it carries of this node's repos.

        Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A
        bundle may be read again: what is here is passed over.
        """
        return self._call(READ_BUNDLE, {}, content)
