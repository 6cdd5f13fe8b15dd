"""CLI: inbox commands: comments, and branches that others offer to merge."""

from typing import Annotated

import typer

from node.cli.branch_commands import BranchArgument, print_merge
from node.cli.people import person
from node.cli.posts import post_text
from node.cli.repo_commands import RepoArgument
from node.cli.shared import (
    JsonOption,
    client,
    first_line,
    iso_time,
    print_answer,
    print_json,
    print_table,
)
from ravel.characters import display_safe

inbox = typer.Typer(no_args_is_help=True, help="Comments on documents, and commits offered by others.")

OfferArgument = Annotated[
    str, typer.Argument(help="Its id, as `ravel inbox list` shows it, or a unique prefix.")
]
_TEXT_WIDTH = 72


@inbox.command("list")
def list_offers(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the offers to a repo and their state."""
    answer = client(context).list_offers(repo)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("offer", "kind", "on branch", "author", "commits", "status", "note"),
        (
            (
                item["offer"][:12],
                item["kind"],
                item["branch"][:12],
                person(item["author_name"], item["author"]),
                item["commits"],
                item["status"] if item["readable"] else f"{item['status']}, unreadable",
                first_line(display_safe(item["note"]), 40),
            )
            for item in answer["offers"]
        ),
    )


@inbox.command("comment")
def comment(context: typer.Context, branch: BranchArgument, text: str, as_json: JsonOption = False) -> None:
    """Comment on a document. This needs no right to write.

    The comment is written in a branch of your own, in a repo called `comments`, and the branch is offered to the
    document's inbox. Others see it once an admin has accepted it.
    """
    print_answer(client(context).write_comment(branch, text), as_json=as_json)


@inbox.command("show")
def show(
    context: typer.Context,
    branch: BranchArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show this many of the latest.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show the accepted comments on a document, by their authors' times."""
    answer = client(context).list_comments(branch, limit=limit)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("time", "author", "comment"),
        (
            (
                iso_time(item["time"]),
                person(item["author_name"], item["author"]),
                post_text(item, _TEXT_WIDTH) or first_line(item["kind"], _TEXT_WIDTH),
            )
            for item in answer["items"]
        ),
    )


@inbox.command("offer")
def offer(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="The branch with the commits, in a fork of the repo.")],
    target: Annotated[str, typer.Argument(help="The branch to offer them to.")],
    note: Annotated[str, typer.Option(help="A description of the offer.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Offer commits to a repo: a pull request. Members read the offered branch from then on, later commits too."""
    print_answer(client(context).make_offer(target, source, note=note), as_json=as_json)


@inbox.command("accept")
def accept(
    context: typer.Context, repo: RepoArgument, offer: OfferArgument, as_json: JsonOption = False
) -> None:
    """Accept an offer: all nodes that follow the repo then follow the offered branch."""
    print_answer(client(context).answer_offer(repo, offer, accepts=True), as_json=as_json)


@inbox.command("refuse")
def refuse(
    context: typer.Context, repo: RepoArgument, offer: OfferArgument, as_json: JsonOption = False
) -> None:
    """Refuse an offer, or withdraw one: your acceptance, or an offer of your own."""
    print_answer(client(context).answer_offer(repo, offer, accepts=False), as_json=as_json)


@inbox.command("merge")
def merge(
    context: typer.Context, repo: RepoArgument, offer: OfferArgument, as_json: JsonOption = False
) -> None:
    """Merge an accepted offer: you write each of its commits again, with its origin."""
    print_merge(client(context).merge_offer(repo, offer), as_json=as_json)
