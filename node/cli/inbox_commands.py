"""CLI: inbox commands: comments, and branches that others offer to merge."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import ID_WIDTH, Outcome, Table, prints, short
from node.cli.branch_commands import BranchArgument, print_merge
from node.cli.hints import command
from node.cli.printing import id_text_shown, print_next, say_wrapped, state_word
from node.cli.repo_commands import RepoArgument
from node.cli.shared import YesOption, confirm
from node.cli.wording import author, first_line, post_text, time_of, with_branch_names
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.inbox import CommentList, OfferAnswer, OfferMade, OfferPreview

inbox = typer.Typer(no_args_is_help=True, help="Comments on documents, and commits offered by others.")

OfferArgument = Annotated[
    str, typer.Argument(help="Its id, as `ravel inbox list` shows it, or a unique prefix.")
]
CommentArgument = Annotated[
    str, typer.Argument(help="Its whole id, as `ravel inbox show` or `comment` prints it.")
]
_TEXT_WIDTH = 72
_POLL_SECONDS = 0.5
_SIGNS = {"added": "+", "removed": "-", "same": " ", "skipped": "…"}


def _status(item: Mapping[str, Any]) -> str:
    """Return what became of an offer, and that its link cannot be read."""
    status = state_word("merged" if item["merged"] else str(item["status"]))
    return status if item["readable"] else f"{status}, {state_word('unreadable')}"


def _print_look(shown: "tuple[OfferPreview, str]") -> None:
    """Print what an offer to a repo brings: counts, by whom, the first posts, and lines of documents that change."""
    answer, repo = shown
    if not answer["carried"] and not answer["left"]:
        say_wrapped("It brings nothing that is not here already.")
        return
    kinds = ", ".join(f"{one['count']} {one['kind']}" for one in answer["kinds"])
    names = ", ".join(author(one) for one in answer["authors"])
    say_wrapped(f"It brings {counted(answer['carried'], 'commit')} ({kinds}), by {names}.")
    for one in answer["posts"]:
        print(display_safe(f"  {author(one)}: {first_line(one['text'], _TEXT_WIDTH)}"))
    for document in answer["documents"]:
        print(display_safe(f"  {document['kind']} {document['title'] or document['name']}".rstrip() + ":"))
        for line in document["lines"]:
            print(
                display_safe(f"  {_SIGNS[line['change']]} {first_line(line['text'], _TEXT_WIDTH)}".rstrip())
            )
    if files := answer["files_left"]:
        say_wrapped(f"Files that do not come with it: {', '.join(files)}.")
    if answer["left"]:
        say_wrapped(f"{counted(answer['left'], 'commit')} cannot come: too large, or not readable.")
    print_next(
        [
            (command(" ".join(filter(None, ("inbox", verb, repo, answer["offer"][:ID_WIDTH])))), what)
            for verb, what in (("accept", "then merge"), ("refuse", "leave it"))
        ]
    )


def _print_accepted(shown: "tuple[OfferAnswer, str, str | None]") -> None:
    answer, repo, kind = shown
    if kind in ("comment", "trust"):
        (words.COMMENT_ACCEPTED if kind == "comment" else words.TRUST_ACCEPTED)(answer)
    else:
        words.OFFER_ACCEPTED({"repo_given": repo, "offer_short": answer["offer"][:ID_WIDTH]})


@inbox.command("list")
@prints(
    Table(
        "offers",
        short("offer"),
        "kind",
        ("on branch", lambda item: item["branch_name"] or id_text_shown(item["branch"])),
        ("author", author),
        # None are here before an admin accepts: a nought would say that it offers nothing.
        ("commits here", lambda item: item["commits"] or ""),
        ("status", _status),
        short("answers"),
        ("note", "note"),
    )
)
def list_offers(
    api: "Client",
    repo: RepoArgument = "",
    status: Annotated[str, typer.Option(help="Only those that are open, accepted or refused.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="List this many of the latest.")] = 100,
) -> Outcome:
    """List the offers to a repo and their state. The note of a comment is its text."""
    answer = api.list_offers(repo, status=status, limit=limit)
    return Outcome(answer, shown={"offers": with_branch_names(api, repo, answer["offers"])})


@inbox.command("comment")
@prints(words.COMMENTED)
def comment(
    api: "Client",
    branch: BranchArgument,
    text: str,
    answers: Annotated[str, typer.Option(help="The comment that it answers, by its whole id.")] = "",
) -> "OfferAnswer":
    """Comment on a document. This needs no right to write.

    The comment is written in a branch of your own, in a repo called `comments`, and the branch is offered to the
    document's inbox. An admin reads it there; others see it once it is accepted.
    """
    return api.write_comment(branch, text, answers=answers)


@inbox.command("edit")
@prints(words.COMMENT_EDITED)
def edit(api: "Client", branch: BranchArgument, comment: CommentArgument, text: str) -> "OfferAnswer":
    """Give a comment of yours another text. Others see it once an admin has accepted it."""
    return api.edit_comment(branch, comment, text)


@inbox.command("delete")
@prints(words.COMMENT_DELETED)
def delete(
    api: "Client", branch: BranchArgument, comment: CommentArgument, yes: YesOption = False
) -> "OfferAnswer":
    """Delete a comment of yours. This needs nobody's answer."""
    confirm(f"No edit brings the comment {comment[:ID_WIDTH]} back. Delete it?", yes=yes)
    return api.delete_comment(branch, comment)


