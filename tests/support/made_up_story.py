"""What a node does with a kind of document that only `made_up_kind` names: `tell` goes through all of it, over the API."""

from pathlib import Path
from typing import Any, Final

import httpx
import trio

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content.documents import Documents
from node.content.erasing import erase_store, measure_erasable
from protocol.formats.body import decode_body, encode_body
from protocol.formats.document_kinds import DOCUMENT_KINDS
from storage.blobs.garbage_collection import collect_garbage
from storage.commits.commits import load_timeline
from storage.repos.repos import Branch
from tests.support.builders import STORE_KEY
from tests.support.made_up_kind import TALLY, Tally, TallyEdit, TallySnapshot, show_tally
from tests.support.nodes import Node
from tests.support.served import Served, served
from verifier.documents import empty_body

_ANY_TIME: Final = 1 << 62


def main(folder: str) -> None:
    """Run the story in this process."""
    assert TALLY in DOCUMENT_KINDS
    trio.run(tell, Path(folder))


async def tell(folder: Path) -> None:
    """Decode, write, fork, snapshot, merge, compact, erase, check."""
    edit = TallyEdit((Tally("figs", 1),), (), ())
    assert decode_body(encode_body(edit)) == edit
    assert empty_body("tally") == empty_body("tally-snapshot") == TallyEdit((), (), ())
    async with served(folder) as one:
        one.node.create_repo()
        await _merge(one)
        await _compact(one)
        node = one.node
        node.replica.close()
        _erase(folder / "alice")
        node.open()
        assert await _held(node) == {"figs": 7, "pears": 4}, "of what was erased, a snapshot says it again"
        _lie(node)
        node.replica.close()
        problems = check_store(folder / "alice", STORE_KEY).problems
        assert ["tally" in str(found) for found in problems] == [True], problems
        node.open()


async def _merge(one: Served) -> None:
    """A fork's edits are carried, and its snapshot is not."""
    written = await _ask(one, "/branches/main/tally", count={"pears": 3, "plums": 1}, strike=[])
    assert (len(written["commits"]), written["counted"]) == (1, ["pears", "plums"])
    await _ask(one, "/branches/main/forks", name="fork")
    await _ask(one, "/branches/fork/tally", count={"pears": 4}, strike=["plums"])
    assert await _shown(one, "fork") == {"pears": 4}
    assert len((await _ask(one, "/branches/fork/tally/snapshots"))["commits"]) == 1
    assert await _shown(one, "fork") == {"pears": 4}
    assert _kinds(one.node, "fork").count("tally-snapshot") == 1
    merged = await _ask(one, "/branches/main/merges", source="fork")
    assert (merged["carried"], merged["left"]) == (1, 0)
    assert await _shown(one, "main") == {"pears": 4}
    assert "tally-snapshot" not in _kinds(one.node, "main")


async def _compact(one: Served) -> None:
    """What a dry run says becomes so, and the document holds what it held."""
    await _ask(one, "/branches/main/tally", count={"figs": 6}, strike=[])
    await _ask(one, "/branches/main/tally", count={"figs": 7}, strike=[])
    possible = await _ask(one, "/branches/main/compactions", dry_run=True)
    made = await _ask(one, "/branches/main/compactions", dry_run=False)
    assert possible["bodies"] == made["bodies"] == 2, (
        "the fork continues the first edit, and what was carried stays"
    )
    assert _kinds(one.node, "main")[-2:] == ["tally-snapshot", "compaction"]
    assert await _shown(one, "main") == {"figs": 7, "pears": 4}


def _erase(folder: Path) -> None:
    expected = measure_erasable(folder, STORE_KEY, _ANY_TIME)
    erased = erase_store(folder, STORE_KEY, _ANY_TIME, 1)
    assert (erased, erased.bodies) == (expected, 2)
    collect_garbage(folder, keep_removed=True)
    findings = check_store(folder, STORE_KEY)
    assert findings.problems == []
    assert findings.checked["snapshots"] == 2, "one of the fork, one of the compaction"


def _lie(node: Node) -> None:
    node.author.write(node.branch(), Draft(TallyEdit((Tally("melons", 1),), (), ())))
    node.author.write(node.branch(), Draft(TallySnapshot("", None, ())))


def _kinds(node: Node, name: str) -> list[str]:
    branch: Branch = node.branch(name)
    with node.replica.database.read() as connection:
        return [row.body_kind for row in load_timeline(connection, branch.num, 0, 100)]


async def _held(node: Node) -> dict[str, int]:
    documents = Documents(node.hub, node.author, node.branch)
    return (await show_tally(documents, "main", 0, 10))["counted"]


async def _shown(one: Served, branch: str) -> dict[str, int]:
    answer = await one.client.get(f"/api/v1/branches/{branch}/tally")
    counted: dict[str, int] = _json(answer)["counted"]
    return counted


async def _ask(one: Served, path: str, **body: object) -> dict[str, Any]:
    return _json(await one.client.post(f"/api/v1{path}", json=body or None))


def _json(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
