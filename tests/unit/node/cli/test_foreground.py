"""Programs that have the terminal: Ctrl-C is theirs, and the command goes on when they have ended."""

import os
import signal
import sys

from node.cli.foreground import run_in_front

_INTERRUPTS = "import os, signal; os.kill(os.getppid(), signal.SIGINT); print(input()); raise SystemExit(7)"


def test_ctrl_c_does_not_end_what_waits_for_a_program() -> None:
    before = signal.getsignal(signal.SIGINT)
    code = run_in_front([sys.executable, "-S", "-c", _INTERRUPTS], dict(os.environ), b"a line\n")
    assert code == 7, "it was neither killed nor left"
    assert signal.getsignal(signal.SIGINT) is before
