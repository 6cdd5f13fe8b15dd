"""A short run of the replayed power cuts, and of bit rot; `python -m tests.powercut.run --states 10000` goes on for long."""

from pathlib import Path

import pytest

from tests.powercut import bitrot, run
from tests.powercut.scenario import SHORT

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.sqlite]


@pytest.mark.usefixtures("compiler")
def test_what_was_acknowledged_survives_a_power_cut_at_any_place(tmp_path: Path) -> None:
    found = run.play(tmp_path, SHORT, states=40, seed=1)
    assert found["states"] >= 40
    assert found["promises"] >= len(SHORT) - 1
    assert found["bad_states"] == 0, found["examples"]


@pytest.mark.usefixtures("compiler")
def test_what_a_disk_that_lies_takes_back_is_said_or_looks_as_at_an_earlier_moment(tmp_path: Path) -> None:
    found = run.play(tmp_path, SHORT, states=64, seed=1, lies=True)
    assert found["bad_states"] == 0, found["examples"]
    assert found["verdicts"].keys() - {"kept"}, "it took something back"


def test_a_flipped_bit_is_noticed_and_healed_or_does_no_harm() -> None:
    found = bitrot.run(flips=10, seed=1, kinds=("packs", "database", "keys"))
    verdicts = {verdict for counts in found["kinds"].values() for verdict in counts}
    assert verdicts <= {"healed", "harmless", "not started"}, found["examples"]
    assert found["kinds"]["packs"] == {"healed": 4}
