"""Many files over the API by one request: all of them or none."""

import random
from pathlib import Path

import pytest
import trio

from node.http import connection as http_connection
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.users import BODY_WAIT_SECONDS, FILE_BATCH_COUNT_MAX
from ravel.files import encode_head
from tests.support.relays import until
from tests.support.served import AUTH, Served, served

_PATH = "/api/v1/branches/main/files"


def _body(count: int, size: int) -> bytes:
    noise = random.Random(1)
    return b"".join(encode_head(f"folder/{number}", size) + noise.randbytes(size) for number in range(count))


async def _names(one: Served) -> list[str]:
    return [file["name"] for file in (await one.client.get(_PATH, params={"limit": 1000})).json()["files"]]


def _packs(folder: Path) -> list[Path]:
    return list((folder / "alice" / "packs").glob("*"))


@pytest.mark.slow
async def test_files_of_one_request_are_read_back_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    body = _body(200, 5000)
    async with served(tmp_path) as one:
        one.node.create_repo()
        for is_new in (True, False):
            answer = await one.client.post(f"{_PATH}/batch", content=body)
            assert answer.status_code == 200, answer.text
            files = answer.json()["files"]
            assert [file["name"] for file in files] == [f"folder/{number}" for number in range(200)]
            assert {file["is_new"] for file in files} == {is_new}
            assert await _names(one) == [file["name"] for file in files]
        got = await one.client.get(f"{_PATH}/folder%2F199")
        assert got.content == body[-5000:]


@pytest.mark.slow
async def test_a_request_may_have_so_many_files_and_no_more(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        refused = await one.client.post(f"{_PATH}/batch", content=_body(FILE_BATCH_COUNT_MAX + 1, 8))
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
        assert await _names(one) == []
        taken = await one.client.post(f"{_PATH}/batch", content=_body(FILE_BATCH_COUNT_MAX, 8))
        assert len(taken.json()["files"]) == FILE_BATCH_COUNT_MAX


async def _begin(one: Served, body: bytes, length: int) -> trio.SocketStream:
    """A request whose body has not come whole."""
    stream = await trio.open_tcp_stream("127.0.0.1", one.client.base_url.port or 0)
    lines = [f"POST {_PATH}/batch HTTP/1.1", f"Host: 127.0.0.1:{one.client.base_url.port}"]
    lines += [f"Authorization: {AUTH['Authorization']}", f"Content-Length: {length}", "", ""]
    await stream.send_all("\r\n".join(lines).encode() + body)
    return stream


@pytest.mark.slow
async def test_a_request_that_stops_coming_is_given_up_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "BODY_WAIT_SECONDS", BODY_WAIT_SECONDS / 100)
    body = _body(6, LEAF_SIZE)
    async with served(tmp_path) as one:
        one.node.create_repo()
        async with await _begin(one, body[:-1], len(body)) as stream:
            assert b"interrupted" in b"".join([part async for part in stream])
        assert (await _names(one), _packs(tmp_path)) == ([], [])


@pytest.mark.slow
async def test_a_client_that_leaves_leaves_nothing(tmp_path: Path) -> None:
    body = _body(12, LEAF_SIZE)
    async with served(tmp_path) as one:
        one.node.create_repo()
        async with await _begin(one, body[:-1], len(body)):
            await until(lambda: bool(_packs(tmp_path)))
        await until(lambda: not _packs(tmp_path))
        assert await _names(one) == []
