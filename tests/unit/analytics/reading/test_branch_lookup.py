"""Users name the branch to draw. A name of several branches is refused."""

from pathlib import Path

import pytest

from analytics.reading.branch_lookup import NoSuchBranch, find_branch
from ravel.exports.checking import Export
from ravel.exports.schema import text_id
from tests.support.exports import Row, id_of, write_export
from tests.support.read_exports import read_export

ROWS = [
    Row("a", branch="1", repo="notes", called="main"),
    Row("b", ("a",), "1", repo="notes", called="main"),
    Row("c", branch="2", repo="toy", called="main"),
    Row("d", branch="3", repo="toy", called="side\x1b[2J"),
    Row("e", branch="4", repo="old", called="main", is_repo_named=False),
    Row("f", branch="5", repo="toy", called="re\u0301sume\u0301"),
]


@pytest.fixture
def exports(tmp_path: Path) -> list[Export]:
    first = read_export(write_export(tmp_path / "one", ROWS[:3], ROWS[3:], node="one"))
    return [first, read_export(write_export(tmp_path / "two", ROWS[:1], node="two"))]


@pytest.mark.parametrize(
    "wanted, found",
    [
        ("notes:main", "1"),
        ("r\xe9sum\xe9", "5"),
        ("toy:re\u0301sume\u0301", "5"),
        ("toy:main", "2"),
        ("side\x1b[2J", "3"),
        ("mine:main", "4"),
        (f"{text_id(id_of('old'))[:8]}:main", "4"),
        (text_id(id_of("2"))[:12], "2"),
        (id_of("2").hex()[:12].upper(), "2"),
    ],
)
def test_a_name_with_its_repo_or_the_start_of_an_id_is_enough(
    exports: list[Export], wanted: str, found: str
) -> None:
    assert find_branch(exports, wanted, {text_id(id_of("old")): "mine"}) == id_of(found)


def test_a_branch_is_found_by_the_name_that_it_was_given_since_its_last_commit(tmp_path: Path) -> None:
    now = [
        {"repo_id": id_of(repo), "branch_id": id_of(branch), "repo_name": repo, "branch_name": name}
        for repo, branch, name in (("toy", "2", "hall"), ("toy", "nothing in it", "attic"))
    ]
    exports = [read_export(write_export(tmp_path / "export", ROWS[:3], tables={"names": now}))]
    for called in ("hall", "toy:hall", "toy:main"):
        assert find_branch(exports, called, {}) == id_of("2")
    with pytest.raises(NoSuchBranch):
        find_branch(exports, "attic", {})


def test_a_name_that_several_branches_have_is_refused_with_all_of_them(exports: list[Export]) -> None:
    with pytest.raises(NoSuchBranch) as caught:
        find_branch(exports, "main", {})
    told = str(caught.value)
    assert told.startswith("several branches are called 'main': notes:main (")
    assert f"toy:main ({text_id(id_of('2'))[:10]})" in told
    assert f"{text_id(id_of('old'))[:10]}:main" in told
    assert told.endswith("; give REPO:NAME, or the start of an id")


def test_of_none_the_branches_are_listed_the_largest_first_and_terminals_obey_no_name(
    exports: list[Export],
) -> None:
    with pytest.raises(NoSuchBranch) as caught:
        find_branch(exports, "nowhere:main", {})
    told = str(caught.value)
    assert (
        "holds no branch that is called 'nowhere:main', or whose id begins so; there are notes:main (" in told
    )
    assert "toy:side\ufffd[2J (" in told
    assert "\x1b" not in told
    many = [Row(f"r{n}", branch=f"b{n}", called=f"name {n}") for n in range(20)]
    export = read_export(write_export(Path(exports[0].source).parent / "many", many))
    with pytest.raises(NoSuchBranch, match="and 8 more"):
        find_branch([export], "nothing", {})
