"""Sets, dicts and texts by command, on two daemons that meet again."""

import json
from pathlib import Path

import pytest
from pycrdt import Doc, Text

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import ask, join, peers, run_ravel, until_equal

pytestmark = pytest.mark.slow


@pytest.mark.extended
def test_two_daemons_agree_about_documents_that_both_changed(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        editor: Doc[Text] = Doc(client_id=ask(alice, "text", "client", branch)["client"])
        text = editor.get("notes", type=Text)
        text += "a tangle"
        (tmp_path / "update").write_bytes(editor.get_update())
        run_ravel(alice, "set", "add", branch, "pears", "plums")
        run_ravel(alice, "dict", "put", branch, "colour", "green")
        pushed = ask(alice, "text", "push", branch, str(tmp_path / "update"))
        assert pushed["has"] == [{"client": editor.client_id, "clock": 8}]
        until_equal(alice, bob, branch)
        alice.stop()
        assert ask(bob, "set", "rm", branch, "plums", "melons")["removed"] == ["plums"]
        again = run_ravel(bob, "set", "add", branch, "pears", "figs")
        assert "figs" in again.stdout
        assert "there already: pears" in again.stderr
        assert "not there: nuts" in run_ravel(bob, "set", "rm", branch, "figs", "nuts").stderr
        assert ask(bob, "dict", "put", branch, "size", "7")["put"] == ["size"]
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
                for entry in ask(peer, "dict", "list", branch)["entries"]
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
        assert "Deleted size." in run_ravel(bob, "dict", "rm", branch, "size").stdout
        run_ravel(bob, "dict", "get", branch, "size", code=ERROR_KINDS["not_found"].exit_code)
        foreign: Doc[Text] = Doc(client_id=0)
        foreign.get("notes", type=Text).insert(0, ", but words")
        (tmp_path / "update").write_bytes(foreign.get_update())
        refused = run_ravel(
            bob, "text", "push", branch, str(tmp_path / "update"), code=ERROR_KINDS["bad_input"].exit_code
        )
        assert " text import`" in refused.stderr
        run_ravel(bob, "text", "import", branch, str(tmp_path / "update"))
        assert run_ravel(bob, "text", "pull", branch, "--root", "notes").stdout == "not a tangle, but words"
        editor_of_bob = {"VISUAL": "sed -i s/tangle/knot/"}
        for said in ("Wrote your changes to notes in", "Nothing was changed."):
            assert said in run_ravel(bob, "text", "edit", branch, environment=editor_of_bob).stdout
        assert run_ravel(bob, "text", "pull", branch, "--root", "notes").stdout == "not a knot, but words"
        (tmp_path / "update").write_bytes(b"hello")
        run_ravel(
            bob, "text", "push", branch, str(tmp_path / "update"), code=ERROR_KINDS["bad_input"].exit_code
        )


def test_lines_of_standard_input_are_posts_items_and_entries(tmp_path: Path) -> None:
    bad_input = ERROR_KINDS["bad_input"].exit_code
    with peers(tmp_path, "alice") as (alice,):
        repo = str(alice.client.create_repo("notes")["repo"])
        branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
        posts = "".join(f"line {number}\n" for number in range(600))
        done = run_ravel(alice, "write", branch, "-", "--json", stdin=f"{posts}\nthe last", forks=False)
        assert json.loads(done.stdout) == {"posts": 601}
        window = alice.client.show_timeline(branch, after_position=599, limit=10)
        assert [item["text"] for item in window["items"]] == ["line 599", "the last"]
        run_ravel(alice, "set", "add", branch, "-", stdin="pears\nplums\n")
        run_ravel(alice, "set", "rm", branch, "-", stdin="plums\n")
        assert run_ravel(alice, "set", "list", branch).stdout == "pears\n"
        entries = '{"a": "1", "b": "2"}\n{"a": "3"}\n'
        run_ravel(alice, "dict", "put", branch, "-", stdin=entries)
        assert ask(alice, "dict", "get", branch, "a")["value"] == "3"
        said = run_ravel(alice, "dict", "put", branch, "-", stdin='{"c": 1}\n', code=bad_input).stderr
        assert "a line is no object of texts" in said
        assert "written before that: 0 lines" in said
        run_ravel(alice, "dict", "put", branch, "a", code=ERROR_KINDS["bad_request"].exit_code)


def test_json_documents_are_put_shown_and_found_by_command(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        run_ravel(alice, "repo", "create", "board")
        bad_input = ERROR_KINDS["bad_input"].exit_code
        run_ravel(
            alice, "json", "put", "main", "", '{"todo": [{"t": "tea"}], "2026": {"0": 1}}', "--name", "b"
        )
        run_ravel(alice, "json", "put", "main", "todo.0.t", "-", "--name", "b", stdin='"milk"')
        run_ravel(alice, "json", "put", "main", "2026.0", "2", "--name", "b")
        value = json.loads(run_ravel(alice, "json", "get", "main", "--name", "b").stdout)
        assert (value["2026"], value["todo"][0]["t"]) == ({"0": 2}, "milk"), "places in lists, keys in maps"
        run_ravel(alice, "json", "rm", "main", "todo.0", "--name", "b")
        assert ask(alice, "json", "get", "main", "--name", "b")["value"]["todo"] == []
        absent = run_ravel(
            alice, "json", "get", "main", "--name", "absent", code=ERROR_KINDS["not_found"].exit_code
        )
        assert "no JSON document here is called 'absent'" in absent.stderr
        refused = run_ravel(alice, "json", "put", "main", "a", "no JSON", code=bad_input)
        assert "in quotes" in refused.stderr
        for name, due in (("card/a", 2), ("card/b", 1)):
            run_ravel(alice, "json", "put", "main", "due", str(due), "--name", name)
        found = run_ravel(alice, "json", "query", "main", "--prefix", "card/", "--sort", "due").stdout
        assert [line.split("\t")[0] for line in found.splitlines()[-2:]] == ["card/b", "card/a"]
        some = ask(alice, "json", "query", "main", "--where", '{"due": {"$gt": 0}}', "--limit", "1")
        assert (len(some["documents"]), some["more"]) == (1, True)
