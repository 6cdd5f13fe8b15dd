"""Types of answers: browsers."""

from typing import Annotated, TypedDict

from ravel.types.made import MadeThing
from ravel.types.values import UnixSeconds, means


class PairingCode(TypedDict):
    """A code that pairs a browser."""

    code: Annotated[str, means("Good once. Upper and lower case, spaces and hyphens do not matter.")]
    addresses: Annotated[
        list[str], means("Of the page, with the code behind the `#`. The first is the best to give away.")
    ]
    fingerprint: Annotated[str, means("SHA-256 of the certificate, as browsers show it.")]
    expires_seconds: int


class BrowserView(TypedDict):
    """A browser that stays signed in."""

    name: str
    here: Annotated[bool, means("True of one on the node's machine. Others were paired.")]
    created_at: UnixSeconds
    expires_at: UnixSeconds
    last_used_at: Annotated[int | None, means("Unix seconds. Null: never.")]
    expired: bool
    revoked: Annotated[
        bool, means("True if it was revoked. It is listed for 30 more days, for what was made with it.")
    ]
    made: Annotated[
        list[MadeThing], means("Things made with it, which stay when it is revoked; the latest first.")
    ]


class RemoteView(TypedDict):
    """Addresses at which browsers of other machines reach the page."""

    addresses: list[str]
    fingerprint: Annotated[str, means("SHA-256 of the certificate, as browsers show it.")]
    certificate_ends_at: UnixSeconds


class KeptBrowser(TypedDict):
    """A browser of this machine that stays signed in."""

    name: Annotated[str, means("With a number behind it where another browser has that name.")]
    expires_at: UnixSeconds


class BrowserList(TypedDict):
    """The browsers that stay signed in."""

    browsers: list[BrowserView]
    remote: Annotated[RemoteView | None, means("Null: `[api] tls` is empty, so none can come.")]
