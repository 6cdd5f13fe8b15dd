"""The client that is awaited, with a node in this process whose clock a test sets."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

import ravel
from ravel import AsyncClient, RavelError
from ravel.target import Target
from tests.support.served import TOKEN, Served, served


def _client(one: Served, token: str = TOKEN) -> AsyncClient:
    return ravel.connect_async(url=str(one.client.base_url), token=token)


async def test_a_token_is_refused_when_it_has_expired_or_is_revoked(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, lambda: now[0]) as one, AsyncExitStack() as stack:
        one.node.create_repo()
        mine = await stack.enter_async_context(_client(one))
        made = await mine.create_token("app", ["read", "write"], expires_seconds=60)
        app = await stack.enter_async_context(_client(one, made["token"]))
        await app.write_post("main", "in time")
        now[0] += 61
        with pytest.raises(RavelError) as caught:
            await app.write_post("main", "too late")
        assert caught.value.code == "token_expired"
        assert caught.value.advice
        await mine.revoke_token("app")
        with pytest.raises(RavelError) as caught:
            await app.show_token()
        assert caught.value.code == "unauthorized"
        items = (await mine.show_timeline("main"))["items"]
        assert [item["text"] for item in items if item["kind"] == "post"] == ["in time"]


async def test_a_stream_of_the_node_gives_its_lists(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client, client.watch_node() as events:
        named = {(await anext(events)).name for _ in range(2)}
        assert named == {"peers", "repos"}


async def test_a_stream_that_is_refused_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one, "nobody") as client:
        with pytest.raises(RavelError) as caught:
            async with client.watch_edits("main"):
                pass
        assert caught.value.code == "unauthorized"


async def test_nothing_that_the_environment_says_of_proxies_is_heeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with served(tmp_path) as one, _client(one) as client:
        assert (await client.list_repos())["repos"] == []


async def test_an_upload_that_fails_raises_its_own_error(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _client(one) as client:
        one.node.create_repo()

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"
            raise OSError("of the file's own disk")

        with pytest.raises(OSError, match="own disk"):
            await client.add_file("main", content(), name="a")
        assert (await client.list_files("main"))["files"] == []


async def test_where_no_daemon_answers_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_arguments: object, **_more: object) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async def at_once(_seconds: float) -> None:
        waits.append(_seconds)

    waits: list[float] = []
    monkeypatch.setattr("ravel.async_client.anyio.sleep", at_once)
    async with AsyncClient(Target("http://127.0.0.1:1", "t")) as client:
        monkeypatch.setattr(client._http, "send", refuse)
        with pytest.raises(RavelError) as caught:
            await client.show_status()
    assert (caught.value.code, waits) == ("not_running", [0.1, 0.4, 1.0])


async def test_no_certificates_are_read_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = []

    def note(verify: ssl.SSLContext | bool, **_: object) -> ssl.SSLContext:
        trusted.append(verify is True)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr("httpx._transports.default.create_ssl_context", note)
    for scheme in ("http", "https"):
        await AsyncClient(Target(f"{scheme}://127.0.0.1:1", "t")).aclose()
    assert trusted == [False, True]
