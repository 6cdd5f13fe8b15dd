"""Cost of reading and writing documents: sets by the number of commits that made them, texts by that of their updates.

    python benchmarks/bench_documents.py [commits]

Each commit of the set adds one item; each update of the text is one key stroke. Answers are made by the service's own
methods, work run inline; ratios hold them against the parts that no implementation could do without: the reducer on
what was read, and pycrdt's merge in this process.
"""

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pycrdt
import trio

from benchmarks.common import STORE_KEY, clock_ms, figure, note
from node.api.value_documents import edit_set, show_set
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.content.document_operations import DocumentOperationReader
from node.content.documents import Documents
from node.content.texts import Texts
from node.ingest.replica import Replica
from node.runtime.blocking import inline
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body
from protocol.formats.document_kinds import SET, TEXT_SESSION_BITS, SetEdit, TextUpdate
from storage.repos.repos import Branch
from verifier.documents import reduce_values

_ROUNDS = 3
_WRITTEN_AT_ONCE = 1000
T = TypeVar("T")


def key_strokes(count: int, client: int) -> list[bytes]:
    """Updates of an editor with a client id, one for each character."""
    document = pycrdt.Doc[pycrdt.Text](client_id=client)
    text = document.get("text", type=pycrdt.Text)
    made = []
    for number in range(count):
        before = document.get_state()
        text += "abcdefghij "[number % 11]
        made.append(document.get_update(before))
    return made


def write_all(author: Author, branch: Branch, bodies: list[Body]) -> None:
    """Write each body as a commit."""
    for start in range(0, len(bodies), _WRITTEN_AT_ONCE):
        drafts = [Draft(body) for body in bodies[start : start + _WRITTEN_AT_ONCE]]
        author.write_many(branch, lambda _, drafts=drafts: drafts)  # type: ignore[misc]  # a default binds it now


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the least of some rounds' seconds, and the answer."""
    taken = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        answer = work()
        taken.append(time.perf_counter() - began)
    return min(taken), answer


def timed_async(work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """Time an awaited call: the best of some rounds, in seconds, and the answer."""

    async def run() -> T:
        return await work()

    return timed(lambda: trio.run(run))


def timed_once(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds of what is awaited once."""

    async def run() -> None:
        await work()

    began = time.perf_counter()
    trio.run(run)
    return time.perf_counter() - began


def measure(folder: Path, count: int) -> None:
    """Figures of documents that `count` commits each made."""
    note(f"{count} commits of each")
    replica = Replica(folder, STORE_KEY)
    author = Author(replica, UserSeed(b"d" * 32), clock_ms)
    repo, _ = author.create_repo("bench")
    branch, _ = author.create_branch(repo, "main")
    updates = key_strokes(count, text_clients(author.user, branch.branch_id) << TEXT_SESSION_BITS | 1)
    write_all(author, branch, [SetEdit((f"item {number}",), (), ()) for number in range(count)])
    write_all(author, branch, [TextUpdate(update, ()) for update in updates])
    hub = Hub(replica, inline(), clock_ms)
    documents = Documents(hub, author, lambda _: replica.branches[branch.num])
    began = time.perf_counter()
    trio.run(show_set, documents, "main", 0, 1000)
    figure("set_list_first", time.perf_counter() - began, "s", commits=count)
    listed, answer = timed_async(lambda: show_set(documents, "main", 0, 1000))
    assert answer["total"] == count
    with replica.database.read() as connection:
        said = [one for one, _ in DocumentOperationReader(replica).read(connection, branch, SET)]
    reduced, _ = timed(lambda: reduce_values(said))
    figure("set_list", listed, "s", commits=count)
    figure("set_list_to_reduce", listed / reduced, "ratio", commits=count)
    began = time.perf_counter()
    trio.run(edit_set, documents, "main", ["one more"], [])
    figure("set_add", time.perf_counter() - began, "s", commits=count)
    texts = Texts(hub, author, lambda _: replica.branches[branch.num])
    began = time.perf_counter()
    trio.run(texts.pull, "main", "text")
    figure("text_pull_first", time.perf_counter() - began, "s", updates=count)
    pulled, text = timed_async(lambda: texts.pull("main", "text"))
    assert len(text["text"] or "") == count
    merged, _ = timed(lambda: pycrdt.merge_updates(*updates))
    figure("text_pull", pulled, "s", updates=count)
    client = trio.run(texts.open, "main")["client"]
    more = key_strokes(_ROUNDS, client)
    pushed = min(timed_once(partial(texts.push, "main", update)) for update in more)
    figure("text_push", pushed, "s", updates=count)
    figure("text_pull_to_merge", pulled / merged, "ratio", updates=count)
    replica.close()


def main() -> None:
    """Print the figures."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        for count in (100, large):
            (Path(folder) / str(count)).mkdir()
            measure(Path(folder) / str(count), count)


if __name__ == "__main__":
    main()
