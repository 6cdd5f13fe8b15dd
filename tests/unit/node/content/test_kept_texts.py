"""Texts are kept in the store: read at the cost of what came since, dropped with what they are made of, and checked."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, func, select, text

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.care.repair import repair_store
from node.content import text_keeping, text_reading
from node.content import texts as texts_module
from node.content.merging import Merging
from node.content.text_reading import TextReader
from node.content.text_versions import merge_pieces
from node.content.texts import Texts
from node.ingest.replica import open_stored_commit
from protocol.formats.document_kinds import TextUpdate
from protocol.ids import BlockId, CommitId, ObjectId
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.commits import load_rows
from storage.commits.kept_texts import keep_text
from storage.commits.void_marks import load_judged, mark_void
from storage.engine.errors import StorageError
from storage.repos.deletion import forget_repo
from storage.schema.document_schema import text_blocks, texts
from tests.support.builders import STORE_KEY
from tests.support.editors import editor_of
from tests.support.looking import look_here
from tests.support.machine import fail_after
from tests.support.nodes import Node

pytestmark = pytest.mark.slow  # hundreds of commits, and whole stores that are checked


@pytest.fixture
def alice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(texts_module, "run_worker", look_here)
    node = Node(tmp_path, "alice")
    node.create_repo()
    yield node
    node.replica.close()


def _type(node: Node, count: int, branch: str = "main", session: int = 1) -> list[CommitId]:
    """Write so many updates as commits, past the text of the node."""
    editor = editor_of(node, branch, session)
    updates = [editor.append("abcdefghij"[number % 10]) for number in range(count)]
    written, ingested = node.author.write_many(
        node.branch(branch), lambda _: [Draft(TextUpdate(one, ())) for one in updates]
    )
    node.hub.announce(ingested)
    return [one.commit_id for one in written]


def _texts_of(node: Node) -> Texts:
    """The texts of a node, as after a restart."""
    return Texts(node.hub, node.author, node.branch)


async def _pull(node: Node, branch: str = "main") -> bytes:
    return b64decode((await _texts_of(node).pull(branch, None))["update"])


def _reduced(node: Node, branch: str = "main") -> bytes:
    with node.replica.database.read() as connection:
        whole = TextReader(node.replica).reduce(connection, node.branch(branch))
    return merge_pieces(whole.pieces.values())


def _count_blocks(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(text_blocks)).scalar_one()


def _blocks(node: Node) -> int:
    with node.replica.database.read() as connection:
        return _count_blocks(connection)


def _mark(node: Node, commit: CommitId, *, is_void: bool) -> int:
    """Mark a commit; return how many blocks are left in the same transaction."""
    branch = node.branch()
    with node.replica.database.write() as connection:
        (judged,) = load_judged(connection, branch.num, [commit])
        mark_void(node.replica.database, connection, branch.num, [judged.num], is_void=is_void)
        left = _count_blocks(connection)
    node.hub.topics_changed()
    return left


def _note_opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets what is opened of texts from now on."""
    opened: list[object] = []
    real: Callable[..., object] = open_stored_commit

    def open_one(*args: object) -> object:
        opened.append(args)
        return real(*args)

    monkeypatch.setattr(text_reading, "open_stored_commit", open_one)
    return opened


