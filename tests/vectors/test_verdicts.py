"""Ravel comes to the verdicts of `verdicts.json.gz`, which two judges have made from the documents alone."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from blake3 import blake3

from node.ingest import replica
from tests.support.verdict_replica import VerdictReplica, differing_after_restart, differing_in_replica
from tests.verdicts.histories import VECTORS
from verifier.membership_snapshots import SNAPSHOT_VERSION, encode_parts

QUICK = 16
"""Every so manieth history is in the quick tier."""


def _load() -> list[dict[str, Any]]:
    return list(json.loads(gzip.decompress(VECTORS.read_bytes()))["histories"])


@pytest.mark.slow
def test_a_replica_comes_to_some_verdicts_in_two_orders_of_arrival(tmp_path: Path) -> None:
    assert list(differing_in_replica(_load()[:: 2 * QUICK], tmp_path)) == []


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("saved_from", [1, 1_000_000])
def test_a_replica_that_starts_anew_midway_comes_to_all_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved_from: int
) -> None:
    """What only memory knows is lost then. Memberships are read from snapshots, or judged again."""
    monkeypatch.setattr(replica, "SAVED_AT_STOP_FROM", saved_from)
    assert list(differing_after_restart(_load(), tmp_path)) == []


@pytest.mark.slow
def test_snapshots_of_memberships_are_those_of_their_version(tmp_path: Path) -> None:
    # Where this fails, a rule or a type has changed. Raise the version, or a store keeps what the old one concluded.
    judge = VerdictReplica(tmp_path / "node")
    for history in _load()[::QUICK]:
        judge.judge(history)
    said = [
        part for repo_id in judge.repo_ids for _, part in encode_parts(judge.membership(repo_id), repo_id, 0)
    ]
    assert len(said) > 30
    assert (SNAPSHOT_VERSION, blake3(b"".join(said)).hexdigest()[:16]) == (7, "45fb8b71a02217fc")
    judge.close()


@pytest.mark.slow
@pytest.mark.extended
def test_a_replica_comes_to_all_verdicts_in_two_orders_of_arrival(tmp_path: Path) -> None:
    assert list(differing_in_replica(_load(), tmp_path)) == []


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("seed", [1, 7])  # of 7: what leads to an end comes after what stands behind it
def test_what_an_exclusion_names_depends_on_no_order_of_arrival(tmp_path: Path, seed: int) -> None:
    """Ends of feeds and forks come before and after each other: what they name is looked at as each comes."""
    rng = Random(seed)
    shuffled = [
        {**one, "publications": rng.sample(one["publications"], len(one["publications"]))}
        for one in _load()
        if "whose ends name" in one["name"]
    ]
    assert len(shuffled) >= 18
    assert list(differing_in_replica(shuffled, tmp_path)) == []


def test_every_history_has_a_name_of_its_own_and_there_are_500() -> None:
    names = {history["name"] for history in _load()}
    assert len(names) == len(_load()) >= 500
