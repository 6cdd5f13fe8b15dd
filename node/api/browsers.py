"""Pairs browsers of other machines by codes that are good once, keeps those of this machine signed in, and lists them.

A paired browser has a token of its own (`tokens`), with all actions but what needs this machine: it cannot pair others.
"""

import secrets
from typing import Final

from node.api.callers import Caller
from node.api.codes import OneTimeCodes
from node.api.tokens import Tokens
from node.http.remote import Remote
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    BROWSER_NAME_SIZE_MAX,
    PAIRING_CODE_SECONDS,
    PAIRING_CODE_SIZE,
    PAIRING_CODES_MAX,
    PAIRING_TRIES_MAX,
)
from ravel.characters import composed, name_fault
from ravel.types.browsers import BrowserList, KeptBrowser, PairingCode, RemoteView

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_DROPPED: Final = str.maketrans("", "", "- ")
_NAME: Final = "browser"
"""What a browser is called that says nothing."""


class Browsers:
    """The paired browsers of a node; `remote` is where they come in, None if nowhere."""

    def __init__(self, tokens: Tokens, remote: Remote | None, run_blocking: RunBlocking) -> None:
        self._tokens = tokens
        self._remote = remote
        self._run_blocking = run_blocking
        self._codes = OneTimeCodes(
            _new_code,
            seconds=PAIRING_CODE_SECONDS,
            count_max=PAIRING_CODES_MAX,
            tries_max=PAIRING_TRIES_MAX,
            advice="`ravel open --remote` on the node's machine makes another",
        )

    async def make_code(self, maker: str = "") -> PairingCode:
        """Make a code and the addresses that hold it. The browser is noted as made by the token with the digest `maker`.

        Raises ServiceError `bad_config` where no other machine can come.
        """
        if self._remote is None:
            raise ServiceError(
                "bad_config",
                "no other machine can reach the page: [api] tls is empty",
                'ravel config set api.tls "*:7476", and start the daemon again',
            )
        view = await self._view(self._remote)
        code = self._codes.make(maker)
        half = PAIRING_CODE_SIZE // 2
        shown = f"{code[:half]}-{code[half:]}"
        digits = self._remote.certificate.fingerprint.hex()
        return {
            "code": shown,
            "addresses": [f"{one}/#pair={shown}&sha256={digits}" for one in view["addresses"]],
            "fingerprint": view["fingerprint"],
            "expires_seconds": PAIRING_CODE_SECONDS,
        }

    async def list_all(self) -> BrowserList:
        """List paired browsers, and the addresses at which they reach this node."""
        remote = None if self._remote is None else await self._view(self._remote)
        return {"browsers": await self._tokens.list_browsers(), "remote": remote}

    async def keep(self, caller: Caller, name: str) -> KeptBrowser:
        """Keep a page of this machine signed in. Raises ServiceError `bad_request`, `too_large`."""
        return await self._tokens.keep(caller, _checked_name(name))

    async def pair(self, code: str, name: str) -> str:
        """Use a code up, and give a token to who had it. Raises ServiceError `unauthorized`, `bad_request`, `too_large`."""
        name = _checked_name(name)
        maker = self._codes.redeem(code.lower().translate(_DROPPED))
        return await self._tokens.make_for_browser(name, maker)

    async def _view(self, remote: Remote) -> RemoteView:
        return {
            "addresses": await self._run_blocking(remote.addresses),
            "fingerprint": remote.fingerprint,
            "certificate_ends_at": int(remote.certificate.ends_at),
        }


def _checked_name(text: str) -> str:
    name = composed(text.strip()) or _NAME
    if len(name) > BROWSER_NAME_SIZE_MAX:
        raise ServiceError("bad_request", f"a browser's name has at most {BROWSER_NAME_SIZE_MAX} characters")
    if fault := name_fault(name):
        raise ServiceError("bad_request", f"a browser's name {fault}")
    return name


def _new_code() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(PAIRING_CODE_SIZE))
