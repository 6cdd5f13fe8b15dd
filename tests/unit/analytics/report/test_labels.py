"""A page says of which repo a branch is where several repos have one of its name, and when each node was exported."""

import re
from pathlib import Path
from typing import Any

import pytest

from analytics import analyze
from analytics.engines.local_engine import LocalEngine
from analytics.report.pictures import LINE_COLOURS, dashes_of
from ravel.exports.schema import text_id
from tests.support.exports import DAY_MS, T0_MS, Row, change_manifest, id_of, write_export


def _fork(repo: str, branch: str, *, is_repo_named: bool = True, called: str = "main") -> list[Row]:
    """A branch of a repo with a fork that is merged a day later."""
    return [
        Row(
            f"{branch}{name}",
            tuple(branch + cause for cause in causes),
            branch,
            repo=repo,
            called=called,
            is_repo_named=is_repo_named,
            kind=kind,
            time=T0_MS + at * DAY_MS,
        )
        for name, causes, kind, at in (
            ("a", "", "post", 0), ("b", "a", "post", 1), ("c", "a", "post", 1), ("d", "bc", "imported", 2),
            ("e", "d", "post", 2),
        )
    ]  # fmt: skip


def _page(out: Path, *exports: Path, names: dict[str, str]) -> str:
    first, *merge = exports
    analyze.run(first, out, merge=merge, progress=lambda _: None, engine="local", names=names)
    return (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_branches_of_one_name_are_told_apart_and_exports_have_their_times(tmp_path: Path) -> None:
    rows = [
        *_fork("notes", "1"),
        *_fork("toy", "2"),
        *_fork("old", "3", is_repo_named=False),
        *_fork("mine", "4", is_repo_named=False),
        *_fork("notes", "5", called="<side>"),
    ]
    export = write_export(tmp_path / "alice", rows, node="alice")
    other = write_export(tmp_path / "bob", rows[:3], node="bob")
    change_manifest(other, created_at=T0_MS // 1000 - 180)
    page = _page(tmp_path / "out", export, other, names={text_id(id_of("mine")): "our & repo"})
    for label in (
        "notes:main",
        "toy:main",
        f"{text_id(id_of('old'))[:10]}\u2026:main",
        "our &amp; repo:main",
        "&lt;side&gt;",
    ):
        assert f"<h3><bdi>{label}</bdi></h3>" in page or f"<bdi>{label}</bdi> <code" in page, label
    assert not re.search(r"<bdi>main</bdi>", page)
    told = re.sub(r"<[^>]*>", "", page)
    assert (
        "Nodes: alice exported on 2023-11-14 00:00, bob exported on 2023-11-13 23:57. Times are UTC." in told
    )
    assert "bob is behind by 2 commits of 1 branch." in told
    assert "The exports were made 3 minutes apart: some of this may have come since." in told
    assert "bob has no commit of 4 branches: it does not follow them" in told
    assert "5 commits of these were imported." in told
    assert "notes:main (n = 4)" in told, "of how many each curve is"


def test_lines_of_a_picture_differ_by_more_than_colour() -> None:
    told = [(colour, dashes_of(number)) for number, colour in enumerate(LINE_COLOURS)]
    assert len({colour for colour, _ in told}) == len({dashes for _, dashes in told}) == len(LINE_COLOURS)
    assert not [colour for colour, _ in told if "soft)" in colour], "pale lines are for areas"


@pytest.mark.slow
def test_each_cell_says_its_head_for_narrow_screens(tmp_path: Path) -> None:
    page = _page(tmp_path / "out", write_export(tmp_path / "export", _fork("notes", "1")), names={})
    assert '<td data-head="waited, median">' in page
    assert all("data-head" in cell for cell in re.findall(r"<td[^>]*>", page))
    for rule in ("@page {", ".files { display: none; }", "content: attr(data-head)", "direction: rtl"):
        assert rule in page


@pytest.mark.slow
def test_the_page_asks_large_tables_for_rows_and_joins_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    rows = LocalEngine.rows

    def note(engine: LocalEngine, query: str) -> list[dict[str, Any]]:
        asked.append(query)
        return rows(engine, query)

    monkeypatch.setattr(LocalEngine, "rows", note)
    _page(tmp_path / "out", write_export(tmp_path / "export", _fork("notes", "1")), names={})
    large = r"(commits|linearization|placed|ordered)\b"
    assert [query for query in asked if re.search(rf"FROM {large}", query)]
    assert not [query for query in asked if re.search(rf"JOIN {large}|FROM {large}\s+JOIN", query)]
