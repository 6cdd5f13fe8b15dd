"""Files that are sent: what fails before their first byte is answered as an error."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from node.content.files import FileService
from protocol.limits.formats import LEAF_SIZE
from tests.support.nodes import connected, open_nodes, until_equal
from tests.support.served import Served, served


async def _share_file(one: Served, tmp_path: Path, content: bytes) -> None:
    """Let the served node know a file of a node that has left: its commit, and not its content."""

    async def stream() -> AsyncGenerator[bytes]:
        await trio.lowlevel.checkpoint()
        yield content

    with open_nodes(tmp_path, "bob") as (bob,):
        repo, _ = bob.create_repo()
        await one.node.joiner.begin(bob.invite(repo))
        await FileService(bob.hub, bob.author, bob.branch).add("main", "far", stream())
        async with connected(one.node, bob):
            await until_equal(one.node, bob)
            answer = await one.client.get("/api/v1/branches/main/files/far", headers={"Range": "bytes=-1"})
            assert (answer.status_code, answer.content) == (206, content[-1:])


@pytest.mark.slow
async def test_a_file_of_which_the_first_bytes_are_not_here_is_answered_so(tmp_path: Path) -> None:
    size = 3 * LEAF_SIZE
    async with served(tmp_path / "served") as one:
        await _share_file(one, tmp_path / "other", os.urandom(size))
        for wanted in ({}, {"Range": "bytes=5-9"}):
            answer = await one.client.get("/api/v1/branches/main/files/far", headers=wanted)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "incomplete")
            assert "etag" not in answer.headers
        here = await one.client.get("/api/v1/branches/main/files/far", headers={"Range": "bytes=-9"})
        assert (here.status_code, len(here.content)) == (206, 9)
        head = await one.client.head("/api/v1/branches/main/files/far")
        assert (head.status_code, head.headers["content-length"]) == (200, str(size))
