"""The gate that keeps slow tests known: what it fails, and what it does not."""

import pytest

from tests.support import timing

_CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--tier", default="quick")
"""


@pytest.mark.parametrize(
    "runs_over, marked, passes", [(0, False, True), (1, False, True), (2, False, False), (2, True, True)]
)
def test_a_test_fails_only_when_it_takes_too_long_twice_and_is_not_marked(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    runs_over: int,
    marked: bool,
    passes: bool,
) -> None:
    asked: list[None] = []

    def is_slow(*_: float) -> bool:
        asked.append(None)
        return (len(asked) + 1) // 2 <= runs_over  # each run that may be over asks twice

    pytester.makeconftest(_CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    slow: takes long")
    mark = "@pytest.mark.slow\n" if marked else ""
    pytester.makepyfile(
        f"import pytest\n\n{mark}def test_something(tmp_path):\n    assert tmp_path.exists()\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(timing, "_is_slow", is_slow)
        patch.setattr(timing, "measure_slowness", lambda: 1.0)
        result = pytester.runpytest_inprocess(
            "-p", "tests.support.timing", "-p", "no:trio", "-p", "no:cacheprovider"
        )
    result.assert_outcomes(passed=int(passes), failed=int(not passes))
