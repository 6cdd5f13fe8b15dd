"""use: choose the repo that is meant where none is named."""

from collections.abc import Mapping
from typing import Annotated

import typer

from node.cli.answers import prints
from node.cli.printing import say_wrapped
from node.cli.repo_commands import RepoArgument
from node.cli.shared import client, settings
from node.runtime.errors import ServiceError


def _print_used(answer: Mapping[str, object]) -> None:
    if answer["repo"]:
        say_wrapped(
            f"{answer['name']} is in use: commands mean it, and its branches, where no repo is named."
        )
    else:
        say_wrapped("No repo is in use: names of branches must be unique, or have the form REPO:NAME.")


@prints(_print_used)
def use(
    context: typer.Context,
    repo: RepoArgument = "",
    none: Annotated[bool, typer.Option("--none", help="Choose no repo.")] = False,
) -> Mapping[str, object]:
    """Choose the repo whose branches are meant by their names alone, or show it. Without it, names must be unique.

    After `ravel use notes` the branch `main` is notes:main, also where other repos have a branch of that name.
    """
    from node.home.default_repo import load_default_repo, store_default_repo
    from node.runtime.resolve import resolve
    from protocol.formats.text import parse_id

    home = settings(context).home
    if repo and none:
        raise ServiceError("bad_request", "a repo and --none contradict each other", "give one of them")
    repos = client(context).list_repos()["repos"]
    names = {one["repo"]: one["name"] for one in repos}
    if repo or none:
        found = [(parse_id(one["repo"]), one["name"], one["repo"]) for one in repos]
        chosen = resolve("repo", repo, found) if repo else ""
        store_default_repo(home, chosen)
    else:
        chosen = load_default_repo(home)
    if chosen not in names:  # it was deleted since
        chosen = ""
    return {"repo": chosen or None, "name": names.get(chosen)}
