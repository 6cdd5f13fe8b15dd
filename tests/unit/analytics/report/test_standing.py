"""What an operator reads first: sentences about what changed, who lags, what grows, and what is wrong."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analytics import analyze
from analytics.reading.times import DAY
from analytics.report.page import NO_NAMES, Names
from analytics.report.standing import (
    SUMMARY_NAME,
    Lag,
    Received,
    Standing,
    Summary,
    find_standing,
    load_summary,
    render_standing,
    save_summary,
)
from analytics.tables.periods import Period
from tests.support.exports import DAY_MS, T0_MS, Row, id_of, write_export

NOW = Summary(("alice",), T0_MS // 1000, 10, 2, 5 << 20, 0, 0, 0, 0, 0)
NOTHING = Standing(NOW, None, (), (), None)


def _said(standing: Standing) -> list[str]:
    items = re.findall(r"<li[^>]*>(.*?)</li>", render_standing(standing, NO_NAMES))
    return [re.sub(r"<[^>]*>", "", item) for item in items]


def test_a_calm_node_alone_is_told_so() -> None:
    assert _said(NOTHING) == [
        "This folder has no earlier analysis of these nodes: the next one says here what has changed.",
        "This is one node's export, which does not hold what peers have. ravel status shows it for connected peers. "
        "ravel analyze EXPORT1 EXPORT2 compares nodes and shows since when one lags.",
        "No author forked a feed.",
        "No branch has several heads.",
        "No parent of a commit is missing.",
        "No root branch is damaged.",
        "No clock went back.",
    ]


def test_changes_are_told_against_the_analysis_before() -> None:
    before = replace(NOW, commits=4, branches=1, size=2 << 20, exported_at=NOW.exported_at - 86_400)
    assert _said(replace(NOTHING, before=before))[0].endswith("6 commits and 1 branch came: 3.0 MiB.")
    assert _said(replace(NOTHING, before=NOW))[0].endswith("nothing has changed.")
    assert "3 commits fewer" in _said(replace(NOTHING, before=replace(NOW, commits=13)))[0]
    earlier = replace(NOW, exported_at=NOW.exported_at - 86_400)
    assert (
        _said(replace(NOTHING, before=earlier))[0]
        == "Since the export of 2023-11-13 00:00 nothing has changed."
    )
    worse = replace(NOW, forked=2, unmerged=1, missing=3)
    told = _said(Standing(worse, replace(NOW, missing=1), (), (), T0_MS - 4 * DAY))
    assert told[2].startswith("2 authors used a place of a feed twice")
    assert "(0 before)" in told[2]
    assert told[3].startswith("1 branch has several heads (0 before). The oldest is of ")
    assert ", 4 days before the export: the rows." in told[3]
    assert told[4].startswith("3 parents of commits are missing (1 before)")
    (*_, last, _) = _said(replace(NOTHING, now=replace(NOW, damaged=2), before=NOW))
    assert last.startswith("2 repos have a damaged root branch (0 before). Its members are")


def test_nodes_that_lag_and_nodes_that_grow_are_named_and_escaped() -> None:
    now = replace(NOW, nodes=("alice", "<b>"), lacking=7)
    received = Received("<b>", ((T0_MS, 10), (T0_MS + DAY, 1 << 20)), DAY, 1 << 20, 2 * DAY)
    standing = Standing(now, None, (Lag("<b>", 2, 7, T0_MS),), (received,), None)
    page = render_standing(standing, NO_NAMES)
    assert "<b>" not in page
    called = render_standing(standing, Names({"<b>": "Ben & co"}))
    assert ">Ben &amp; co</bdi></span> is behind by 7 commits" in called
    assert page.count("<svg") == 1
    told = [text.replace("&lt;b&gt;", "B") for text in _said(standing)]
    assert told[1].startswith(
        "Node B is behind by 7 commits of 2 branches. Another node has had the earliest since 2023-11-14"
    )
    assert told[2] == (
        "Node B received 1.0 MiB of commits in 2 days. At that pace they take 182.5 MiB more disk space in a year."
    )


def test_nodes_without_a_lag_are_said_to_have_what_they_follow() -> None:
    standing = replace(NOTHING, now=replace(NOW, nodes=("alice", "bob")))
    assert _said(standing)[1] == "No node is behind another in a branch that it has in part."


HOUR = DAY // 24


def _find(
    buckets: list[tuple[int, int]], exported_at: int, bucket: int = DAY, before: Summary | None = None
) -> Standing:
    """The standing of a node that received so many bytes in buckets that begin then (in unix milliseconds)."""
    in_all = [sum(size for _, size in buckets[: number + 1]) for number in range(len(buckets))]
    answers: dict[str, list[dict[str, Any]]] = {
        "lags": [],
        "feed_forks": [{"authors": 0}],
        "clocks": [{"clocks": 0, "back_max": None}],
        "unmerged": [{"branches": 0, "oldest": None}],
        "faults": [{"causes": 0}],
        "stores": [{"node": "alice", "block_bytes": 3 << 20}],
        "store_growth": [
            {"node": "alice", "bucket_start": at, "bytes": size, "bytes_in_all": total, "file_bytes": 0}
            for (at, size), total in zip(buckets, in_all, strict=True)
        ],
    }

    def rows(query: str) -> list[dict[str, Any]]:
        (asked,) = re.findall(r"FROM (\w+)", query)
        return answers[asked]

    total = {"commits": NOW.commits, "branches": NOW.branches, "bytes": NOW.size}
    period = Period(buckets[0][0], buckets[-1][0], bucket)
    return find_standing(rows, before, period, ["alice"], exported_at // 1000, total)


@pytest.mark.parametrize(
    "buckets, exported_after, bucket, said",
    [
        (
            [(0, 1 << 20), (DAY, 1 << 20)],
            2 * DAY,
            DAY,
            "2.0 MiB of commits in 2 days. At that pace they take 365.0 MiB",
        ),
        ([(0, 1 << 20)], 10 * DAY, DAY, "1.0 MiB of commits in 10 days. At that pace they take 36.5 MiB"),
        ([(0, 1 << 20)], 300 * DAY, DAY, "0 B of commits in 30 days. At that pace they take 0 B"),
        (
            [(0, 5 << 20), (60 * DAY, 1 << 20)],
            100 * DAY,
            60 * DAY,
            "1.0 MiB of commits in 40 days. At that pace they take 9.1 MiB",
        ),
        ([(0, 1 << 30)], HOUR, HOUR, "1.0 GiB of commits in 1 hour."),
    ],
    ids=["steady", "idle", "idle for long", "wide buckets", "young"],
)
def test_the_pace_is_that_up_to_the_export(
    buckets: list[tuple[int, int]], exported_after: int, bucket: int, said: str
) -> None:
    start = T0_MS // bucket * bucket
    received, _, pace = said.partition("At that")
    said = f"{received.rstrip()} It holds 3.0 MiB of blocks.{' At that' * bool(pace)}{pace}"
    standing = _find([(start + at, size) for at, size in buckets], start + exported_after, bucket)
    (one,) = standing.received
    told = _said(replace(standing, received=(replace(one, points=()),)))[
        2
    ]  # without a picture, which takes long
    assert told.startswith(f"Node alice received {said}")
    assert ("in a year" in told) == ("At that" in said)


@pytest.mark.slow
def test_the_forecast_counts_files_and_no_clock_that_ran_ahead_of_the_export(tmp_path: Path) -> None:
    rows = [
        Row("a", received=T0_MS - 10 * DAY, size=1 << 20),
        Row("b", ("a",), received=T0_MS - DAY, size=1 << 20, file_bytes=8 << 20),
        Row("c", ("b",), received=T0_MS + 400 * DAY, size=1 << 20, file_bytes=1 << 30),  # after the export
    ]
    export = write_export(tmp_path / "export", rows, node="alice")
    result = analyze.run(export, tmp_path / "out", engine="local", progress=lambda _: None)
    page = result.report.read_text(encoding="utf-8")
    (said,) = re.findall(r"received ([^<]* more disk space in a year)", page)
    found = re.match(
        r"2\.0 MiB of commits, which add 8\.0 MiB of files, in (\d+) days\. .* they take ([\d.]+) MiB", said
    )
    assert found is not None, said
    days, pace = int(found[1]), float(found[2])
    assert 10 <= days <= 17, "whole buckets up to the export, and none after it"
    assert pace == pytest.approx(10 * 365 / days, rel=0.1)


def test_an_analysis_of_later_exports_is_not_compared_with() -> None:
    for seconds, is_compared in ((-1, True), (0, True), (1, False)):
        before = replace(NOW, exported_at=NOW.exported_at + seconds)
        assert (_find([(T0_MS // DAY * DAY, 1)], T0_MS, before=before).before is before) == is_compared


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"nodes": []}', '{"nodes": [1]}', "[" * 100_000],
    ids=["empty", "a list", "cut", "incomplete", "of numbers", "deep"],
)
def test_what_is_no_summary_is_passed_over(tmp_path: Path, content: str) -> None:
    assert load_summary(tmp_path) is None
    (tmp_path / SUMMARY_NAME).write_text(content, encoding="utf-8")
    assert load_summary(tmp_path) is None
    save_summary(tmp_path, NOW)
    assert load_summary(tmp_path) == NOW
    padded = (tmp_path / SUMMARY_NAME).read_bytes().ljust(1 << 20)
    (tmp_path / SUMMARY_NAME).write_bytes(padded)
    assert load_summary(tmp_path) == NOW
    (tmp_path / SUMMARY_NAME).write_bytes(padded + b" ")
    assert load_summary(tmp_path) is None
    values = json.loads(padded)
    for wrong in (-1, 1.5, True, 1 << 62, "1"):
        (tmp_path / SUMMARY_NAME).write_text(json.dumps(values | {"commits": wrong}), encoding="utf-8")
        assert load_summary(tmp_path) is None


@pytest.mark.extended
@pytest.mark.slow
def test_two_analyses_of_two_nodes_say_who_lags_and_what_came(tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), received=T0_MS + n * DAY_MS) for n in range(6)]
    rows += [Row("side", ("c2",), received=T0_MS + 9 * DAY_MS, time=T0_MS - DAY_MS)]
    all_rows = write_export(tmp_path / "alice", rows, node="alice")
    few = write_export(tmp_path / "bob", rows[:4], node="bob")

    def page(*folders: Path) -> str:
        first, *merge = folders
        result = analyze.run(first, tmp_path / "out", merge=merge, progress=lambda _: None, engine="local")
        return re.sub(r"<[^>]*>", "", result.report.read_text(encoding="utf-8"))

    told = page(all_rows, few)
    assert (
        "Node bob is behind by 3 commits of 1 branch. Another node has had the earliest since 2023-11-18"
        in told
    )
    assert re.search(
        r"Who is behind.*main.*3.*bob.*2023-11-18.*Unmerged heads.*main.*2.*2023-11-13", told, re.DOTALL
    )
    assert "1 branch has several heads. The oldest is of 2023-11-13" in told
    assert "1 day before the export" in told
    assert "nothing has changed" in page(all_rows, few)
    assert "no earlier analysis of these nodes" in page(all_rows), "of other nodes"


@pytest.mark.slow
def test_clocks_that_jump_and_times_that_were_backdated_are_named(tmp_path: Path) -> None:
    rows = [
        Row("a", author="ada", feed=1, time=T0_MS, received=T0_MS),
        Row(
            "b", ("a",), author="ada", feed=2, time=T0_MS - 3 * DAY, received=T0_MS + 9 * DAY
        ),  # backdated; ahead
        Row(
            "c", ("b",), author="bob", feed=1, time=T0_MS + DAY, received=T0_MS + DAY
        ),  # its clock is right again
        Row("d", ("c",), author="bob", feed=2, time=T0_MS + DAY - 999, received=T0_MS + 2 * DAY),
        Row("e", ("d",), author="cleo", feed=1, kind="imported", time=T0_MS, received=T0_MS + 2 * DAY),
        Row("f", ("e",), author="cleo", feed=2, kind="imported", time=0, received=T0_MS + 2 * DAY),
    ]
    export = write_export(tmp_path / "export", rows, node="alice")
    result = analyze.run(export, tmp_path / "out", engine="local", progress=lambda _: None)
    found = pq.read_table(result.tables / "clocks").to_pylist()
    assert {
        (row["node"], row["author"]): (row["steps"], row["back_max"], row["first_at"]) for row in found
    } == {
        ("alice", None): (1, 8 * DAY, T0_MS + DAY),
        (None, id_of("ada")): (1, 3 * DAY, T0_MS - 3 * DAY),
    }
    page = result.report.read_text(encoding="utf-8")
    assert "2 clocks went back, 8 days at most" in page
    assert page.count('id="rows-clocks"') == 1
