"""Runs a program that has the terminal for a while, such as an editor."""

import signal
import subprocess
from collections.abc import Mapping, Sequence


def run_in_front(
    command: Sequence[str], environment: Mapping[str, str] | None = None, standard_input: bytes | None = None
) -> int:
    """Wait until a program ends, and return its exit code. Ctrl-C is for it alone. Raises OSError."""
    # A handler, unlike SIG_IGN, is not handed on to the program. (`subprocess.run` would kill it on an interrupt.)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(command, check=False, env=environment, input=standard_input).returncode
    finally:
        signal.signal(signal.SIGINT, before)
