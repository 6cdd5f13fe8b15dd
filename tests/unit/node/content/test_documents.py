"""Sets and dicts on whole nodes: concurrent operations, void ones, forks and merges, and what liars write."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from sqlalchemy import Engine, delete, event, select
from trio.testing import MockClock

from node.api.value_documents import edit_dict, edit_set, show_dict, show_entry, show_set
from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content import document_state as state_module
from node.content.document_drafts import NewValue, group_values
from node.content.document_list import ListedDocuments
from node.content.document_operations import DocumentOperationReader
from node.content.documents import Documents
from node.content.merging import Merging
from node.runtime.errors import ServiceError
from node.timelines.commit_history import describe
from protocol.formats.body import Body, BranchFork, encode_body
from protocol.formats.document_kinds import (
    DICT,
    DOCUMENT_KEY_SIZE_MAX,
    REPLACED_COUNT_MAX,
    SET,
    DictEdit,
    DictEntry,
    SetEdit,
    TextUpdate,
)
from protocol.formats.text import id_text
from protocol.ids import NO_COMMIT, BlockId, CommitId, ObjectId
from protocol.limits.formats import BODY_SIZE_MAX
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.commits import load_first_of_kinds
from storage.commits.document_making import reset_documents
from storage.commits.document_reading import Tip
from storage.schema.document_schema import document_operations, document_tips
from tests.support.builders import STORE_KEY
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, members_of, open_nodes, share, together, until_equal
from verifier.documents import DocumentValue


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def documents_of(node: Node) -> Documents:
    return Documents(node.hub, node.author, node.branch)


async def _add(node: Node, *items: str, branch: str = "main") -> int:
    """Return how many commits that takes."""
    return len((await edit_set(documents_of(node), branch, items, ()))["commits"])


async def _remove(node: Node, *items: str, branch: str = "main") -> int:
    return len((await edit_set(documents_of(node), branch, (), items))["commits"])


async def _set(node: Node, branch: str = "main") -> list[str]:
    return [row["item"] for row in (await show_set(documents_of(node), branch, 0, 1000))["items"]]


async def _put(node: Node, **put: str) -> int:
    return len((await edit_dict(documents_of(node), "main", put, ()))["commits"])


async def _values(node: Node, key: str) -> list[str]:
    """Return the value, then its conflicts."""
    entry = await show_entry(documents_of(node), "main", key)
    return [entry["value"], *(operation["value"] for operation in entry["conflicts"])]


def _say(node: Node, said: Body, branch: str = "main") -> CommitId:
    written, ingested = node.author.write(node.branch(branch), Draft(said))
    node.hub.announce(ingested)
    return written.commit_id


async def test_a_set_holds_what_was_added_and_not_deleted_and_says_nothing_twice(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        assert await _add(alice, "pears", "Äpfel", "plums", "pears") == 1
        assert await _add(alice, "plums") == 0, "it is there"
        assert await _remove(alice, "plums", "melons") == 1
        assert await _remove(alice, "plums") == 0, "it is gone"
        assert await _remove(alice, "what never was") == 0
        assert await _set(alice) == ["pears", "Äpfel"], "by bytes, not by a language's alphabet"
        alice.write(alice.branch(), "posts stand beside documents")
        answer = await edit_set(documents_of(alice), "main", ["a", "pears"], ["a", "Äpfel"])
        assert (answer["added"], answer["removed"]) == (["a"], ["Äpfel"]), "what is in both lists is added"
        window = await show_set(documents_of(alice), "main", 1, 1)
        assert ([row["item"] for row in window["items"]], window["total"], window["next"]) == (
            ["pears"],
            2,
            None,
        )
        assert (await show_set(documents_of(alice), "main", 0, 1))["next"] == 1


async def test_documents_of_one_branch_are_told_by_their_names_and_kinds(nodes: list[Node]) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    with fail_after(30):
        alice.create_repo()
        for name, kind, key in (
            ("", SET, "a"),
            ("follows", SET, "b"),
            ("x/follows", SET, "c"),
            ("follows", DICT, "d"),
        ):
            written = await documents.edit(kind, "main", {key: ""}, name)
            (commit,) = written.commits
            assert describe(alice.replica, commit).get("document", "") == name
            shown = await documents.read_window(kind, "main", 0, 9, name)
            assert [one for one, _ in shown.entries] == [key]
        await documents.edit(SET, "main", {"a": None}, "follows")
        assert await _set(alice) == ["a"], "a delete is of its document"
        for name in ("a/", "../a", "/etc/passwd", "a//b", "x" * 129, "a\u202e"):
            with pytest.raises(ServiceError, match="the name of a document") as caught:
                await documents.edit(SET, "main", {"a": ""}, name)
            assert caught.value.advice, "says what to do"
        await documents.edit(SET, "main", {"\xe9" * 512: ""})
        for kind in (SET, DICT):
            with pytest.raises(ServiceError, match="has at most 1024 bytes") as caught:
                await documents.edit(kind, "main", {"\xe9" * 512 + "e": ""})
            assert caught.value.code == "bad_request", "a commit would say nothing about it"


async def test_a_merge_carries_edits_into_the_documents_of_their_names(nodes: list[Node]) -> None:
    alice = nodes[0]
    merging = Merging(alice.hub, alice.author, alice.branch)
    documents = documents_of(alice)
    with fail_after(30):
        alice.create_repo()
        await documents.edit(SET, "main", {"a": ""}, "follows")
        await merging.fork("main", "draft", "")
        await documents.edit(SET, "draft", {"a": None, "b": ""}, "follows")
        await merging.merge("draft", "main")
        shown = await documents.read_window(SET, "main", 0, 9, "follows")
        assert ([one for one, _ in shown.entries], await _set(alice)) == (["b"], [])


@pytest.mark.slow
async def test_an_add_that_the_deleter_had_not_seen_stays_and_replicas_agree(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        await _add(alice, "kept", "gone", "moved")
        await together(alice, bob)
        await _remove(alice, "kept", "gone")
        await _remove(bob, "kept")
        await _add(bob, "kept", "of bob")
        assert await _set(alice) == ["moved"]
        await together(alice, bob)
        assert await _set(alice) == await _set(bob) == ["kept", "moved", "of bob"]
        assert await show_set(documents_of(alice), "main", 0, 9) == await show_set(
            documents_of(bob), "main", 0, 9
        )
        await _remove(alice, "kept")
        await together(alice, bob)
        assert await _set(bob) == ["moved", "of bob"], "it replaced both"


@pytest.mark.slow
async def test_concurrent_values_are_conflicts_until_somebody_puts_one(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        await _put(alice, colour="red", size="7")
        assert await _put(alice, colour="red") == 0, "it is so"
        await together(alice, bob)
        await _put(alice, colour="green")
        await _put(bob, colour="blue")
        await edit_dict(documents_of(bob), "main", {}, ["size"])
        await together(alice, bob)
        assert await _values(alice, "colour") == await _values(bob, "colour")
        assert set(await _values(alice, "colour")) == {"green", "blue"}
        shown = await show_dict(documents_of(alice), "main", 0, 9)
        assert [(row["key"], len(row["conflicts"])) for row in shown["entries"]] == [("colour", 1)]
        with pytest.raises(ServiceError) as caught:
            await _values(alice, "size")
        assert caught.value.code == "not_found"
        assert caught.value.advice == "`ravel dict list BRANCH` shows what there is"
        assert await _put(alice, colour=(await _values(alice, "colour"))[0]) == 1, "which ends the conflict"
        await together(alice, bob)
        assert len(await _values(bob, "colour")) == 1


@pytest.mark.slow
async def test_words_of_the_excluded_that_nobody_saw_count_for_nothing_and_what_they_replaced_is_back(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await _add(alice, "old")
        await together(alice, bob, carol)
        await _remove(bob, "old")
        await _add(bob, "new")
        await together(carol, bob)
        assert await _set(carol) == ["new"]
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await together(alice, carol)
        assert await _set(alice) == await _set(carol) == ["old"]


@pytest.mark.slow
async def test_a_fork_shows_what_it_continues_and_what_it_deletes_is_deleted_by_a_merge(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        merging = Merging(alice.hub, alice.author, alice.branch)
        await _add(alice, "a", "b", "c")
        await merging.fork("main", "draft", "")
        await _add(alice, "later")
        await _remove(alice, "a", branch="draft")
        await _add(alice, "d", branch="draft")
        assert await _set(alice, "draft") == ["b", "c", "d"]
        await merging.merge("draft", "main")
        assert await _set(alice) == ["b", "c", "d", "later"]
        # Operations that were carried are replaced by their first names, here and where they came from.
        await _remove(alice, "d")
        await merging.merge("main", "draft")
        assert await _set(alice, "draft") == await _set(alice) == ["b", "c", "later"]
        await together(alice, bob)
        async with connected(alice, bob):
            await until_equal(alice, bob, "draft")
        assert await _set(bob, "draft") == await _set(bob) == ["b", "c", "later"]


async def test_a_word_names_what_it_replaces_in_its_header_too(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        added = (await edit_set(documents_of(alice), "main", ["a"], ()))["commits"]
        deleted = (await edit_set(documents_of(alice), "main", (), ["a"]))["commits"]
        shown = describe(alice.replica, deleted[0])
        assert (shown["deps"], shown["kind"]) == (added, "set")


async def test_what_liars_name_changes_nothing_of_other_items(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        first = _say(alice, SetEdit(("a", "b"), (), ()))
        _say(alice, SetEdit((), ("never was",), naming((first, as_commit_id(b"?" * 32)), 1)))
        assert await _set(alice) == ["a", "b"]
        _say(alice, SetEdit((), ("a",), naming((as_commit_id(b"?" * 32),), 1)))
        assert await _set(alice) == ["a", "b"], "a delete of what it does not name"
        _say(alice, SetEdit((), ("a",), naming((first,), 1)))
        assert await _set(alice) == ["b"], "and not of what else that commit says"
        _say(alice, DictEdit((DictEntry("a", "1"), DictEntry("a", "2")), ("a",), naming((first,), 3)))
        assert (await _set(alice), await _values(alice, "a")) == (["b"], ["2"])


async def test_a_document_that_is_too_large_is_refused_in_words(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await _add(alice, "a", "b", "c")
        await _put(alice, k="four", l="more")
        monkeypatch.setattr(state_module, "DOCUMENT_VALUE_COUNT_MAX", 3)
        assert len(await _set(alice)) == 3
        monkeypatch.setattr(state_module, "DOCUMENT_VALUE_COUNT_MAX", 2)
        with pytest.raises(ServiceError) as caught:
            await _set(alice)
        assert caught.value.code == "too_large"
        monkeypatch.setattr(state_module, "DOCUMENT_SIZE_MAX", 8)
        assert (await show_dict(documents_of(alice), "main", 0, 9))["total"] == 2
        monkeypatch.setattr(state_module, "DOCUMENT_SIZE_MAX", 7)
        with pytest.raises(ServiceError):
            await show_dict(documents_of(alice), "main", 0, 9)
        assert (await show_dict(documents_of(alice), "main", 0, 1))["entries"][0]["value"] == "four"


async def test_a_document_of_too_many_values_is_refused_unread(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    alice.create_repo()
    await _put(alice, k="one", l="two", m="three")
    monkeypatch.setattr(state_module, "DOCUMENT_VALUE_COUNT_MAX", 2)
    monkeypatch.setattr(state_module, "_TOGETHER_COUNT_MAX", 2)
    monkeypatch.delattr(state_module, "load_tips_between")
    with pytest.raises(ServiceError, match="over 2 values") as caught:
        await documents_of(alice).read(DICT, "main", "", dict)
    assert caught.value.code == "too_large"
    assert "remove parts" in caught.value.advice


async def test_of_values_put_beside_each_other_no_more_are_loaded_than_one_answer_has(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be any number about few keys."""
    alice, loaded = nodes[0], list[int]()
    with fail_after(30):
        alice.create_repo()
        for value in "abcdef":
            _say(alice, DictEdit((DictEntry("k", value),), (), ()))
        for name in ("load_tips", "load_tips_between"):
            load: Callable[..., list[Tip]] = getattr(state_module, name)

            monkeypatch.setattr(state_module, name, partial(_counted, load, loaded))
        assert len(await _values(alice, "k")) == 6
        monkeypatch.setattr(state_module, "DOCUMENT_VALUE_COUNT_MAX", 2)
        monkeypatch.setattr(state_module, "_TOGETHER_COUNT_MAX", 2)
        with pytest.raises(ServiceError, match="over 2 values"):
            await _values(alice, "k")
        with pytest.raises(ServiceError, match="over 2 values"):
            await documents_of(alice).read(DICT, "main", "", dict)
    assert loaded == [6, 3, 3, 3, 3], "each beside others at first, then in its turn"


