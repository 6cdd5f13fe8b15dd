"""Cost of texts by the number of updates: first reading, one key stroke more, a void commit and its return.

    python benchmarks/bench_texts.py [updates ...]

Four editors type six letters an update, 97 of 100 at the end of the text. Figures are processor time, each once: of this
process, and (`look`) of the one in which a library looks at the text.
"""

import os
import random
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pycrdt
import trio

from benchmarks.bench_documents import write_all
from benchmarks.common import STORE_KEY, clock_ms, figure, note
from node.authoring.author import Author
from node.content.text_process import TextProcess
from node.content.texts import Texts
from node.ingest.replica import Replica
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.crypto.keys import UserSeed
from protocol.formats.document_kinds import TEXT_SESSION_BITS, TextUpdate
from storage.commits.commits import load_timeline
from storage.commits.void_marks import mark_void
from tests.support.blocking import inline

_EDITORS: Final = 4
_LETTERS: Final = "abcdef"
_AT_END: Final = 0.97
T = TypeVar("T")


def type_together(count: int, clients: list[int]) -> list[bytes]:
    """Return the updates of editors who type in turn, each after what the others had typed."""
    rng = random.Random(1)  # noqa: S311  # the same each time
    documents = [pycrdt.Doc[pycrdt.Text](client_id=client) for client in clients]
    texts = [document.get("text", type=pycrdt.Text) for document in documents]
    made: list[bytes] = []
    seen = [0] * len(clients)
    size = 0
    for _ in range(count):
        place = rng.randrange(len(clients))
        document = documents[place]
        for update in made[seen[place] :]:
            document.apply_update(update)
        news: list[bytes] = []
        watching = document.observe(lambda event, news=news: news.append(event.update))
        at = size if rng.random() < _AT_END else rng.randrange(size + 1)
        texts[place].insert(at, _LETTERS)
        document.unobserve(watching)
        made += news
        seen[place] = len(made)
        size += len(_LETTERS)
    return made


def _seconds(process: TextProcess) -> tuple[float, float]:
    """Return the processor seconds of this process, and of the others that it has started."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    looked = others.ru_utime + others.ru_stime
    if process._process is not None:  # it runs on; its children count
        said = Path(f"/proc/{process._process.pid}/stat").read_text().rpartition(")")[2].split()
        looked += sum(map(int, said[11:15])) / os.sysconf("SC_CLK_TCK")
    return own.ru_utime + own.ru_stime, looked


def timed(name: str, count: int, process: TextProcess, work: Callable[[], Awaitable[T]]) -> T:
    """Run what is awaited, and print its figures."""

    async def run() -> T:
        return await work()

    before = _seconds(process)
    found = trio.run(run)
    after = _seconds(process)
    figure(name, after[0] - before[0], "s", updates=count)
    figure(f"{name}_look", after[1] - before[1], "s", updates=count)
    return found


def measure(folder: Path, count: int) -> None:
    """Print the figures of a text of `count` updates."""
    note(f"{count} updates")
    replica = Replica(folder, STORE_KEY)
    author = Author(replica, UserSeed(b"d" * 32), clock_ms)
    repo, _ = author.founding.create_repo("bench")
    branch, _ = author.founding.create_branch(repo, "main")
    user = text_clients(author.user, branch.branch_id) << TEXT_SESSION_BITS
    updates = type_together(count, [user | session for session in range(1, _EDITORS + 1)])
    write_all(author, branch, [TextUpdate(update, ()) for update in updates])
    hub = Hub(replica, inline(), clock_ms)

    process = TextProcess()

    def open_texts() -> Texts:
        return Texts(hub, author, lambda _: replica.branches[branch.num], process=process)

    timed("text_reduced", count, process, lambda: open_texts().pull("main", None))
    texts = open_texts()  # as after a restart
    whole = timed("text_first_pull", count, process, lambda: texts.pull("main", None))
    assert whole["updates"] == count
    client = timed("text_open", count, process, lambda: texts.open("main"))["client"]
    document: Any = pycrdt.Doc(client_id=client)
    before = document.get_state()
    document.get("text", type=pycrdt.Text).insert(0, "x")
    stroke = document.get_update(before)
    timed("text_push_one", count, process, lambda: texts.push("main", stroke))
    assert (
        timed("text_pull_one_more", count, process, lambda: texts.pull("main", None))["updates"] == count + 1
    )
    with replica.database.read() as connection:
        (row,) = load_timeline(connection, branch.num, count // 2, 1)
    for is_void, name in ((True, "text_void"), (False, "text_return")):
        with replica.database.write() as connection:
            mark_void(replica.database, connection, branch.num, [row.num], is_void=is_void)
        hub.topics_changed()
        timed(name, count, process, lambda: texts.pull("main", None))
    replica.close()


def main() -> None:
    """Print the figures."""
    counts = [int(said) for said in sys.argv[1:]] or [1000, 10_000, 100_000]
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            (Path(folder) / str(count)).mkdir()
            measure(Path(folder) / str(count), count)


if __name__ == "__main__":
    main()
