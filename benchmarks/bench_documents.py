"""Cost of reading and writing documents: sets and dicts by their commits, JSON documents by their number, texts by updates.

    python benchmarks/bench_documents.py [commits of a set and a dict, ...]

Each commit puts one of 200 keys, or adds one of 200 items; each update of a text is one key stroke. Answers are made by the
service's own methods, work run inline. Ratios hold a put against a post, and a text against pycrdt's merge in this process.
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
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commit
from node.content.document_indexes import DocumentIndexes
from node.content.document_queries import DocumentQueries, parse_query
from node.content.documents import Documents
from node.content.json_documents import JsonDocuments
from node.content.text_process import TextProcess
from node.content.texts import Texts
from node.contract.json_documents import JsonChange
from node.ingest.replica import Replica
from node.runtime.blocking import inline
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT, JSON, SET, TEXT_SESSION_BITS, TextUpdate, ValuesKind
from protocol.ids import CommitId
from storage.repos.repos import Branch

_ROUNDS = 3
_WRITTEN_AT_ONCE = 1000
_KEYS = 200
_TEXT_UPDATES_MAX = 10_000
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


def fill(author: Author, branch: Branch, kind: ValuesKind, count: int) -> None:
    """Write a document: in turn one of some keys, each time in place of what it had before."""
    last: dict[str, CommitId] = {}
    for start in range(0, count, _KEYS):
        keys = [f"key {number}" for number in range(min(_KEYS, count - start))]
        drafts = [
            Draft(
                kind.edit.make(
                    {key: "" if kind is SET else f"value {start}"},
                    (),
                    {key: [last[key]] if key in last else ()},
                ),
                document="bench",
            )
            for key in keys
        ]
        written, _ = author.write_many(branch, lambda _, drafts=drafts: drafts)  # type: ignore[misc]  # bound now
        last = dict(zip(keys, (one.commit_id for one in written), strict=True))


def processor_time(work: Callable[[int], Awaitable[object]], times: int = 50) -> float:
    """Return the least of some rounds' seconds of processor time for one call."""

    async def run(first: int) -> None:
        for number in range(first, first + times):
            await work(number)

    taken = []
    for number in range(_ROUNDS):
        began = time.process_time()
        trio.run(run, number * times)
        taken.append((time.process_time() - began) / times)
    return min(taken)


def measure_values(replica: Replica, author: Author, branch: Branch, count: int) -> None:
    """Figures of a set and a dict that `count` commits each made: one call each time."""
    fill(author, branch, SET, count)
    fill(author, branch, DICT, count)
    hub = Hub(replica, inline(), clock_ms)
    documents = Documents(hub, author, lambda _: replica.branches[branch.num])

    async def post(number: int) -> None:
        await write_commit(hub, author, branch, Post(f"post {number}"))

    async def edit(kind: ValuesKind, wanted: dict[str, str | None]) -> None:
        await documents.edit(kind, "main", wanted, "bench")

    keys = min(count, _KEYS)
    posted = processor_time(post)
    put = processor_time(lambda number: edit(DICT, {f"key {number % keys}": f"new {number}"}))
    figure("post", posted, "s", commits=count)
    figure("dict_put", put, "s", commits=count)
    figure("dict_put_to_post", put / posted, "ratio", commits=count)
    got = processor_time(lambda number: documents.read_entry(DICT, "main", f"key {number % keys}", "bench"))
    figure("dict_get", got, "s", commits=count)
    listed = processor_time(lambda _: documents.read_window(DICT, "main", 0, 50, "bench"), 10)
    figure("dict_list_50", listed, "s", commits=count)
    figure("set_add", processor_time(lambda number: edit(SET, {f"new {number}": ""})), "s", commits=count)
    figure(
        "set_remove", processor_time(lambda number: edit(SET, {f"new {number}": None})), "s", commits=count
    )


def measure_json(hub: Hub, author: Author, branch: Branch, count: int) -> None:
    """Figures of so many JSON documents: the first 50 by an index, a followed change of them, and an edit of a board."""
    for start in range(0, count, _WRITTEN_AT_ONCE):
        drafts = [
            Draft(JSON.edit.make({"\0due": str(number * 7919 % count)}, (), {}), document=f"card/{number:07}")
            for number in range(start, min(start + _WRITTEN_AT_ONCE, count))
        ]
        author.write_many(branch, lambda _, drafts=drafts: drafts)  # type: ignore[misc]  # a default binds it now
    documents = Documents(hub, author, lambda _: branch)
    indexes, json = DocumentIndexes(hub, documents, lambda _: branch), JsonDocuments(documents)
    queries = DocumentQueries(documents, indexes)
    began = time.process_time()
    while not trio.run(indexes.declare, "main", "card/", ["due"])["ready"]:
        pass
    figure("index_made", time.process_time() - began, "s", documents=count)
    first = processor_time(lambda _: queries.find("main", "card/", "", "due", "", 50))
    figure("query_by_index_50", first, "s", documents=count)
    followed = queries.follow("main", parse_query("card/", "", "due", 50))

    async def change(number: int) -> None:
        await json.edit(
            "main", f"card/{number % 10:07}", [JsonChange("put", ["due"], value=number)], preview=False
        )

    async def change_and_look(number: int) -> None:
        await change(number)
        await followed.look()

    looked = processor_time(change_and_look) - processor_time(lambda number: change(-number))
    figure("query_live_change", looked, "s", documents=count)
    cards = [JsonChange("insert", ["todo"], value={"title": "x", "votes": 0}) for _ in range(_KEYS)]
    made = trio.run(
        lambda: json.edit("main", "board", [JsonChange("put", value={"todo": []}), *cards], preview=False)
    )
    item = made["items"][0]
    put = processor_time(
        lambda number: json.edit(
            "main", "board", [JsonChange("put", ["title"], item=item, value=number)], preview=False
        )
    )
    figure("json_put", put, "s", items=_KEYS)


def measure(folder: Path, count: int) -> None:
    """Figures of documents that `count` commits each made."""
    note(f"{count} commits of each")
    replica = Replica(folder, STORE_KEY)
    author = Author(replica, UserSeed(b"d" * 32), clock_ms)
    repo, _ = author.founding.create_repo("bench")
    branch, _ = author.founding.create_branch(repo, "main")
    if count > _TEXT_UPDATES_MAX:
        measure_values(replica, author, branch, count)
        measure_json(Hub(replica, inline(), clock_ms), author, branch, count)
        replica.close()
        return
    updates = key_strokes(count, text_clients(author.user, branch.branch_id) << TEXT_SESSION_BITS | 1)
    measure_values(replica, author, branch, count)
    measure_json(Hub(replica, inline(), clock_ms), author, branch, count)
    write_all(author, branch, [TextUpdate(update, ()) for update in updates])
    hub = Hub(replica, inline(), clock_ms)
    texts = Texts(hub, author, lambda _: replica.branches[branch.num], process=TextProcess())
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
    counts = [int(text) for text in sys.argv[1:]] or [100, 10_000]
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            (Path(folder) / str(count)).mkdir()
            measure(Path(folder) / str(count), count)


if __name__ == "__main__":
    main()
