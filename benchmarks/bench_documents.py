"""Cost of reading and writing documents: sets and dicts by their commits, JSON documents by their number, texts by updates.

    python benchmarks/bench_documents.py [commits of a set and a dict, ...] [--stores FOLDER] [--json DOCUMENTS]
        [--edits EDITS] [--ingest N]

Each commit puts one of 200 keys, or adds one of 200 items; each update of a text is one key stroke. Stores of so many
commits are kept in `--stores`, where the next run finds them: a million of each take minutes to write, and seconds to
measure. Answers are made by the service's own methods, work run inline. Ratios hold a put against a post, calls after many
commits against those after few, a text and a board of cards against pycrdt in this process, and ingest of puts against that
of posts. What has a goal is shown once more at the end, in a table. Boards are edited as the study of documents did: 20 of
100 edits add a card, 45 put a field, 20 move a card, 10 vote and 5 remove one.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pycrdt
import trio

from benchmarks.bench_ingest import measure as measure_ingest
from benchmarks.common import KEYS, STORE_KEY, clock_ms, figure, fill, note, write_history
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
from node.runtime.blocking import tune_interpreter
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT, JSON, SET, TEXT_SESSION_BITS, TextUpdate, ValuesKind
from storage.repos.repos import Branch, Repo
from tests.support.blocking import inline

_ROUNDS = 3
_WRITTEN_AT_ONCE = 1000
_TEXT_UPDATES_MAX = 10_000
T = TypeVar("T")
_judged: list[str] = []
"""Rows of the table at the end."""


def judge(name: str, value: float, unit: str, goal: float, *, is_least: bool = False, **more: int) -> None:
    """Print a figure that has a goal: at most that, or at least."""
    figure(name, value, unit, goal=goal, **more)
    bound = f"{'at least' if is_least else 'at most'} {goal:g}"
    about = ", ".join(f"{count:,} {what}" for what, count in more.items())
    is_met = value >= goal if is_least else value <= goal
    _judged.append(f"{name:32} {value:9.4f} {unit:6} {bound:14} {'met' if is_met else 'MISSED':7} {about}")


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


def measure_values(replica: Replica, author: Author, branch: Branch, count: int) -> dict[str, float]:
    """Figures of a set and a dict that `count` commits each made: one call each time. Return the seconds of each call."""
    run = clock_ms()  # what is written is new to a store that was measured before
    hub = Hub(replica, inline(), clock_ms)
    documents = Documents(hub, author, lambda _: replica.branches[branch.num])

    async def post(number: int) -> None:
        await write_commit(hub, author, branch, Post(f"post {number}"))

    async def edit(kind: ValuesKind, wanted: dict[str, str | None]) -> None:
        await documents.edit(kind, "main", wanted, "bench")

    keys = min(count, KEYS)
    posted = processor_time(post)
    put = processor_time(lambda number: edit(DICT, {f"key {number % keys}": f"new {run} {number}"}))
    figure("post", posted, "s", commits=count)
    figure("dict_put", put, "s", commits=count)
    judge("dict_put_to_post", put / posted, "ratio", 1.5, commits=count)
    got = processor_time(lambda number: documents.read_entry(DICT, "main", f"key {number % keys}", "bench"))
    figure("dict_get", got, "s", commits=count)
    listed = processor_time(lambda _: documents.read_window(DICT, "main", 0, 50, "bench"), 10)
    figure("dict_list_50", listed, "s", commits=count)
    added = processor_time(lambda number: edit(SET, {f"new {run} {number}": ""}))
    figure("set_add", added, "s", commits=count)
    removed = processor_time(lambda number: edit(SET, {f"new {run} {number}": None}))
    figure("set_remove", removed, "s", commits=count)
    return {"dict_put": put, "dict_get": got, "set_add": added, "set_remove": removed}


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
    judge("query_by_index_50", first, "s", 0.005, documents=count)
    followed = queries.follow("main", parse_query("card/", "", "due", 50))

    async def change(number: int) -> None:
        await json.edit(
            "main", f"card/{number % 10:07}", [JsonChange("put", ["due"], value=number)], preview=False
        )

    async def change_and_look(number: int) -> None:
        await change(number)
        await followed.look()

    looked = processor_time(change_and_look) - processor_time(lambda number: change(-number))
    judge("query_live_change", looked, "s", 0.001, documents=count)
    cards = [JsonChange("insert", ["todo"], value={"title": "x", "votes": 0}) for _ in range(KEYS)]
    made = trio.run(
        lambda: json.edit("main", "board", [JsonChange("put", value={"todo": []}), *cards], preview=False)
    )
    item = made["items"][0]
    put = processor_time(
        lambda number: json.edit(
            "main", "board", [JsonChange("put", ["title"], item=item, value=number)], preview=False
        )
    )
    figure("json_put", put, "s", items=KEYS)


def draw_edits(count: int) -> list[tuple[str, int, int, int]]:
    """Draw edits of a board, each with a card (by its number among those made), a column and a number."""
    rng = random.Random(43)  # noqa: S311  # the same edits in every run
    kinds = rng.choices(("insert", "put", "move", "add", "remove"), (20, 45, 20, 10, 5), k=count)
    made = 1
    drawn: list[tuple[str, int, int, int]] = [("insert", 0, 0, 0)]
    for number, kind in enumerate(kinds[1:], 1):
        drawn.append((kind, rng.randrange(made), rng.randrange(3), number))
        made += kind == "insert"
    return drawn


def measure_board(hub: Hub, author: Author, branch: Branch, count: int) -> None:
    """Figures of a board that so many edits made, each a commit: with the reading of it, against a bare CRDT."""
    json = JsonDocuments(Documents(hub, author, lambda _: branch))
    edits = draw_edits(count)

    async def write(changes: list[JsonChange]) -> list[str]:
        return (await json.edit("main", "kanban", changes, preview=False))["items"]

    trio.run(write, [JsonChange("put", value={"0": [], "1": [], "2": []})])
    items: list[str] = []
    spent = 0.0
    for start in range(0, count, 100):
        spent -= time.process_time()

        async def run(part: list[tuple[str, int, int, int]]) -> None:
            for kind, card, column, number in part:
                change = _json_change(kind, items[card] if items else "", str(column), number)
                items.extend(await write([change]))

        trio.run(run, edits[start : start + 100])
        spent += time.process_time()
    posts = min(
        processor_time(lambda number: write_commit(hub, author, branch, Post(f"post {number}"))),
        spent / count,
    )
    figure("json_edit", spent / count, "s", edits=count)
    figure("json_edit_beyond_post", spent / count - posts, "s", edits=count)
    shown = processor_time(lambda _: json.show("main", "kanban"), 2)
    figure("json_show", shown, "s", edits=count)
    bare, shown_bare = bare_board(edits)
    figure("json_crdt_edit", bare, "s", edits=count)
    figure("json_crdt_show", shown_bare, "s", edits=count)
    judge("json_show_to_crdt", shown / shown_bare, "ratio", 2, edits=count)


def _json_change(kind: str, item: str, column: str, number: int) -> JsonChange:
    match kind:
        case "insert":
            return JsonChange("insert", [column], value={"title": f"card {number}", "votes": 0})
        case "put":
            return JsonChange("put", ["title"], item=item, value=f"title {number}")
        case "move":
            return JsonChange("move", [column], moved=item)
        case "add":
            return JsonChange("add", ["votes"], item=item)
    return JsonChange("remove", [], item=item)


def bare_board(edits: list[tuple[str, int, int, int]]) -> tuple[float, float]:
    """Return the seconds of an edit, made in one Yjs document and applied in another, and of loading and reading it."""
    one: pycrdt.Doc[pycrdt.Map[Any]] = pycrdt.Doc()
    other: pycrdt.Doc[pycrdt.Map[Any]] = pycrdt.Doc()
    cards = one.get("cards", type=pycrdt.Map[Any])
    updates: list[bytes] = []
    one.observe(lambda event: updates.append(event.update))
    began = time.process_time()
    made = 0
    for kind, number, column, value in edits:
        key = f"card {number}"
        card = cards.get(key)
        if kind == "insert":
            cards[f"card {made}"] = pycrdt.Map({"title": f"card {value}", "votes": 0, "column": column})
            made += 1
        elif card is not None and kind == "put":
            card["title"] = f"title {value}"
        elif card is not None and kind == "move":
            card["column"] = column
        elif card is not None and kind == "add":
            card["votes"] = card["votes"] + 1
        elif card is not None and kind == "remove":
            del cards[key]
    for update in updates:
        other.apply_update(update)
    edited = (time.process_time() - began) / len(edits)
    state = other.get_update()

    def read() -> object:
        loaded: pycrdt.Doc[pycrdt.Map[Any]] = pycrdt.Doc()
        loaded.apply_update(state)
        return loaded.get("cards", type=pycrdt.Map[Any]).to_py()

    taken = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        read()
        taken.append(time.process_time() - began)
    return edited, min(taken)


def open_branch(folder: Path) -> tuple[Replica, Author, Branch]:
    """Return a node with a branch: a new one, or that of a store which is there."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, STORE_KEY)
    author = Author(replica, UserSeed(b"d" * 32), clock_ms)
    if is_new:
        repo, _ = author.founding.create_repo("bench")
        return replica, author, author.founding.create_branch(repo, "main")[0]
    return replica, author, next(one for one in replica.branches.values() if one.name == "main")


