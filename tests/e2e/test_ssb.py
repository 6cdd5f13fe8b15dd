"""A Scuttlebutt log is imported by command, again with what came since, and reaches another peer as it was."""

import json
from pathlib import Path

import pytest

from node.importers.ssb_log import branch_of
from node.runtime.errors import ERROR_KINDS
from node.scuttlebutt.messages import read_ssb_message, verify_ssb_signature
from tests.e2e.cluster import join, peers, run_ravel, until_equal
from tests.support.ssb import Feed, key_of_line

pytestmark = pytest.mark.slow


@pytest.mark.extended
def test_a_log_is_imported_again_and_again_and_replicates(tmp_path: Path) -> None:
    log, refused = tmp_path / "log.jsonl", tmp_path / "refused.jsonl"
    first, second = Feed("a"), Feed("b")
    lines = [feed.write(f"Grüße {number} €") for number in range(3) for feed in (first, second)]
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        join(alice, bob)
        repo = alice.client.list_repos()["repos"][0]["repo"]
        log.write_bytes(b"".join(lines[:4]) + b"torn")
        command = ("import", "ssb", str(log), "--repo", repo)
        answer = json.loads(run_ravel(alice, *command, "--refused", str(refused), "--json").stdout)
        assert (answer["imported"], answer["already"], answer["refused"]) == (4, 0, {"not_a_message": 1})
        assert [feed["branch"] for feed in answer["feeds"]] == [branch_of(first.id), branch_of(second.id)]
        assert [json.loads(line) for line in refused.read_text().splitlines()] == answer["refusals"]
        for option, value, code in (
            ("--refused", str(tmp_path), "bad_input"),
            ("--hmac-key", "bm8=", "bad_request"),
        ):
            run_ravel(alice, *command, option, value, code=ERROR_KINDS[code].exit_code)
        log.write_bytes(b"".join(lines))
        shown = run_ravel(alice, *command).stdout
        assert shown == "Imported 2 messages of 2 feeds. There already: 4.\n"
        branch = next(
            one["branch"]
            for one in alice.client.list_branches(repo)["branches"]
            if one["name"] == branch_of(first.id)
        )
        until_equal(alice, bob, branch)
        items = bob.client.show_timeline(branch, after_position=0, limit=10)["items"]
        texts = [item["text"] or "" for item in items]
        assert [text.count("Grüße") for text in texts] == [1, 1, 1]
        for text, line in zip(texts, lines[::2], strict=True):
            again = json.dumps({"key": key_of_line(line), "value": json.loads(text)})
            message = read_ssb_message(again.encode())
            verify_ssb_signature(message)
            assert message.text == text


@pytest.mark.extended
def test_a_thread_of_a_log_is_shown_as_a_tangle(tmp_path: Path) -> None:
    first, second = Feed("a"), Feed("b")
    opening = first.write("who is here?")
    root = key_of_line(opening)
    answers = [
        feed.write(content={"type": "post", "text": "me", "root": root, "branch": root})
        for feed in (first, second)
    ]
    last = second.write(
        content={"type": "post", "text": "all", "root": root, "branch": [key_of_line(one) for one in answers]}
    )
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join([opening, *answers, first.write("something else"), last]))
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("feeds")
        run_ravel(alice, "import", "ssb", str(log), "--repo", "feeds")
        command = ("tangle", "show", "feeds", "thread", "--root", root)
        thread = json.loads(run_ravel(alice, *command, "--json").stdout)
        assert [item["rank"] for item in thread["commits"]] == [0, 1, 1, 2]
        assert thread["commits"][-1]["source"] == key_of_line(last)
        assert run_ravel(alice, *command, "--dot").stdout.count("->") == 4
