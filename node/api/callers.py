"""Callers of the API: the node's own token, and tokens that were made for apps, pages and browsers.

`authentication` asks for every request; `access` says what a caller may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from starlette.requests import Request

from node.contract.access import ACTIONS
from node.home.tokens import OF_BROWSERS, PREFIX, Token, TokenFile, is_well_formed
from node.runtime.errors import ServiceError
from ravel.types.values import Action

CALLER: Final = "ravel.caller"
"""In a request's scope: the Caller, of requests that showed a token."""
HOME_NAME: Final = "home"
"""What the node's own token is called."""
_SCHEME: Final = b"bearer"
"""Without case (RFC 9110, section 11.1)."""
_TOKEN_SIZE_MAX: Final = 256  # bytes
_AGAIN: Final = {
    "page": "`ravel open` opens the page again",
    "kept": "`ravel open` opens the page again",
    "browser": "`ravel open --remote` pairs the browser again",
}
"""Kind of token -> what to do where it has expired."""
_WHERE: Final = "send it as `Authorization: Bearer TOKEN`; `ravel token create` makes one for an app"


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request. `repos` are ids as text, `branches` are REPO:BRANCH; with neither, all are allowed."""

    name: str
    actions: frozenset[Action]
    repos: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    token: Token | None = None
    """None: the node's own token."""

    @property
    def is_home(self) -> bool:
        """Return True for the node's own token."""
        return self.token is None

    @property
    def is_page(self) -> bool:
        """Return True for a page that the person of this node has opened."""
        return self.token is not None and self.token.kind in ("page", "kept")

    @property
    def is_person(self) -> bool:
        """Return True for the person of this node: a command, or a page on this machine."""
        return self.is_home or self.is_page

    @property
    def is_limited(self) -> bool:
        """Return True if the token is limited to some repos or branches."""
        return bool(self.repos or self.branches)

    def is_for_repo(self, repo: str) -> bool:
        """Return True if the token is for a whole repo, given by its id as text."""
        return not self.is_limited or repo in self.repos

    def is_for_branch(self, repo: str, branch: str) -> bool:
        """Return True if the token is for a branch, given by the ids of repo and branch as text."""
        return self.is_for_repo(repo) or f"{repo}:{branch}" in self.branches


HOME: Final = Caller(HOME_NAME, frozenset(ACTIONS))


class Callers:
    """Tells who calls, by the token: `home_token` is the node's own, `tokens` are the others."""

    def __init__(self, home_token: str, tokens: TokenFile) -> None:
        self._home = home_token.encode()
        self._tokens = tokens

    def identify(self, headers: Sequence[bytes]) -> Caller:
        """Return the caller of these `Authorization` headers. Raises ServiceError `unauthorized`, `token_expired`."""
        if len(headers) != 1:
            how = "two tokens were" if headers else "no API token was"
            raise ServiceError("unauthorized", f"{how} sent", _WHERE)
        scheme, _, given = headers[0].partition(b" ")
        secret = given.lstrip(b" ")[:_TOKEN_SIZE_MAX].decode("latin-1")
        if scheme.lower() != _SCHEME or not secret:
            raise ServiceError("unauthorized", "`Authorization` is not of the form `Bearer TOKEN`", _WHERE)
        if compare_digest(secret.encode("latin-1"), self._home):
            return HOME
        if secret.startswith(PREFIX) and not is_well_formed(secret):
            raise ServiceError(
                "unauthorized",
                "the API token is mistyped: it is not of the form of a token",
                f"copy it whole, from `{PREFIX}` on",
            )
        found = self._tokens.find(secret)
        if found is None:
            raise ServiceError(
                "unauthorized",
                "this node does not know that API token: it is wrong, was revoked, or is of another node",
                "`ravel token list` shows what there is, `ravel token create` makes another; the node's own token "
                "is in the file api-token of its folder",
            )
        self._check_time(found)
        self._tokens.note_use(found)
        return caller_of_token(found)

    def may_share(self, origin: str) -> bool:
        """Return True if a token allows pages of a foreign origin."""
        return self._tokens.knows_origin(origin)

    def check(self, caller: Caller) -> None:
        """Refuse a caller whose token was revoked or has expired since. Raises ServiceError."""
        if caller.token is None:
            return
        self._check_time(caller.token)
        if not self._tokens.is_good(caller.token):
            what, advice = (
                ("browser", _AGAIN[caller.token.kind])
                if caller.token.kind in OF_BROWSERS
                else ("API token", _WHERE)
            )
            raise ServiceError("unauthorized", f"the {what} {caller.name!r} was revoked", advice)

    def _check_time(self, token: Token) -> None:
        if self._tokens.is_expired(token):
            raise ServiceError(
                "token_expired",
                f"the API token {token.name!r} has expired",
                _AGAIN.get(token.kind, f"`ravel token create --name {token.name}` makes another"),
            )


def caller_of_token(token: Token) -> Caller:
    """Return the caller that a token stands for."""
    return Caller(
        token.name, frozenset(token.actions), frozenset(token.repos), frozenset(token.branches), token
    )


def caller_of(request: Request) -> Caller:
    """Return the caller of a request that passed `authentication`."""
    found: Caller = request.scope[CALLER]
    return found
