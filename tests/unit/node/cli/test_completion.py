"""What the shell is offered: names that are there, and none that a shell gives a meaning."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from node.cli import completion
from node.cli.completion import complete_branches, complete_files, complete_keys, complete_repos


class Api:
    """Answers like a daemon with two repos."""

    names: tuple[str, ...] = ("main", "draft")

    def list_repos(self) -> Any:  # noqa: ANN401  # as far as it is looked at
        return {"repos": [{"repo": "1", "name": "notes"}, {"repo": "2", "name": "work"}]}

    def list_branches(self, repo: str) -> Any:  # noqa: ANN401  # the same
        return {"branches": [{"name": name} for name in (self.names if repo == "1" else ("main",))]}

    def list_files(self, branch: str, *, limit: int) -> Any:  # noqa: ANN401  # the same
        assert (branch, limit) == ("main", 1000)
        names = ("a.txt", "$(rm -rf ~)", "a b", "-x", "`id`", "a;b", "a\nb", "~", "a.txt", "über.md")
        return {"files": [{"name": name} for name in names]}


def _line(**params: object) -> typer.Context:
    context = SimpleNamespace(params=params)
    context.find_root = lambda: context
    return cast("typer.Context", context)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    """Every line is about it."""
    made = Api()
    monkeypatch.setattr(completion, "_client", lambda _: made)
    return made


@pytest.mark.usefixtures("api")
def test_names_of_repos_and_branches_are_offered() -> None:
    assert complete_repos(_line(), "") == ["notes", "work"]
    assert complete_repos(_line(), "n") == ["notes"]
    assert complete_branches(_line(), "") == ["notes:main", "draft", "work:main"]
    assert complete_branches(_line(), "d") == ["draft"]
    assert complete_branches(_line(), "notes:") == ["notes:main", "notes:draft"]
    assert complete_branches(_line(), "gone:") == []


@pytest.mark.usefixtures("api")
def test_what_a_shell_would_run_is_not_offered() -> None:
    assert complete_files(_line(branch="main"), "") == ["a.txt", "über.md"]


def test_a_name_that_is_fine_alone_is_offered_though_another_is_not(api: Api) -> None:
    api.names = ("main", "$(reboot)", "draft")
    assert complete_branches(_line(), "") == ["notes:main", "draft", "work:main"]


def test_without_a_daemon_nothing_is_offered_and_nothing_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _line(home=tmp_path / "gone", branch="main")
    for complete in (complete_repos, complete_branches, complete_files):
        assert complete(line, "") == []
    assert capsys.readouterr() == ("", "")


def test_keys_are_offered_without_a_daemon() -> None:
    assert complete_keys("log.") == ["log.level"]
    assert "network.listen" in complete_keys("")
