"""A node's folder with a very long branch, for benchmarks of whole daemons: real commits, signed and openable.

It is made once and kept (for 1,000,000 commits some minutes and 1 GB), and copied for each use.
"""

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.common import clock_ms, note, write_posts
from node.authoring.author import Author
from node.home.home import open_home
from node.home.identity import open_keys
from node.ingest.replica import Replica
from storage.engine.revisions import newest_revision
from tests.e2e.cluster import Peer, run_ravel
from tests.support.keys import no_passphrase

REPO = "long"
_COMPLETE = "complete"
"""A file that says for which schema the folder was made, once it is whole."""
_KEPT_FROM = 100_000
"""Commits: fewer are made anew each time."""


def copy_long_home(folder: Path, commit_count: int) -> Peer:
    """Return a daemon of a copy of such a node's folder, not started: `long:main` has so many commits, a chain.

    The folder is made where there is none, or one of another schema, which a start would migrate. The copy keeps no search
    index: of a million commits one would be made beside what is measured, for minutes.
    """
    made = Peer(folder / "long")
    kept = Path(tempfile.gettempdir()) / "ravel-long"
    base = (kept if commit_count >= _KEPT_FROM else folder) / str(commit_count)
    complete = base / _COMPLETE
    if not complete.exists() or complete.read_text() != newest_revision():
        began = time.perf_counter()
        shutil.rmtree(base, ignore_errors=True)
        home = Peer(base / "home").home
        keys = open_keys(home, no_passphrase)
        replica = Replica(home, keys.store_key, open_home(home).storage_url)
        _fill(commit_count, Author(replica, keys.user_seed, clock_ms))
        replica.close()
        complete.write_text(newest_revision())
        note(f"a node with {commit_count} commits made in {time.perf_counter() - began:.0f} s")
    config = (made.home / "config.toml").read_text()
    shutil.rmtree(made.home)
    shutil.copytree(base / "home", made.home)
    (made.home / "config.toml").write_text(config)
    run_ravel(made, "config", "set", "search.enabled", "false")
    return made


def _fill(commit_count: int, author: Author) -> None:
    repo, _ = author.founding.create_repo(REPO)
    branch, _ = author.founding.create_branch(repo, "main")
    write_posts(author, branch, commit_count)
