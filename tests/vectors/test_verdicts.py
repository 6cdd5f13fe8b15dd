"""Ravel comes to the verdicts of `verdicts.json.gz`, which two judges have made from the documents alone."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.verdict_replica import differing_in_replica
from tests.verdicts.histories import VECTORS, written

QUICK = 16
"""Every so manieth history is in the quick tier."""


def _load() -> list[dict[str, Any]]:
    return list(json.loads(gzip.decompress(VECTORS.read_bytes()))["histories"])


@pytest.mark.slow
def test_a_replica_comes_to_some_verdicts_in_two_orders_of_arrival(tmp_path: Path) -> None:
    assert list(differing_in_replica(_load()[::QUICK], tmp_path)) == []


@pytest.mark.slow
@pytest.mark.extended
def test_a_replica_comes_to_all_verdicts_in_two_orders_of_arrival(tmp_path: Path) -> None:
    assert list(differing_in_replica(_load(), tmp_path)) == []


@pytest.mark.slow
@pytest.mark.extended
def test_the_generator_makes_the_committed_verdicts() -> None:
    assert written() == gzip.decompress(VECTORS.read_bytes()).decode()


def test_every_history_has_a_name_of_its_own_and_there_are_500() -> None:
    names = {history["name"] for history in _load()}
    assert len(names) == len(_load()) >= 500
