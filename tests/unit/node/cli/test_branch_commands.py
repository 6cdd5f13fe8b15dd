"""What commands on branches print."""

import pytest
from typer.testing import CliRunner

from node.cli.branch_commands import print_merge
from node.cli.main import app
from node.runtime.errors import ServiceError
from ravel.types.branches import MergeResult

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
