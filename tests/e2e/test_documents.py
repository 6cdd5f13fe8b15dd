"""Sets, dicts and texts by command, on two daemons that meet again."""

import json
from pathlib import Path

import pytest
from pycrdt import Doc, Text

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import JsonObject, Peer, join, peers, run_ravel, until_equal

pytestmark = pytest.mark.slow


def _ask(peer: Peer, *arguments: str) -> JsonObject:
    answer: JsonObject = json.loads(run_ravel(peer, *arguments, "--json").stdout)
    return answer


@pytest.mark.extended
def test_two_daemons_agree_about_documents_that_both_changed(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        editor: Doc[Text] = Doc(client_id=1)
        text = editor.get("notes", type=Text)
        text += "a tangle"
        (tmp_path / "update").write_bytes(editor.get_update())
        run_ravel(alice, "set", "add", branch, "pears", "plums")
        run_ravel(alice, "dict", "put", branch, "colour", "green")
        pushed = _ask(alice, "text", "push", branch, str(tmp_path / "update"))
        assert pushed["snapshot"] is None
        until_equal(alice, bob, branch)
        alice.stop()
        assert _ask(bob, "set", "rm", branch, "plums", "melons")["removed"] == ["plums"]
        assert _ask(bob, "dict", "put", branch, "size", "7")["put"] == ["size"]
        bob.stop()
        alice.start()
        run_ravel(alice, "dict", "put", branch, "size", "8")
        before = editor.get_state()
        text.insert(0, "not ")
        (tmp_path / "update").write_bytes(editor.get_update(before))
        run_ravel(alice, "text", "push", branch, str(tmp_path / "update"))
        bob.start()
        until_equal(alice, bob, branch)
        for peer in (alice, bob):
            assert run_ravel(peer, "set", "list", branch).stdout == "pears\n"
            assert {
                entry["key"]: len(entry["conflicts"])
                for entry in _ask(peer, "dict", "list", branch)["entries"]
            } == {
                "colour": 0,
                "size": 1,
            }
            assert run_ravel(peer, "text", "pull", branch, "--root", "notes").stdout == "not a tangle"
            run_ravel(peer, "text", "pull", branch, "-o", str(tmp_path / "pulled"))
            pulled: Doc[Text] = Doc()
            pulled.apply_update((tmp_path / "pulled").read_bytes())
            assert str(pulled.get("notes", type=Text)) == "not a tangle"
        shown = run_ravel(bob, "dict", "get", branch, "size").stdout
        assert {line.split()[0] for line in shown.splitlines()} == {"key", "value", "commit", "conflict"}
        run_ravel(bob, "dict", "rm", branch, "size")
        run_ravel(bob, "dict", "get", branch, "size", code=ERROR_KINDS["not_found"].exit_code)
        (tmp_path / "update").write_bytes(b"hello")
        run_ravel(
            bob, "text", "push", branch, str(tmp_path / "update"), code=ERROR_KINDS["bad_input"].exit_code
        )