@inbox.command("trust")
@prints(words.TRUST_ASKED)
def trust(api: "Client", branch: BranchArgument) -> "OfferMade":
    """Ask that what you comment on a document is shown at once from now on.

    An admin who accepts it trusts you there, until it is refused again.
    """
    return api.ask_trust(branch)


@inbox.command("show")
@prints(
    Table(
        "items",
        ("time", time_of("time")),
        "commit",
        short("offer"),
        ("author", author),
        ("answers", lambda item: item["answers"][:ID_WIDTH]),
        ("comment", lambda item: post_text(item, _TEXT_WIDTH) or first_line(item["kind"], _TEXT_WIDTH)),
    )
)
def show(
    api: "Client",
    branch: BranchArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show this many of the latest.")] = 50,
) -> "CommentList":
    """Show the accepted comments on a document, by their authors' times. `inbox refuse` removes one by its offer."""
    return api.list_comments(branch, limit=limit)


@inbox.command("offer")
@prints(words.OFFERED)
def offer(
    api: "Client",
    source: Annotated[str, typer.Argument(help="The branch with the commits, in a fork of the repo.")],
    target: Annotated[str, typer.Argument(help="The branch to offer them to.")],
    note: Annotated[str, typer.Option(help="A description of the offer.")] = "",
) -> "OfferMade":
    """Offer commits to a repo: a pull request. Members may read the offered branch from then on, later commits too.

    Their nodes fetch it once an admin accepts the offer.
    """
    return api.make_offer(target, source, note=note)


@inbox.command("accept")
@prints(_print_accepted)
def accept(api: "Client", repo: RepoArgument, offer: OfferArgument) -> Outcome:
    """Accept an offer: all nodes that follow the repo then follow the offered branch. A comment is shown as you read it."""
    answer = api.answer_offer(repo, offer, accepts=True)
    kinds = {one["offer"]: one["kind"] for one in api.list_offers(repo)["offers"]}
    return Outcome(answer, shown=(answer, repo, kinds.get(answer["offer"])))


@inbox.command("look")
@prints(_print_look)
def look(
    api: "Client",
    repo: RepoArgument,
    offer: OfferArgument,
    timeout: Annotated[float, typer.Option(min=0, help="Wait this many seconds for its commits.")] = 30.0,
) -> Outcome:
    """Show what a merge of an offer would write, before you accept or refuse it. Nothing is written.

    Your computer alone fetches the offered branch for it, from those that have it.
    """
    api.fetch_offer(repo, offer)
    until = time.monotonic() + timeout
    while True:
        try:
            answer = api.preview_offer(repo, offer)
            return Outcome(answer, shown=(answer, repo))
        except ServiceError as error:
            if error.code != "incomplete" or time.monotonic() >= until:
                raise
        time.sleep(_POLL_SECONDS)  # the daemon is another process, and has no answer that waits for this


@inbox.command("refuse")
@prints(words.OFFER_REFUSED)
def refuse(api: "Client", repo: RepoArgument, offer: OfferArgument) -> "OfferAnswer":
    """Refuse an offer, or withdraw one: your acceptance, or an offer of your own."""
    return api.answer_offer(repo, offer, accepts=False)


@inbox.command("merge")
@prints(print_merge)
def merge(api: "Client", repo: RepoArgument, offer: OfferArgument) -> Outcome:
    """Merge an accepted offer: you write each of its commits again, with its origin."""
    answer = api.merge_offer(repo, offer)
    names = {one["branch"]: one["name"] for one in api.list_branches(repo)["branches"]}
    target = f"{repo}:{names.get(answer['branch'], answer['branch'][:ID_WIDTH])}"
    return Outcome(answer, shown=(answer, target))
