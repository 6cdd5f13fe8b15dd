"""What `.ci/run` asks of a machine before anything else, and which failed steps it repeats. All programs are stand-ins."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.machine import patience

_SCRIPT: Final = Path(__file__).resolve().parent.parent / ".ci/run"
_PRESENT: Final = [
    "git",
    "gcc",
    "initdb",
    "chromium",
    "firefox-esr",
    "nginx",
    "caddy",
    "node",
    "coqc",
    "ip",
    "sysctl",
    "nft",
    "miniupnpd",
]
_MAKE: Final = """#!/bin/bash
# Ends each target as the next line of the file of its name says, as GNU make does.
cd "$(dirname "$0")"
for word in "$@"; do case $word in -*|*=*) ;; *) target=$word ;; esac; done
echo "$target" >> calls
status=$(head -n 1 "$target" 2>/dev/null)
sed -i 1d "$target" 2>/dev/null
[ "${status:-0}" = 0 ] && exit 0
echo "make: *** [Makefile:9: $target] Error $status" >&2
exit 2
"""


def _run(
    folder: Path, answers: Mapping[str, str], *, has_namespaces: bool = True
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The script's end, and the targets that it made."""
    programs = dict.fromkeys(_PRESENT, "#!/bin/sh\n")
    programs["unshare"] = f"#!/bin/sh\nexit {int(not has_namespaces)}\n"
    programs["make"] = _MAKE
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for target, statuses in answers.items():
        (folder / target).write_text("".join(f"{status}\n" for status in statuses))
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    ended = subprocess.run(
        [_SCRIPT], env=environment, capture_output=True, text=True, timeout=patience(60), check=False
    )
    calls = folder / "calls"
    return ended, calls.read_text().split() if calls.exists() else []


def test_without_the_right_to_make_networks_it_says_so_at_once(tmp_path: Path) -> None:
    ended, made = _run(tmp_path, {}, has_namespaces=False)
    assert (ended.returncode, made) == (1, [])
    assert "sudo .ci/run" in ended.stderr


@pytest.mark.parametrize(
    "answers, repeated, passes",
    [
        ({}, [], True),
        ({"test": "10"}, ["test"], True),
        ({"test": "11"}, ["test"], False),
        ({"test": "2"}, [], False),
        ({"test-rest": "3"}, [], False),
        ({"check": "1"}, [], False),
        ({"verdicts": "1"}, [], False),
    ],
    ids=["all pass", "flaky", "failing", "never ran", "pytest failed", "check failed", "judges differ"],
)
def test_tests_run_again_only_where_all_of_them_ran(
    tmp_path: Path, answers: dict[str, str], repeated: list[str], passes: bool
) -> None:
    ended, made = _run(tmp_path, answers)
    steps = ["setup", "check", "test", "test-rest", "coverage-floors", "verdicts"]
    assert sorted(made) == sorted(steps + repeated)
    assert (ended.returncode == 0) == passes == ("FAILED" not in ended.stdout)
