"""tag: names of single commits."""

import typer

from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, print_answer, print_json, print_table

tag = typer.Typer(no_args_is_help=True, help="Tags: movable names of single commits.")


@tag.command("set")
def set_tag(
    context: typer.Context, repo: RepoArgument, name: str, commit: str, as_json: JsonOption = False
) -> None:
    """Tag a commit of one of the repo's branches, or move the tag to it."""
    answer = client(context).set_tag(repo, name, commit)
    print_answer(answer, as_json=as_json)


@tag.command("list")
def list_tags(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the tags of a repo. `ravel log BRANCH --at NAME` shows a branch as it was there."""
    answer = client(context).list_tags(repo)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("name", "commit", "branch"),
        ((item["name"], item["commit"], item["branch"][:12]) for item in answer["tags"]),
    )


@tag.command("rm")
def remove_tag(context: typer.Context, repo: RepoArgument, name: str, as_json: JsonOption = False) -> None:
    """Delete a tag; the commit stays."""
    answer = client(context).remove_tag(repo, name)
    print_answer(answer, as_json=as_json)
