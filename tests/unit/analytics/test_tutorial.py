"""The twelve questions of docs/research/tutorial.md: the queries run, and answer what happened in the sample."""

import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from analytics import __main__
from examples import sample_exports
from examples.sample_exports import Community
from ravel.exports.schema import text_id

PAGE: Final = Path(__file__).parents[3] / "docs" / "research" / "tutorial.md"
SHOWN: Final = "/tmp/sample"  # noqa: S108  # as the page has it
TEXT: Final = PAGE.read_text(encoding="utf-8")
PREPARED, LAST = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
QUERIES: Final = dict(
    re.findall(
        r"^-- [^?]*[?] (.+?)\n(.*?;)$",
        re.findall(r"^```sql\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[0],
        re.M | re.S,
    )
)
"""Answers as the page has them, and the queries that give them."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[Any, ...]]]:
    """What the queries find, on the sample as the page has it made."""
    sample = tmp_path_factory.mktemp("sample")
    sample_exports.write(sample)
    out = str(sample / "analysis")
    exports = [str(sample / node) for node in sample_exports.NODES]
    assert __main__.main([*exports, "--engine", "local", "--csv", "--out", out]) == 0
    names: dict[str, Any] = {}
    exec(compile(PREPARED.replace(SHOWN, str(sample)), str(PAGE), "exec"), names)  # noqa: S102  # of our own page
    found = [duckdb.execute(query).fetchall() for query in QUERIES.values()]
    printed: list[str] = []
    exec(compile(LAST, str(PAGE), "exec"), names | {"print": printed.append})  # noqa: S102  # likewise
    return [*found, [tuple(printed)]]


@pytest.mark.slow
@pytest.mark.extended
def test_the_answers_on_the_page_are_those_of_the_sample(answers: list[list[tuple[Any, ...]]]) -> None:
    shown = [*QUERIES, LAST.rpartition("# ")[2].strip()]
    assert len(shown) == 12
    assert [_as_text(rows) for rows in answers] == shown


def _as_text(rows: list[tuple[Any, ...]]) -> str:
    return "; ".join(" ".join(str(cell) for cell in row) for row in rows)


@pytest.mark.slow
@pytest.mark.extended
def test_the_answers_are_what_happened(answers: list[list[tuple[Any, ...]]]) -> None:
    community = Community(sample_exports.COMMITS)
    commits = community.commits
    edges = Counter(
        (one.author.title(), commits[one.place[1]].author.title()) for one in commits if one.place is not None
    )
    ((asked, times),) = edges.most_common(1)
    threads: defaultdict[int, set[int]] = defaultdict(set)
    for one in commits:
        if one.place:
            threads[one.place[0]].add(one.number)
    most_answered = max(map(len, threads.values()))
    largest = [
        (
            text_id(commits[root].id)[:10],
            most_answered,
            len({commits[one].author for one in (root, *replies)}),
        )
        for root, replies in threads.items()
        if len(replies) == most_answered
    ]
    written = sorted(one.time for one in commits if one.kind == "post" and one.time <= one.happened)
    silence, until = max((after - before, after) for before, after in pairwise(written))
    effects = Counter(ack for one in commits if not one.is_void for ack in one.acks)
    months = Counter(_month(commits[number].time) for number, count in effects.items() if count > 1)
    files: defaultdict[str, list[int]] = defaultdict(list)
    for one in commits:
        files[one.author.title()] += one.files
    most = max(files, key=lambda name: sum(files[name]))
    assert answers[0] == [(*asked, times)]
    assert answers[1][0] in largest, "some have as many"
    assert answers[2] == [(timedelta(milliseconds=silence), datetime.fromtimestamp(until / 1000, UTC).date())]
    assert answers[3] == [tuple(months.most_common(1)[0])]
    assert answers[4][0][0] == "Eve"
    assert [row[:2] for row in answers[6]] == [("Cleo", "Mallory"), ("Kim", "Kim")]
    assert answers[7] == [(most, len(files[most]), sum(files[most]))]
    assert dict(answers[8]) == Counter(sample_exports.REFUSED)


def _month(milliseconds: int) -> date:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date().replace(day=1)
