"""The demo itself, on a small git history with merges: every layer real, Spark included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.extended]


def _git(path: Path, *arguments: str) -> None:
    person = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "-C", str(path), *arguments], check=True, capture_output=True, env=environment)


def _history(path: Path) -> None:
    """Eight commits on two branches, merged twice."""
    path.mkdir()
    _git(path, "init", "--quiet", "--initial-branch=main")
    _git(path, "commit", "--quiet", "--allow-empty", "--message=first")
    for number in range(2):
        _git(path, "checkout", "--quiet", "-b", f"side{number}")
        _git(path, "commit", "--quiet", "--allow-empty", f"--message=side {number}")
        _git(path, "checkout", "--quiet", "main")
        _git(path, "commit", "--quiet", "--allow-empty", f"--message=main {number}")
        _git(path, "merge", "--quiet", "--no-ff", f"--message=merge {number}", f"side{number}")


def test_the_demo_agrees_with_itself_and_leaves_a_report(tmp_path: Path) -> None:
    _history(tmp_path / "git")
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "examples" / "demo.py"),
            "--git",
            str(tmp_path / "git"),
            "--home",
            str(tmp_path / "demo"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Spark's order equals the node's for every commit" in done.stdout
    assert "heads after the merge: 2" in done.stdout
    assert "heads after the next commit: 1" in done.stdout
    report = (tmp_path / "demo" / "analysis" / "report.html").read_text(encoding="utf-8")
    assert report.count("<svg") + report.count("<img") >= 2
    assert "http://" not in report.replace("http://www.w3.org", "")
