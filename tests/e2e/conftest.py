"""Daemons and browsers that several tests use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, browser
from tests.e2e.cluster import Peer, peers
from tests.e2e.page_steps import WIDE


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    """A wide window of a browser that nobody has used yet."""
    with browser(tmp_path / "profile") as opened:
        opened.show(*WIDE, "light")
        yield opened


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A daemon with the repo `notes`, started once: for tests that read, or add what no other looks at."""
    with peers(tmp_path_factory.mktemp("standing"), "standing") as (peer,):
        peer.client.create_repo("notes")
        yield peer
