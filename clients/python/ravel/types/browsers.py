"""Types of answers: browsers. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict

from ravel.types.made import MadeThing


class PairingCode(TypedDict):
    """A code that pairs a browser."""

    code: str
    """Good once. Upper and lower case, spaces and hyphens do not matter."""
    addresses: list[str]
    """Of the page, with the code behind the `#`. The first is the best to give away."""
    fingerprint: str
    """SHA-256 of the certificate, as browsers show it."""
    expires_seconds: int


class KeptBrowser(TypedDict):
    """A browser of this machine that stays signed in."""

    name: str
    """With a number behind it where another browser has that name."""
    expires_at: int
    """Unix seconds."""


class BrowserList(TypedDict):
    """The browsers that stay signed in."""

    browsers: list[BrowserView]
    remote: RemoteView | None
    """Null: `[api] tls` is empty, so none can come."""


class BrowserView(TypedDict):
    """A browser that stays signed in."""

    name: str
    here: bool
    """True of one on the node's machine. Others were paired."""
    created_at: int
    """Unix seconds."""
    expires_at: int
    """Unix seconds."""
    last_used_at: int | None
    """Unix seconds. Null: never."""
    expired: bool
    revoked: bool
    """True if it was revoked. It is listed for 30 more days, for what was made with it."""
    made: list[MadeThing]
    """Things made with it, which stay when it is revoked; the latest first."""


class RemoteView(TypedDict):
    """Addresses at which browsers of other machines reach the page."""

    addresses: list[str]
    fingerprint: str
    """SHA-256 of the certificate, as browsers show it."""
    certificate_ends_at: int
    """Unix seconds."""
