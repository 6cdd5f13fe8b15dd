"""A node's folder with very many repos and branches, made once and kept: of real commits, as an author writes them."""

import shutil
import time
from pathlib import Path
from typing import Final

from benchmarks.common import clock_ms, note
from benchmarks.long_home import kept_folder
from node.authoring.author import Author
from node.home.home import open_home
from node.home.identity import open_keys
from node.ingest.replica import Replica
from protocol.content import Post
from storage.engine.revisions import newest_revision
from storage.repos.repos import add_repo
from tests.e2e.cluster import Peer, run_ravel
from tests.support.keys import no_passphrase

_COMPLETE: Final = "complete"
"""A file that says for which schema the folder was made, once it is whole."""
_KEPT_FROM: Final = 2_000
"""Branches: fewer are made anew each time."""


def copy_wide_home(folder: Path, repo_count: int, branch_count: int, name: str = "wide") -> Peer:
    """A daemon of a copy of such a node's folder, not started: so many repos, each with so many branches of a post each.

    It keeps no search index: one would be made beside what is measured.
    """
    base = kept_folder() if repo_count * branch_count >= _KEPT_FROM else folder
    base /= f"wide-{repo_count}-{branch_count}"
    complete = base / _COMPLETE
    if not complete.exists() or complete.read_text() != newest_revision():
        _build(base, repo_count, branch_count)
    made = Peer(folder / name)
    config = (made.home / "config.toml").read_text()
    shutil.rmtree(made.home)
    shutil.copytree(base / "home", made.home)
    (made.home / "config.toml").write_text(config)
    run_ravel(made, "config", "set", "search.enabled", "false")
    return made


def _build(base: Path, repo_count: int, branch_count: int) -> None:
    began = time.perf_counter()
    shutil.rmtree(base, ignore_errors=True)
    home = Peer(base / "home").home
    keys = open_keys(home, no_passphrase)
    replica = Replica(home, keys.store_key, open_home(home).storage_url)
    author = Author(replica, keys.user_seed, clock_ms)
    for repo_number in range(repo_count):
        repo, _ = author.create_repo(f"repo {repo_number}")
        for number in range(branch_count):
            branch, _ = author.create_branch(repo, f"branch {number}")
            author.write(branch, Post("the first"))
    replica.close()
    (base / _COMPLETE).write_text(newest_revision())
    note(f"{repo_count} repos of {branch_count} branches made in {time.perf_counter() - began:.0f} s")


def knowing_peer(folder: Path, other: Peer) -> Peer:
    """A daemon, not started, that knows all repos of another's folder as a writer, and has nothing of them."""
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
