"""A few whole-node histories, always the same; `make promise` tries new ones. Hash seeds follow from theirs."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.promise import draw, hostile_rules
from tests.promise.mutants import load_mutants


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.promise", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_whatever_members_do_all_hold_the_same_when_they_have_met() -> None:
    assert "the promise holds" in _run("--start", "1", "--count", "1")


@pytest.mark.extended
def test_more_histories() -> None:
    _run("--start", "1000", "--count", "40")


@pytest.mark.extended
def test_a_seed_is_one_history() -> None:
    first, again = (_run("--seed", "4").partition("\n")[2].rpartition(",")[0] for _ in range(2))
    assert first == again
    assert "healing" in first
    assert first.endswith("hash seed 4")


def test_each_rule_that_is_drawn_can_be_broken() -> None:
    assert draw.RULES.keys() == hostile_rules.RULES.keys()


@pytest.mark.parametrize("name", load_mutants())
def test_what_a_mutant_replaces_stands_in_the_source_once(name: str) -> None:
    mutant = load_mutants()[name]
    spec = find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    assert source.count(mutant.old) == 1
    compile(source.replace(mutant.old, mutant.new), spec.origin, "exec")
