"""Texts on whole nodes: pushes and pulls, what is refused, what others send, and snapshots that say bodies again."""

import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pycrdt import Array, Map, XmlElement, XmlFragment, XmlText
from sqlalchemy import select, update
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.content import text_process as process_module
from node.content import text_pushes, text_reading
from node.content import texts as texts_module
from node.content.merging import Merging
from node.content.text_process import Looked, run_worker
from node.content.texts import Texts
from node.runtime.errors import ServiceError
from protocol.formats.body import Body, Carried, encode_body
from protocol.formats.content import Compaction
from protocol.formats.document_kinds import TEXT_UPDATE_SIZE_MAX, SaidUpdate, TextSnapshot, TextUpdate
from protocol.formats.text import id_text, parse_id
from protocol.formats.yjs_updates import read_update
from protocol.ids import CommitId
from storage.commits.commits import load_timeline
from storage.commits.void_marks import load_judged, mark_void
from storage.engine.id_keys import BLOCK_NUM_SIZE
from storage.schema.schema import commits
from tests.support.builders import give, publications_of
from tests.support.editors import Editor, client_id, client_of, editor_of, shown_by
from tests.support.ids import as_commit_id
from tests.support.looking import look_here
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, share, together
from tests.support.reference_texts import fill, varint
from tests.vectors.fixed import YJS_UPDATE

pytestmark = pytest.mark.slow

NESTED = b"\x01\x01\x09\x00\x08\x01\x01t\x01" + b"\x75\x01" * 100_000 + b"\x7e\x00"
"""A list in a list, and so on: what reads it runs out of stack, and its process ends."""
JUNK = b"\xff\xfe not an update"


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Node]]:
    monkeypatch.setattr(texts_module, "run_worker", look_here)
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def texts_of(node: Node) -> Texts:
    return Texts(node.hub, node.author, node.branch)


async def _shown(node: Node, branch: str = "main") -> str:
    answer = await texts_of(node).pull(branch, "t")
    assert isinstance(answer["text"], str)
    assert shown_by(b64decode(answer["update"])) == answer["text"]
    return answer["text"]


async def _update(node: Node) -> bytes:
    return b64decode((await texts_of(node).pull("main", None))["update"])


def _say(node: Node, said: Body) -> CommitId:
    written, ingested = node.author.write(node.branch(), Draft(said))
    node.hub.announce(ingested)
    return written.commit_id


def _kinds(node: Node) -> list[str]:
    with node.replica.database.read() as connection:
        return [row.body_kind for row in load_timeline(connection, node.branch().num, 0, 1000)]


def _mark(node: Node, commit: str | CommitId | None, *, is_void: bool) -> None:
    """Mark a commit, as an exclusion or the end of one does."""
    database, branch = node.replica.database, node.branch()
    commit_id = as_commit_id(commit if isinstance(commit, bytes) else parse_id(str(commit)))
    with database.write() as connection:
        (judged,) = load_judged(connection, branch.num, [commit_id])
        mark_void(database, connection, branch.num, [judged.num], is_void=is_void)
    node.hub.topics_changed()


async def _refused(node: Node, update: bytes, match: str) -> ServiceError:
    before = _kinds(node)
    with pytest.raises(ServiceError, match=match) as caught:
        await texts_of(node).push("main", update)
    assert caught.value.code == "bad_input"
    assert _kinds(node) == before, "nothing was written"
    return caught.value


