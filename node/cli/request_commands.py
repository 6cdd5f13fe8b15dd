"""CLI: requests commands: who asks to be let into a repo, answers, and what this user asked for."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.people import person
from node.cli.repo_commands import InvitedPermission, RepoArgument
from node.cli.shared import JsonOption, client, iso_time, print_fields, print_json, print_table, say

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from node.contract.requests import AskLinkList, RequestList, RequestView

requests = typer.Typer(no_args_is_help=True, help="Requests to be let into repos, and answers to them.")

RequestArgument = Annotated[
    str,
    typer.Argument(
        help="Its id, as `ravel requests list` shows it, a unique prefix, or the name of who asks."
    ),
]
_ID_WIDTH = 12


@requests.command("list")
def list_requests(
    context: typer.Context,
    repo: Annotated[
        str | None, typer.Argument(help="Only requests to this repo: its name, id, or a unique prefix.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List who asks to be let into your repos, and what you asked for.

    The code is made of the user's key and the whole request. The same six words on both nodes mean that nobody asks in
    the other's name: compare them by telephone, or when you meet.
    """
    api = client(context)
    answer = api.list_all_requests() if repo is None else api.list_requests(repo)
    if as_json:
        print_json(answer)
        return
    _print_received(answer)
    if answer["made"]:
        _print_made(answer)


def _print_received(answer: "RequestList") -> None:
    print_table(
        ("request", "repo", "user", "name", "asks for", "status", "code"),
        (
            (
                item["request"][:_ID_WIDTH],
                item["repo_name"],
                item["user"],
                f"{item['name']} (looks like a member)" if item["looks_alike"] else item["name"],
                item["permission"],
                item["status"],
                item["code"],
            )
            for item in answer["requests"]
        ),
    )


def _print_made(answer: "RequestList") -> None:
    print()
    print_table(
        ("you asked for", "of", "asks for", "status", "expires", "code"),
        (
            (
                item["repo_name"],
                person(item["admin_name"], item["admin"]),
                item["permission"],
                f"{item['status']}: {item['reason']}" if item["reason"] else item["status"],
                iso_time(item["expires_at"]),
                item["code"],
            )
            for item in answer["made"]
        ),
    )


@requests.command("accept")
def accept(
    context: typer.Context,
    repo: RepoArgument,
    request: RequestArgument,
    permission: Annotated[
        InvitedPermission | None, typer.Option(help="The permission to give; otherwise that of the link.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Let a user in who asked. The repo's secrets are sealed for that user alone."""
    given = "" if permission is None else permission.value
    _print_answered(client(context).answer_request(repo, request, accepts=True, permission=given), as_json)


@requests.command("refuse")
def refuse(
    context: typer.Context, repo: RepoArgument, request: RequestArgument, as_json: JsonOption = False
) -> None:
    """Refuse a request. The user is told. You may still accept it later."""
    _print_answered(client(context).answer_request(repo, request, accepts=False), as_json)


def _print_answered(answer: "RequestView", as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    who = person(answer["name"], answer["user"])
    print_fields([("user", who), ("repo", answer["repo_name"]), ("status", answer["status"])])


@requests.command("cancel")
def cancel(
    context: typer.Context,
    repo: Annotated[
        str, typer.Argument(help="The repo that you asked for: its name, id, or a unique prefix.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Take back a request of yours, or remove one that is over. The same link does not let you ask again."""
    answer = client(context).cancel_request(repo)
    if as_json:
        print_json(answer)
        return
    say("taken back; an admin who has seen it sees that when the nodes meet")


@requests.command("links")
def list_links(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the links by which users ask to be let into a repo."""
    _print_links(client(context).list_ask_links(repo), as_json)


@requests.command("close")
def close(
    context: typer.Context,
    repo: RepoArgument,
    link: Annotated[
        str, typer.Argument(help="Its id, as `ravel requests links` shows it, or a unique prefix.")
    ],
    as_json: JsonOption = False,
) -> None:
    """End a link. Nobody asks by it any more, and who asked and has no answer is not accepted."""
    _print_links(client(context).close_ask_link(repo, link), as_json)


def _print_links(answer: "AskLinkList", as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    print_table(
        ("link", "author", "gives", "asked", "expires", "state"),
        (
            (
                item["lobby"][:_ID_WIDTH],
                person(item["author_name"], item["author"]),
                item["permission"],
                item["requests"],
                iso_time(item["expires_at"]),
                "closed"
                if item["closed"]
                else "full"
                if item["full"]
                else "open"
                if item["here"]
                else "elsewhere",
            )
            for item in answer["links"]
        ),
    )
