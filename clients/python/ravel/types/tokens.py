"""Types of answers: tokens. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict

from ravel.types.made import MadeThing


class NewToken(TypedDict):
    """A token that was made."""

    token: str
    """The secret. The node keeps a hash, and cannot show it again."""
    name: str
    expires_at: int
    """Unix seconds."""


class TokenList(TypedDict):
    """The tokens of apps and pages."""

    tokens: list[TokenView]


class TokenView(TypedDict):
    """A token, without its secret."""

    name: str
    kind: str
    """`page`: of a web page that `ravel open` opened. `kept`: of such a browser that stays signed in. `browser`:
    of a paired browser. `home`: the node's own, for the command.
    """
    actions: list[str]
    repos: list[TokenRepo]
    """No repos and no branches: it is for all."""
    branches: list[TokenBranch]
    origins: list[str]
    """Web origins whose pages may call with it."""
    created_at: int | None
    """Unix seconds. Null: of the kind `home`."""
    expires_at: int | None
    """Unix seconds. Null: never, of the kind `home`."""
    last_used_at: int | None
    """Unix seconds. Null: never, or not known."""
    expired: bool
    revoked: bool
    """Revoked: kept for 30 days, with the list of what it made."""
    made: list[MadeThing]
    """What its holder made, and what stays without the token; the latest first."""


class TokenRepo(TypedDict):
    """A repo that a token is for."""

    repo: str
    name: str | None
    """Null: it is not on this node any more."""


class TokenBranch(TypedDict):
    """A branch that a token is for."""

    branch: str
    repo: str
    name: str | None
    """Null: it is not on this node any more."""
