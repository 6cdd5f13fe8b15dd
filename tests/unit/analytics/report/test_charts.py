"""Charts: few round ticks whatever an axis spans, texts that stand apart, and nothing outside the picture."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from analytics.report.charts import number_ticks, time_ticks
from analytics.report.pictures import (
    TIME,
    WidthBin,
    draw_growth,
    draw_heads,
    draw_members,
    draw_received,
    draw_shares,
    draw_widths,
    spread_labels,
)
from tests.support.exports import DAY_MS


def test_labels_of_a_logarithmic_axis_stand_apart() -> None:
    times = {3600: "1 h", 21_600: "6 h", 86_400: "1 day", 604_800: "7 days", 2_592_000: "30 days"}
    assert spread_labels(times, 3600, 2_592_000) == [*times]
    crowded = spread_labels(times, 1, 31_536_000 * 10)
    assert crowded == [3600, 21_600, 604_800], "a day would touch six hours"
    assert spread_labels(times, 1, 10) == []


def test_a_time_axis_has_few_ticks_whatever_it_spans() -> None:
    began = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    for seconds in (
        20,
        170,
        179,
        9_000,
        10_700,
        200_000,
        230_000,
        50 * 86_400,
        91 * 86_400,
        *(n * 2_629_800 for n in range(4, 60)),
        *(n * 31_557_600 for n in range(5, 230, 5)),
    ):
        for shift in (0, 3_700, 45 * 86_400):
            low = (began + shift) * 1000
            ticks, _ = time_ticks(low, low + seconds * 1000)
            assert 2 <= len(ticks) <= 7, seconds
            assert all(low <= at <= low + seconds * 1000 for at in ticks)


@pytest.mark.parametrize(
    "began, ended, texts, date",
    [
        ((2024, 12, 31, 23, 59, 30), (2025, 1, 1, 0, 0, 20), "23:59:30 23:59:40 23:59:50 00:00:00 00:00:10 00:00:20",
            "2025-01-01"),
        ((2025, 3, 9, 20), (2025, 3, 10, 6), "20:00 22:00 Mar_10 02:00 04:00 06:00", "2025-03-10"),
        ((2025, 1, 27), (2025, 2, 5), "27 29 Feb 03 05", "2025-02"),
        ((2025, 2, 3), (2025, 6, 3), "Mar Apr May Jun", "2025"),
        ((2024, 10, 1), (2025, 3, 1), "Oct Nov Dec 2025 Feb Mar", ""),
        ((2010, 5, 1), (2025, 3, 1), "2012 2014 2016 2018 2020 2022 2024", ""),
    ],
)  # fmt: skip
def test_texts_of_times_are_short_and_the_date_stands_once(
    began: tuple[int, ...], ended: tuple[int, ...], texts: str, date: str
) -> None:
    low, high = (datetime(*one, tzinfo=UTC).timestamp() * 1000 for one in (began, ended))  # type: ignore[arg-type, misc]  # the parts of a date
    ticks, label = time_ticks(low, high)
    assert [*ticks.values()] == [text.replace("_", " ") for text in texts.split()]
    assert label == date


def test_numbers_of_an_axis_are_round_and_few() -> None:
    assert number_ticks(0, 1.05, 4) == {0: "0", 1: "1"}
    assert number_ticks(0, 4.2, 4) == {0: "0", 2: "2", 4: "4"}
    assert number_ticks(0, 52_500, 4) == {0: "0", 20_000: "20,000", 40_000: "40,000"}
    assert number_ticks(0, 2.1, 4, is_whole=False) == {0: "0", 1: "1", 2: "2"}
    assert [*number_ticks(-0.5, 7.5, 6).values()] == ["0", "2", "4", "6"]
    assert [*number_ticks(0, 52_500, 4, is_whole=False).values()] == ["0", "20,000", "40,000"]
    assert [*number_ticks(0, 0.35, 4, is_whole=False).values()] == ["0", "0.1", "0.2", "0.3"]


@pytest.mark.parametrize(
    "svg",
    [
        draw_growth([(0, 3), (DAY_MS, 0), (5 * DAY_MS, 8)], DAY_MS),
        draw_widths([WidthBin(0, 1, 1.0), WidthBin(4, 7, 2.5)], 6),
        draw_widths([WidthBin(0, 1, 1.0), WidthBin(11_000_000, 7, 2.5)], 12_000_000),
        draw_heads([(0, 1), (DAY_MS, 4)], DAY_MS, DAY_MS + 1),
        draw_heads([(0, 1), (1000, 4)], 1000, 1001),
        draw_received([(0, 0), (DAY_MS, 5_000)], DAY_MS, 0.5),
        draw_received([(0, 0)], DAY_MS, None),
        draw_members([(0, 0), (DAY_MS, 0)], DAY_MS, [7]),
        draw_members([(5 * DAY_MS, 2), (6 * DAY_MS, 3)], DAY_MS, [DAY_MS]),
        draw_shares([[(1, 1.0)]], "one", "commits"),
        draw_shares([[(1, 0.5), (500, 1.0)], [(3, 1.0)]], "many", "commits"),
        draw_shares([[(1, 1.0)]], "moments", TIME),
        draw_shares([[(30, 0.5), (90_000, 0.9)]], "lengths", TIME),
    ],
)
def test_a_chart_stays_within_its_picture(svg: str) -> None:
    root = ElementTree.fromstring(svg)  # noqa: S314  # made here
    width, height = map(float, root.get("viewBox", "").split()[2:])
    for element in root.iter("path"):
        steps = re.findall(r"([MLHVZ])([\d. -]*)", element.get("d", ""))
        for step, told in steps:
            numbers = [*map(float, told.split())]
            across = numbers[:1] if step in "MLH" else []
            down = numbers[-1:] if step in "MLV" else []
            assert all(0 <= number <= width for number in across), svg
            assert all(0 <= number <= height for number in down), svg
    for element in root.iter("text"):
        assert 0 <= float(element.get("x", "-1")) <= width
        assert 0 <= float(element.get("y", "-1")) <= height
    ends = [(0.0, 0.0)]
    for element in root.iter("text"):
        if element.get("text-anchor") == "middle" and element.get("y") != f"{height - 9.3:.1f}":
            at, half = float(element.get("x", "")), len(element.text or "") * 3
            ends.append((at - half, at + half))
    assert ends[-1][1] <= width
    assert all(before[1] <= after[0] for before, after in pairwise(ends)), "texts below the axis stand apart"
