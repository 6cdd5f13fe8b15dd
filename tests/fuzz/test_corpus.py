"""Every input of the corpus goes through its target as its name says, without a fuzzer."""

from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.seeds import CORPUS, seeds
from tests.fuzz.targets import TARGETS

FILES: Final = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
FILE_COUNT_MAX: Final = 64
CORPUS_SIZE_MAX: Final = 74_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_in_the_corpus_is_taken_or_refused_as_its_name_says(path: Path) -> None:
    refusal = TARGETS[path.parent.name](path.read_bytes())
    assert ("refused" if refusal else "taken") == path.name.partition("-")[0], refusal


def test_every_target_has_a_small_corpus() -> None:
    assert {path.parent.name for path in FILES} == set(TARGETS)
    counts = {name: sum(path.parent.name == name for path in FILES) for name in TARGETS}
    assert {name: count for name, count in counts.items() if count > FILE_COUNT_MAX} == {}
    assert sum(path.stat().st_size for path in FILES) <= CORPUS_SIZE_MAX


def test_the_corpus_holds_every_seed_as_it_is_made_now() -> None:
    for name, inputs in seeds().items():
        assert inputs, "a target starts from what it takes"
        for what, data in inputs.items():
            path = CORPUS / name / f"taken-{what}"
            assert path.exists(), "run `python -m tests.fuzz.seeds`"
            assert path.read_bytes() == data, "run `python -m tests.fuzz.seeds`"