def _counted(load: Callable[..., list[Tip]], loaded: list[int], *args: object) -> list[Tip]:
    found = load(*args)
    loaded.append(len(found))
    return found


async def test_large_documents_are_read_one_after_another_and_small_ones_meanwhile(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight threads that each hold one are more than a small machine has."""
    alice, documents = nodes[0], documents_of(nodes[0])
    sizes: list[int] = []
    turn = trio.CapacityLimiter(1)

    async def read(name: str) -> None:
        sizes.append((await documents.read(DICT, "main", name, len))[1])

    with fail_after(30):
        alice.create_repo()
        for name, put in (("large", {"a": "1", "b": "2", "c": "3"}), ("small", {"a": "1"})):
            await edit_dict(documents, "main", put, (), name)
        monkeypatch.setattr(state_module, "DOCUMENT_TURN_COUNT", 2)
        monkeypatch.setattr(state_module, "_TOGETHER_COUNT_MAX", 2)
        monkeypatch.setattr(documents, "_large", turn)
        async with trio.open_nursery() as nursery, turn:  # another large one is being read
            for name in ("large", "small"):
                nursery.start_soon(read, name)
            await trio.testing.wait_all_tasks_blocked()
            assert sizes == [1]
        assert sizes == [1, 3]


@pytest.mark.slow
async def test_what_is_remembered_is_bounded_and_changes_no_answer(nodes: list[Node]) -> None:
    alice = nodes[0]
    with fail_after(30):
        _, branch = alice.create_repo()
        for number in range(5):
            await _add(alice, str(number), "x")
        for most in (0, 3, 5, 1000):
            reader = DocumentOperationReader(alice.replica, operations_cached_max=most)
            with alice.replica.database.read() as connection:
                first, second = (list(reader.read(connection, branch, SET)) for _ in range(2))
            assert (first, len(first)) == (second, 5)
            assert reader.operations_cached <= most
        await _put(alice, k="v" * 4000)
        reader = DocumentOperationReader(alice.replica)
        with alice.replica.database.read() as connection:
            list(reader.read(connection, branch, DICT))
        assert reader.operations_cached > 10, "long values weigh more"


def _tips(count: int, start: int = 0) -> tuple[DocumentValue, ...]:
    return tuple(
        DocumentValue(as_commit_id(number.to_bytes(32, "big")), (0, 0, number, NO_COMMIT), "")
        for number in range(start, start + count)
    )


def _names(group: Sequence[NewValue]) -> set[CommitId]:
    return {tip.name for operation in group for tip in operation.replaces}


def test_more_tips_than_a_commit_can_name_are_replaced_by_several() -> None:
    groups = list(group_values([NewValue("k", "v", _tips(2 * REPLACED_COUNT_MAX + 1))], 10))
    assert [[operation.value for operation in group] for group in groups] == [[None], [None], ["v"]]
    assert [len(_names(group)) for group in groups] == [REPLACED_COUNT_MAX, REPLACED_COUNT_MAX, 1]


def test_words_are_grouped_within_all_bounds_of_a_commit() -> None:
    operations = [NewValue(str(number), "v" * 16_384, _tips(2, number)) for number in range(300)]
    groups = list(group_values(operations, 256))
    assert [operation for group in groups for operation in group] == operations
    assert len(groups) < 15
    for group in groups:
        there = {operation.key: operation.value or "" for operation in group}
        replaces = {operation.key: [tip.name for tip in operation.replaces] for operation in group}
        assert len(encode_body(DictEdit.make(there, (), replaces))) < BODY_SIZE_MAX
    assert len(list(group_values([NewValue(str(number), "", ()) for number in range(300)], 256))) == 2


@pytest.mark.slow
async def test_a_request_may_have_as_many_of_the_largest_items_as_one_commit_cannot_hold(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        items = ["é" * (DOCUMENT_KEY_SIZE_MAX // 2 - 3) + f"{number:03}" for number in range(800)]
        assert await _add(alice, *items) == 2
        assert await _set(alice) == items


def _checked(node: Node) -> list[tuple[str, str]]:
    folder = node.replica.database.folder
    return [
        (one.kind, one.about) for one in check_store(folder, STORE_KEY).problems if one.kind == "document"
    ]


async def test_a_check_names_rows_that_say_otherwise_and_a_read_makes_stale_ones_anew(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await _add(alice, "a", "b")
        await _remove(alice, "a")
        assert _checked(alice) == []
        with alice.replica.database.write() as connection:
            connection.execute(delete(document_tips))
        assert [kind for kind, _ in _checked(alice)] == ["document"]
        with alice.replica.database.write() as connection:
            assert reset_documents(alice.replica.database, connection) == 1
        assert (_checked(alice), await _set(alice), _checked(alice)) == ([], ["b"], [])


async def test_an_edit_costs_as_many_statements_in_a_long_document_as_in_a_short_one(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    counts: list[int] = []
    with fail_after(60):
        alice.create_repo()
        for size in (4, 40):
            for number in range(size):
                await documents.edit(DICT, "main", {f"k{number % 3}": str(number)})
            heard: list[str] = []

            def hear(_: object, __: object, statement: str, *___: object, heard: list[str] = heard) -> None:
                heard.append(statement)

            event.listen(Engine, "before_cursor_execute", hear)
            await documents.edit(DICT, "main", {"k1": f"{size} changed"})
            await documents.read_entry(DICT, "main", "k1")
            await documents.read_window(DICT, "main", 0, 3)
            event.remove(Engine, "before_cursor_execute", hear)
            counts.append(len(heard))
    assert counts[0] == counts[1] > 0


async def test_a_node_opens_nothing_to_replace_what_it_wrote_itself(nodes: list[Node]) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    heard: list[str] = []

    def hear(_: object, __: object, statement: str, *___: object) -> None:
        heard.append(statement)

    with fail_after(60):
        alice.create_repo()
        await documents.edit(DICT, "main", {"k": "before"})
        event.listen(Engine, "before_cursor_execute", hear)
        await documents.edit(DICT, "main", {"k": "after"})
        event.remove(Engine, "before_cursor_execute", hear)
        assert [statement for statement in heard if "FROM blocks" in statement] == []
        assert (await documents.read_entry(DICT, "main", "k"))[1].values[0].value == "after"
        assert (await documents.edit(DICT, "main", {"k": "after"})).commits == [], "it says so already"


def test_commits_that_come_together_read_what_was_said_of_their_keys_once(nodes: list[Node]) -> None:
    alice = nodes[0]
    alice.create_repo()
    counts: list[list[int]] = []
    for size in (4, 40):
        heard: list[str] = []

        def hear(_: object, __: object, statement: str, *___: object, heard: list[str] = heard) -> None:
            heard.append(statement)

        drafts = [Draft(DICT.edit.make({f"{size} {number}": "v"}, (), {})) for number in range(size)]
        event.listen(Engine, "before_cursor_execute", hear)
        alice.author.write_many(alice.branch("main"), drafts)
        event.remove(Engine, "before_cursor_execute", hear)
        tables = ("document_operations", "document_tips")
        counts.append([sum(table in one and "SELECT" in one for one in heard) for table in tables])
    assert counts == [[0, 1], [0, 1]], "nothing can have been said of names that are new here"


async def test_all_of_a_large_document_is_read_by_one_statement(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_TOGETHER_COUNT_MAX", 3)
    documents = Documents(nodes[0].hub, nodes[0].author, nodes[0].branch)
    nodes[0].create_repo()
    await documents.edit(DICT, "main", {str(number): "v" for number in range(4)})
    heard: list[str] = []

    def hear(_: object, __: object, statement: str, *___: object) -> None:
        heard.append(statement)

    event.listen(Engine, "before_cursor_execute", hear)
    assert (await documents.read(DICT, "main", "", len))[1] == 4
    event.remove(Engine, "before_cursor_execute", hear)
    assert sum("document_tips" in one for one in heard) == 1


async def test_documents_are_listed_with_titles_and_without_those_removed_until_they_are_written(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    listed = ListedDocuments(alice.hub, documents, alice.branch)

    async def shown(kind: str = "", prefix: str = "") -> list[tuple[str, str, str, int | None]]:
        window = await listed.list_all("main", kind, prefix, 0, 100)
        return [(one["kind"], one["name"], one["title"], one["entries"]) for one in window["documents"]]

    with fail_after(30):
        alice.create_repo()
        assert await shown() == []
        await documents.edit(SET, "main", {"a": "", "b": ""}, "follows")
        await documents.edit(DICT, "main", {"k": "v"}, "notes/2026")
        _say(alice, TextUpdate(b"\0\0", ()))
        assert await shown() == [
            ("set", "follows", "", 2),
            ("dict", "notes/2026", "", 1),
            ("text", "", "", None),
        ]
        assert await shown("dict") == await shown(prefix="notes/") == [("dict", "notes/2026", "", 1)]
        await listed.rename("main", "set", "follows", "Whom I follow")
        await listed.remove("main", "dict", "notes/2026")
        assert await shown() == [("set", "follows", "Whom I follow", 2), ("text", "", "", None)]
        assert (await documents.read_entry(DICT, "main", "k", "notes/2026"))[1].values, "nothing is lost"
        await documents.edit(DICT, "main", {"k": "w"}, "notes/2026")
        await listed.rename("main", "set", "follows", "")
        assert await shown() == [
            ("set", "follows", "", 2),
            ("dict", "notes/2026", "", 1),
            ("text", "", "", None),
        ]
        await documents.edit(SET, "main", {"a": ""}, "f\N{CYRILLIC SMALL LETTER O}llows")
        window = await listed.list_all("main", "set", "", 0, 100)
        assert [one["confusable"] for one in window["documents"]] == [True, True]
        assert (await listed.list_all("main", "", "", 0, 1))["next"] == 1
        with pytest.raises(ServiceError, match="a document is one of"):
            await listed.remove("main", "list", "a")
        await listed.remove("main", "dict", "notes/2026")
        for kind, name in (("dict", "notes/2026"), ("set", "notes/2026"), ("set", ""), ("dict", ".titles")):
            for change in (listed.remove("main", kind, name), listed.rename("main", kind, name, "x")):
                with pytest.raises(ServiceError, match="no document is called") as caught:
                    await change
                assert caught.value.code == "not_found", (
                    "a list that does not have it is not said to have lost it"
                )


async def test_a_fork_that_has_not_come_whole_is_read_without_a_write(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    with fail_after(30):
        alice.create_repo()
        await documents.edit(SET, "main", {"a": "", "b": ""}, "s")
        await Merging(alice.hub, alice.author, alice.branch).fork("main", "draft", "")
        monkeypatch.setattr(state_module, "is_whole", lambda *_: False)
        heard: list[str] = []

        def hear(_: object, __: object, statement: str, *___: object) -> None:
            heard.append(statement.split()[0])

        event.listen(Engine, "before_cursor_execute", hear)
        for _ in range(2):
            window = await documents.read_window(SET, "draft", 0, 9, "s")
            assert ([key for key, _ in window.entries], window.fields["total"]) == (["a", "b"], 2)
            assert (await documents.read_window(SET, "draft", 1, 9, "s")).entries[0][0] == "b"
            assert await documents.read_first(SET, "draft", ["s"], sorted, lambda: False, opens=True) == [
                ["a", "b"]
            ]
        event.remove(Engine, "before_cursor_execute", hear)
        assert set(heard).isdisjoint({"INSERT", "UPDATE", "DELETE"})
        await documents.edit(SET, "draft", {"a": None}, "s")
        monkeypatch.undo()
        assert [key for key, _ in (await documents.read_window(SET, "draft", 0, 9, "s")).entries] == ["b"]


async def test_a_fork_of_the_root_branch_continues_nothing(nodes: list[Node]) -> None:
    # Any writer may say so; there a set is words without a document (docs/specification/profiles/documents.md).
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        root = alice.replica.root_branch(alice.repo())
        written, _ = alice.author.write(root, Draft(SetEdit(("a",), (), ())))
        alice.author.founding.create_branch(
            alice.repo(), "draft", BranchFork(root.branch_id, (written.commit_id,))
        )
        await _add(alice, "b", branch="draft")
        assert await _set(alice, "draft") == ["b"]


async def test_a_fork_lists_what_it_continues(nodes: list[Node]) -> None:
    alice = nodes[0]
    documents = documents_of(alice)
    listed = ListedDocuments(alice.hub, documents, alice.branch)
    with fail_after(30):
        alice.create_repo()
        await documents.edit(SET, "main", {"a": ""}, "follows")
        await Merging(alice.hub, alice.author, alice.branch).fork("main", "draft", "")
        for entries in (None, 2):
            window = await listed.list_all("draft", "", "", 0, 9)
            assert [(one["name"], one["entries"]) for one in window["documents"]] == [("follows", entries)]
            await documents.edit(SET, "draft", {"b": ""}, "follows")
            await documents.read_window(SET, "draft", 0, 9, "follows")
            # What is asked for is not listed for that.
            assert (await documents.read_window(SET, "draft", 0, 9, "nowhere")).entries == []
        with pytest.raises(ServiceError, match="no document is called 'nowhere'"):
            await listed.remove("draft", "set", "nowhere")
        await documents.edit(SET, "draft", {"c": ""}, "nowhere")
        await documents.edit(SET, "draft", {"c": None}, "nowhere")
        assert [one["name"] for one in (await listed.list_all("draft", "", "", 0, 9))["documents"]] == [
            "follows",
            "nowhere",
        ]


async def test_an_erased_body_says_no_more_to_a_node_that_has_read_it(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        documents = Documents(alice.hub, alice.author, alice.branch)
        await documents.edit(SET, "main", {"secret": ""})
        await documents.edit(SET, "main", {"other": ""})
        await documents.read_window(SET, "main", 0, 10)
        with alice.replica.database.write() as connection:
            branch = alice.branch("main")
            row = load_first_of_kinds(connection, branch.num, {"set"}, 1)[0]
            erase_bodies(
                connection,
                branch.num,
                [Erasure(row.num, row.topic_num, row.block_nums, ObjectId(BlockId(b"1" * 32)))],
                0,
            )
            keys = connection.execute(select(document_operations.c.key)).scalars().all()
        assert keys == [b"other"], "no copy of it is left in rows"
        said = []
        for reader in (documents, Documents(alice.hub, alice.author, alice.branch)):
            with pytest.raises(ServiceError) as caught:
                await reader.read_window(SET, "main", 0, 10)
            said.append(caught.value.code)
        assert said == ["incomplete", "incomplete"]
