"""Single commits, oneself and the disk on a terminal: sentences and names; fields and whole ids where all is asked for."""

from typing import Any

import pytest

from node.cli import branch_commands, node_commands
from node.cli.printing import verbosely
from tests.unit.node.cli.conftest import Invoke

COMMIT, GRANT, USER = "k" * 52, "g" * 52, "u" * 52
VERDICT: dict[str, Any] = {
    "commit": COMMIT,
    "branch": "b" * 52,
    "branch_name": "main",
    "author": USER,
    "author_name": "Ben",
    "verdict": "accepted",
    "rule": "M5",
    "reason": "Ann made its author a member with the permission write",
    "by": [GRANT],
}
POST: dict[str, Any] = {
    **VERDICT,
    "person": USER,
    "kind": "post",
    "time": 0,
    "text": "one\ntwo\x1b[2J",
    "deps": [],
}


@pytest.fixture(autouse=True)
def _at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for module in ("commit_view", "node_commands", "printing"):
        monkeypatch.setattr(f"node.cli.{module}.is_terminal", lambda: True)


def _lines(
    capsys: pytest.CaptureFixture[str],
    command: Any,  # noqa: ANN401  # of a class that typer does not export
    answer: object,
    *,
    verbose: bool = False,
) -> list[str]:
    with verbosely(verbose):
        command.printer(answer)
    return capsys.readouterr().out.splitlines()


def test_a_post_is_shown_with_all_its_lines_and_whether_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    file = {"name": "plan.pdf", "size": 2048}
    item = {**POST, "attachments": [{"commit": "f" * 52, "files": [file]}], "edited_at": 86_400}
    item["reply_to"] = {"commit": "r" * 52, "state": "shown", "author": "a" * 52, "author_name": "Ann"}
    head, *rest = _lines(capsys, branch_commands.show, item)
    assert head.startswith("Ben · main · 1 Jan 1970")
    assert head.endswith(f" · {COMMIT[:12]}")
    assert rest[:4] == [
        "  re Ann [rrrrrrrrrrrr]:",
        "  one",
        "  two\N{REPLACEMENT CHARACTER}[2J",
        "  plan.pdf (2.0 KiB)",
    ]
    assert rest[4].startswith("Edited 2 Jan 1970")
    assert rest[5:] == ["It counts: Ann made its author a member with the permission write."]


@pytest.mark.parametrize(
    "fields, line",
    [
        ({"text": None, "deleted": True}, "  (deleted by its author)"),
        ({"text": None, "hidden_by": "a" * 52, "hidden_by_name": "Ann"}, "  (hidden by Ann)"),
        ({"text": None, "kind": "branch-root"}, "  (the branch began)"),
        ({"text": None, "kind": "files", "files": ["a.txt", "b.txt"]}, "  (files: a.txt, b.txt)"),
        ({"text": None, "kind": "files", "files": []}, "  (a file was removed)"),
        ({"text": "new", "edits": "p" * 52}, "  (edits pppppppppppp): new"),
    ],
)
def test_a_commit_without_a_text_says_what_it_is(
    capsys: pytest.CaptureFixture[str], fields: dict[str, object], line: str
) -> None:
    assert _lines(capsys, branch_commands.show, POST | fields)[1] == line


def test_a_verdict_is_a_sentence_and_names_what_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert _lines(capsys, branch_commands.why, VERDICT) == [
        "It counts: Ann made its author a member with the permission write.",
        f"Decided by: {GRANT[:12]}.",
        "Rule: M5.",
        f"Ben · main · {COMMIT[:12]}",
    ]
    waits = {"verdict": "pending", "rule": "V5", "reason": "commits that it follows are not here"}
    anonymous = {name: value for name, value in VERDICT.items() if not name.startswith("author")}
    assert _lines(capsys, branch_commands.why, anonymous | waits) == [
        "It waits: commits that it follows are not here.",
        f"Missing: {GRANT[:12]}.",
        "Rule: V5.",
        f"main · {COMMIT[:12]}",
    ]


def test_whole_ids_come_where_all_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (branch_commands.why, branch_commands.show):
        assert f"by           {GRANT}" in _lines(capsys, command, POST, verbose=True)


def test_oneself_is_said_in_sentences(invoke: Invoke) -> None:
    repos = [
        {"repo": "r", "name": "x", "state": state} for state in ("stated", "stated", "due", "not_permitted")
    ]
    mine = {"user": USER, "name": "Ben", "shown": "", "color": 3, "repos": repos}
    assert invoke("me", show_me=lambda: mine).output.splitlines() == [
        f"You are called Ben.  {USER[:12]}",
        "Members see it in 2 repos.",
        "It comes to 1 repo within a minute, or when this computer can write there.",
        "It is not seen in 1 repo, where you may not write.",
        "Your color has the number 3.",
    ]
    phone = mine | {"name": "Ben's phone", "shown": "Ben"}
    assert (
        invoke("me", show_me=lambda: phone).output.splitlines()[0]
        == f"Others see you as Ben; this computer is called Ben's phone.  {USER[:12]}"
    )
    unnamed = mine | {"name": None, "color": None}
    assert (
        invoke("me", show_me=lambda: unnamed).output
        == "You have no name yet: `ravel me --name NAME` states one.\n"
    )


def test_the_disk_is_a_sentence_before_tables(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"database": 3 << 20, "log": 1 << 20, "older": 0, "packs": 4 << 20, "free": 1 << 30}
    causes = [{"cause": "posts", "commits": 3, "size": 2048}]
    answer = sizes | {"days": [{"day": "2026-11-30", **causes[0]}], "causes": causes, "relay": None}
    assert _lines(capsys, node_commands.storage, answer) == [
        "Ravel takes 8.0 MiB here, and 1.0 GiB of the disk are free. Files take 4.0 MiB.",
        "Of what came in the last 30 days:",
        "CAUSE  COMMITS  SIZE",
        "posts  3        2.0 KiB",
    ]
    assert "2026-11-30  3        2.0 KiB" in _lines(capsys, node_commands.storage, answer, verbose=True)
