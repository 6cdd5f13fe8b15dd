"""The study as a Spark job: each run is what a replay without Spark counts; the page says the scale."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from analytics.reading.export_reader import as_path
from analytics.study import command as study_command
from analytics.study import real_branches
from analytics.study.edit_streams import replay
from analytics.study.page import as_text, figures_of, render_study, scale_of
from analytics.study.real_branches import load_real_branches
from analytics.study.runs import replay_all, task_code
from analytics.study.study import FULL, PAPER_EDITS, PAPER_WIDTHS, QUICK, Plan, run_study
from analytics.study.tangle_models import DELIVERIES, MODELS
from node.runtime.errors import ERROR_KINDS
from tests.support.exports import T0_MS, Row, write_export
from tests.support.read_exports import read_export

TINY = Plan((60, 120), (4, 8), 2)


def test_the_full_study_is_the_papers_grid_with_ten_seeds() -> None:
    assert (FULL.heights, FULL.widths, FULL.seeds) == (tuple(PAPER_EDITS), PAPER_WIDTHS, 10)
    scenarios = {(one.model, one.delivery, one.height): one.widths for one in FULL.scenarios()}
    assert all(scenarios["two feeds", "random feed", height] == PAPER_WIDTHS for height in PAPER_EDITS)
    assert scenarios["lurkers", "random feed", 256_000] == (32,)
    assert {model for model, _, _ in scenarios} == set(MODELS)
    assert "scaled down" in scale_of(QUICK)
    assert "scaled down" not in scale_of(FULL)


@pytest.mark.extended
@pytest.mark.slow
def test_runs_are_what_a_replay_counts_and_percentiles_are_over_seeds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each worker process compiles the replay, which takes longer than all runs here: so one of them has to be enough.
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 1)
    rows = [
        Row(
            f"c{n}",
            tuple({f"c{max(0, n - back)}" for back in (1, 3)} - {f"c{n}"}),
            # Of an imported history, which one user signs, the feeds are those of its authors.
            author="importer" if n % 3 else "a0",
            source=f"a{n % 3}" if n % 3 else None,
            received=T0_MS - n,  # the node's clock goes back, which says nothing of deliveries
            arrived=T0_MS + 1 if n == 5 else None,
            arrival=2 if n == 5 else None,  # it came after the second, and waited for others
        )
        for n in range(30)
    ]
    rows += [Row(f"small {n}", branch="small") for n in range(5)]
    monkeypatch.setattr(real_branches, "REAL_BRANCHES_SHARE", 0.2)
    exports = [write_export(tmp_path / "export", rows, node="one")]
    exports.append(write_export(tmp_path / "late", [replace(row, arrival=None) for row in rows], node="two"))
    exports.append(write_export(tmp_path / "less", rows[:9], node="three"))
    real = load_real_branches(spark, [read_export(folder) for folder in exports])
    assert [len(branch.graph) for branch in real] == [30]
    in_order = list(range(30))
    assert real[0].received == {
        "as arrived at one": [0, 1, 5, 2, 3, 4, *in_order[6:]],
        "as arrived at two": in_order,
    }, "a node that lacks commits has no log"
    assert [len(causes) for causes in real[0].graph.causes][:5] == [0, 1, 2, 2, 2]
    out = tmp_path / "out [old]"
    out.mkdir()
    said: list[str] = []
    result = run_study(spark, TINY, out, said.append, real)
    assert said[-1].startswith("  39/39 runs (")
    assert sorted(file.name for file in out.glob("tables/*/*")) == ["part-00000.parquet"] * 2, (
        "by the driver: machines of a cluster do not see its folder"
    )
    found = spark.read.parquet(as_path(out / "tables" / "runs")).collect()
    assert len(found) == len(result.runs) == 2 * (2 * 2 + 2 * 2 + 2 * 4) + 2 + 2 + 1 + 2
    of_models = [run for run in found if run["model"] in MODELS]
    assert [_figures_of(run) for run in of_models] == _replayed(of_models)
    arrived = {run["delivery"]: run for run in found if run["delivery"] in real[0].received}
    at_one = arrived["as arrived at one"]
    assert (at_one["model"], at_one["width"], at_one["most_waiting"]) == (real[0].label, 3, 1)
    assert at_one["waiting_room"] == pytest.approx(31 / 30), "one of them waited"
    for row in result.percentiles:
        seeds = [
            run["net"]
            for run in found
            if all(run[key] == row[key] for key in ("model", "delivery", "height", "width"))
        ]
        assert len(seeds) == row["seeds"]
        assert row["net_mean"] == pytest.approx(sum(seeds) / len(seeds))
        assert min(seeds) <= row["net_p10"] <= row["net_p50"] <= row["net_p90"] <= max(seeds)
        assert row["paper"] is None, "the paper has no tangles so small"

    journal = out / "runs.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == len(result.runs)
    chosen = json.loads(lines[-1])
    no_runs = ["[]", '{"model": 1}', "[" * 100_000, lines[-3][:30]]
    no_runs += [json.dumps([*chosen[:at], value, *chosen[at + 1 :]]) for at, value in _NO_FIGURES]
    of_others = json.dumps(["two feeds", "gone", 60, 4, 0, *[1.0] * 3, 1, *[1.0] * 2, ""])
    kept = [*lines[:-3], of_others + "\n"]
    journal.write_text("".join(kept) + "\n".join(no_runs))
    again = run_study(spark, TINY, out, said.append, real, resume=True)
    assert f"3 runs, 1 at once, {len(result.runs) - 3} done before" in said
    assert journal.read_text().splitlines(keepends=True)[: len(kept)] == kept, "other studies go on, too"
    assert len(journal.read_text().splitlines()) == len(kept) + 3
    assert [_figures(row) for row in again.percentiles] == [_figures(row) for row in result.percentiles]

    late = [replace(real[0], received={name: log[::-1] for name, log in real[0].received.items()})]
    run_study(spark, TINY, out, said.append, late, resume=True)
    of_real = sum(run["model"] not in MODELS for run in found)
    assert f"{of_real} runs, 1 at once, {len(result.runs) - of_real} done before" in said, (
        "another branch by now"
    )

    page = render_study(TINY, result)
    assert page.count('<svg role="img"') == 5
    assert "scaled down" in page
    assert "<h1>Ravel: a timeline that waits for causes takes one edit per commit; ScuttleSort takes " in page
    assert "In 2 logs of real nodes, 0.00% to 3.33% of the commits came before one" in page
    figures = figures_of(TINY, result)
    assert list(figures) == ["width-60", "width-120", "height", "ties", "measured"]
    assert not any("var(--" in picture for picture in figures.values()), "each stands by itself"
    assert ["one of two is drawn" in figures["ties"], "as they arrived" in figures["measured"]] == [
        True,
        True,
    ]
    assert "ScuttleSort" in figures["height"], "each says what its lines are"
    assert "paper's runs" not in figures["ties"], "which are 500 times as large"
    assert real[0].label in as_text(result)


def _figures_of(run: SparkRow) -> list[float]:
    return [run["reference"], run["net"], run["most_waiting"]]


def _replayed(runs: list[SparkRow]) -> list[list[float]]:
    """The figures of these runs without Spark, and without the compiler, which takes longer than all of them."""
    script = (
        "import json, sys\n"
        "from analytics.study.edit_streams import replay\n"
        "from analytics.study.tangle_models import DELIVERIES, MODELS\n"
        "found = []\n"
        "for model, delivery, height, width, seed in json.load(sys.stdin):\n"
        "    graph = MODELS[model](height, width, seed)\n"
        "    counts = replay(graph, DELIVERIES[delivery](graph, seed))\n"
        "    found.append([counts.reference / counts.commits, counts.net / counts.commits, counts.most_waiting])\n"
        "print(json.dumps(found))"
    )
    cases = [[run[key] for key in ("model", "delivery", "height", "width", "seed")] for run in runs]
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    found: list[list[float]] = json.loads(done.stdout)
    return found


_NO_FIGURES = [
    (5, float("nan")),
    (5, float("inf")),
    (5, -1.0),
    (5, "1"),
    (2, 60.9),
    (2, 10**400),
    (8, True),
    (0, 7),
]
"""Place in a line of the journal, and what no run has there."""


class _OneThatFails:
    """What `replay_all` asks of a Spark context, in its words; every job fails."""

    defaultParallelism = 1

    def __init__(self) -> None:
        self.begun = 0

    def parallelize(self, data: object, slices: int) -> NoReturn:
        self.begun += 1
        raise RuntimeError(f"job {self.begun}")

    def cancelAllJobs(self) -> None:
        """Nothing runs."""


def test_after_a_job_that_failed_no_other_begins(tmp_path: Path) -> None:
    context = _OneThatFails()
    cases = [("two feeds", "in order", 60, 4, seed) for seed in range(50)]
    with pytest.raises(RuntimeError, match="job 1"):
        replay_all(
            cast(SparkSession, SimpleNamespace(sparkContext=context)),
            cases,
            {},
            tmp_path / "runs.jsonl",
            resume=False,
            progress=lambda _: None,
        )
    assert context.begun == 1


def _figures(row: SparkRow) -> dict[str, object]:
    return {key: value for key, value in row.asDict().items() if key != "seconds_mean"}


@pytest.mark.extended
@pytest.mark.slow
def test_a_task_needs_no_copy_of_ravel_where_it_runs(tmp_path: Path) -> None:
    """As on a cluster. Compiled functions too come with the task."""
    (tmp_path / "code").write_bytes(task_code())
    case = ("two feeds", "random feed", 60, 4, 1)
    script = (
        "import sys\nfor name in ('analytics', 'storage', 'node'): sys.modules[name] = None\n"
        "from pyspark import cloudpickle\n"
        f"task = cloudpickle.loads(open(sys.argv[1], 'rb').read())\nprint(task({case!r}, None))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(tmp_path / "code")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    graph = MODELS["two feeds"](60, 4, 1)
    counts = replay(graph, DELIVERIES["random feed"](graph, 1))
    assert done.stdout.startswith(repr((*case, counts.reference / 60, counts.net / 60))[:-1])


@pytest.mark.parametrize(
    "option", ["--heights=1", "--heights=8M", "--widths=3", "--widths=16385", "--seeds=1001", "--seeds=x"]
)
def test_sizes_out_of_bounds_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study_command.main(["scuttlesort", "--out", "unused", option])
    assert "is not a number from" in capsys.readouterr().err


def test_an_export_that_is_none_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = study_command.main(["scuttlesort", str(tmp_path), "--out", str(tmp_path / "out"), "--json"])
    assert code == ERROR_KINDS["bad_export"].exit_code
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "bad_export"
    assert not (tmp_path / "out").exists()


@pytest.mark.extended
@pytest.mark.slow
def test_the_command_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    arguments = [
        "scuttlesort",
        "--heights=100",
        "--widths=4",
        "--seeds=1",
        "--out",
        str(tmp_path / "out"),
        "--master",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "node.cli.main", "study", *arguments, "local[1]", "--json"],
        # To compile takes a minute; what is compiled is the same Python.
        capture_output=True, text=True, check=False, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["runs"], result["heights"], result["widths"]) == (7, [100], [4])
    assert Path(result["report"]).is_file()
    assert "[study]   7/7 runs (" in done.stderr
