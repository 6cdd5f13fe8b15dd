"""Turns of trio's event loop: how many there were."""

import trio


class Steps(trio.abc.Instrument):
    """Counts the turns of tasks."""

    count = 0

    def before_task_step(self, task: object) -> None:
        """Count one."""
        self.count += 1
