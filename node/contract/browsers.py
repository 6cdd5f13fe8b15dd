"""Browsers that stay signed in: pair those of other machines by codes, keep those of this one, list and revoke them."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import Endpoint
from node.contract.made import Makes
from node.contract.tokens import TAKE_BACK
from node.contract.values import Request
from ravel.types.browsers import BrowserList, KeptBrowser, PairingCode
from ravel.types.made import Revoked


class KeepRequest(Request, frozen=True):
    """Keeps a browser signed in."""

    name: Annotated[str, Meta(min_length=1, description="A name by which it is known, such as `Firefox`.")]


MAKE_PAIRING_CODE: Final = Endpoint(
    name="make_pairing_code",
    method="POST",
    path="/browsers/codes",
    scopes=PERSON,
    summary="Make a code by which a browser of another machine gets a token of its own, once.",
    details="The browser gives it to `POST /open`, with a name, at the listener of `[api] tls`.",
    answer=PairingCode,
    makes=Makes(kind="browser"),
    errors=("bad_config",),
    is_keyless=True,
)
KEEP_BROWSER: Final = Endpoint(
    name="keep_browser",
    method="POST",
    path="/browsers",
    scopes=PERSON,
    summary="Have the page that asks stay signed in, so that its address works as a bookmark.",
    details="Of a page that `ravel open` opened. Its token is good for 180 days from then on, and is listed as a browser.",
    request=KeepRequest,
    answer=KeptBrowser,
    errors=("bad_request", "too_large"),
    is_keyless=True,
)
LIST_BROWSERS: Final = Endpoint(
    name="list_browsers",
    method="GET",
    path="/browsers",
    scopes=NODE,
    summary="List browsers that stay signed in with when they last came, and where others reach this node.",
    answer=BrowserList,
)
REVOKE_BROWSER: Final = Endpoint(
    name="revoke_browser",
    method="DELETE",
    path="/browsers/{browser}",
    scopes=PERSON,
    summary="Sign a browser out, at once and for good.",
    details="Its event streams end within 15 s, and get no event before that. The answer lists what was made with it. "
    "Where any of that stays, it is kept as revoked, and can be revoked again, with `made` too.",
    query=(TAKE_BACK,),
    answer=Revoked,
)
