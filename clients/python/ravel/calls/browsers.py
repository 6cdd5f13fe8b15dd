"""Calls: browsers. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.browsers import BrowserList, KeptBrowser, PairingCode
    from ravel.types.made import Revoked

MAKE_PAIRING_CODE: Final[Operation[PairingCode]] = Operation(
    "POST", "/browsers/codes", "browsers.PairingCode"
)
KEEP_BROWSER: Final[Operation[KeptBrowser]] = Operation("POST", "/browsers", "browsers.KeptBrowser")
LIST_BROWSERS: Final[Operation[BrowserList]] = Operation("GET", "/browsers", "browsers.BrowserList")
REVOKE_BROWSER: Final[Operation[Revoked]] = Operation(
    "DELETE", "/browsers/{browser}", "made.Revoked", defaults={"made": False}, in_query=True
)


class BrowsersCalls(SyncCaller):
    """Methods that wait for the answer."""

    def make_pairing_code(self) -> PairingCode:
        """Make a code by which a browser of another machine gets a token of its own, once.

        The browser gives it to `POST /open`, with a name, at the listener of `[api] tls`.
        """
        return self._call(MAKE_PAIRING_CODE, {})

    def keep_browser(self, name: str) -> KeptBrowser:
        """Have the page that asks stay signed in, so that its address works as a bookmark.

        Of a page that `ravel open` opened. Its token is good for 180 days from then on, and is listed as a
        browser.
        """
        return self._call(KEEP_BROWSER, {"name": name})

    def list_browsers(self) -> BrowserList:
        """List browsers that stay signed in with when they last came, and where others reach this node."""
        return self._call(LIST_BROWSERS, {})

    def revoke_browser(self, browser: str, *, made: bool = False) -> Revoked:
        """Sign a browser out, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what was made with it.
        Where any of that stays, it is kept as revoked, and can be revoked again, with `made` too.
        """
        return self._call(REVOKE_BROWSER, {"browser": browser, "made": made})
