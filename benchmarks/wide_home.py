"""A node's folder with very many repos and branches, made once and kept: of real commits, as an author writes them."""

from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.long_home import copy_home, kept_folder
from node.authoring.author import Author
from node.home.identity import open_keys
from node.ingest.replica import Replica
from protocol.formats.content import Post
from storage.repos.repos import add_repo
from tests.e2e.cluster import Peer, run_ravel
from tests.support.keys import no_passphrase

_KEPT_FROM: Final = 2_000
"""Branches: fewer are made anew each time."""


def copy_wide_home(folder: Path, repo_count: int, branch_count: int, name: str = "wide") -> Peer:
    """Return a daemon of a copy of such a node's folder, not started: so many repos, each with so many branches of a post
    each.

    It keeps no search index: one would be made beside what is measured.
    """
    base = kept_folder() if repo_count * branch_count >= _KEPT_FROM else folder
    fill = partial(_fill, repo_count, branch_count)
    return copy_home(Peer(folder / name), base / f"wide-{repo_count}-{branch_count}", fill)


def _fill(repo_count: int, branch_count: int, author: Author) -> str:
    for repo_number in range(repo_count):
        repo, _ = author.founding.create_repo(f"repo {repo_number}")
        for number in range(branch_count):
            branch, _ = author.founding.create_branch(repo, f"branch {number}")
            author.write(branch, Post("the first"))
    return f"{repo_count} repos of {branch_count} branches"


def knowing_peer(folder: Path, other: Peer) -> Peer:
    """Return a daemon, not started, that knows all repos of another's folder as a writer, and has nothing of them."""
    made = Peer(folder)
    there, here = (open_keys(peer.home, no_passphrase).store_key for peer in (other, made))
    source, replica = Replica(other.home, there), Replica(made.home, here)
    with replica.change() as change:
        for repo in source.repos.values():
            add_repo(replica.database, change.connection, repo, source.writing_epoch(repo))
    for one in (source, replica):
        one.close()
    run_ravel(made, "config", "set", "search.enabled", "false")
    return made