def make_store(folder: Path, count: int) -> None:
    """Make a store with a set and a dict that `count` commits each wrote, unless it is there."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    began = time.process_time()
    replica, author, branch = open_branch(unfinished)
    for kind in (SET, DICT):
        fill(author, branch, kind, count)
    replica.close()
    unfinished.rename(folder)
    figure("store_made", time.process_time() - began, "s", commits=2 * count)


def measure(folder: Path, count: int) -> dict[str, float]:
    """Print the figures of documents that `count` commits each made; return the seconds of each call."""
    note(f"{count} commits of each")
    make_store(folder, count)
    replica, author, branch = open_branch(folder)
    calls = measure_values(replica, author, branch, count)
    replica.close()
    if count <= _TEXT_UPDATES_MAX:
        with tempfile.TemporaryDirectory() as name:
            replica, author, branch = open_branch(Path(name) / "text")
            measure_text(replica, author, branch, count)
            replica.close()
    return calls


def measure_text(replica: Replica, author: Author, branch: Branch, count: int) -> None:
    """Figures of a text of so many key strokes."""
    updates = key_strokes(count, text_clients(author.user, branch.branch_id) << TEXT_SESSION_BITS | 1)
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


def write_dict(folder: Path, count: int) -> tuple[Replica, Repo, Branch]:
    """Return a node whose branch `main` has a dict that so many commits made."""
    replica, repo, branch = write_history(folder, 0)
    fill(Author(replica, UserSeed(b"b" * 32), clock_ms), branch, DICT, count)
    return replica, repo, branch


def compare_ingest(count: int) -> None:
    """Figures of ingest of so many puts, against as many posts, by processor time."""
    posts, puts = measure_ingest(count), measure_ingest(count, write=write_dict)
    figure("ingest_documents", puts.rate, "commits/s", commits=count)
    judge("ingest_documents_to_posts", posts.cpu / puts.cpu, "ratio", 0.8, is_least=True, commits=count)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description="Measure documents.")
    parser.add_argument("counts", nargs="*", type=int, default=[100, 10_000])
    parser.add_argument("--stores", type=Path, help="where stores of so many commits are kept")
    parser.add_argument("--json", type=int, default=10_000, help="JSON documents of a query; 0: none")
    parser.add_argument("--edits", type=int, default=10_000, help="edits of one JSON document; 0: none")
    parser.add_argument(
        "--ingest", type=int, default=20_000, help="commits that another node takes in; 0: none"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stores = given.stores or Path(folder) / "stores"
        of_counts = [measure(stores / str(count), count) for count in given.counts]
        if len(of_counts) > 1:
            for call in of_counts[0]:
                seconds = [calls[call] for calls in of_counts]
                judge(f"{call}_slowest_to_fastest", max(seconds) / min(seconds), "ratio", 1.3)
        for name, count, work in (
            ("json", given.json, measure_json),
            ("board", given.edits, measure_board),
        ):
            if count:
                replica, author, branch = open_branch(Path(folder) / name)
                work(Hub(replica, inline(), clock_ms), author, branch, count)
                replica.close()
    if given.ingest:
        compare_ingest(given.ingest)
    for row in _judged:
        note(row)


if __name__ == "__main__":
    main()
