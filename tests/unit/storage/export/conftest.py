"""Destinations of exports in these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.export_places import KINDS, Place, open_place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with open_place(request.param, tmp_path / "export", monkeypatch) as found:
        yield found
