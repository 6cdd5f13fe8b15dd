"""A node's folder with a very long branch, for benchmarks of whole daemons: real commits, signed and openable.

It is made once and kept (for 1,000,000 commits some minutes and 1 GB), and copied for each use.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from benchmarks.common import clock_ms, note
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.home.home import open_home
from node.home.identity import open_keys
from node.ingest.replica import Replica
from protocol.formats.content import Post
from storage.engine.revisions import newest_revision
from tests.e2e.cluster import Peer, run_ravel
from tests.support.keys import no_passphrase

REPO = "long"
_COMPLETE = "complete"
"""A file that says for which schema the folder was made, once it is whole."""
_AT_ONCE = 2000
_KEPT_FROM = 100_000
"""Commits: fewer are made anew each time."""


def kept_folder() -> Path:
    """Return where such folders are kept between runs."""
    return Path(tempfile.gettempdir()) / "ravel-long"


def copy_long_home(folder: Path, commit_count: int) -> Peer:
    """Return a daemon of a copy of such a node's folder, not started: `long:main` has so many commits, a chain.

    It keeps no search index: of a million commits one would be made beside what is measured, for minutes.
    """
    base = (kept_folder() if commit_count >= _KEPT_FROM else folder) / str(commit_count)
    return copy_home(Peer(folder / "long"), base, partial(_fill, commit_count))


def copy_home(made: Peer, base: Path, fill: Callable[[Author], str]) -> Peer:
    """`made` with a copy of the node's folder that is kept at `base`, without a search index.

    It is made where there is none, or one of another schema, which a start would migrate: `fill` writes, and says what.
    """
    complete = base / _COMPLETE
    if not complete.exists() or complete.read_text() != newest_revision():
        began = time.perf_counter()
        shutil.rmtree(base, ignore_errors=True)
        home = Peer(base / "home").home
        keys = open_keys(home, no_passphrase)
        replica = Replica(home, keys.store_key, open_home(home).storage_url)
        what = fill(Author(replica, keys.user_seed, clock_ms))
        replica.close()
        complete.write_text(newest_revision())
        note(f"{what} made in {time.perf_counter() - began:.0f} s")
    config = (made.home / "config.toml").read_text()
    shutil.rmtree(made.home)
    shutil.copytree(base / "home", made.home)
    (made.home / "config.toml").write_text(config)
    run_ravel(made, "config", "set", "search.enabled", "false")
    return made


def _fill(commit_count: int, author: Author) -> str:
    repo, _ = author.founding.create_repo(REPO)
    branch, _ = author.founding.create_branch(repo, "main")
    for start in range(0, commit_count, _AT_ONCE):
        texts = [f"post number {number}" for number in range(start, min(start + _AT_ONCE, commit_count))]
        drafts = [Draft(Post(text)) for text in texts]
        author.write_many(branch, partial(_same, drafts))
    return f"a node with {commit_count} commits"


def _same(drafts: Sequence[Draft], _connection: Connection) -> Sequence[Draft]:
    return drafts
