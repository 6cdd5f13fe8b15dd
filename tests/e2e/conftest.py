"""Daemons that several tests use."""

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Peer, peers


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A daemon with the repo `notes`, started once: for tests that read, or add what no other looks at."""
    with peers(tmp_path_factory.mktemp("standing"), "standing") as (peer,):
        peer.client.create_repo("notes")
        yield peer
