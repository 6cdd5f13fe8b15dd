"""Calls: tokens. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.types.made import Revoked
    from ravel.types.tokens import NewToken, TokenList, TokenView

CREATE_TOKEN: Final[Operation[NewToken]] = Operation(
    "POST",
    "/tokens",
    "tokens.NewToken",
    defaults={"repos": (), "branches": (), "origins": (), "expires_seconds": 7776000},
)
LIST_TOKENS: Final[Operation[TokenList]] = Operation("GET", "/tokens", "tokens.TokenList")
REVOKE_TOKEN: Final[Operation[Revoked]] = Operation(
    "DELETE", "/tokens/{token}", "made.Revoked", defaults={"made": False}, in_query=True
)
SHOW_TOKEN: Final[Operation[TokenView]] = Operation("GET", "/token", "tokens.TokenView")


class TokensCalls(SyncCaller):
    """Methods that wait for the answer."""

    def create_token(
        self,
        name: str,
        actions: Sequence[str],
        *,
        repos: Sequence[str] = (),
        branches: Sequence[str] = (),
        origins: Sequence[str] = (),
        expires_seconds: int = 7776000,
    ) -> NewToken:
        """Make a token for an app.

        A name that an expired or revoked token has is free.
        """
        return self._call(
            CREATE_TOKEN,
            {
                "name": name,
                "actions": actions,
                "repos": repos,
                "branches": branches,
                "origins": origins,
                "expires_seconds": expires_seconds,
            },
        )

    def list_tokens(self) -> TokenList:
        """List tokens with what they may do and when they were last used."""
        return self._call(LIST_TOKENS, {})

    def revoke_token(self, token: str, *, made: bool = False) -> Revoked:
        """Revoke a token, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what its holder made:
        a member, and a link that opens a repo, stay until a person ends them as `advice` says. Where any of
        that stays, the token is kept as revoked, and can be revoked again, with `made` too. Of a name that was
        used again, the one that is good is meant.
        """
        return self._call(REVOKE_TOKEN, {"token": token, "made": made})

    def show_token(self) -> TokenView:
        """Show the token that this request carries."""
        return self._call(SHOW_TOKEN, {})
