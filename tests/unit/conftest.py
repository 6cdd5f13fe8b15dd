"""What tests of several packages start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.builders import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A node with a repo and a branch, in `tmp_path`/world. Modules that need another one have their own."""
    world = World(tmp_path / "world")
    yield world
    world.close()
