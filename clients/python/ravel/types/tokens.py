"""Types of answers: tokens."""

from typing import Annotated, TypedDict

from ravel.types.made import MadeThing
from ravel.types.values import Action, Id, UnixSeconds, means, one_of


class TokenRepo(TypedDict):
    """A repo that a token is for."""

    repo: Id
    name: Annotated[str | None, means("Null: it is not on this node any more.")]


class TokenBranch(TypedDict):
    """A branch that a token is for."""

    branch: Id
    repo: Id
    name: Annotated[str | None, means("Null: it is not on this node any more.")]


class TokenView(TypedDict):
    """A token, without its secret."""

    name: str
    kind: Annotated[
        str,
        one_of(
            "app", "page", "kept", "browser", "home",
            description=(
                "`page`: of a web page that `ravel open` opened. `kept`: of such a browser that stays signed in. `browser`: "
                "of a paired browser. `home`: the node's own, for the command."
            )
        )
    ]  # fmt: skip
    actions: list[Action]
    repos: Annotated[list[TokenRepo], means("No repos and no branches: it is for all.")]
    branches: list[TokenBranch]
    origins: Annotated[list[str], means("Web origins whose pages may call with it.")]
    created_at: Annotated[int | None, means("Unix seconds. Null: of the kind `home`.")]
    expires_at: Annotated[int | None, means("Unix seconds. Null: never, of the kind `home`.")]
    last_used_at: Annotated[int | None, means("Unix seconds. Null: never, or not known.")]
    expired: bool
    revoked: Annotated[bool, means("Revoked: kept for 30 days, with the list of what it made.")]
    made: Annotated[
        list[MadeThing], means("What its holder made, and what stays without the token; the latest first.")
    ]


class OwnToken(TokenView):
    """The token of a request, and its user."""

    user: Annotated[Id, means("The author of what is written with it.")]


class NewToken(TypedDict):
    """A token that was made."""

    token: Annotated[str, means("The secret. The node keeps a hash, and cannot show it again.")]
    name: str
    expires_at: UnixSeconds


class TokenList(TypedDict):
    """The tokens of apps and pages."""

    tokens: list[TokenView]
