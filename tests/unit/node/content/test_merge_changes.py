"""Lines of lists, tables and texts that a merge would change, as one reads them before it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from node.api.targets import Targets
from node.content.documents import REMOVED, TITLES, Documents
from node.content.merge_changes import LINE_LENGTH_MAX, MergeChanges
from node.content.merging import MergePlan, Merging
from node.content.texts import Texts
from node.contract.inbox import OFFERED_DOCUMENTS_SHOWN_MAX, OFFERED_LINES_SHOWN_MAX
from protocol.formats.document_kinds import DICT, SET, TextUpdate
from protocol.ids import UserId
from ravel.types.inbox import OfferedDocument
from tests.support.editors import Editor, client_id, editor_of
from tests.support.nodes import Node, open_nodes


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _documents(node: Node) -> Documents:
    return Documents(node.hub, node.author, Targets(node.replica, node.author.user).branch)


async def _look(node: Node) -> list[OfferedDocument]:
    """Return what a merge of the draft into main would change."""
    merge = MergePlan(node.replica, node.branch("draft"), node.branch())
    with node.replica.database.read() as connection:
        merge.plan(connection)
    return await MergeChanges(node.hub, node.author, _documents(node)).find(merge)


def _told(one: OfferedDocument) -> list[tuple[str, str]]:
    return [(line["change"], line["text"]) for line in one["lines"]]


async def _fork(node: Node) -> None:
    await Merging(node.hub, node.author, node.branch).fork("main", "draft", "")


async def test_a_look_at_a_merge_tells_items_and_values_that_come_and_go(alice: Node) -> None:
    documents = _documents(alice)
    await documents.edit(SET, "repo:main", {"beans": "", "peas": ""})
    await documents.edit(DICT, "repo:main", {"tap": "off"}, "water")
    await _fork(alice)
    await documents.edit(SET, "repo:draft", {"peas": None, "leeks": "", "kale": ""})
    await documents.edit(SET, "repo:draft", {"kale": None})
    await documents.edit(DICT, "repo:draft", {"tap": "on", "gate": "green"}, "water")
    await documents.edit(DICT, "repo:draft", {"dict/water": "Taps and gates"}, ".titles")
    items, values = await _look(alice)
    assert (items["kind"], items["name"], items["added"], items["removed"]) == ("set", "", 1, 1)
    assert _told(items) == [("removed", "peas"), ("added", "leeks")], "what came and went is no line"
    assert (values["kind"], values["name"], values["title"]) == ("dict", "water", "Taps and gates")
    assert _told(values) == [("removed", "tap: off"), ("added", "tap: on"), ("added", "gate: green")]
    await documents.edit(SET, "repo:main", {"leeks": "", "peas": None})
    await documents.edit(SET, "repo:main", {"peas": ""})
    assert [one["name"] for one in await _look(alice)] == ["water"], "it is there already, and peas came back"
    await Merging(alice.hub, alice.author, alice.branch).merge("draft", "main")
    assert await _look(alice) == []
    items_now = await documents.read_entries(SET, "repo:main", ["beans", "peas", "leeks"], "")
    assert {key for key, entry in items_now.items() if entry.values} == {"beans", "peas", "leeks"}


async def test_a_look_at_a_merge_calls_documents_as_they_are_called_here_and_tells_what_would_hide_them(
    alice: Node,
) -> None:
    documents = _documents(alice)
    await documents.edit(DICT, "repo:main", {"rent": "500"}, "budget")
    await documents.edit(DICT, "repo:main", {"dict/budget": "Budget"}, TITLES)
    await _fork(alice)
    for number in range(OFFERED_DOCUMENTS_SHOWN_MAX):
        await documents.edit(SET, "repo:draft", {"one": ""}, f"list {number}")
        await documents.edit(SET, "repo:draft", {"one": None}, f"list {number}")
    await documents.edit(DICT, "repo:draft", {"dict/budget": "Shopping", "set/new": "New"}, TITLES)
    await documents.edit(DICT, "repo:draft", {"rent": "900"}, "budget")
    await documents.edit(SET, "repo:draft", {"dict/budget": ""}, REMOVED)
    titles, budget, removed = await _look(alice)
    assert (titles["name"], _told(titles)) == (
        TITLES,
        [("removed", "dict/budget: Budget"), ("added", "dict/budget: Shopping")],
    )
    assert (removed["name"], _told(removed)) == (REMOVED, [("added", "dict/budget")])
    assert (budget["title"], budget["added"]) == ("Budget", 1)


@pytest.mark.slow  # processes look at texts
async def test_a_look_at_a_merge_tells_lines_of_a_text_as_they_are_after_it(alice: Node) -> None:
    texts = Texts(alice.hub, alice.author, alice.branch)
    editor = editor_of(alice, root="text")
    await texts.push("main", editor.append("one\ntwo\nthree\nfour\nfive\n"))
    await _fork(alice)
    draft = editor_of(alice, "draft", root="text")
    draft.take(editor.document.get_update())
    await texts.push("draft", draft.delete(14, 19))
    await texts.push("draft", draft.write(14, "4\n"))
    mallory = Editor(client_id(UserId(b"m" * 32), alice.branch("draft").branch_id), "text")
    alice.author.write(
        alice.branch("draft"), TextUpdate(mallory.append("a line that counts for nothing\n"), ())
    )
    await texts.push("main", editor.append("six\n"))
    (text,) = await _look(alice)
    assert (text["kind"], text["name"], text["added"], text["removed"]) == ("text", "text", 1, 1)
    assert _told(text) == [
        ("skipped", ""),
        ("same", "three"),
        ("removed", "four"),
        ("added", "4"),
        ("same", "five"),
        ("skipped", ""),
    ]
    await Merging(alice.hub, alice.author, alice.branch).merge("draft", "main")
    assert (await texts.pull("main", "text"))["text"] == "one\ntwo\nthree\n4\nfive\nsix\n"


@pytest.mark.slow
async def test_a_look_at_a_merge_is_bounded(alice: Node) -> None:
    documents = _documents(alice)
    await _fork(alice)
    wanted = [f"{number:03} {'x' * LINE_LENGTH_MAX}" for number in range(OFFERED_LINES_SHOWN_MAX + 1)]
    await documents.edit(SET, "repo:draft", dict.fromkeys(wanted, ""))
    for number in range(OFFERED_DOCUMENTS_SHOWN_MAX):
        await documents.edit(SET, "repo:draft", {"one": ""}, f"list {number}")
    found = await _look(alice)
    assert len(found) == OFFERED_DOCUMENTS_SHOWN_MAX
    assert (found[0]["added"], len(found[0]["lines"])) == (len(wanted), OFFERED_LINES_SHOWN_MAX)
    assert {len(line["text"]) for line in found[0]["lines"]} == {LINE_LENGTH_MAX}
