"""Texts on whole nodes: updates of editors, in any order, with bad ones among them, and snapshots of many."""

import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycrdt import Doc, Text, merge_updates
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.content import texts as texts_module
from node.content.texts import Texts, run_worker
from node.membership.merging import Merging
from node.runtime.errors import ServiceError
from node.timelines.commit_history import describe
from protocol.body import Body
from protocol.document_kinds import TEXT_UPDATE_SIZE_MAX, TextSnapshot, TextUpdate
from protocol.text import id_text
from storage.commits.commits import load_timeline
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, members_of, open_nodes, share, together
from tests.vectors.generate import YJS_UPDATE

pytestmark = pytest.mark.slow  # each merge starts a process

NESTED = b"\x01\x01\x09\x00\x08\x01\x01t\x01" + b"\x75\x01" * 150_000 + b"\x7e\x00"
"""A list in a list, and so on: what reads it runs out of stack, and its process ends."""
JUNK = b"\xff\xfe not an update"


class Editor:
    """A Yjs editor with one text, called "t"."""

    def __init__(self, client_id: int) -> None:
        self.document: Doc[Text] = Doc(client_id=client_id)
        self.text = self.document.get("t", type=Text)

    def write(self, place: int, text: str) -> bytes:
        """The update that this is."""
        before = self.document.get_state()
        self.text.insert(place, text)
        return self.document.get_update(before)

    def delete(self, start: int, stop: int) -> bytes:
        before = self.document.get_state()
        del self.text[start:stop]
        return self.document.get_update(before)

    def take(self, update: bytes) -> str:
        self.document.apply_update(update)
        return str(self.text)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def texts_of(node: Node) -> Texts:
    return Texts(node.hub, node.author, node.branch)


async def _shown(node: Node, branch: str = "main") -> str:
    answer = await texts_of(node).pull(branch, "t")
    assert isinstance(answer["text"], str)
    assert Editor(99).take(b64decode(answer["update"])) == answer["text"]
    return answer["text"]


def _say(node: Node, said: Body) -> None:
    _, ingested = node.author.write(node.branch(), Draft(said))
    node.hub.announce(ingested)


def _kinds(node: Node) -> list[str]:
    with node.replica.database.read() as connection:
        return [row.body_kind for row in load_timeline(connection, node.branch().num, 0, 1000)]


async def test_what_is_pushed_is_pulled_whole_and_nothing_is_written_twice(nodes: list[Node]) -> None:
    alice = nodes[0]
    editor = Editor(1)
    with fail_after(30):
        alice.create_repo()
        assert (await texts_of(alice).pull("main", "t"))["text"] == ""
        hello = editor.write(0, "hello")
        assert (await texts_of(alice).push("main", hello))["commit"] is not None
        assert (await texts_of(alice).push("main", hello))["commit"] is None
        assert (await texts_of(alice).push("main", editor.document.get_update()))["commit"] is None
        await texts_of(alice).push("main", editor.delete(1, 5))
        await texts_of(alice).push("main", editor.write(1, "i"))
        assert await _shown(alice) == "hi"
        assert _kinds(alice)[1:] == ["text"] * 3
        assert (await texts_of(alice).pull("main", None))["text"] is None


async def test_two_editors_on_two_nodes_come_to_one_text(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    of_alice, of_bob = Editor(1), Editor(2)
    with fail_after(120):
        await share(alice, bob)
        await texts_of(alice).push("main", of_alice.write(0, "tangle"))
        await together(alice, bob)
        of_bob.take(b64decode((await texts_of(bob).pull("main", None))["update"]))
        await texts_of(alice).push("main", of_alice.write(0, "un"))
        await texts_of(bob).push("main", of_bob.write(6, "s"))
        await texts_of(bob).push("main", of_bob.delete(0, 1))
        await together(alice, bob)
        assert await _shown(alice) == await _shown(bob) == "unangles"
        one, other = [await texts_of(node).pull("main", None) for node in (alice, bob)]
        assert one == other, "the very same bytes"


# Names, since pytest gives them to processes as a variable: with the nested update's bytes there, none could start.
@pytest.mark.parametrize(
    "update", [JUNK, NESTED, b"\0", YJS_UPDATE[:-1]], ids=["junk", "nested", "short", "cut"]
)
async def test_an_update_that_cannot_be_taken_is_not_written(nodes: list[Node], update: bytes) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).push("main", update)
        assert caught.value.code == "bad_input"
        assert _kinds(alice) == ["branch-root"]


