"""Things made with a token that outlive it: links, members, tokens, browsers, accounts, peers.

An endpoint states in `makes` what it makes. The node writes that down with the token, so that a person who revokes the
token can take it back.
"""

from dataclasses import dataclass

from ravel.types.made import MadeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Makes:
    """Kind of thing that an endpoint makes, and the fields of request and answer that name it.

    `repo` and `branch`: the part of the request, or of the answer, that names what a link opens. `what`: the field of the
    answer that tells one from another; empty where nothing does. `until`: the field of the answer with the unix seconds at
    which it ends; empty: it does not end. `only_if`: a field of the request that must be true, or else nothing was made.
    """

    kind: MadeKind
    repo: str = ""
    branch: str = ""
    what: str = ""
    until: str = ""
    only_if: str = ""
