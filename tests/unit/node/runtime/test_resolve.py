"""Names, ids and prefixes of ids name one thing, or the error says what there is."""

from typing import get_args

import pytest
import typer
from typer.core import TyperGroup

from node.cli.main import app
from node.runtime.errors import ServiceError
from node.runtime.resolve import What, resolve
from protocol.formats.text import id_text
from protocol.ids import BranchId

IDS = [BranchId(bytes([number]) * 32) for number in range(1, 13)]


def _named(*names: str) -> list[tuple[BranchId, str, int]]:
    return [(IDS[number], name, number) for number, name in enumerate(names)]


def test_a_name_an_id_and_a_prefix_are_found() -> None:
    found = _named("main", "draft")
    assert resolve("branch", "draft", found) == 1
    assert resolve("branch", id_text(IDS[0]), found) == 0
    assert resolve("branch", id_text(IDS[1])[:6], found) == 1


@pytest.mark.parametrize(
    "text, near",
    [
        ("mian", "; did you mean 'main'?"),
        ("notes:mian", "; did you mean 'notes:main'?"),
        ("D", "; did you mean 'draft'?"),
        ("zz", ""),
    ],
)
def test_what_is_not_there_names_what_is_near(text: str, near: str) -> None:
    with pytest.raises(ServiceError) as caught:
        resolve("branch", text, _named("main", "draft"), lambda number: f"notes:{('main', 'draft')[number]}")
    assert caught.value.code == "not_found"
    assert caught.value.message == f"no branch is called {text!r}{near}"


def test_what_fits_more_than_one_lists_them() -> None:
    with pytest.raises(ServiceError) as caught:
        resolve("branch", "main", _named("main", "main", "other"), lambda number: f"repo{number}:main")
    assert caught.value.code == "ambiguous"
    shown = ", ".join(f"repo{number}:main ({id_text(IDS[number])[:12]})" for number in (0, 1))
    assert caught.value.message == f"more than one branch fits 'main': {shown}"
    assert "ravel use REPO" in caught.value.advice


def test_of_many_that_fit_some_are_listed_and_the_rest_counted() -> None:
    with pytest.raises(ServiceError) as caught:
        resolve("repo", "x", _named(*["x"] * 12))
    assert caught.value.message.endswith(") and 4 more")
    assert caught.value.message.count("(") == 8


@pytest.mark.parametrize("what", get_args(What))
def test_what_is_not_there_comes_with_the_command_that_lists_what_is(what: What) -> None:
    with pytest.raises(ServiceError) as caught:
        resolve(what, "typo", _named("main"))
    assert caught.value.code == "not_found"
    command = caught.value.advice.split("`")[1].split()
    assert command[0] == "ravel"
    group = typer.main.get_command(app)
    for word in command[1:]:
        if not word.isupper():
            assert isinstance(group, TyperGroup), command
            group = group.commands[word]