@pytest.mark.extended
async def test_what_is_pushed_is_pulled_whole_and_nothing_is_written_twice(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        editor = editor_of(alice)
        assert (await texts_of(alice).pull("main", "t"))["text"] == ""
        hello = editor.write(0, "hello")
        pushed = await texts_of(alice).push("main", hello)
        assert pushed["commit"] is not None
        assert pushed["has"] == [{"client": editor.client, "clock": 5}]
        again = await texts_of(alice).push("main", hello)
        assert (again["commit"], again["has"]) == (None, pushed["has"])
        assert (await texts_of(alice).push("main", editor.document.get_update()))["commit"] is None
        await texts_of(alice).push("main", editor.delete(1, 5))
        await texts_of(alice).push("main", editor.write(1, "i"))
        assert await _shown(alice) == "hi"
        assert _kinds(alice)[1:] == ["text"] * 3
        assert (await texts_of(alice).push("main", editor.document.get_update()))["commit"] is None
        assert (await texts_of(alice).pull("main", None))["text"] is None


async def test_a_text_that_holds_what_is_no_number_is_pushed_again_as_any_other(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        editor = editor_of(alice)
        editor.document.get("m", type=Map)["ratio"] = [float("nan")]
        assert (await texts_of(alice).push("main", editor.document.get_update()))["commit"] is not None
        assert (await texts_of(alice).push("main", editor.document.get_update()))["commit"] is None


async def test_two_editors_on_two_nodes_come_to_one_text(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        of_alice, of_bob = editor_of(alice), editor_of(bob)
        await texts_of(alice).push("main", of_alice.write(0, "tangle"))
        await together(alice, bob)
        of_bob.take(await _update(bob))
        await texts_of(alice).push("main", of_alice.write(0, "un"))
        await texts_of(bob).push("main", of_bob.write(6, "s"))
        await texts_of(bob).push("main", of_bob.delete(0, 1))
        await together(alice, bob)
        assert await _shown(alice) == await _shown(bob) == "unangles"
        one, other = [await texts_of(node).pull("main", None) for node in (alice, bob)]
        assert one == other, "the very same bytes"
        whole = Editor(client_of(alice))
        whole.take(await _update(alice))
        assert (await texts_of(alice).push("main", whole.document.get_update()))["commit"] is None, (
            "a whole state, with words that bob wrote and deletions"
        )


# Names, since pytest gives them to processes as a variable: with the nested update's bytes there, none could start.
@pytest.mark.parametrize(
    "update",
    [JUNK, NESTED, b"\0", YJS_UPDATE[:-1], b"\x01\x01\x09\x00\x00" + b"\xff" * 5 + b"\x0f\x00"],
    ids=["junk", "nested", "short", "cut", "clocks"],
)
async def test_an_update_that_cannot_be_read_is_refused_before_the_worker(
    nodes: list[Node], update: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await texts_of(alice).pull("main", None)
        texts = texts_of(alice)
        await texts.version(alice.branch())
        monkeypatch.setattr(texts_module, "run_worker", None)
        with pytest.raises(ServiceError, match="no Yjs update") as caught:
            await texts.push("main", update)
        assert caught.value.code == "bad_input"
        assert _kinds(alice) == ["branch-root"]


async def test_words_under_the_client_id_of_another_are_refused(nodes: list[Node]) -> None:
    alice, bob, _ = nodes
    with fail_after(60):
        alice.create_repo()
        main = alice.branch().branch_id
        for client in (0, 1, client_id(bob.author.user, main), 2**53 - 1):
            error = await _refused(
                alice, Editor(client).write(0, "lost"), f"client id {client}, which is not"
            )
            assert "ravel text client" in error.advice


@pytest.mark.extended
async def test_words_at_clocks_that_were_used_are_refused_and_never_dropped(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        one, other = editor_of(alice), editor_of(alice)
        await texts_of(alice).push("main", one.write(0, "version A"))
        await _refused(alice, other.write(0, "vorlage"), "says something else already")
        await _refused(alice, other.append(" and more than that"), "at clock 7")
        longer = editor_of(alice)
        longer.take(await _update(alice))
        longer.append(", goes on")
        pushed = await texts_of(alice).push("main", longer.document.get_update())
        assert pushed["commit"] is not None, "only what is new is written of it"
        assert await _shown(alice) == "version A, goes on"
        await _refused(alice, one.append(", too"), "at clock 9")


@pytest.mark.extended
async def test_words_that_nobody_would_see_are_refused(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        first = await texts_of(alice).push("main", editor.write(0, "base"))
        _mark(alice, first["commit"], is_void=True)
        more = editor.write(4, " on top")
        error = await _refused(alice, more, "builds on words that the text has not here")
        assert "branch adopt" in error.advice
        editor.write(0, "skipped")
        await _refused(alice, editor.write(0, "gap"), "builds on words")
        _mark(alice, first["commit"], is_void=False)
        await texts_of(alice).push("main", more)
        assert await _shown(alice) == "base on top"
        _mark(alice, first["commit"], is_void=True)
        assert await _shown(alice) == ""
        await _refused(alice, more, "builds on words")


@pytest.mark.extended
async def test_deleting_what_is_not_here_says_nothing_and_deletes_nothing_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        of_alice, of_bob = editor_of(alice), editor_of(bob)
        first = of_alice.write(0, "alice's next words")
        of_bob.take(first)
        pushed = await texts_of(bob).push("main", of_bob.delete(0, 18))
        assert (pushed["commit"], pushed["has"]) == (None, [])
        await texts_of(alice).push("main", first)
        await together(alice, bob)
        assert await _shown(bob) == "alice's next words"
        await texts_of(bob).push("main", of_bob.document.get_update())
        assert await _shown(bob) == "", "once they are here, they are deleted by name"


async def test_nobody_blanks_what_another_is_going_to_write(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """D4: structs, deletions, and copies, all of them there before alice types on."""
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        editor = editor_of(alice)
        await texts_of(alice).push("main", editor.write(0, "before "))
        await together(alice, bob)
        client = varint(editor.client)
        claim = fill(editor.client, range(7, 10**6))
        filler = b"\x01\x01" + client + b"\x07\x00" + varint(10**6) + b"\x00"
        delete = b"\x00\x01" + client + b"\x01\x07" + varint(10**6)
        with bob.replica.database.read() as connection:
            named = tuple(row.commit_id for row in load_timeline(connection, bob.branch().num, 0, 10))
        _say(bob, TextUpdate(claim, ()))
        _say(bob, TextUpdate(filler, ()))
        _say(bob, TextUpdate(delete, named))
        main = bob.branch().branch_id
        carried = encode_body(TextUpdate(claim, ()))
        _say(bob, Carried(main, as_commit_id(b"?" * 32), alice.author.user, 1, carried))
        await together(alice, bob)
        pushed = await texts_of(alice).push("main", editor.append("and after"))
        assert pushed["commit"] is not None
        await together(alice, bob)
        assert await _shown(alice) == await _shown(bob) == "before and after"
        answer = await texts_of(alice).pull("main", None)
        assert sorted(one["fault"] for one in answer["faults"]) == [*["other_client"] * 2, "unreadable"]
        assert (answer["refused"], answer["passed_over"]) == (1, 2), "deleting what is not there is no fault"


async def test_one_client_id_on_two_nodes_comes_to_one_text_before_and_after_a_restart(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """F1: each node merged what came last onto what it had."""
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        mine, theirs = editor_of(alice), editor_of(alice)
        for node, editor, said in ((alice, mine, "version A"), (bob, theirs, "vorlage B, longer")):
            await texts_of(node).version(node.branch())
            _say(node, TextUpdate(editor.write(0, said), ()))  # bob as a liar, alice in two places
        _say(alice, TextUpdate(theirs.document.get_update(), ()))
        texts = [texts_of(node) for node in (alice, bob)]
        for each, node in zip(texts, (alice, bob), strict=True):
            await each.version(node.branch())
        await together(alice, bob)
        shown = [await each.pull("main", "t") for each in texts]
        assert shown[0] == shown[1]
        for node in (alice, bob):
            node.replica.close()
            node.open()
        assert [await texts_of(node).pull("main", "t") for node in (alice, bob)] == shown


async def test_bad_updates_of_others_stay_in_the_timeline_and_are_passed_over_and_counted(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_module, "run_worker", run_worker)
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        _say(alice, TextUpdate(JUNK, ()))
        await texts_of(alice).push("main", editor.write(0, "good"))
        _say(alice, TextUpdate(NESTED, ()))
        _say(alice, TextUpdate(Editor(7).write(0, "no one's"), ()))
        _say(alice, TextSnapshot((SaidUpdate(as_commit_id(b"?" * 32), JUNK, ()),)))
        assert await _shown(alice) == "good"
        answer = await texts_of(alice).pull("main", None)
        assert (answer["updates"], answer["refused"], answer["passed_over"]) == (1, 2, 1)
        assert sorted(one["fault"] for one in answer["faults"]) == [
            "other_client",
            "unreadable",
            "unreadable",
        ]
        assert _kinds(alice).count("text") == 4


@pytest.mark.extended
async def test_types_in_types_end_at_a_bound(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "run_worker", run_worker)
    # The library runs out of stack where it deletes the outermost of some ten thousand.
    alice = nodes[0]
    half = 20_000
    with fail_after(60):
        alice.create_repo()
        await texts_of(alice).push("main", editor_of(alice, session=2).write(0, "good"))
        client = varint(client_of(alice))
        inside = [b"\x27\x00" + client + varint(number) + b"\x01k\x01" for number in range(2 * half - 1)]
        outermost = b"\x27\x01\x01m\x01k\x01"
        first, second = b"".join([outermost, *inside[: half - 1]]), b"".join(inside[half - 1 :])
        deep = TextUpdate(b"\x01" + varint(half) + client + b"\x00" + first + b"\x00", ())
        await _refused(alice, deep.update, "builds on words")
        name = _say(alice, deep)
        _say(alice, TextUpdate(b"\x01" + varint(half) + client + varint(half) + second + b"\x00", ()))
        _say(alice, TextUpdate(b"\x00\x01" + client + b"\x01\x00\x01", (name,)))
        answer = await texts_of(alice).pull("main", "t")
        assert (answer["text"], answer["updates"]) == ("good", 3)
        assert [one["fault"] for one in answer["faults"]] == ["misplaced"]


async def test_what_a_library_cannot_take_is_left_out_by_the_second_wall(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]

    def look(updates: list[bytes], *asked: Any) -> Looked:  # noqa: ANN401  # whatever the worker is asked
        found = look_here([one for one in updates if b"BAD" not in one], *asked)
        return msgspec.structs.replace(found, taken=[b"BAD" not in one for one in updates])

    monkeypatch.setattr(texts_module, "run_worker", look)
    with fail_after(60):
        alice.create_repo()
        editor, other = editor_of(alice), editor_of(alice, session=2)
        await texts_of(alice).push("main", editor.append("good"))
        await _refused(alice, other.append("BAD"), "does not go with the text")
        bad = _say(alice, TextUpdate(editor_of(alice, session=3).append("BAD"), ()))
        texts = texts_of(alice)
        for more in ("", " and", " better"):
            await texts.push("main", editor.append(more))
            answer = await texts.pull("main", "t")
            assert answer["faults"] == [{"commit": id_text(bad), "fault": "unreadable"}]
        assert answer["text"] == "good and better"


@pytest.mark.extended
async def test_snapshots_say_bodies_again_and_change_nothing(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        editor = editor_of(alice)
        for word in ("one ", "two ", "three"):
            await texts_of(alice).push("main", editor.append(word))
        await together(alice, bob)
        before = await texts_of(alice).pull("main", "t")
        [snapshot] = await texts_of(bob).write_snapshots("main")
        assert await texts_of(bob).write_snapshots("main") == [], "all is said again"
        await together(alice, bob)
        for node in (alice, bob):
            assert await texts_of(node).pull("main", "t") == before
        _mark(alice, snapshot, is_void=True)
        assert await texts_of(alice).pull("main", "t") == before


@pytest.mark.extended
async def test_a_snapshot_holds_for_a_body_that_is_gone_and_no_lie_does(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        names = [
            as_commit_id(parse_id(str((await texts_of(alice).push("main", editor.append(word)))["commit"])))
            for word in ("one ", "two ", "three")
        ]
        before = await texts_of(alice).pull("main", "t")
        lie = editor_of(alice).write(0, "lies")
        _say(alice, TextSnapshot(tuple(SaidUpdate(name, lie, ()) for name in names)))
        [snapshot] = await texts_of(alice).write_snapshots("main")
        _say(
            alice, TextSnapshot((SaidUpdate(names[0], lie, ()), SaidUpdate(names[1], lie, tuple(names[1:]))))
        )
        _erase(alice, names)
        assert await texts_of(alice).pull("main", "t") == before
        _mark(alice, snapshot, is_void=True)
        assert await texts_of(alice).pull("main", "t") == before, "it is proven, whatever its author may do"


@pytest.mark.extended
async def test_what_is_nowhere_is_said_to_be_missing_until_a_manager_gives_it_up(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        pushed = [await texts_of(alice).push("main", editor.append(word)) for word in ("one ", "two")]
        names = [as_commit_id(parse_id(str(one["commit"]))) for one in pushed]
        block = _erase(alice, names[1:])
        with pytest.raises(ServiceError, match="1 bodies") as caught:
            await texts_of(alice).pull("main", "t")
        assert caught.value.code == "incomplete"
        assert await texts_of(alice).find_missing("main") == names[1:]
        compaction = _say(alice, Compaction((names[1],)))
        assert await texts_of(alice).find_missing("main") == []
        assert await _shown(alice) == "one "
        _restore(alice, block)
        assert await _shown(alice) == "one ", "for everybody, whoever has the body"
        _mark(alice, compaction, is_void=True)
        assert await _shown(alice) == "one two"


def _erase(node: Node, names: list[CommitId]) -> list[tuple[CommitId, bytes]]:
    """Take away the bodies of these commits; return what brings them back."""
    node.is_damaged = True
    taken = []
    with node.replica.database.write() as connection:
        for name in names:
            nums = connection.execute(
                select(commits.c.block_nums).where(commits.c.commit_id == name)
            ).scalar_one()
            taken.append((name, nums))
            connection.execute(
                update(commits).where(commits.c.commit_id == name).values(block_nums=nums[:BLOCK_NUM_SIZE])
            )
    return taken


def _restore(node: Node, taken: list[tuple[CommitId, bytes]]) -> None:
    with node.replica.database.write() as connection:
        for name, nums in taken:
            connection.execute(update(commits).where(commits.c.commit_id == name).values(block_nums=nums))


@pytest.mark.extended
async def test_a_fork_continues_the_text_and_is_merged_back(nodes: list[Node]) -> None:
    alice = nodes[0]
    merging = Merging(alice.hub, alice.author, alice.branch)
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        await texts_of(alice).push("main", editor.write(0, "draft"))
        await merging.fork("main", "draft", "")
        in_draft = editor_of(alice, "draft")
        in_draft.take(await _update(alice))
        with pytest.raises(ServiceError, match="which is not yours"):
            await texts_of(alice).push("draft", editor.write(5, "!"))
        await texts_of(alice).push("draft", in_draft.append("ed"))
        await texts_of(alice).push("draft", in_draft.delete(0, 1))
        assert (await _shown(alice), await _shown(alice, "draft")) == ("draft", "rafted")
        await merging.merge("draft", "main")
        assert await _shown(alice) == "rafted"
        await merging.fork("draft", "further", "")
        assert await _shown(alice, "further") == "rafted"


async def test_a_text_that_is_read_before_its_branch_has_come_is_read_anew_once_that_is_a_fork(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(30):
        await share(alice, bob)
        await texts_of(alice).push("main", editor_of(alice).write(0, "text"))
        await Merging(alice.hub, alice.author, alice.branch).fork("main", "draft", "")
        give(bob.replica, publications_of(alice.replica, alice.branch("root")))
        texts = texts_of(bob)
        assert (await texts.pull("draft", "t"))["text"] == "", "its first commit is not here"
        for name in ("draft", "main"):
            bob.hub.announce(give(bob.replica, publications_of(alice.replica, alice.branch(name))))
        assert (await texts.pull("draft", "t"))["text"] == "text"


@pytest.mark.extended
async def test_a_fork_of_a_repo_holds_the_text_with_what_was_merged_before(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        merging = Merging(alice.hub, alice.author, alice.branch)
        await texts_of(alice).push("main", editor_of(alice).write(0, "text"))
        await together(alice, bob)
        await merging.fork("main", "draft", "")
        in_draft = editor_of(alice, "draft")
        in_draft.take(await _update(alice))
        await texts_of(alice).push("draft", in_draft.append(" of a draft"))
        await merging.merge("draft", "main")
        await together(alice, bob)
        forked = await Merging(bob.hub, bob.author, bob.branch).fork_repo(bob.repo(), "mine")
        branches = {id_text(branch.branch_id): branch for branch in bob.replica.branches.values()}
        texts = [
            (await Texts(bob.hub, bob.author, branches.__getitem__).pull(str(one["branch"]), "t"))["text"]
            for one in forked["branches"]
        ]
        assert set(texts) == {"text of a draft"}


@pytest.mark.extended
async def test_a_copy_that_somebody_carried_yields_to_its_author(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        editor = editor_of(alice)
        text = TextUpdate(editor.write(0, "true"), ())
        name = _say(alice, text)
        lie = encode_body(TextUpdate(Editor(editor.client).write(0, "lies and more"), ()))
        elsewhere = bob.replica.root_branch(bob.repo()).branch_id
        for branch_id in (bob.branch().branch_id, elsewhere):
            _say(bob, Carried(branch_id, name, alice.author.user, 1, lie))
        await together(alice, bob)
        assert await _shown(alice) == await _shown(bob) == "true"


async def test_the_largest_update_is_pushed_and_one_that_is_larger_refused(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        client = client_of(alice)
        room = TEXT_UPDATE_SIZE_MAX - len(Editor(client).write(0, "x" * 100_000)) + 100_000
        await texts_of(alice).push("main", Editor(client).write(0, "x" * room))
        with pytest.raises(ServiceError, match="at most") as caught:
            await texts_of(alice).push("main", Editor(client_of(alice, session=2)).write(0, "x" * (room + 1)))
        assert caught.value.code == "too_large"


async def test_what_a_program_had_deleted_before_its_first_push_is_taken(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        editor.append("kept")
        found = editor.document.get("list", type=Array)
        found.append(Map({"inside": XmlFragment([XmlElement("p", {}, [XmlText("gone")])])}))
        del found[0]
        editor.append(", too")
        update = editor.document.get_update()
        assert any(one.is_filler for one in read_update(update).structs[editor.client]), (
            "the library has filled it"
        )
        assert (await texts_of(alice).push("main", update))["commit"] is not None
        assert (await texts_of(alice).push("main", update))["commit"] is None
        answer = await texts_of(alice).pull("main", "t")
        assert (answer["text"], answer["refused"], answer["passed_over"]) == ("kept, too", 0, 0)
        assert not any(one.is_filler for one in read_update(await _update(alice)).structs[editor.client])
        taken = Editor(9)
        taken.take(await _update(alice))
        assert list(taken.document.get("list", type=Array)) == []


async def test_pushes_that_do_not_go_together_are_written_apart(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        texts = texts_of(alice)
        one, other, thief = editor_of(alice), editor_of(alice, session=2), editor_of(alice)
        updates = [
            one.append("one "),
            Editor(7).append("nobody's"),
            other.append("two"),
            thief.append("stolen"),
        ]
        found = await texts._push_all(alice.branch(), updates)
        assert [isinstance(each, ServiceError) for each in found] == [False, True, False, True]
        assert sorted(await _shown(alice)) == sorted("one two")
        assert _kinds(alice).count("text") == 2
        again = await texts._push_all(alice.branch(), [one.append("and "), other.append("so on")])
        commits = {each["commit"] for each in again if not isinstance(each, ServiceError)}
        assert len(commits) == 1
        assert None not in commits
        assert _kinds(alice).count("text") == 3


@pytest.mark.extended
async def test_deleting_the_words_of_many_commits_takes_several(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_pushes, "TEXT_REPLACES_MAX", 2)
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        editor = editor_of(alice)
        for word in ("a", "b", "c", "d", "e"):
            await texts_of(alice).push("main", editor.append(word))
        editor.write(0, "new")
        del editor.text[3:8]
        await texts_of(alice).push("main", editor.document.get_update())
        assert _kinds(alice).count("text") == 8, "five words, five names in pairs"
        assert await _shown(alice) == "new"


async def test_a_text_that_is_too_large_is_refused_in_words(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await texts_of(alice).push("main", editor_of(alice).write(0, "hello"))
        monkeypatch.setattr(text_reading, "DOCUMENT_SIZE_MAX", 20)
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).pull("main", None)
        assert caught.value.code == "too_large"


async def test_a_worker_that_does_not_come_to_an_end_is_given_up(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_module, "run_worker", run_worker)
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        monkeypatch.setattr(process_module, "TEXT_MERGE_SECONDS", 0.0)
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).pull("main", None)
        assert caught.value.code == "busy", "editors try again"
        monkeypatch.setattr(process_module, "TEXT_MERGE_SECONDS", 30.0)
        monkeypatch.setattr(sys, "executable", "/does/not/exist")
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).push("main", editor_of(alice).write(0, "hello"))
        assert caught.value.code == "busy", "no process could be started"


@pytest.mark.extended
async def test_another_document_is_imported_by_typing_its_texts(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        foreign = Editor(0)
        foreign.write(0, "from elsewhere")
        foreign.document.get("list", type=Array).append("no text")
        foreign.document.get("ravel-titles", type=Map)["t"] = "A title"
        await texts_of(alice).push("main", editor_of(alice).write(0, "here, "))
        update = foreign.document.get_update()
        pushed = await texts_of(alice).import_text("main", update)
        assert pushed["commit"] is not None
        assert await _shown(alice) == "here, from elsewhere"
        again = await texts_of(alice).import_text("main", Editor(1).write(0, "."))
        assert await _shown(alice) == "here, from elsewhere."
        assert pushed["has"][0]["client"] == again["has"][0]["client"] == client_of(alice, session=0)
        _mark(alice, again["commit"], is_void=True)
        third = await texts_of(alice).import_text("main", Editor(1).write(0, "?"))
        assert third["has"][0]["client"] != client_of(alice, session=0), "its clocks may come back"
        assert await _shown(alice) == "here, from elsewhere?"
        with pytest.raises(ServiceError, match="no Yjs update"):
            await texts_of(alice).import_text("main", NESTED)


def test_a_misfit_among_many_is_found() -> None:
    editor = Editor(1)
    updates = [editor.append("x") for _ in range(200)]
    merged = run_worker([*updates[:70], JUNK, *updates[70:]], "t")
    assert (merged.taken.index(False), merged.taken.count(False), merged.text) == (70, 1, "x" * 200)
