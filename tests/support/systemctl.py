"""A systemctl on PATH that notes how it was called. Where it is told to, it starts and stops what a unit names."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

_PROGRAM: Final = """#!/bin/sh
echo "$*" >> {log}
case "$2" in {fails}) echo "{says}" >&2; exit 1;; esac
{more}
"""
_STARTING: Final = """\
case "$2" in
enable)
    unit="${XDG_CONFIG_HOME}/systemd/user/$4"
    eval "setsid $(sed -n 's/%%/%/g; s/^ExecStart=//p' "$unit") > {log}.daemon 2>&1 < /dev/null &"
    echo $! > {log}.pid
    home=$(sed -n 's/%%/%/g; s/.*"--home" "\\(.*\\)" "run"$/\\1/p' "$unit")
    tries=600
    until test -e "$home/run.json" || test $tries = 0; do sleep 0.1; tries=$((tries - 1)); done
    ;;
is-active) test -f {log}.pid;;
disable | stop)
    test -f {log}.pid || exit 0
    kill "$(cat {log}.pid)"
    while kill -0 "$(cat {log}.pid)" 2> /dev/null; do sleep 0.1; done
    rm {log}.pid
    ;;
esac
"""


def fake_systemctl(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    fails: str = "nothing",
    says: str = "",
    starts: bool = False,
) -> Callable[[], list[str]]:
    """Put it first on PATH; return a function that lists its calls. A call that `fails` prints what it `says`."""
    programs, log = folder / "programs", folder / "systemctl.log"
    programs.mkdir()
    more = _STARTING.replace("{log}", str(log)) if starts else ""
    path = programs / "systemctl"
    path.write_text(_PROGRAM.format(log=log, fails=fails, says=says, more=more))
    path.chmod(0o755)
    monkeypatch.setenv(
        "PATH", f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    return lambda: log.read_text().splitlines() if log.exists() else []
