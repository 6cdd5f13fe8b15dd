"""The benchmarks run, on very little, so that they are not found broken on the day when a figure is wanted.

What they measure is not looked at. Those that need Spark, minutes or very many commits are left to `make bench`.
"""

import importlib
import json
import sys
from collections.abc import Iterator

import pytest
import structlog

_SMALL = {
    "bench_age": ("9:2",),
    "bench_bundle": ("200",),
    "bench_circuits": ("1", "32", "1"),
    "bench_analyze": ("20", "local,again", "10"),
    "bench_decade": ("", "0.002", "1"),
    "bench_documents": ("20", "40", "--json", "60", "--edits", "40", "--ingest", "200"),
    "bench_epochs": ("5", "2"),
    "bench_files": ("1", "1", "1"),
    "bench_hostile": ("1", "1", "50", "keep_alives"),
    "bench_ingest": ("200",),
    "bench_join_large": ("10", "600", "1"),
    "bench_members": ("200", "30"),
    "bench_offline": ("20",),
    "bench_peers": ("60", "1", "git", "ravel"),
    "bench_processes": ("1",),
    "bench_relay": ("4", "8"),
    "bench_search": ("100",),
    "bench_start": ("50",),
    "bench_streams": ("3", "10", "2"),
    "bench_writes": ("2", "2"),
}


@pytest.fixture
def logging() -> Iterator[None]:
    """Logs go where they went, once a benchmark has ended that sends its own to this test's error stream."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.usefixtures("logging")
@pytest.mark.parametrize("name", _SMALL)
def test_a_benchmark_prints_its_figures_as_json_lines(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, which has imported all of it, and with daemons that are forked: else that is what takes the time.
    benchmark = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, *_SMALL[name]])
    monkeypatch.setattr(benchmark, "_ROUNDS", 1, raising=False)
    benchmark.main()
    figures = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert figures
    for figure in figures:
        assert {"figure", "value", "unit"} <= figure.keys()
        assert isinstance(figure["value"], int | float)
