"""Compaction on whole nodes: bodies go, and whatever can be asked of the node says the same, or says that they are gone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pycrdt import Doc, Text
from sqlalchemy import text
from trio.testing import MockClock

from node.api.value_documents import edit_dict, edit_set, show_dict, show_set, snapshot_set
from node.authoring.drafting import Draft
from node.care.backup import create_backup, restore_backup
from node.care.fsck import check_store
from node.cli import main as main_module
from node.content import document_operations as said_module
from node.content.compacting import Compacting
from node.content.documents import Documents
from node.content.erasing import Erased, erase_store, measure_erasable
from node.content.merging import Merging
from node.content.texts import Texts
from node.home.home import create_home
from node.home.key_file import Keys
from node.runtime.errors import ServiceError
from node.timelines.commit_history import describe, list_past
from node.timelines.views import timeline_items
from protocol.crypto.keys import NodeSeed, UserSeed
from protocol.formats.content import Compaction
from protocol.formats.document_kinds import (
    DICT,
    DICT_VALUE_SIZE_MAX,
    JSON,
    SET,
    DictEdit,
    DictEntry,
    SetSnapshot,
    ValuesKind,
)
from protocol.formats.text import id_text
from ravel.types.branches import CompactionResult
from ravel.types.commits import TimelineItem
from storage.blobs.garbage_collection import collect_garbage
from storage.commits.commits import load_timeline
from tests.support.builders import STORE_KEY, give, publications_of
from tests.support.editors import client_of
from tests.support.exports import export_node
from tests.support.forging import bare_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, members_of, open_nodes, share, together, until_equal
from tests.support.relays import open_relay, visit

ANY_TIME = 1 << 62


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def _documents(node: Node) -> Documents:
    return Documents(node.hub, node.author, node.branch)


def _texts(node: Node) -> Texts:
    return Texts(node.hub, node.author, node.branch)


async def _compact(node: Node, *, dry_run: bool = False, without_missing: bool = False) -> CompactionResult:
    compacting = Compacting(node.hub, node.author, _documents(node), _texts(node), node.branch)
    return await compacting.compact("main", dry_run=dry_run, without_missing=without_missing)


async def _items(node: Node) -> list[str]:
    return [row["item"] for row in (await show_set(_documents(node), "main", 0, 1000))["items"]]


async def _entries(node: Node) -> dict[str, str]:
    return {
        row["key"]: row["value"] for row in (await show_dict(_documents(node), "main", 0, 1000))["entries"]
    }


def _timeline(node: Node) -> list[TimelineItem]:
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, node.branch().num, 0, 1000)
        return timeline_items(connection, node.replica, rows, 0)


def _erase(node: Node, folder: Path) -> Erased:
    """Do all that `ravel gc` does."""
    node.replica.close()
    expected = measure_erasable(folder, STORE_KEY, ANY_TIME)
    erased = erase_store(folder, STORE_KEY, ANY_TIME, 1)
    assert erased == expected, "a dry run says what will be"
    collect_garbage(folder, keep_removed=True)
    findings = check_store(folder, STORE_KEY)
    node.open()
    assert findings.problems == []
    return erased


async def _fill(node: Node) -> list[str | None]:
    """Make a branch with all kinds of content; the ids of the updates of its text are given."""
    documents = _documents(node)
    node.write(node.branch(), "a post")
    await edit_set(documents, "main", ["pears", "plums", "figs"], [])
    await edit_set(documents, "main", [], ["plums"])
    await edit_dict(documents, "main", {"colour": "red"}, [])
    await edit_dict(documents, "main", {"colour": "green", "size": "large"}, [])
    doc: Doc[Any] = Doc(client_id=client_of(node))
    notes = doc.get("notes", type=Text)
    updates = []
    for word in ("one", "two", "three"):
        before = doc.get_state()
        notes += word
        answer = await _texts(node).push("main", doc.get_update(before))
        updates.append(answer["commit"])
    return updates


@pytest.mark.extended
@pytest.mark.slow
async def test_a_compacted_branch_holds_what_it_held_and_its_bodies_are_gone(
    nodes: list[Node], tmp_path: Path
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        await _fill(alice)
        before = alice.digest(alice.branch())
        possible = await _compact(alice, dry_run=True)
        assert (possible["bodies"], possible["commits"], possible["erased"]) == (8, [], 0)
        assert alice.digest(alice.branch()) == before, "a dry run writes nothing"
        done = await _compact(alice)
        assert (done["bodies"], done["size"]) == (8, possible["size"]), "as the dry run said"
        assert len(done["commits"]) == 4, "two snapshots of documents, one of the text, the compaction"
        assert (await _compact(alice))["commits"] == [], "there is nothing more to say"
        notes = (await _texts(alice).pull("main", "notes"))["text"]
        held = (await _items(alice), await _entries(alice), notes)
        assert held == (["figs", "pears"], {"colour": "green", "size": "large"}, "onetwothree")
        digest = alice.digest(alice.branch())
        erased = _erase(alice, tmp_path / "alice")
        assert (erased.bodies, erased.size) == (8, done["size"])
        assert _erase(alice, tmp_path / "alice") == Erased(0, 0)

        assert alice.digest(alice.branch()) == digest
        notes = (await _texts(alice).pull("main", "notes"))["text"]
        assert (await _items(alice), await _entries(alice), notes) == held
        shown = _timeline(alice)
        assert [item["kind"] for item in shown if item.get("erased")] == [
            "post", "set", "set", "dict", "dict", "text", "text", "text",
        ]  # fmt: skip
        assert (shown[1]["kind"], shown[1]["text"], shown[1]["erased"]) == ("post", None, True)
        told = describe(alice.replica, shown[1]["commit"])
        assert (told["verdict"], told["erased"], told["feed_sequence"]) == ("accepted", True, 2)
        assert list_past(alice.replica, alice.branch(), shown[1]["commit"], 9)["items"][-1]["erased"] is True
        # And life goes on: what is deleted now names what was added in a body that is gone.
        await edit_set(_documents(alice), "main", ["plums"], ["figs"])
        assert await _items(alice) == ["pears", "plums"]
        again = await _compact(alice)
        assert (again["bodies"], again["erased"]) == (2, 8), "the edit, and the snapshot of before"
        _erase(alice, tmp_path / "alice")
        assert await _items(alice) == ["pears", "plums"]


@pytest.mark.extended
@pytest.mark.slow
async def test_upstreams_case_a_delete_after_a_snapshot_takes_only_what_it_deletes(
    nodes: list[Node], tmp_path: Path
) -> None:
    alice = nodes[0]
    with fail_after(30):
        alice.create_repo()
        for item in ("a", "b", "c"):
            await edit_set(_documents(alice), "main", [item], [])
        assert len((await _documents(alice).snapshot(SET, "main"))["commits"]) == 1
        await edit_set(_documents(alice), "main", [], ["a"])
        alice.author.write(alice.branch(), Draft(Compaction(())))
        assert _erase(alice, tmp_path / "alice").bodies == 3, "the adds; not the snapshot, which has b and c"
        assert await _items(alice) == ["b", "c"]


async def test_only_what_a_compaction_has_in_its_past_goes_and_only_after_the_time_that_the_policy_says(
    nodes: list[Node], tmp_path: Path
) -> None:
    alice = nodes[0]
    alice.create_repo()
    alice.write(alice.branch(), "before")
    written, _ = alice.author.write(alice.branch(), Draft(Compaction(())))
    alice.write(alice.branch(), "after")
    compacted_at = describe(alice.replica, id_text(written.commit_id))["time"] * 1000
    alice.replica.close()
    folder = tmp_path / "alice"
    assert measure_erasable(folder, STORE_KEY, compacted_at).bodies == 0
    assert measure_erasable(folder, STORE_KEY, ANY_TIME).bodies == 1
    erase_store(folder, STORE_KEY, ANY_TIME, 1)
    alice.open()
    assert [item["text"] for item in _timeline(alice)] == [None, None, None, "after"]


@pytest.mark.slow
async def test_who_may_only_write_cannot_compact_and_a_demoted_managers_compaction_lets_nothing_go(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await share(alice, bob)
    alice.write(alice.branch(), "words")
    await together(alice, bob)
    with pytest.raises(ServiceError) as caught:
        await _compact(bob)
    assert caught.value.code == "not_permitted"
    with pytest.raises(ServiceError) as caught:
        bob.author.write(bob.branch(), Draft(Compaction(())))
    assert "M15" in str(caught.value)
    await members_of(alice).grant("", id_text(bob.author.user), "manage")
    await together(alice, bob)
    assert (await _compact(bob))["bodies"] == 1
    await members_of(alice).remove("", id_text(bob.author.user), "write")  # not having seen it
    await together(alice, bob)
    for node, name in ((alice, "alice"), (bob, "bob")):
        assert _erase(node, tmp_path / name).bodies == 0


@pytest.mark.slow
async def test_erased_words_are_missed_when_what_stood_for_them_becomes_void_until_it_is_adopted(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await share(alice, bob, carol)
    await members_of(alice).grant("", id_text(bob.author.user), "manage")
    await members_of(alice).grant("", id_text(carol.author.user), "admin")
    await edit_set(_documents(alice), "main", ["pears"], [])
    await together(alice, bob, carol)
    async with connected(bob, alice):
        done = await _compact(bob)
        assert len(done["commits"]) == 2
        await until_equal(alice, bob)
    _erase(alice, tmp_path / "alice")
    assert await _items(alice) == ["pears"]
    await members_of(carol).remove("", id_text(bob.author.user), "")  # who has not seen what bob wrote
    async with connected(carol, alice):
        await until_equal(alice, carol, "root")
        while alice.branch().void_count == 0:
            await alice.hub.changes.wait(alice.hub.changes.count)
    with pytest.raises(ServiceError) as caught:
        await _items(alice)
    assert caught.value.code == "incomplete"
    await members_of(alice).adopt("main", done["commits"])
    assert await _items(alice) == ["pears"]


@pytest.mark.slow
async def test_forks_keep_what_they_continue_and_merges_say_what_they_lack(
    nodes: list[Node], tmp_path: Path
) -> None:
    alice = nodes[0]
    alice.create_repo()
    documents = _documents(alice)
    await edit_set(documents, "main", ["pears"], [])
    merging = Merging(alice.hub, alice.author, alice.branch)
    await merging.fork("main", "fork", "")
    await edit_set(documents, "main", ["plums"], [])
    alice.write(alice.branch(), "a post that the fork has not got")
    assert (await _compact(alice))["bodies"] == 2, "the fork needs the first add"
    _erase(alice, tmp_path / "alice")
    documents, merging = _documents(alice), Merging(alice.hub, alice.author, alice.branch)
    assert await _items(alice) == ["pears", "plums"]
    fork = [row["item"] for row in (await show_set(documents, "fork", 0, 10))["items"]]
    assert fork == ["pears"]
    await edit_set(documents, "fork", ["figs"], ["pears"])
    await snapshot_set(documents, "fork")
    fork = [row["item"] for row in (await show_set(documents, "fork", 0, 10))["items"]]
    assert fork == ["figs"], "what it continues is in a snapshot's past, too"
    await merging.merge("fork", "main")
    assert await _items(alice) == ["figs", "plums"], (
        "a delete in a fork names what was added in an erased body"
    )
    with pytest.raises(ServiceError) as caught:
        await merging.merge("main", "fork")
    assert (caught.value.code, "erased" in str(caught.value)) == ("incomplete", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SET, DICT, JSON])
async def test_a_document_that_is_not_there_has_no_snapshot(nodes: list[Node], kind: ValuesKind) -> None:
    alice = nodes[0]
    alice.create_repo()
    assert (await _documents(alice).snapshot(kind, "main"))["commits"] == []
    with pytest.raises(ServiceError) as caught:
        await _documents(alice).snapshot(kind, "main", "mistyped")
    assert (caught.value.code, caught.value.message) == (
        "not_found",
        f"no {kind.name} is called 'mistyped'",
    )


async def test_snapshots_of_more_than_one_body_hold_all_and_conflicts_too_long_are_refused(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    alice.create_repo()
    items = [f"{number:04}" + "x" * 996 for number in range(1000)]
    await edit_set(_documents(alice), "main", items[:500], [])
    await edit_set(_documents(alice), "main", items[500:], [])
    assert len((await _documents(alice).snapshot(SET, "main"))["commits"]) == 3
    assert (await _documents(alice).snapshot(SET, "main"))["commits"] == []
    assert await _items(alice) == items
    assert (await _compact(alice))["bodies"] == 2
    for number in range(32):  # each names nothing, so all values stand
        put = DictEntry("k", f"{number:02}".ljust(DICT_VALUE_SIZE_MAX, "v"))
        alice.author.write(alice.branch(), Draft(DictEdit((put,), (), ())))
    with pytest.raises(ServiceError) as caught:
        await _documents(alice).snapshot(DICT, "main")
    assert (caught.value.code, "conflicts" in str(caught.value)) == ("too_large", True)
    await edit_dict(_documents(alice), "main", {"k": "one"}, [])
    assert len((await _documents(alice).snapshot(DICT, "main"))["commits"]) == 1
    assert await _entries(alice) == {"k": "one"}


@pytest.mark.extended
@pytest.mark.slow
async def test_a_newcomer_gets_all_that_is_needed_from_those_who_erased_and_writes(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await share(alice, bob)
    await _fill(alice)
    await _compact(alice)
    async with connected(bob, alice):
        await until_equal(alice, bob)
    assert _erase(alice, tmp_path / "alice").bodies == _erase(bob, tmp_path / "bob").bodies == 8
    async with connected(
        bob, alice
    ):  # those who have it all need to be sent nothing, no matter who erased what
        bob.write(bob.branch(), "after all that")
        await until_equal(alice, bob)
    await carol.joiner.begin(alice.invite(alice.repo()))
    await together(alice, carol)
    assert not carol.hub.totals.refused
    assert carol.digest(carol.branch()) == alice.digest(alice.branch())
    assert carol.heads(carol.branch()) == alice.heads(alice.branch())
    assert (await _items(carol), await _entries(carol)) == (
        ["figs", "pears"],
        {"colour": "green", "size": "large"},
    )
    assert (await _texts(carol).pull("main", "notes"))["text"] == "onetwothree"
    shown = [(item["text"], item.get("erased", False)) for item in _timeline(carol) if item["kind"] == "post"]
    assert shown == [(None, True), ("after all that", False)]
    await edit_set(_documents(carol), "main", ["plums"], ["figs"])
    await together(bob, carol)
    assert await _items(bob) == ["pears", "plums"]
    carol.replica.close()
    assert check_store(tmp_path / "carol", STORE_KEY).problems == []
    carol.open()


@pytest.mark.extended
@pytest.mark.slow
async def test_bodies_that_nobody_shows_make_documents_incomplete_until_a_manager_gives_them_up(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await share(alice, bob, carol)
    await edit_set(_documents(alice), "main", ["pears"], [])
    await edit_dict(_documents(alice), "main", {"colour": "green"}, [])
    doc: Doc[Any] = Doc(client_id=client_of(alice))
    doc.get("notes", type=Text).insert(0, "words")
    await _texts(alice).push("main", doc.get_update())
    await together(alice, bob, carol)
    known = alice.digest(alice.branch())[1]
    await edit_set(_documents(bob), "main", ["hidden"], ["pears"])
    await edit_dict(_documents(bob), "main", {"colour": "hidden"}, [])
    of_bob: Doc[Any] = Doc(client_id=client_of(bob))
    of_bob.apply_update(doc.get_update())
    of_bob.get("notes", type=Text).insert(0, "hidden ")
    await _texts(bob).push("main", of_bob.get_update(doc.get_state()))
    items = publications_of(bob.replica, bob.branch())[known:]
    assert len(items) == 3
    for node in (alice, carol):
        give(node.replica, [bare_of(item) for item in items])
    for ask in (_items, _entries, _compact):
        with pytest.raises(ServiceError) as caught:
            await ask(alice)
        assert (caught.value.code, "--without-missing" in caught.value.advice) == ("incomplete", True)
    with pytest.raises(ServiceError):
        await _texts(alice).pull("main", "notes")
    done = await _compact(alice, without_missing=True)
    assert len(done["commits"]) == 3, "two snapshots, and the compaction, which gives up a body of the text"
    await together(alice, carol)
    for is_shown in (False, True):
        for node in (alice, carol):
            if is_shown:  # too late: what stands for them says nothing of them
                assert len(give(node.replica, items).filled) == 3
            assert (await _items(node), await _entries(node)) == (["pears"], {"colour": "green"})
            assert (await _texts(node).pull("main", "notes"))["text"] == "words"
    await together(alice, bob)
    assert (await _items(bob), await _entries(bob)) == (["pears"], {"colour": "green"})
    await edit_set(_documents(carol), "main", ["plums"], [])
    assert await _items(carol) == ["pears", "plums"]


@pytest.mark.slow
async def test_a_newcomer_gets_by_a_relay_alone_what_all_members_have_erased(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await share(alice, bob)
    alice.write(alice.branch(), "words")
    await edit_set(_documents(alice), "main", ["pears", "plums"], [])
    await edit_set(_documents(alice), "main", [], ["plums"])
    await _compact(alice)
    await together(alice, bob)
    for node, name in ((alice, "alice"), (bob, "bob")):
        assert _erase(node, tmp_path / name).bodies == 3
    link = alice.invite(alice.repo())
    with fail_after(300), open_relay(tmp_path / "relay") as relay:
        for member in (alice, bob):
            await visit(member, relay)
        await carol.joiner.begin(link)
        await visit(carol, relay)
        assert carol.digest(carol.branch()) == alice.digest(alice.branch())
        assert await _items(carol) == ["pears"]
        carol.write(carol.branch(), "from carol")
        await visit(carol, relay)
        await visit(bob, relay)
        assert carol.digest(carol.branch()) == bob.digest(bob.branch())
    assert check_store(tmp_path / "relay" / "relay", STORE_KEY).problems == []


@pytest.mark.slow
async def test_lies_of_snapshots_and_erasings_that_are_none_are_found(
    nodes: list[Node], tmp_path: Path
) -> None:
    alice = nodes[0]
    alice.create_repo()
    await edit_set(_documents(alice), "main", ["pears", "plums"], [])
    alice.author.write(alice.branch(), Draft(SetSnapshot("", None, ())))
    assert await _items(alice) == [], "it counts, as a delete would"
    with alice.replica.database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO erasures (commit_num, branch_num, topic_num, body_id, erased_at) "
                "SELECT num, branch_num, topic_num, commit_id, 1 FROM commits WHERE rank = 2"
            )
        )
    found = check_store(tmp_path / "alice", STORE_KEY)
    assert sorted(problem.kind for problem in found.problems) == ["erasure", "snapshot"]


@pytest.mark.slow
@pytest.mark.sqlite  # a backup of rows that are elsewhere needs their URL, which this folder's configuration does not name
async def test_gc_erases_by_the_policy_of_the_node_and_backups_and_exports_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    create_home(home, keys=Keys(NodeSeed(b"n" * 32), UserSeed(b"u" * 32), STORE_KEY))
    alice = Node(home, "alice")
    alice.create_repo()
    await edit_set(_documents(alice), "main", ["pears"], [])
    alice.write(alice.branch(), "words")
    await _compact(alice)
    digest = alice.digest(alice.branch())
    export_node(alice.replica.database, tmp_path / "before", "n", 1)
    alice.replica.close()

    def collect(*options: str) -> tuple[int, int, int]:
        monkeypatch.setattr("sys.argv", ["ravel", "--home", str(home), "gc", "--json", *options])
        with pytest.raises(SystemExit) as caught:
            main_module.main()
        assert not caught.value.code
        answer = json.loads(capsys.readouterr().out)
        return answer["erased"], answer["erased_size"], answer["blocks"]

    assert collect() == (0, 0, 0), "unless it is told to, a node erases nothing"
    config = (home / "config.toml").read_text()
    (home / "config.toml").write_text(config.replace("erase_after_days = 0", "erase_after_days = 1"))
    planned = collect("--dry-run")
    assert planned[0] == 2
    assert collect() == (*planned[:2], 2), "the bodies' blocks are garbage then"
    assert collect() == (0, 0, 0)
    create_backup(home, tmp_path / "backup", 1)
    restore_backup(tmp_path / "backup", tmp_path / "again")
    assert check_store(tmp_path / "again", STORE_KEY).problems == []
    again = Node(tmp_path / "again", "alice")
    try:
        assert again.digest(again.branch()) == digest
        assert await _items(again) == ["pears"]
        export_node(again.replica.database, tmp_path / "after", "n", 1)
        before, after = (pq.read_table(tmp_path / name / "commits") for name in ("before", "after"))
        assert before.drop_columns("blocks").equals(after.drop_columns("blocks")), "rows of commits stay"
        assert pc.sum(before["blocks"]).as_py() - pc.sum(after["blocks"]).as_py() == planned[0]
    finally:
        again.replica.close()


async def test_a_set_that_was_snapshotted_too_often_says_so(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    alice.create_repo()
    monkeypatch.setattr(said_module, "DOCUMENT_SNAPSHOT_COUNT_MAX", 2)
    await edit_set(_documents(alice), "main", ["pears"], [])
    for _ in range(2):
        alice.author.write(alice.branch(), Draft(SetSnapshot("", "", ())))
    assert await _items(alice) == ["pears"], "they are about nothing"
    alice.author.write(alice.branch(), Draft(SetSnapshot("", "", ())))
    with pytest.raises(ServiceError) as caught:
        await _items(alice)
    assert caught.value.code == "too_large"