@pytest.mark.parametrize("count", [200, 800])
async def test_a_restart_and_a_key_stroke_open_what_came_since_and_no_more(
    alice: Node, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    with fail_after(60):
        _type(alice, count)
        whole = await _pull(alice)
        opened = _note_opened(monkeypatch)
        assert (await _pull(alice), len(opened)) == (whole, 0)
        its_texts = _texts_of(alice)
        assert (await its_texts.pull("main", None))["updates"] == count
        _type(alice, 1, session=2)
        statements: list[str] = []
        with alice.replica.database.read() as connection:
            engine = connection.engine

        def note(*args: object) -> None:
            statements.append(str(args[2]))

        event.listen(engine, "before_cursor_execute", note)
        try:
            assert (await its_texts.pull("main", None))["updates"] == count + 1
        finally:
            event.remove(engine, "before_cursor_execute", note)
        assert len(opened) == 1
        assert len([one for one in statements if not one.startswith(("BEGIN", "PRAGMA"))]) <= 12
        assert await _pull(alice) == _reduced(alice)


async def test_a_text_is_written_again_in_the_blocks_that_changed(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_keeping, "BLOCK_SIZE", 1000)
    written: list[int] = []
    real = keep_text

    def keep(connection: Connection, num: int, kept: object, blocks: list[object]) -> bool:
        written.append(len(blocks))
        return real(connection, num, kept, blocks)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(texts_module, "keep_text", keep)
    with fail_after(60):
        _type(alice, 300)
        its_texts = _texts_of(alice)
        await its_texts.pull("main", None)
        assert written == [_blocks(alice)]
        assert written[0] > 10
        _type(alice, text_keeping.KEPT_AFTER - 1, session=2)
        await its_texts.pull("main", None)
        assert written[1:] == [], "it is not worth it yet"
        _type(alice, 1, session=3)
        await its_texts.pull("main", None)
        assert written[1] <= 5, "those of the new client ids"
        assert await _pull(alice) == _reduced(alice)


async def test_what_is_void_drops_the_text_in_its_transaction_and_so_does_its_return(alice: Node) -> None:
    with fail_after(60):
        names = _type(alice, 100)
        its_texts = _texts_of(alice)
        for is_void, count in ((True, 50), (False, 100)):
            await its_texts.pull("main", None)
            assert _blocks(alice) or is_void is False
            assert _mark(alice, names[50], is_void=is_void) == 0
            answer = await its_texts.pull("main", None)
            assert answer["updates"] == count, "what stood behind it waits for it"
            assert b64decode(answer["update"]) == _reduced(alice) == await _pull(alice)


async def test_no_copy_of_a_body_that_goes_is_left(alice: Node) -> None:
    with fail_after(60):
        names = _type(alice, 100)
        await _pull(alice)
        with alice.replica.database.write() as connection:
            row = load_rows(connection, names[:1])[names[0]]
            assert _count_blocks(connection)
            erasure = Erasure(row.num, row.topic_num, row.block_nums, ObjectId(BlockId(bytes(32))))
            erase_bodies(connection, row.branch_num, [erasure], 1)
            assert _count_blocks(connection) == 0


@pytest.mark.sqlite
@pytest.mark.parametrize("count", [70, 280])
async def test_what_is_void_opens_nothing_and_what_returns_is_opened_alone(
    alice: Node, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    opened = _note_opened(monkeypatch)
    with fail_after(60):
        names = [*_type(alice, count), *_type(alice, 1, session=2), *_type(alice, 1, session=3)]
        its_texts = _texts_of(alice)
        await its_texts.pull("main", None)
        for commit, is_void, shown, most in (
            (names[-1], True, count + 1, 0),
            (names[-2], True, count, 0),
            (names[-2], False, count + 1, 1),
            (names[-1], False, count + 2, 1),
            (names[count // 2], True, count // 2 + 2, 0),
            (names[count // 2], False, count + 2, count // 2),
        ):
            _mark(alice, commit, is_void=is_void)
            opened.clear()
            answer = await its_texts.pull("main", None)
            assert (answer["updates"], len(opened)) == (shown, most)
            assert b64decode(answer["update"]) == _reduced(alice)


async def test_what_is_void_in_a_branch_drops_the_text_that_continues_it(alice: Node) -> None:
    with fail_after(60):
        names = _type(alice, 80)
        await Merging(alice.hub, alice.author, alice.branch).fork("main", "draft", "")
        _type(alice, 80, "draft")
        whole = await _pull(alice, "draft")
        assert _blocks(alice)
        _type(alice, 1, session=2)
        assert await _pull(alice, "draft") == whole, "it continues what was there when it was forked"
        assert _mark(alice, names[-1], is_void=True) == 0
        assert await _pull(alice, "draft") == _reduced(alice, "draft") != whole


_DAMAGE = {
    "summary": "UPDATE texts SET summary = :junk",
    "block": "UPDATE text_blocks SET content = :junk",
    "block gone": "DELETE FROM text_blocks",
    "another commit": "UPDATE commits SET is_void = :yes WHERE num = (SELECT max(num) FROM commits)",
}


@pytest.mark.parametrize("damage", _DAMAGE)
async def test_a_text_that_is_kept_otherwise_than_its_commits_say_is_found_and_made_anew(
    alice: Node, tmp_path: Path, damage: str
) -> None:
    with fail_after(60):
        _type(alice, 100)
        await _pull(alice)
        found = check_store(tmp_path, STORE_KEY)
        assert (found.problems, found.checked["texts"]) == ([], 1)
        values = {"junk": b"j" * 4, "yes": True}
        with alice.replica.database.write() as connection:
            statement = _DAMAGE[damage]
            used = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement), used)
        assert "text" in check_store(tmp_path, STORE_KEY).kinds
        alice.replica.close()
        repaired = repair_store(tmp_path, STORE_KEY)
        assert (repaired.changed["texts"], repaired.left.kinds) == (1, {})
        alice.open()
        assert await _pull(alice) == _reduced(alice)


async def test_a_store_that_takes_nothing_still_shows_the_text(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise StorageError("the disk is full")

    monkeypatch.setattr(texts_module, "keep_text", fail)
    with fail_after(60):
        _type(alice, 100)
        assert await _pull(alice) == _reduced(alice)
        assert _blocks(alice) == 0


async def test_a_forgotten_repo_leaves_nothing_of_its_texts(alice: Node) -> None:
    with fail_after(60):
        _type(alice, 100)
        await _pull(alice)
        repo = alice.replica.repos[alice.branch().repo_num]
        with alice.replica.change() as change:
            forget_repo(change.connection, repo.num)
        with alice.replica.database.read() as connection:
            assert _count_blocks(connection) == 0
            assert connection.execute(select(func.count()).select_from(texts)).scalar_one() == 0


async def test_a_text_of_another_name_is_no_part_of_one_that_grows(alice: Node) -> None:
    def write(said: str, document: str, session: int) -> None:
        update = editor_of(alice, "main", session).append(said)
        draft = Draft(TextUpdate(update, ()), document=document)
        _, ingested = alice.author.write_many(alice.branch("main"), lambda _: [draft])
        alice.hub.announce(ingested)

    reader = Texts(alice.hub, alice.author, alice.branch)
    write("own", "", 1)
    first = await reader.pull("main", None)
    write("of the minutes", "minutes", 2)
    assert (await reader.pull("main", None))["update"] == first["update"]
