"""Bundles over HTTP: written to who may read the repo, read from who is for the node, and refused by name."""

from pathlib import Path

import httpx
import pytest

from protocol.formats.bundle import BUNDLE_START, BundleDecoder, BundleEncoder, BundleEnd
from protocol.limits.files import BUNDLE_RECORD_SIZE_MAX
from protocol.limits.formats import TIMESTAMP_MAX_MS
from ravel import AsyncClient
from ravel.target import Target
from ravel.types.values import Action
from tests.support.served import AUTH, TOKEN, Served, served

_READ = "/api/v1/bundles"


async def _client(one: Served, *actions: Action, repos: tuple[str, ...] = ()) -> httpx.AsyncClient:
    """A client with a token of these actions."""
    name = f"{'-'.join(actions)}{len(repos)}"
    made = await one.service.node.tokens.create(name, [*actions], [*repos], [], 3600)
    return httpx.AsyncClient(
        base_url=one.client.base_url, headers={**AUTH, "Authorization": f"Bearer {made['token']}"}
    )


@pytest.mark.slow
async def test_a_bundle_needs_read_to_be_written_and_node_to_be_read(tmp_path: Path) -> None:
    """Sealed bytes are for who reads the repo; what is read may be of any repo."""
    async with served(tmp_path) as one:
        one.node.create_repo("notes")
        one.node.create_repo("others")
        cases: list[tuple[tuple[Action, ...], tuple[str, ...], int, int]] = [
            (("read",), (), 200, 403),
            (("node",), (), 403, 200),
            (("write", "admin", "manage"), (), 403, 403),
            (("read",), ("others",), 403, 403),
        ]
        for actions, repos, written, read in cases:
            async with await _client(one, *actions, repos=repos) as client:
                answer = await client.get("/api/v1/repos/notes/bundle")
                assert answer.status_code == written, (actions, repos)
                whole = await one.client.get("/api/v1/repos/notes/bundle")
                assert (await client.post(_READ, content=whole.content)).status_code == read, (actions, repos)


async def test_a_bundle_has_the_branches_and_the_time_that_were_asked_for(tmp_path: Path) -> None:
    """And a branch that is not there is said before anything is sent."""
    async with served(tmp_path) as one:
        repo, main = one.node.create_repo("notes")
        one.node.author.founding.create_branch(repo, "side")
        one.node.write(main, "hello")

        async def count(**query: str | int) -> int:
            answer = await one.client.get("/api/v1/repos/notes/bundle", params=query)
            assert answer.status_code == 200
            assert "notes" not in str(answer.headers)
            [end] = [item for item in BundleDecoder().feed(answer.content) if isinstance(item, BundleEnd)]
            return end.count

        whole = await count()
        assert await count(branches="main,side") == whole
        assert await count(branches="side") == whole - 2
        assert await count(since=2_000_000_000) == 0
        async with AsyncClient(Target(str(one.client.base_url), TOKEN)) as client:
            async with client.write_bundle("notes", since=1) as pieces:
                content = b"".join([piece async for piece in pieces])
            assert (await client.read_bundle(content))["already"] == whole
        latest = TIMESTAMP_MAX_MS // 1000
        assert await count(since=latest) == 0
        queries: list[tuple[dict[str, str | int], int]] = [
            ({"branches": "none"}, 404),
            ({"since": "x"}, 400),
            ({"since": -1}, 400),
            ({"since": latest + 1}, 400),
        ]
        for query, code in queries:
            assert (await one.client.get("/api/v1/repos/notes/bundle", params=query)).status_code == code


async def test_each_bad_file_has_its_answer(tmp_path: Path) -> None:
    """Its code, and in words what it is and what to do; nothing of it changes the store."""
    async with served(tmp_path) as one:
        one.node.create_repo("notes")
        whole = (await one.client.get("/api/v1/repos/notes/bundle")).content
        before = one.node.replica.read_tables().commit_count
        huge = BundleEncoder().start(None) + (BUNDLE_RECORD_SIZE_MAX + 1).to_bytes(4, "little")
        cases: list[tuple[bytes, int, str, str]] = [
            (b"", 503, "interrupted", "cut"),
            (whole[:-1], 503, "interrupted", f"after {len(whole) - 1} bytes"),
            (whole[:100], 503, "interrupted", "after 100 bytes"),
            (b"\xff\xd8\xff\xe0\x00\x10JFIF" * 100_000, 400, "bad_input", "no bundle"),
            (BUNDLE_START.replace(b"1", b"2") + whole[15:], 400, "bad_input", "newer Ravel"),
            (huge, 400, "bad_input", "at most 2097152"),
            (whole + b"x", 400, "bad_input", "more follows"),
            (whole * 2, 400, "bad_input", "more follows"),
            (whole[:-1] + bytes([whole[-1] ^ 1]), 400, "bad_input", "not those that were written"),
        ]
        for content, status, code, said in cases:
            answer = await one.client.post(_READ, content=content)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (status, code), error
            assert said in error["message"], error
            assert error["next"], error
        assert one.node.replica.read_tables().commit_count == before
