"""Builds the reader of publications (`node/ingest/reading.c`) into checkouts and wheels, where there is a C compiler.

Where there is none, the node reads by Python, with the same results (`node/ingest/native_reading.py`). To build it alone:
`.venv/bin/python hatch_build.py`.
"""

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER: Final = Path(__file__).parent / "node" / "ingest"
_SOURCE: Final = _FOLDER / "reading.c"
_LIBRARY: Final = _FOLDER / "reading.so"
FLAGS: Final = (
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-pedantic",
    "-fPIC",
    "-shared",
)


def build(library: Path = _LIBRARY, more_flags: tuple[str, ...] = ()) -> bool:
    """Compile the reader into a file; say why and return False where there is no compiler, or it fails."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()
    begun = library.with_name(f"{library.name}.{os.getpid()}")
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, *FLAGS, *more_flags, f'-DRAVEL_SOURCE="{digest}"', str(_SOURCE), "-o", str(begun)]
    try:
        subprocess.run(command, check=True)
        begun.replace(library)  # a daemon that runs keeps what it has loaded
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"The compiled reader was not built, and the node will read by Python, which takes longer: {error}",
            file=sys.stderr,
        )
        return False
    return True


class ReaderHook(BuildHookInterface[Any]):
    """Hook that hatchling calls before it makes a wheel or an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the reader; a wheel with it is for this platform, and for every Python."""
        if build() and version != "editable":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["artifacts"].append(f"/{_LIBRARY.relative_to(Path(__file__).parent)}")


if __name__ == "__main__":
    sys.exit(not build())
