"""The local engine's own matters: what it refuses, where it keeps what does not fit, and that it needs no Spark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from blake3 import blake3

from analytics import __main__, analyze, command
from analytics.engines import local_engine, local_queries
from analytics.order.branch_tasks import LargeBranchRefused
from tests.support.exports import Row, id_of, naive_order, write_export
from tests.support.read_exports import read_export

pytestmark = pytest.mark.slow

CHAINS = [
    Row(f"{branch}{n}", (f"{branch}{n - 1}",) if n else (), branch) for branch in "abcd" for n in range(4)
]


_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from analytics.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def _analyze(export: Path, out: Path) -> analyze.AnalysisResult:
    return analyze.run(export, out, progress=lambda _: None, engine="local")


def test_of_a_table_in_many_files_each_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "_UNCOPIED_FILES_MAX", 2)
    export = read_export(write_export(tmp_path / "export", *([row] for row in CHAINS[:3])))
    engine = local_engine.LocalEngine([export], tmp_path / "out")
    try:
        engine.need_source("commits")
        for part in export.tables["commits"]:
            part.path.unlink()
        assert engine.rows("SELECT count(*) AS commits FROM commits") == [{"commits": 3}]
        assert engine.rows("SELECT count(*) AS commits FROM commits_by_node") == [{"commits": 3}]
    finally:
        engine.close()


@pytest.mark.parametrize("is_small", [True, False])
def test_branches_are_ordered_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    monkeypatch.setattr(local_queries, "LOCAL_ORDER_COMMITS", 9)  # two branches at once
    monkeypatch.setattr(local_engine, "are_small", lambda _: is_small)  # else in a file
    export = write_export(tmp_path / "it's [an] {export}*?", CHAINS, node="it's \\ a node")
    result = _analyze(export, tmp_path / "out")
    assert (result.commits, result.branches, result.is_right) == (16, 4, True)
    digests = json.loads(result.digests.read_bytes())
    assert {cells["digest"] for cells in digests.values()} == {
        blake3(b"".join(map(id_of, names))).hexdigest() for names in naive_order(CHAINS).values()
    }
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"tables", "csv", "digests.json", "report.html", "summary.json"}, "its file is gone"


def test_a_branch_over_the_limit_is_sparks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export = write_export(tmp_path / "export", CHAINS)
    monkeypatch.setattr(local_queries, "LOCAL_BRANCH_COMMITS_MAX", 4)
    assert _analyze(export, tmp_path / "four").is_right
    monkeypatch.setattr(local_queries, "LOCAL_BRANCH_COMMITS_MAX", 3)
    with pytest.raises(LargeBranchRefused, match="has 4 commits, and the local engine orders at most 3"):
        _analyze(export, tmp_path / "three")
    arguments = [str(export), "--out", str(tmp_path / "out"), "--engine", "local"]
    assert __main__.main(arguments) == command.EXIT_TOO_LARGE
    assert "leave out --engine local" in capsys.readouterr().err


def test_a_process_loads_nothing_that_is_not_used(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", CHAINS)
    script = """
import sys
from analytics.__main__ import main
assert main() == 0
print(*{name.partition(".")[0] for name in sys.modules} & {"pandas", "matplotlib", "pyspark", "PIL"})
"""
    command = [
        sys.executable,
        "-P",
        "-c",
        script,
        str(export),
        "--out",
        str(tmp_path / "out"),
        "--engine",
        "local",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "", "each takes a fifth of a second"


@pytest.mark.extended
def test_it_needs_no_spark_and_without_duckdb_says_what_to_install(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", CHAINS)
    codes = []
    for absent in (("pyspark", "py4j", "pandas", "numba", "matplotlib"), ("duckdb",), ("numpy",)):
        arguments = [str(export), "--out", str(tmp_path / absent[0]), "--engine", "local"]
        done = subprocess.run(
            [sys.executable, "-P", "-c", _WITHOUT.replace("ABSENT", repr(absent)), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        codes.append((done.returncode, done.stderr.splitlines()[-1]))
    assert codes[0][0] == command.EXIT_OK, codes
    hint = "next:  install the extra `analytics-local`: docs/communities/start.md"
    assert codes[1:] == [(command.EXIT_MISSING_EXTRA, hint)] * 2
