"""Daemons and browsers that several tests use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import browser as browsers
from tests.e2e.browser import ENGINES, Browser, browser
from tests.e2e.cluster import Peer, peers
from tests.e2e.page_steps import WIDE


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each browser in turn, for journeys: a module asks for it by `usefixtures`."""
    name: str = request.param
    if ENGINES[name] is None:
        assert not os.environ.get("CI"), f"there is no {name}"
        pytest.skip(f"there is no {name} here (Debian: apt install chromium firefox-esr)")
    monkeypatch.setattr(browsers, "engine", name)
    return name


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
