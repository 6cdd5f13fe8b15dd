"""The two judges that were written from the documents alone agree, and neither has anything of Ravel."""

import ast
import gzip
import os
from itertools import chain, islice
from pathlib import Path

import pytest

from tests.verdicts.comparing import differing_in_js
from tests.verdicts.histories import VECTORS, named, of_families, random_history, written
from tests.verdicts.mutants import HERE, mutants

QUICK = 20
OF_OURS = {"analytics", "node", "protocol", "ravel", "storage", "verifier"}


def test_the_judge_in_python_imports_nothing_of_ravel():
    found = set()
    for path in Path(__file__).parent.glob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            if isinstance(statement, ast.ImportFrom) and not statement.level:
                found.add(statement.module)
            elif isinstance(statement, ast.Import):
                found.update(alias.name for alias in statement.names)
    assert not {name.partition(".")[0] for name in found} & OF_OURS


def test_each_mutant_replaces_a_piece_that_stands_once_in_the_judge():
    texts = {path.stem: path.read_text() for path in HERE.glob("*.py")}
    assert [(module, rule) for module, rule, old, _ in mutants() if texts[module].count(old) != 1] == []


def asked(histories):
    """What the judge in JavaScript says; without Node.js, which CI has, the test is skipped."""
    said = differing_in_js(histories)
    if said is None:
        assert not os.environ.get("CI"), "CI has Node.js"
        pytest.skip("Node.js is not here")
    return said


@pytest.mark.slow
def test_both_agree_on_random_histories():
    assert asked([random_history(number) for number in range(QUICK)]) == []


@pytest.mark.slow
@pytest.mark.extended
def test_both_agree_on_all_named_histories_and_some_of_them_are_the_committed_ones():
    families = list(of_families())
    assert asked([history for _, history in families]) == []
    assert written(families) == gzip.decompress(VECTORS.read_bytes()).decode()


@pytest.mark.slow
def test_both_agree_on_some_named_histories():
    assert asked(list(islice(chain(named()), 20))) == []
