"""How many files a daemon may have open: asked for where the system gives them, and said where it does not."""

import subprocess
import sys

import pytest

from protocol.limits.users import OPEN_FILES_WANTED

CODE = """
import resource, sys
from node.runtime.open_files import allow_open_files
allowed, most = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
print(allow_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "allowed, most, then",
    [
        (256, OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED),
        (OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED + 1, OPEN_FILES_WANTED + 1),
        (256, 512, 512),
    ],
)
def test_as_many_files_as_are_needed_or_allowed(allowed: int, most: int, then: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(allowed), str(most)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{then} {then} {most}"
    assert ("few files may be open" in done.stdout + done.stderr) == (then < OPEN_FILES_WANTED)
