"""CLI: use: the repo whose branches are meant by their names alone."""

from typing import Annotated

import typer

from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, print_json, settings
from node.runtime.errors import ServiceError
from ravel.characters import display_safe


def use(
    context: typer.Context,
    repo: RepoArgument = "",
    none: Annotated[bool, typer.Option("--none", help="Choose no repo.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Choose the repo whose branches are meant by their names alone, or show it. Without it, names must be unique.

    After `ravel use notes` the branch `main` is notes:main, also where other repos have a branch of that name.
    """
    from node.home.default_repo import load_default_repo, store_default_repo
    from node.runtime.resolve import resolve
    from protocol.text import parse_id

    home = settings(context).home
    if repo and none:
        raise ServiceError("bad_request", "a repo and --none contradict each other", "give one of them")
    repos = client(context).list_repos()["repos"]
    names = {one["repo"]: one["name"] for one in repos}
    if repo:
        chosen = resolve("repo", repo, [(parse_id(one["repo"]), one["name"], one["repo"]) for one in repos])
        store_default_repo(home, chosen)
    elif none:
        chosen = ""
        store_default_repo(home, chosen)
    else:
        chosen = load_default_repo(home)
        if chosen not in names:  # it was deleted since
            chosen = ""
    if as_json:
        print_json({"repo": chosen or None, "name": names.get(chosen)})
    elif chosen:
        print(display_safe(f"names of branches mean those of {names[chosen]} ({chosen}) first"))
    else:
        print("no repo is chosen: names of branches must be unique, or have the form REPO:NAME")
