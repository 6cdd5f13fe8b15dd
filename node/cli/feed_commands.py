"""CLI: feed commands: check what each author wrote, and whether a feed was forked."""

import sys

import typer

from node.cli.branch_commands import BranchArgument
from node.cli.shared import JsonOption, client, print_json, print_table
from node.runtime.errors import ERROR_KINDS
from node.runtime.wording import counted

feed = typer.Typer(no_args_is_help=True, help="Feeds: the numbered commits of one author in a branch.")


@feed.command("check")
def check(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """List the feeds of a branch, and the forks: places of a feed that its author used twice.

    Honest nodes do not fork their feeds, unless a node's folder was restored from a copy or runs twice. The exit code
    is that of feed_forked when there is a fork.
    """
    answer = client(context).check_feeds(branch)
    if as_json:
        print_json(answer)
    else:
        print_table(
            ("author", "commits", "last", "forks", "name"),
            (
                (item["author"], item["commits"], item["last"], item["forks"], item["author_name"])
                for item in answer["feeds"]
            ),
        )
    if not answer["fork_count"]:
        return
    if not as_json:
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
            print("note: there is more than is shown", file=sys.stderr)
    raise typer.Exit(ERROR_KINDS["feed_forked"].exit_code)
