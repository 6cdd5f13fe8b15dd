"""Forecasts: a straight line from what came lately, which names the day on which a bound is met, and nothing far off."""

import pytest

from node.care.doctor import OK, WARNING, check_forecasts
from node.care.forecasts import Pace, find_pace, forecast_daemon, forecast_disk
from node.home.starting import START_SECONDS_MAX
from storage.commits.growth import EPOCHS, FILES, MEMBERS, POSTS, Day, Growth, Held

NOW = 20_000 * 86_400.0
MIB = 1 << 20
HELD = Held(100_000, 1_000, 1, {})


def _day(day: int, posts: int, members: int = 0, epochs: int = 0) -> Day:
    none = Growth(0, 0)
    return Day(
        day,
        {POSTS: Growth(posts, posts), FILES: none, MEMBERS: Growth(members, 0), EPOCHS: Growth(epochs, 0)},
    )


def _metrics(start: float, memory: int) -> str:
    return f"# HELP x\nravel_start_seconds {start}\nprocess_resident_memory_bytes {memory}\n"


def test_a_pace_is_that_of_the_days_without_the_one_on_which_most_came() -> None:
    days = [_day(19_999, 10, 2, 1), _day(19_995, 5_000, 300, 9), _day(19_990, 30, 1)]
    held = Held(100_000, 400, 1, {19_999: 1, 19_995: 9, 19_000: 5})
    assert find_pace(days, held, NOW) == Pace(10.0, 44, 4, 1, held)


@pytest.mark.parametrize(
    "days",
    [
        [],
        [_day(19_999, 10), _day(19_994, 10)],  # six days
        [_day(19_999, 10), _day(19_980, 90)],  # all that there is
    ],
)
def test_too_few_days_or_all_that_there_is_are_no_pace(days: list[Day]) -> None:
    assert find_pace(days, Held(100, 10, 1, {}), NOW) is None


def test_a_disk_is_full_when_what_comes_has_taken_what_is_left() -> None:
    # A tenth of 1,000 MiB came in 10 days: 10 MiB a day.
    pace = Pace(10.0, 100, 0, 0, Held(1_000, 10, 1, {}))
    soon = forecast_disk(pace, 1_000 * MIB, 500 * MIB, NOW)
    assert soon.at == pytest.approx(NOW + 50 * 86_400)
    assert soon.detail == (
        "disk: 500 MiB are left, and 300 MiB come in a month; "
        "at the pace of the last 10 days that bound is met on 2024-11-23"
    )
    (check,) = check_forecasts([soon], NOW)
    assert (check.name, check.state) == ("forecast", WARNING)
    assert check.advice
    later = forecast_disk(pace, 1_000 * MIB, 20_000 * MIB, NOW)
    assert [one.state for one in check_forecasts([later], NOW)] == [OK]
    far = forecast_disk(pace, 1_000 * MIB, 40_000 * MIB, NOW)
    assert far.at is None
    assert "is not met within 10 years" in far.detail


def test_topics_grow_with_epochs_up_to_those_that_have_room_at_once() -> None:
    # A hundredth of all epochs began in 10 days, in which half of all that is said of members came.
    pace = Pace(10.0, 5_000, 500, 1, Held(100_000, 1_000, 1, {19_995: 1, 19_000: 98}))
    (soon,) = forecast_daemon(pace, "ravel_topics 4000\n", 0, NOW)
    assert soon.at == pytest.approx(NOW + 96 / 4 * 86_400)
    assert soon.detail.startswith("topics: 4,000 are followed, and a relay compares 4,096 at a time; ")
    (met,) = forecast_daemon(pace, "ravel_topics 5000\n", 0, NOW)
    assert met.at == NOW
    assert [bool(one.advice) for one in check_forecasts([soon, met], NOW)] == [True, True]


def test_a_repo_whose_members_come_and_go_in_the_same_epoch_is_forecast_no_growth_of_topics() -> None:
    (topics,) = forecast_daemon(
        Pace(10.0, 5_000, 500, 0, Held(100_000, 1_000, 1, {})), "ravel_topics 4\n", 0, NOW
    )
    assert topics.at is None


def test_a_start_and_memory_grow_with_commits_of_root_branches() -> None:
    # A hundredth of all came in 10 days, so what is beyond an empty node's doubles in a thousand.
    pace = Pace(10.0, 5_000, 10, 0, HELD)
    start, memory = forecast_daemon(pace, _metrics(30.8, 570_000_000), 1_070_000_000, NOW)
    assert start.at == pytest.approx(NOW + (START_SECONDS_MAX - 30.8) / 0.03 * 86_400)
    assert memory.at == pytest.approx(NOW + 1_000 * 86_400)
    assert [one.state for one in check_forecasts([start, memory], NOW)] == [OK, OK]


def test_a_daemon_that_is_past_a_bound_is_warned_of_and_one_that_says_nothing_is_not_forecast() -> None:
    pace = Pace(10.0, 5_000, 10, 0, HELD)
    past, _ = forecast_daemon(pace, _metrics(START_SECONDS_MAX + 5, MIB), 1 << 30, NOW)
    assert past.at == NOW
    assert [one.state for one in check_forecasts([past], NOW)] == [WARNING]
    assert list(forecast_daemon(pace, "", 1 << 30, NOW)) == []


def test_a_repo_whose_members_stay_the_same_is_forecast_no_growth_of_starts() -> None:
    start, memory = forecast_daemon(Pace(10.0, 5_000, 0, 0, HELD), _metrics(30, MIB), 1 << 30, NOW)
    assert start.at is None
    assert memory.at is None
