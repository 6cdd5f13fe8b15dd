"""What commands on branches print."""

import pytest
from typer.testing import CliRunner, Result

from node.cli.branch_commands import print_merge
from node.cli.main import app
from node.runtime.errors import ServiceError
from ravel.types.branches import MergeResult
from tests.unit.node.cli.conftest import Invoke

DONE: MergeResult = {"branch": "b" * 52, "commit": "c" * 52, "carried": 2, "left": 0, "files_left": []}


@pytest.mark.parametrize(
    "answer, out, notes",
    [
        (DONE, f"Merged 2 commits into notes:main.  {'c' * 52}\n", ""),
        ({**DONE, "commit": None, "carried": 0}, "Nothing to merge: the target has it all.", ""),
        (
            {**DONE, "commit": None, "carried": 0, "files_left": ["a.txt", "b\u202e.txt"]},
            "Nothing was merged.",
            "note: not carried, since other keys encrypt them: a.txt, b�.txt. "
            "Save them with `ravel file get` and add them with `ravel file add`",
        ),
        ({**DONE, "left": 1}, "Merged 2 commits", "note: 1 commit too large to be carried"),
    ],
)
def test_a_merge_says_what_it_left_and_what_to_do(
    answer: MergeResult, out: str, notes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_merge((answer, "notes:main"))
    printed = capsys.readouterr()
    assert out in printed.out
    assert printed.err.strip().startswith(notes)
    assert bool(notes) == bool(printed.err)


@pytest.mark.parametrize(
    "options",
    [
        ("--digest", "--at", "v1"),
        ("--digest", "--whole"),
        ("--whole", "--at", "v1"),
        ("--at", "v1", "--by-time"),
        ("--at", "v1", "--to", "3"),
        ("--by-time", "--from", "3"),
        ("--since", "7d", "--to", "3"),
    ],
    ids=" ".join,
)
def test_a_log_is_asked_for_in_one_way(options: tuple[str, ...]) -> None:
    """None of two is passed over: the digest of all is not that of what a tag names."""
    refused = CliRunner().invoke(app, ["log", "main", *options]).exception
    assert isinstance(refused, ServiceError)
    assert (refused.code, refused.advice) == ("bad_request", "give one of them")


def test_an_empty_day_is_not_passed_over() -> None:
    """Else a script whose variable is empty reads the latest commits as those from a day on."""
    refused = CliRunner().invoke(app, ["log", "main", "--since", ""]).exception
    assert isinstance(refused, ServiceError)
    assert str(refused) == "'' is no date"


def test_a_log_since_a_day_says_where_it_goes_on_and_shows_no_earlier_members(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.cli.branch_commands.is_terminal", lambda: True)
    asked: list[int] = []
    item = {
        "commit": "c" * 52,
        "time": 1_793_491_200,
        "author": "a" * 52,
        "author_name": "Ann",
        "kind": "post",
        "text": "tea",
    }
    window = {"items": [item], "total": 9, "previous": None, "next": "c" * 52}

    def list_member_changes(_repo: str, *, since: int) -> object:
        asked.append(since)
        return {"changes": []}

    def log(answer: object) -> Result:
        return invoke(
            *("log", "main", "--since", "2026-10-31T00:00:00+00:00"),
            show_timeline=lambda *_, **_all: answer,
            show_state=lambda *_, **_all: {"branch": "b"},
            list_repos=lambda: {"repos": [{"repo": "r", "permission": "write"}]},
            list_branches=lambda _: {"branches": [{"branch": "b"}]},
            list_member_changes=list_member_changes,
        )

    assert f"note: there may be more: --by-time --after={'c' * 52}" in log(window).stderr
    nothing = log({**window, "items": [], "next": None})
    assert (nothing.stdout, nothing.stderr) == ("Nothing was written since then.\n", "")
    assert asked == [1_793_404_800] * 2
