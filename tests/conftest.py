"""The rules of the tests, and how hard Hypothesis tries.

- A test gives the same result every time; one that does not is a bug, in it or in what it tests.
- No test really sleeps or waits for a clock: time is an argument, trio's MockClock, or an event.
- The network is loopback on port 0, or memory streams. Nothing needs the internet.
- Every async test has a deadline (`trio.fail_after`); the timeout in pyproject.toml is only the net below.
- Fakes, not mocks: real stores in `tmp_path`, real nodes (`tests/nodes.py`), real signed commits (`tests/builders.py`).
- Warnings are errors. An exception is listed in pyproject.toml with its reason.
- What takes more than a quarter of a second is marked `slow`.
- A name says the rule that is tested; a new test has been seen to fail.

`tests/unit` mirrors the packages, `tests/property` holds what is true of all inputs, `tests/vectors` pins bytes.
Hypothesis: `dev` by default, `ci` where CI is set, and `make test ARGS=--hypothesis-profile=deep` for a long search.
"""

import os

from hypothesis import settings

# No deadline per example: how long one takes says more about the machine than about the code.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=2000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
