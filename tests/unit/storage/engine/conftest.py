"""Stores of the engine's tests make their tables themselves."""

import pytest

from storage.engine import folders, sqlite


@pytest.fixture(autouse=True)
def _makes_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "open_or_create", folders.open_or_create)
