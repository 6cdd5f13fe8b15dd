"""Daemons and browsers that several tests use."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from tests.e2e import browser as browsers
from tests.e2e import chromium, firefox
from tests.e2e.browser import ENGINES, Browser
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


@pytest.fixture(scope="session")
def chromium_at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Pipe]:
    """A Chromium, started once: that takes seconds."""
    with chromium.started(tmp_path_factory.mktemp("chromium")) as pipe:
        yield pipe


@pytest.fixture(scope="session")
def firefox_at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[firefox.Line]:
    """A Firefox, started once."""
    with firefox.started(tmp_path_factory.mktemp("firefox")) as line:
        yield line


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A wide window of a browser that nobody has used yet."""
    yield from _open_unused(request)


@pytest.fixture
def bobs(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Another one, of somebody else."""
    yield from _open_unused(request)


def _open_unused(request: pytest.FixtureRequest) -> Iterator[Browser]:
    window: AbstractContextManager[Browser]
    if browsers.engine == "firefox":
        window = firefox.fresh(request.getfixturevalue("firefox_at_work"))
    else:
        window = chromium.fresh(request.getfixturevalue("chromium_at_work"))
    with window as opened:
        opened.show(*WIDE, "light")
        yield opened


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A daemon with the repo `notes`, started once: for tests that read, or add what no other looks at."""
    with peers(tmp_path_factory.mktemp("standing"), "standing") as (peer,):
        peer.client.create_repo("notes")
        yield peer
