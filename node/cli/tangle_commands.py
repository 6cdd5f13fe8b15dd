"""tangle: the graphs that commits form, as tables or as pictures."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.people import author_of, person
from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, iso_time, print_json, print_table
from protocol.limits.users import TANGLE_WINDOW_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.timelines import TangleCommit, TangleView

tangle = typer.Typer(no_args_is_help=True, help="The graphs that commits form.")
_ID_WIDTH = 12


@tangle.command("show")
def show(
    context: typer.Context,
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
    as_json: JsonOption = False,
) -> None:
    """Show the end of a tangle: its commits in canonical order with their parents."""
    parts = {"branch": branch, "author": author, "epoch": epoch, "message": message, "name": name}
    answer = client(context).show_tangle(repo, kind, limit=limit, **parts)
    if as_json:
        print_json(answer)
    elif dot:
        print(_dot(answer))
    else:
        print_table(
            ("commit", "rank", "time", "author", "body", "follows", ""),
            (
                (
                    item["commit"][:_ID_WIDTH],
                    item["rank"],
                    iso_time(item["time"]),
                    author_of(item),
                    item["body"],
                    " ".join(previous[:_ID_WIDTH] for previous in item["previous"]),
                    ", ".join(_marks(item)),
                )
                for item in answer["commits"]
            ),
        )


def _marks(item: "TangleCommit") -> list[str]:
    marks = (
        ("void", item["void"]),
        ("tip", item["tip"]),
        ("branch", item["branch"]),
        ("merge", item["merge"]),
    )
    return [name for name, holds in marks if holds]


def _dot(answer: "TangleView") -> str:
    """Graphviz: later commits above, void ones dashed, tips with a double border."""
    lines = ["digraph tangle {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    for item in answer["commits"]:
        name = item["commit"][:_ID_WIDTH]
        label = f"{name}\\n{_quoted(item['body'])}\\n{_quoted(person(item['author_name'], item['author']))}"
        style = ", style=dashed" if item["void"] else ""
        style += ", peripheries=2" if item["tip"] else ""
        lines.append(f'  "{name}" [label="{label}"{style}];')
        lines += [f'  "{name}" -> "{previous[:_ID_WIDTH]}";' for previous in item["previous"]]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    """What a member may call a kind of body, between quotes."""
    return display_safe(text).replace("\\", "\\\\").replace('"', '\\"')
