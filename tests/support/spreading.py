"""Spreads tests over workers as xdist does, in a time for each that does not grow with the number of those before it.

Of ten thousand tests xdist's own way takes six seconds of the processors that the workers use.
"""

import pytest

# xdist has no types.
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]


class Spreading(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Work that was given to each worker and has not ended."""

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a unit of work once all of it has ended: else all are counted for each test."""
        super().mark_test_complete(node, item_index, duration)
        work = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(work[scope].values()):
            del work[scope]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Spreading | None:
    """Return the scheduler that spreads tests, where groups stay together."""
    return Spreading(config, log) if config.getoption("dist") == "loadgroup" else None
