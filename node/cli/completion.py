"""Completion of a word in the shell: repos, branches and files of the running daemon, keys of settings.

Nothing is offered, and nothing said, where no daemon answers in time. Names come from other members and end up in a command
line that is run: only those are offered that no shell gives a meaning.
"""

import re
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import typer

from ravel.home import find_home

if TYPE_CHECKING:  # the client is imported when there is something to complete: `ravel --help` must be quick
    from ravel import Client

_SECONDS_MAX: Final = 1.0
"""For the answers of the daemon together: the user waits for the shell meanwhile."""
_PLAIN: Final = re.compile(r"\w[\w./+@=-]*(:\w[\w./+@=-]*)?")
"""A name, or two, that a command line can hold as they are."""


def complete_repos(context: typer.Context, incomplete: str) -> list[str]:
    """Offer names of repos."""
    found: list[str] = []
    with suppress(Exception):  # the shell would print any traceback into the line that is typed
        found = [one["name"] for one in _client(context).list_repos()["repos"]]
    return _plain(found, incomplete)


def complete_branches(context: typer.Context, incomplete: str) -> list[str]:
    """Offer names of branches: with the repo where it is typed already, or where the name alone fits more than one."""
    found: list[tuple[str, str]] = []
    with suppress(Exception):  # as above
        api = _client(context)
        wanted, colon, _ = incomplete.rpartition(":")
        until = time.monotonic() + _SECONDS_MAX
        for repo in api.list_repos()["repos"]:
            if (not colon or repo["name"] == wanted) and time.monotonic() < until:
                branches = api.list_branches(repo["repo"])["branches"]
                found += [(repo["name"], branch["name"]) for branch in branches]
    count = Counter(branch for _, branch in found)
    return _plain(
        [f"{repo}:{branch}" if ":" in incomplete or count[branch] > 1 else branch for repo, branch in found],
        incomplete,
    )


def complete_files(context: typer.Context, incomplete: str) -> list[str]:
    """Offer names of files of the branch that stands before."""
    found: list[str] = []
    with suppress(Exception):  # as above
        found = [
            one["name"] for one in _client(context).list_files(context.params["branch"], limit=1000)["files"]
        ]
    return _plain(found, incomplete)


def complete_keys(incomplete: str) -> list[str]:
    """Offer keys of the configuration."""
    from node.home.config_sections import CONFIG_KEYS

    return _plain([f"{section}.{key}" for section, keys in CONFIG_KEYS.items() for key in keys], incomplete)


def _client(context: typer.Context) -> "Client":
    """Connect to the daemon that the line so far names. The main callback has not run: none does in a completion."""
    from node.home.default_repo import load_default_repo
    from ravel import connect

    home = find_home(context.find_root().params.get("home"))
    return connect(home, repo=load_default_repo(home), seconds_max=_SECONDS_MAX)


def _plain(names: list[str], incomplete: str) -> list[str]:
    return [one for one in dict.fromkeys(names) if one.startswith(incomplete) and _PLAIN.fullmatch(one)]
