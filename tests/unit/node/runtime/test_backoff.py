"""Pauses between tries grow while these fail, and are short again after a success alone."""

import pytest

from node.runtime.backoff import Backoff, doubled_pause


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 60.0)
    for whole in (1, 2, 4, 8, 16, 32, 60, 60, 60):
        assert 0.7 * whole <= backoff.fail() <= whole


def test_only_a_success_makes_them_short_again() -> None:
    backoff = Backoff(1.0, 60.0)
    pauses = [backoff.fail() for _ in range(5000)]
    assert max(pauses) == pytest.approx(60.0, abs=0.1)
    backoff.reset()
    assert backoff.fail() <= 1.0


def test_those_who_fail_together_do_not_try_together_again() -> None:
    pauses = {Backoff(1000.0, 1000.0).fail() for _ in range(20)}
    assert len(pauses) > 1


def test_a_pause_after_a_stored_count_of_failures_has_no_jitter_and_no_overflow() -> None:
    assert [doubled_pause(failures, 1.0, 60.0) for failures in (0, 1, 2, 10, 10**9)] == [1, 2, 4, 60, 60]
