"""Example programs say what they need where they get nothing, instead of a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine import patience

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = [
    pytest.param(name, marks=pytest.mark.slow) if name == "spark_notebook.py" else name  # it imports Spark
    for name in sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "demo.py")
]


def _run(tmp_path: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "RAVEL_EXPORT"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        timeout=patience(60),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_without_arguments_says_what_it_needs(tmp_path: Path, name: str) -> None:
    done = _run(tmp_path, name)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "usage: python examples/" in done.stderr or "RAVEL_EXPORT is not set" in done.stderr


@pytest.mark.parametrize("name", ["chat.py", "shopping.py"])
def test_an_example_says_where_no_node_runs(tmp_path: Path, name: str) -> None:
    done = _run(tmp_path, name, str(tmp_path / "none"), "main")
    assert done.returncode == 1
    assert "no daemon runs in" in done.stderr
    assert "Traceback" not in done.stderr
