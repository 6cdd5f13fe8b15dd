"""token: what apps may do with this node's API."""

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.repo_commands import seconds_of
from node.cli.shared import JsonOption, client, iso_time, print_json, print_table
from node.runtime.errors import ServiceError

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.browsers import BrowserView
    from ravel.types.made import MadeThing, Revoked
    from ravel.types.tokens import TokenView

MadeOption = Annotated[
    bool,
    typer.Option(
        "--made",
        help="Also end the links, tokens, browsers, relay accounts and peers that were made with it. Members stay.",
    ),
]

token = typer.Typer(no_args_is_help=True, help="Tokens that let apps use this node's API.")


@token.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="What to call it: letters, digits, dots, _ and -.")],
    actions: Annotated[
        str,
        typer.Option(
            "--actions",
            help="What it may do, separated by commas: read, write, manage, admin, node, metrics. None includes another.",
        ),
    ],
    repo: Annotated[
        list[str] | None,
        typer.Option("--repo", help="A repo that it is for; may be repeated. Without one, it is for all."),
    ] = None,
    branch: Annotated[
        list[str] | None, typer.Option("--branch", help="A single branch that it is for; may be repeated.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            help="A web origin whose pages may use it, such as http://localhost:8000; may be repeated. Without one, "
            "browsers get no answer for pages of other origins.",
        ),
    ] = None,
    expires: Annotated[str, typer.Option(help="How long it is valid: 60s to 3650d.")] = "90d",
    as_json: JsonOption = False,
) -> None:
    """Make a token for an app, and print it. It is shown this once: the node keeps only a hash."""

    from node.contract.tokens import NAME_FORM, find_origin_fault
    from protocol.limits.users import API_TOKEN_SECONDS_MAX, API_TOKEN_SECONDS_MIN

    if not re.search(NAME_FORM, name):
        raise ServiceError(
            "bad_request", f"{name[:100]!r} is no name of a token", "use letters, digits, `.`, `_` and `-`"
        )
    seconds = seconds_of(expires)
    if not API_TOKEN_SECONDS_MIN <= seconds <= API_TOKEN_SECONDS_MAX:
        raise ServiceError("bad_request", f"a token is not valid for {expires}", "say 60s to 3650d")
    faults = [find_origin_fault(one) for one in origin or ()]
    if any(faults):
        raise ServiceError(
            "bad_request",
            next(filter(None, faults)),
            "an origin is https://HOST or http://localhost:PORT, without a path",
        )
    answer = client(context).create_token(
        name=name,
        actions=_actions(actions),
        repos=repo or [],
        branches=branch or [],
        origins=origin or [],
        expires_seconds=seconds,
    )
    if as_json:
        print_json(answer)
        return
    print(answer["token"])


@token.command("list")
def list_tokens(context: typer.Context, as_json: JsonOption = False) -> None:
    """List tokens: what each may do and where, until when, when it was last used, and what was made with it."""

    answer = client(context).list_tokens()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("name", "actions", "for", "expires", "last used", "made"),
        (
            (
                item["name"],
                ",".join(item["actions"]),
                _targets(item),
                end_of(item),
                "never" if item["last_used_at"] is None else iso_time(item["last_used_at"]),
                count_made(item["made"]),
            )
            for item in answer["tokens"]
        ),
    )


@token.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, as in `ravel token list`.")],
    made: MadeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token, at once and for good, and list what was made with it and stays."""

    print_revoked(client(context).revoke_token(token=name, made=made), as_json=as_json)


def print_revoked(answer: "Revoked", *, as_json: bool) -> None:
    """Print what was made with a token that was revoked, and how a person ends what is left of it."""
    if as_json:
        print_json(answer)
    elif answer["made"]:
        print_table(
            ("made", "what", "repo", "at", "now", "ended by"),
            (
                (
                    one["kind"].replace("_", " "),
                    one["what"],
                    one["repo_name"] or one["repo"] or "",
                    iso_time(one["made_at"]),
                    _state_of(one),
                    one["advice"],
                )
                for one in answer["made"]
            ),
        )


def count_made(made: "list[MadeThing]") -> str:
    """Return how many things of each kind were made with a token, such as `2 invitation, 1 member`."""
    kinds = Counter(one["kind"].replace("_", " ") for one in made if not one["ended"])
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def end_of(item: "TokenView | BrowserView") -> str:
    """Return until when a token or a paired browser is good, or why it is not."""
    if item["revoked"]:
        return "revoked"
    return "expired" if item["expired"] else iso_time(item["expires_at"] or 0)


def _state_of(one: "MadeThing") -> str:
    if one["begun"]:
        return "may be there"
    return "ended" if one["ended"] else "stays"


def _actions(text: str) -> list[str]:
    """Actions that are separated by commas. Raises ServiceError `bad_request`."""
    from node.contract.access import ACTIONS
    from node.runtime.resolve import did_you_mean

    found = [action.strip() for action in text.split(",")]
    for one in found:
        if one not in ACTIONS:
            what = f"{one!r} is no action{did_you_mean(one, ACTIONS)}" if one else "an action is missing"
            raise ServiceError(
                "bad_request", what, f"--actions takes {', '.join(ACTIONS)}, separated by commas"
            )
    return found


def _targets(item: "TokenView") -> str:
    """Names, or the first characters of ids of what is not on this node any more."""
    found = [one["name"] or _gone(one["repo"]) for one in item["repos"]]
    found += [f"branch {one['name'] or _gone(one['branch'])}" for one in item["branches"]]
    where = ", ".join(found) or "all repos"
    return f"{where}; pages of {', '.join(item['origins'])}" if item["origins"] else where


def _gone(target: str) -> str:
    return f"{target[:12]} (gone)"
