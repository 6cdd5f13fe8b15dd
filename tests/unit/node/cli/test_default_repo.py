"""A repo that a command's line does not name: the one in use, or the only one that this user made or joined."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.core import TyperArgument
from typer.main import get_command

from node.cli.main import app
from node.cli.shared import repo_in_use
from node.runtime.errors import ServiceError
from tests.unit.node.cli.conftest import Invoke


def _repos(*names: str, **fields: object) -> list[dict[str, Any]]:
    return [
        {"repo": f"r{number}", "name": name, "of_devices": False, "permission": "write", "whole": True}
        | fields
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    "names, chosen, meant",
    [
        (["garden"], "", "garden"),
        (["garden", "family"], "r1", "family"),
        (["garden", "garden"], "r1", "r1"),
        (["garden", "family"], "gone", None),
        ([], "", None),
    ],
)
def test_a_repo_that_is_not_named_is_the_one_in_use_or_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], chosen: str, meant: str | None
) -> None:
    repos = _repos(*names)
    api: Any = SimpleNamespace(list_repos=lambda: {"repos": repos})
    monkeypatch.setattr("node.home.default_repo.load_default_repo", lambda _: chosen)
    if meant is not None:
        assert repo_in_use(tmp_path, api) == meant
        return
    with pytest.raises(ServiceError) as caught:
        repo_in_use(tmp_path, api)
    assert caught.value.code == ("ambiguous" if repos else "not_found")
    assert "ravel use REPO" in caught.value.advice or "ravel repo create" in caught.value.advice


def test_repos_that_ravel_made_are_not_meant_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.home.default_repo.load_default_repo", lambda _: "")
    made = (
        _repos("comments", permission="owner") + _repos("devices", of_devices=True) + _repos("", whole=False)
    )
    api: Any = SimpleNamespace(list_repos=lambda: {"repos": [*made, *_repos("garden")]})
    assert repo_in_use(tmp_path, api) == "garden"
    api.list_repos = lambda: {"repos": made[:1]}
    assert repo_in_use(tmp_path, api) == "comments", "where there is no other"
    api.list_repos = lambda: {"repos": [*_repos("comments"), *_repos("garden")]}
    with pytest.raises(ServiceError, match="comments, garden"):
        repo_in_use(tmp_path, api)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the repos here, one at first."""
    monkeypatch.setattr("node.home.default_repo.load_default_repo", lambda _: "")
    return ["garden"]


@pytest.mark.parametrize(
    "line, method, called",
    [
        ("branch create plans", "create_branch", ("garden", "plans")),
        ("branch create family plans", "create_branch", ("family", "plans")),
        ("tag set v1 k7x2", "set_tag", ("garden", "v1", "k7x2")),
        ("tag rm --json v1", "remove_tag", ("garden", "v1")),
        ("member grant ben write", "grant_permission", ("garden", "ben", "write")),
        ("member grant family ben write", "grant_permission", ("family", "ben", "write")),
        ("member exclude --yes ben", "remove_member", ("garden", "ben")),
        ("requests refuse carl", "answer_request", ("garden", "carl")),
        ("quorum set --signer ann --threshold 1", "set_quorum", ("garden", ["ann"], 1)),
    ],
    ids=lambda one: one if isinstance(one, str) and " " in one else "",
)
def test_the_other_arguments_alone_mean_the_only_repo(
    invoke: Invoke, names: list[str], line: str, method: str, called: tuple[object, ...]
) -> None:
    found: list[tuple[object, ...]] = []

    def note(*arguments: object, **_: object) -> None:
        found.append(arguments)

    done = invoke(*line.split(), **{method: note, "list_repos": lambda: {"repos": _repos(*names)}})
    assert done.exception is None, done.output
    assert found == [called]


def test_a_line_that_may_mean_several_repos_lists_them_and_says_how_it_was_read(
    invoke: Invoke, names: list[str]
) -> None:
    names.append("family")
    done = invoke("member", "exclude", "garden", "--yes", list_repos=lambda: {"repos": _repos(*names)})
    assert isinstance(done.exception, ServiceError)
    assert done.exception.message == (
        "it is not said which repo is meant: garden, family; 'garden' was taken for the user"
    )
    assert invoke("member", "grant", "garden").exit_code == 2, "two arguments are missing"


@pytest.mark.parametrize(
    "line", ["member exclude --yes ben", "repo renew --yes", "repo keep --last 30d --yes"]
)
def test_a_line_that_asks_nothing_names_the_repo_where_there_are_several(
    invoke: Invoke, names: list[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """In a script, `$REPO` that is not set is no argument: ben would be excluded from the repo that is in use."""
    names.append("family")
    monkeypatch.setattr("node.home.default_repo.load_default_repo", lambda _: "r1")
    done = invoke(*line.split(), list_repos=lambda: {"repos": _repos(*names)})
    assert isinstance(done.exception, ServiceError)
    assert "which repo is meant: garden, family" in done.exception.message
    assert done.exception.advice == "name one, or leave out --yes"


@pytest.mark.parametrize(
    "line, method",
    [
        ("log", "show_timeline"),
        ("file list", "list_files"),
        ("set list", "show_set"),
        ("text list", "pull_text"),
    ],
)
def test_what_lists_a_branch_means_the_main_one_of_the_only_repo(
    invoke: Invoke, names: list[str], line: str, method: str
) -> None:
    def answer(*arguments: str, branch: str = "", **_: object) -> None:
        raise ServiceError("not_found", branch or arguments[0])

    api: dict[str, Any] = {method: answer, "list_repos": lambda: {"repos": _repos(*names)}}
    assert str(invoke(*line.split(), **api).exception) == "garden:main"
    assert str(invoke(*line.split(), "plans", **api).exception) == "plans"
    names.append("family")
    assert "which repo is meant" in str(invoke(*line.split(), **api).exception)


@pytest.mark.slow
def test_every_command_but_those_that_delete_takes_the_only_repo() -> None:
    required: list[str] = []

    def walk(command: Any, path: str) -> None:  # noqa: ANN401  # of a class that typer does not export
        for name, child in getattr(command, "commands", {}).items():
            walk(child, f"{path} {name}".strip())
        if any(
            one.name == "repo" and one.required for one in command.params if isinstance(one, TyperArgument)
        ):
            required.append(path)

    walk(get_command(app), "")
    assert sorted(required) == ["repo forget", "repo leave", "requests cancel"]
