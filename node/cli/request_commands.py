"""CLI: requests commands: who asks to be let into a repo, answers, and what this user asked for."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli import words
from node.cli.answers import ID_WIDTH, Table, prints, short
from node.cli.printing import is_terminal, state_word
from node.cli.repo_commands import InvitedPermission, RepoArgument
from node.cli.shared import YesOption, confirm, say
from node.cli.wording import author, person, time_of

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.requests import AskLinkList, AskLinkView, RequestList, RequestView

requests = typer.Typer(no_args_is_help=True, help="Requests to be let into repos, and answers to them.")

RequestArgument = Annotated[
    str,
    typer.Argument(
        help="Its id, as `ravel requests list` shows it, a unique prefix, or the name of who asks."
    ),
]
_LINKS = Table(
    "links",
    ("link", lambda item: item["lobby"][:ID_WIDTH]),
    ("author", author),
    ("gives", "permission"),
    ("asked", "requests"),
    ("expires", time_of("expires_at")),
    ("state", lambda item: _link_state(item)),
)


def _link_state(item: "AskLinkView") -> str:
    if item["closed"]:
        return state_word("closed")
    return state_word("full" if item["full"] else "open" if item["here"] else "elsewhere")


def _print_requests(answer: "RequestList") -> None:
    Table(
        "requests",
        short("request"),
        ("repo", "repo_name"),
        *(() if is_terminal() else ("user",)),
        ("name", lambda item: f"{item['name']}{' (looks like a member)' if item['looks_alike'] else ''}"),
        ("asks for", "permission"),
        ("status", lambda item: state_word(item["status"])),
        "code",
    )(answer)
    if not answer["made"]:
        return
    print()
    Table(
        "made",
        ("you asked for", "repo_name"),
        ("of", lambda item: person(item["admin_name"], item["admin"])),
        ("asks for", "permission"),
        (
            "status",
            lambda item: (
                f"{state_word(item['status'])}{': ' if item['reason'] else ''}{item['reason'] or ''}"
            ),
        ),
        ("expires", time_of("expires_at")),
        "code",
    )(answer)


@requests.command("list")
@prints(_print_requests)
def list_requests(
    api: "Client",
    repo: Annotated[
        str | None, typer.Argument(help="Only requests to this repo: its name, id, or a unique prefix.")
    ] = None,
) -> "RequestList":
    """List who asks to be let into your repos, and what you asked for.

    The code is made of the user's key and the whole request. The same six words on both nodes mean that nobody asks in
    the other's name: compare them by telephone, or when you meet.
    """
    return api.list_all_requests() if repo is None else api.list_requests(repo)


@requests.command("accept")
@prints(words.REQUEST_ANSWERED)
def accept(
    api: "Client",
    repo: RepoArgument,
    request: RequestArgument,
    permission: Annotated[
        InvitedPermission | None, typer.Option(help="The permission to give; otherwise that of the link.")
    ] = None,
) -> "RequestView":
    """Let a user in who asked. The repo's secrets are sealed for that user alone."""
    given = "" if permission is None else permission.value
    return api.answer_request(repo, request, accepts=True, permission=given)


@requests.command("refuse")
@prints(words.REQUEST_ANSWERED)
def refuse(api: "Client", repo: RepoArgument, request: RequestArgument) -> "RequestView":
    """Refuse a request. The user sees that. You may still accept it later."""
    return api.answer_request(repo, request, accepts=False)


@requests.command("cancel")
@prints(lambda _: say("taken back; an admin who has seen it sees that when the nodes meet"))
def cancel(
    api: "Client",
    repo: Annotated[
        str, typer.Argument(help="The repo that you asked for: its name, id, or a unique prefix.")
    ],
    yes: YesOption = False,
) -> "RequestList":
    """Take back a request of yours, or remove one that is over. The same link does not let you ask again."""
    confirm(f"The same link does not let you ask for {repo} again. Take the request back?", yes=yes)
    return api.cancel_request(repo)


@requests.command("links")
@prints(_LINKS)
def list_links(api: "Client", repo: RepoArgument = "") -> "AskLinkList":
    """List the links by which users ask to be let into a repo."""
    return api.list_ask_links(repo)


@requests.command("close")
@prints(_LINKS)
def close(
    api: "Client",
    repo: RepoArgument,
    link: Annotated[
        str, typer.Argument(help="Its id, as `ravel requests links` shows it, or a unique prefix.")
    ],
    yes: YesOption = False,
) -> "AskLinkList":
    """End a link. Nobody asks by it any more, and who asked and has no answer is not accepted."""
    confirm(f"Nobody will be let into {repo} by this link any more. End it?", yes=yes)
    return api.close_ask_link(repo, link)
