"""A kind of document is one module's: what the node knows of it follows from the table."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[4]
STORY: Final = """
import sys
import tests.support.made_up_kind
from tests.support.made_up_story import main
main(sys.argv[1])
"""


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite
def test_a_kind_that_only_the_table_names_is_decoded_merged_snapshotted_compacted_erased_and_checked(
    tmp_path: Path,
) -> None:
    # In a process of its own: lists are derived when modules are imported, and this process has them already.
    done = subprocess.run(
        [sys.executable, "-c", STORY, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