async def test_bad_updates_of_others_stay_in_the_timeline_and_are_passed_over_and_counted(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    editor = Editor(1)
    with fail_after(60):
        alice.create_repo()
        _say(alice, TextUpdate(JUNK))
        await texts_of(alice).push("main", editor.write(0, "good"))
        _say(alice, TextUpdate(NESTED))
        _say(alice, TextUpdate(JUNK))
        _say(alice, TextSnapshot(JUNK, (as_commit_id(b"?" * 32),)))
        monkeypatch.setattr(texts_module, "TEXT_SNAPSHOT_AFTER", 2)
        pushed = await texts_of(alice).push("main", editor.write(4, " text"))
        assert pushed["snapshot"] is not None
        assert await _shown(alice) == "good text"
        answer = await texts_of(alice).pull("main", None)
        assert (answer["refused"], answer["passed_over"]) == (3, 1)
        assert _kinds(alice).count("text") == 5


async def test_a_snapshot_stands_for_many_updates_and_changes_nothing(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_module, "TEXT_SNAPSHOT_AFTER", 5)
    alice, bob, _ = nodes
    editor = Editor(1)
    with fail_after(120):
        await share(alice, bob)
        pushed = [await texts_of(alice).push("main", editor.write(place, "x")) for place in range(5)]
        assert [one["snapshot"] is not None for one in pushed] == [False] * 4 + [True]
        deps = describe(alice.replica, str(pushed[-1]["snapshot"]))["deps"]
        assert deps == [one["commit"] for one in pushed[:-1]]
        answer = await texts_of(alice).pull("main", "t")
        assert (answer["updates"], answer["text"]) == (2, "xxxxx"), "the snapshot, and what came with it"
        await together(alice, bob)
        assert await texts_of(bob).pull("main", "t") == answer
        await texts_of(bob).push("main", editor.write(5, "!"))
        assert await _shown(bob) == "xxxxx!"


async def test_a_snapshot_of_what_became_void_counts_no_more(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_module, "TEXT_SNAPSHOT_AFTER", 3)
    alice, bob, carol = nodes
    good, bad = Editor(1), Editor(2)
    with fail_after(120):
        await share(alice, bob, carol)
        await texts_of(carol).push("main", good.write(0, "good"))
        await together(alice, bob, carol)
        await texts_of(bob).push("main", bad.write(0, "bad"))
        await together(carol, bob)
        pushed = await texts_of(carol).push("main", good.write(4, "!"))
        assert pushed["snapshot"] is not None, "with what bob wrote in it"
        assert "bad" in await _shown(carol)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await together(alice, carol)
        assert await _shown(alice) == await _shown(carol) == "good!"
        assert (await texts_of(alice).pull("main", None))["passed_over"] == 1


async def test_a_fork_continues_the_text_and_is_merged_back(nodes: list[Node]) -> None:
    alice = nodes[0]
    merging = Merging(alice.hub, alice.author, alice.branch)
    editor = Editor(1)
    with fail_after(60):
        alice.create_repo()
        await texts_of(alice).push("main", editor.write(0, "draft"))
        await merging.fork("main", "draft", "")
        await texts_of(alice).push("draft", editor.write(5, "ed"))
        assert (await _shown(alice), await _shown(alice, "draft")) == ("draft", "drafted")
        await merging.merge("draft", "main")
        assert await _shown(alice) == "drafted"


async def test_the_largest_update_is_pushed_and_one_that_is_larger_refused(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(60):
        alice.create_repo()
        room = TEXT_UPDATE_SIZE_MAX - len(Editor(1).write(0, "x" * 100_000)) + 100_000
        await texts_of(alice).push("main", Editor(1).write(0, "x" * room))
        with pytest.raises(ServiceError, match="bad_shape"):
            await texts_of(alice).push("main", Editor(2).write(0, "x" * (room + 1)))


async def test_a_text_that_is_too_large_is_refused_in_words(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await texts_of(alice).push("main", Editor(1).write(0, "hello"))
        monkeypatch.setattr(texts_module, "DOCUMENT_SIZE_MAX", 20)
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).pull("main", None)
        assert caught.value.code == "too_large"


async def test_a_worker_that_does_not_come_to_an_end_is_given_up(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        monkeypatch.setattr(texts_module, "TEXT_MERGE_SECONDS", 0.0)
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).pull("main", None)
        assert caught.value.code == "busy", "editors try again"
        monkeypatch.undo()
        monkeypatch.setattr(sys, "executable", "/does/not/exist")
        with pytest.raises(ServiceError) as caught:
            await texts_of(alice).push("main", Editor(1).write(0, "hello"))
        assert caught.value.code == "busy", "no process could be started"


async def test_a_push_is_answered_though_no_snapshot_could_be_written(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    editor = Editor(1)
    texts = texts_of(alice)

    async def fail(*_: object, **__: object) -> None:
        raise ServiceError("busy", "no room")

    monkeypatch.setattr(texts, "_write_snapshot", fail)
    with fail_after(30):
        alice.create_repo()
        pushed = await texts.push("main", editor.write(0, "hello"))
        assert (pushed["commit"] is None, pushed["snapshot"]) == (False, None)
        assert await _shown(alice) == "hello"


def test_an_update_that_does_not_go_with_those_before_it_is_found_among_many() -> None:
    def varint(number: int) -> bytes:
        return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])

    # Maps in maps, and the deletion of the outermost: either may be merged, and both together are too deep to delete.
    count = 40_000
    maps = b"\x01" + varint(count) + b"\x07\x00" + b"\x27\x01\x01m\x01k\x01"
    maps += b"".join(b"\x27\x00\x07" + varint(number) + b"\x01k\x01" for number in range(count - 1)) + b"\x00"
    delete = b"\x00\x01\x07\x01\x00\x01"
    editor = Editor(1)
    updates = [editor.write(place, "x") for place in range(9)]
    merged = run_worker([*updates[:4], maps, *updates[4:], delete], 1, "t")
    assert merged.taken == [True] * 10 + [False]
    assert (merged.update, merged.text) == (merged.update_before, "x" * 9)
    merged = run_worker([delete, *updates[:4], maps, *updates[4:]], 1, "t")
    assert (merged.taken.index(False), merged.taken.count(False), merged.text) == (5, 1, "x" * 9)


@settings(max_examples=20)
@given(data=st.data())
def test_updates_merge_to_the_same_bytes_in_any_order_and_grouping(data: st.DataObject) -> None:
    # What snapshots, forks and late arrivals rest on; it is pycrdt's to hold.
    editors = [Editor(1), Editor(2)]
    updates: list[bytes] = []
    for _ in range(data.draw(st.integers(min_value=1, max_value=8))):
        editor = data.draw(st.sampled_from(editors))
        size = len(str(editor.text))
        if size > 2 and data.draw(st.booleans()):
            updates.append(editor.delete(data.draw(st.integers(0, size - 2)), size - 1))
        else:
            updates.append(editor.write(data.draw(st.integers(0, size)), data.draw(st.sampled_from("abc"))))
        if data.draw(st.booleans()):
            editors[0].take(editors[1].document.get_update())
    some = data.draw(st.permutations(updates))[: data.draw(st.integers(1, len(updates)))]
    shuffled = data.draw(st.permutations(some))
    cut = data.draw(st.integers(1, len(shuffled)))
    assert merge_updates(*some) == merge_updates(merge_updates(*shuffled[:cut]), *shuffled[cut:])
    whole = Editor(9).take(merge_updates(*updates))
    for editor in editors:
        editor.take(merge_updates(*data.draw(st.permutations(updates))))
    assert {whole} == {str(editor.text) for editor in editors}
