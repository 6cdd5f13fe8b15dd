"""The proofs and a small bound of the searches; the model beside the product; the zoo of concurrent histories."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.proof import checker, epoch_oracle, mutants, oracle, zoo


def needs_coq(test: Callable[..., None]) -> Callable[..., None]:
    """Leave a test to the second tier, and to one worker, which compiles once."""
    for mark in (pytest.mark.extended, pytest.mark.slow, pytest.mark.xdist_group("proof")):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources and the compiled model."""
    if reason := checker.missing():
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    folder = checker.lay_out(tmp_path_factory.mktemp("proof"))
    checker.compile_files(folder, checker.MODEL)
    checker.build(folder)
    return folder


@needs_coq
def test_every_theorem_is_proved_and_rests_on_no_axiom(folder: Path) -> None:
    assert checker.admitted() == []
    named = (checker.HERE / "Audit.v").read_text(encoding="utf-8").count("Print Assumptions")
    assert checker.theorems(checker.compile_files(folder, checker.PROOFS)) == named


@needs_coq
@pytest.mark.parametrize("check", checker.QUICK, ids=lambda check: " ".join(check.words))
def test_small_histories_have_no_counterexample(folder: Path, check: checker.Check) -> None:
    assert checker.ask(folder / "model", check.words).startswith("ok")


@needs_coq
def test_the_product_says_what_the_model_says(folder: Path) -> None:
    assert (
        oracle.compare_all(folder / "model", Random(1), 300, [("small", "1", "1"), ("large", "1", "5")]) > 500
    )


@needs_coq
def test_the_product_says_of_epochs_what_the_model_says(folder: Path) -> None:
    assert epoch_oracle.compare(folder / "model", ("1", "2")) > 100


def test_the_product_says_of_the_zoo_what_the_zoo_says() -> None:
    histories = zoo.histories()
    assert len(histories) >= 100
    for history in histories:
        outcome = oracle.judge(history.steps)
        assert (outcome.refused, outcome.members) == (history.refused, history.members), history.title


def test_each_history_of_the_zoo_is_drawn(tmp_path: Path) -> None:
    zoo.main(tmp_path)
    drawn = [path.read_text(encoding="utf-8") for path in sorted(tmp_path.iterdir())]
    assert [picture.count("<rect x=") for picture in drawn] == [len(one.steps) for one in zoo.histories()]


@needs_coq
def test_a_changed_rule_is_caught(tmp_path: Path, folder: Path) -> None:
    mutant = next(one for one in mutants.mutants() if one.rule == "R1 the later credential is senior")
    assert mutants.caught_by(tmp_path, mutant) == "WRONG circles: 216"


@pytest.mark.slow
def test_every_mutant_changes_one_place(tmp_path: Path) -> None:
    whole = mutants.mutants()
    assert len(whole) >= 40
    for number, mutant in enumerate(whole):
        mutants.change(checker.lay_out(tmp_path / str(number)), mutant)
