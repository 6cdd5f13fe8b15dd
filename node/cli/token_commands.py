"""token: what apps may do with this node's API."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.repo_commands import seconds_of
from node.cli.shared import JsonOption, client, iso_time, print_json, print_table

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.tokens import TokenView

token = typer.Typer(no_args_is_help=True, help="Tokens that let apps use this node's API.")


@token.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="What to call it: letters, digits, dots, _ and -.")],
    may: Annotated[
        str,
        typer.Option(
            "--may",
            help="What it may do, separated by commas: read, write, manage, admin, node. None includes another.",
        ),
    ],
    repo: Annotated[
        list[str] | None,
        typer.Option("--repo", help="A repo that it is for; may be repeated. Without one, it is for all."),
    ] = None,
    branch: Annotated[
        list[str] | None, typer.Option("--branch", help="A single branch that it is for; may be repeated.")
    ] = None,
    expires: Annotated[str, typer.Option(help="How long it is valid: 60s to 3650d.")] = "90d",
    as_json: JsonOption = False,
) -> None:
    """Make a token for an app, and print it. It is shown this once: the node keeps only a hash."""

    answer = client(context).create_token(
        name=name,
        may=[action.strip() for action in may.split(",")],
        repos=repo or [],
        branches=branch or [],
        expires_seconds=seconds_of(expires),
    )
    if as_json:
        print_json(answer)
        return
    print(answer["token"])


@token.command("list")
def list_tokens(context: typer.Context, as_json: JsonOption = False) -> None:
    """List tokens: what each may do and where, until when, and when it was last used."""

    answer = client(context).list_tokens()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("name", "may", "for", "expires", "last used"),
        (
            (
                item["name"],
                ",".join(item["may"]),
                _targets(item),
                "expired" if item["expired"] else iso_time(item["expires_at"] or 0),
                "never" if item["last_used_at"] is None else iso_time(item["last_used_at"]),
            )
            for item in answer["tokens"]
        ),
    )


@token.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, as in `ravel token list`.")],
    as_json: JsonOption = False,
) -> None:
    """Revoke a token, at once and for good."""

    answer = client(context).revoke_token(token=name)
    if as_json:
        print_json(answer)


def _targets(item: "TokenView") -> str:
    """Names, or the first characters of ids of what is not on this node any more."""
    found = [one["name"] or _gone(one["repo"]) for one in item["repos"]]
    found += [f"branch {one['name'] or _gone(one['branch'])}" for one in item["branches"]]
    return ", ".join(found) or "all repos"


def _gone(target: str) -> str:
    return f"{target[:12]} (gone)"
