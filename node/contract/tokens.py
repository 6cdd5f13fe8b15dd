"""Tokens of the API: make, list and revoke them, and show the one that a request carries."""

import re
from typing import Annotated, Final

from msgspec import Meta, field

from node.contract.access import ACTIONS, ANY_TOKEN, PERSON
from node.contract.endpoint import Endpoint, QueryParameter
from node.contract.made import Makes
from node.contract.values import Name, Request
from protocol.limits.users import (
    API_ORIGIN_SIZE_MAX,
    API_TOKEN_NAME_SIZE_MAX,
    API_TOKEN_ORIGINS_MAX,
    API_TOKEN_SECONDS,
    API_TOKEN_SECONDS_MAX,
    API_TOKEN_SECONDS_MIN,
    API_TOKEN_TARGETS_MAX,
)
from ravel.types.made import Revoked
from ravel.types.tokens import NewToken, OwnToken, TokenList
from ravel.types.values import Action

# As `$` alone lets a line break follow in Python, and JSON schemas know no `\Z`.
NAME_FORM: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
_ORIGIN: Final = r"^(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?$(?!\n)"
"""A page that came in clear over a network may be another's: of these, those of this machine alone."""
Origin = Annotated[
    str,
    Meta(
        pattern=_ORIGIN,
        max_length=API_ORIGIN_SIZE_MAX,
        description="`https://HOST` or `https://HOST:PORT`; with `http`, loopback names alone.",
    ),
]
_Targets = Annotated[list[Name], Meta(max_length=API_TOKEN_TARGETS_MAX)]


class TokenRequest(Request, frozen=True):
    """Makes a token."""

    name: Annotated[
        str,
        Meta(
            pattern=NAME_FORM,
            max_length=API_TOKEN_NAME_SIZE_MAX,
            description="Letters, digits, `.`, `_` and `-`.",
        ),
    ]
    actions: Annotated[
        list[Action], Meta(min_length=1, max_length=len(ACTIONS), description="No action includes another.")
    ]
    repos: Annotated[
        _Targets, Meta(description="Repos that it is for. Without repos and branches it is for all.")
    ] = field(default_factory=list)
    branches: Annotated[_Targets, Meta(description="Single branches that it is for.")] = field(
        default_factory=list
    )
    origins: Annotated[
        list[Origin],
        Meta(
            max_length=API_TOKEN_ORIGINS_MAX,
            description="Web origins whose pages may call with it. Without one, a page of another origin is refused.",
        ),
    ] = field(default_factory=list)
    expires_seconds: Annotated[int, Meta(ge=API_TOKEN_SECONDS_MIN, le=API_TOKEN_SECONDS_MAX)] = (
        API_TOKEN_SECONDS
    )


TAKE_BACK: Final = QueryParameter(
    name="made",
    type=bool,
    description="1: also end the links, tokens, browsers, accounts and peers that its holder made.",
    default=0,
)


def find_origin_fault(text: str) -> str:
    """Return the fault of a text as an origin of a token; empty if it has none."""
    if len(text) <= API_ORIGIN_SIZE_MAX and re.search(_ORIGIN, text):
        return ""
    if re.fullmatch(r"http://[^/]+", text):
        return f"{text[:100]!r} is no origin of this machine: pages of other hosts need https"
    return f"{text[:100]!r} is not an origin"


CREATE_TOKEN: Final = Endpoint(
    name="create_token",
    method="POST",
    path="/tokens",
    scopes=PERSON,
    summary="Make a token for an app.",
    details="A name that an expired or revoked token has is free.",
    request=TokenRequest,
    answer=NewToken,
    makes=Makes(kind="token", what="name", until="expires_at"),
    errors=("not_found", "ambiguous", "already_exists"),
)
LIST_TOKENS: Final = Endpoint(
    name="list_tokens",
    method="GET",
    path="/tokens",
    scopes=PERSON,
    summary="List tokens with what they may do and when they were last used.",
    answer=TokenList,
)
REVOKE_TOKEN: Final = Endpoint(
    name="revoke_token",
    method="DELETE",
    path="/tokens/{token}",
    scopes=PERSON,
    summary="Revoke a token, at once and for good.",
    details=(
        "Its event streams end within 15 s, and get no event before that. The answer lists what its holder made: a member, "
        "and a link that opens a repo, stay until a person ends them as `advice` says. Where any of that stays, the token "
        "is kept as revoked, and can be revoked again, with `made` too. Of a name that was used again, the one that is good "
        "is meant."
    ),
    query=(TAKE_BACK,),
    answer=Revoked,
)
SHOW_TOKEN: Final = Endpoint(
    name="show_token",
    method="GET",
    path="/token",
    scopes=ANY_TOKEN,
    summary="Show the token that this request carries, and the user that it acts for.",
    answer=OwnToken,
)
