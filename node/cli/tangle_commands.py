"""tangle, feed: the graphs that commits form, and what each author wrote in a branch."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import ID_WIDTH, Outcome, Table, marks, print_table, prints, short
from node.cli.branch_commands import BranchArgument
from node.cli.repo_commands import RepoArgument
from node.cli.shared import say
from node.cli.wording import author, author_of, time_of
from node.runtime.errors import ERROR_KINDS, EXIT_OK
from node.runtime.wording import counted
from protocol.limits.users import TANGLE_WINDOW_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.timelines import FeedCheck, TangleView

tangle = typer.Typer(no_args_is_help=True, help="The graphs that commits form.")
feed = typer.Typer(no_args_is_help=True, help="Feeds: the numbered commits of one author in a branch.")


_TANGLE = Table(
    "commits",
    short("commit"),
    "rank",
    ("time", time_of("time")),
    ("author", author_of),
    "body",
    ("follows", lambda item: " ".join(previous[:ID_WIDTH] for previous in item["previous"])),
    ("", marks("void", "tip", "branch", "merge")),
)


@tangle.command("show")
@prints(lambda shown: print(shown) if isinstance(shown, str) else _TANGLE(shown))
def show(
    api: "Client",
    repo: RepoArgument,
    kind: Annotated[
        str, typer.Argument(help="A kind of tangle: branch, feed, group, members, epoch or thread.")
    ],
    branch: Annotated[
        str, typer.Option(help="Of a branch's or a feed's tangle: the branch, by name or id.")
    ] = "main",
    author: Annotated[str, typer.Option(help="Of a feed's tangle: the member; by default you.")] = "",
    epoch: Annotated[
        str, typer.Option(help="Of a members' tangle: the epoch; by default the current one.")
    ] = "",
    message: Annotated[
        str,
        typer.Option("--root", help="Of a thread of imported messages: the id of its first message."),
    ] = "",
    name: Annotated[
        str, typer.Option(help="Of a thread: its key under `tangles` in the messages.")
    ] = "thread",
    limit: Annotated[
        int, typer.Option(min=1, max=TANGLE_WINDOW_MAX, help="Show this many of the last commits.")
    ] = 50,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print Graphviz input; pipe it into `dot -Tsvg`.")
    ] = False,
) -> Outcome:
    """Show the end of a tangle: its commits in canonical order with their parents."""
    parts = {"branch": branch, "author": author, "epoch": epoch, "message": message, "name": name}
    answer = api.show_tangle(repo, kind, limit=limit, **parts)
    return Outcome(answer, shown=graphviz(answer) if dot else None)


def graphviz(answer: "TangleView") -> str:
    """Draw a tangle for Graphviz: later commits above, void ones dashed, tips with a double border."""
    lines = ["digraph tangle {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    for item in answer["commits"]:
        name = item["commit"][:ID_WIDTH]
        label = f"{name}\\n{_quoted(item['body'])}\\n{_quoted(author(item))}"
        style = ", style=dashed" if item["void"] else ""
        style += ", peripheries=2" if item["tip"] else ""
        lines.append(f'  "{name}" [label="{label}"{style}];')
        lines += [f'  "{name}" -> "{previous[:ID_WIDTH]}";' for previous in item["previous"]]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return display_safe(text).replace("\\", "\\\\").replace('"', '\\"')


def _print_feeds(answer: "FeedCheck") -> None:
    Table("feeds", short("author"), "commits", "last", "forks", ("name", "author_name"))(answer)
    if not answer["fork_count"]:
        return
    print(f"\nUsed more than once: {counted(answer['fork_count'], 'place')}")
    print_table(
        ("author", "sequence", "commit"),
        (
            (fork["author"], fork["sequence"], commit)
            for fork in answer["forks"]
            for commit in fork["commits"]
        ),
    )
    shown = sum(len(fork["commits"]) for fork in answer["forks"])
    if answer["fork_count"] > len(answer["forks"]) or shown < sum(
        fork["commit_count"] for fork in answer["forks"]
    ):
        say("note: there is more than is shown")


@feed.command("check")
@prints(_print_feeds)
def check(api: "Client", branch: BranchArgument) -> Outcome:
    """List the feeds of a branch, and the forks: places of a feed that its author used twice.

    Honest nodes do not fork their feeds, unless a node's folder was restored from a copy or runs twice. The exit code
    is that of feed_forked when there is a fork.
    """
    answer = api.check_feeds(branch)
    return Outcome(
        answer, exit_code=ERROR_KINDS["feed_forked"].exit_code if answer["fork_count"] else EXIT_OK
    )
