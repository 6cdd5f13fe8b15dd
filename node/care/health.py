"""What `ravel doctor` finds, for a page."""

from pathlib import Path

import msgspec
import trio

from node.care.background import run_command
from node.contract.care import HealthReport
from node.runtime.errors import ServiceError
from protocol.limits.users import CHECKS_SECONDS_MAX


class Health:
    """Looks at one node, by one process at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = trio.Lock()

    async def check(self) -> HealthReport:
        """Everything that can be looked at. Raises ServiceError; `busy` while another look goes on."""
        if self._lock.locked():
            raise ServiceError("busy", "the node is being looked at already", "wait a few seconds")
        async with self._lock:
            ran = await run_command(self._home, "doctor", seconds_max=CHECKS_SECONDS_MAX)
        return msgspec.convert(ran.answer, HealthReport)
