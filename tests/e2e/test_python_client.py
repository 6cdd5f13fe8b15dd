"""The Python client, waiting and awaited, with a daemon in a process: lost answers, cut streams, restarts, tokens."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

import ravel
from node.runtime.errors import ERROR_KINDS
from protocol.limits.users import REQUEST_SIZE_MAX
from ravel import RavelError
from ravel.files import encode_head
from ravel.home import read_run_file, read_token
from tests.e2e.cluster import Peer, peers, run_ravel
from tests.support.cutting import CuttingProxy, cutting
from tests.support.machine import patience

pytestmark = pytest.mark.slow


def _nothing() -> None:
    """Beside losing the answer."""


def _url(peer: Peer) -> str:
    return f"http://{read_run_file(peer.home).api}"


def _texts(peer: Peer) -> list[str | None]:
    items = peer.client.show_timeline("main", limit=1000)["items"]
    return [item["text"] for item in items if item["kind"] == "post"]


def _under_trio(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with trio.fail_after(patience(60)):
            await work()

    trio.run(bounded)


def _under_asyncio(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(patience(60)):
            await work()

    asyncio.run(bounded())


def test_a_write_whose_answer_is_lost_is_done_once(standing: Peer) -> None:
    standing.client.create_repo("lost")
    token = read_token(standing.home)
    with cutting(lambda: _url(standing)) as proxy:
        with ravel.connect(url=proxy.url, token=token) as client:
            proxy.losses = [_nothing, _nothing]
            first = client.write_post("lost:main", "waiting")
            assert proxy.losses == []

        async def work() -> None:
            async with ravel.connect_async(url=proxy.url, token=token) as client:
                proxy.losses = [_nothing, _nothing]
                await client.write_post("lost:main", "awaited")
                assert proxy.losses == []

        _under_trio(work)
        _under_asyncio(work)
    items = standing.client.show_timeline("lost:main")["items"]
    posts = [item for item in items if item["kind"] == "post"]
    assert [item["text"] for item in posts] == ["waiting", "awaited", "awaited"]
    assert posts[0]["commit"] == first["commit"]


def test_a_write_amid_a_start_of_the_daemon_is_not_done_again(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,), cutting(lambda: _url(alice)) as proxy:
        alice.client.create_repo("notes")

        def start_again() -> None:
            alice.kill()
            alice.start()

        with ravel.connect(url=proxy.url, token=read_token(alice.home)) as client:
            proxy.losses = [start_again]
            with pytest.raises(RavelError) as caught:
                client.write_post("main", "once")
            # Where starting takes longer than the client repeats, it does not reach the daemon at all.
            assert caught.value.code in ("answer_lost", "not_running")
            assert _texts(alice) == ["once"]


def test_a_client_of_a_folder_finds_the_daemon_again_after_a_start(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,), closing(ravel.connect(alice.home)) as client:
        client.create_repo("notes")
        alice.stop()
        with pytest.raises(RavelError) as caught:
            client.show_status()
        assert caught.value.code == "not_running"
        assert "up" in caught.value.advice
        alice.start("--api", "127.0.0.1:0")
        assert client.show_status()["repos"] == 1
        assert client.write_post("main", "hello")["rank"] == 1

        async def work() -> None:
            async with ravel.connect_async(alice.home) as other:
                assert (await other.show_status())["node"] == client.show_status()["node"]

        _under_asyncio(work)


@pytest.mark.extended
def test_a_cut_stream_goes_on_without_a_loss_or_a_repetition(standing: Peer) -> None:
    standing.client.create_repo("stream")
    token = read_token(standing.home)
    with cutting(lambda: _url(standing)) as proxy:
        with (
            ravel.connect(url=proxy.url, token=token) as client,
            client.watch_edits("stream:main") as events,
        ):
            _write_amid_cuts(standing, proxy, lambda: _next_text(next(events)))

        async def work() -> None:
            async with ravel.connect_async(url=proxy.url, token=token) as client:
                last = str((await client.follow_edits("stream:main", limit=1))["last"])
                async with client.watch_edits("stream:main", since=last) as events:
                    for number in range(3):
                        standing.client.write_post("stream:main", f"again {number}")
                        found = None
                        while found is None:
                            found = _next_text(await anext(events))
                        assert found == f"again {number}"
                        proxy.cut()

        _under_trio(work)
        _under_asyncio(work)


def _next_text(event: ravel.StreamEvent) -> str | None:
    text: str | None = event.data.get("item", {}).get("text")
    return text


def _write_amid_cuts(peer: Peer, proxy: CuttingProxy, read: Callable[[], str | None]) -> None:
    for number in range(3):
        peer.client.write_post("stream:main", f"post {number}")
        found = None
        while found is None:  # resets, and the branch's root
            found = read()
        assert found == f"post {number}"
        proxy.cut()


def test_files_go_there_and_back_in_both_clients(standing: Peer) -> None:
    standing.client.create_repo("files")
    content = bytes(range(256)) * 1000
    with ravel.connect(standing.home) as client:
        client.add_file("files:main", [content[:1000], content[1000:]], name="a.bin")
        with client.get_file("files:main", "a.bin", start=256, stop=512) as download:
            assert (download.size, download.name) == (len(content), "a.bin")
            assert b"".join(download.pieces) == bytes(range(256))

    async def work() -> None:
        async with ravel.connect_async(standing.home) as client:
            many = b"".join(encode_head(name, 3) + b"abc" for name in ("b", "c"))
            added = await client.add_files("files:main", [many])
            assert [file["name"] for file in added["files"]] == ["b", "c"]
            async with client.get_file("files:main", "a.bin") as download:
                assert b"".join([piece async for piece in download.pieces]) == content
            with pytest.raises(RavelError) as caught:
                async with client.get_file("files:main", "gone"):
                    pass
            assert caught.value.code == "not_found"

    _under_trio(work)
    _under_asyncio(work)


def test_both_clients_refuse_alike(standing: Peer) -> None:
    standing.client.create_repo("refused")
    made = run_ravel(standing, "token", "create", "--name", "reader", "--actions", "read").stdout.strip()
    run_ravel(standing, "token", "create", "--name", "gone", "--actions", "read")
    wanted = {
        "insufficient_scope": (made, "refused:main", "x"),
        "unauthorized": ("nobody", "refused:main", "x"),
        "not_found": (read_token(standing.home), "no:main", "x"),
        "bad_request": (read_token(standing.home), "refused:main", "x" * 300_000),
    }

    async def work() -> None:
        for code, (token, branch, text) in wanted.items():
            async with ravel.connect_async(url=_url(standing), token=token) as client:
                with pytest.raises(RavelError) as second:
                    await client.write_post(branch, text)
            with (
                ravel.connect(url=_url(standing), token=token) as waiting,
                pytest.raises(RavelError) as first,
            ):
                waiting.write_post(branch, text)
            assert first.value.as_json() == second.value.as_json()
            assert first.value.code == code

    _under_asyncio(work)


def test_a_number_that_is_too_large_is_refused(standing: Peer) -> None:
    with ravel.connect(standing.home) as client:
        for number in (2**53 + 1, 2**64, 10**40, -1):
            with pytest.raises(RavelError) as caught:
                client.create_invitation("standing", expires_seconds=number)
            assert caught.value.code in ("bad_request", "not_found")
            with pytest.raises(RavelError, match="limit") as caught:
                client.list_comments("main", limit=number)
            assert caught.value.code == "bad_request"


def test_a_raw_request_gives_the_answer_as_it_is(standing: Peer) -> None:
    with ravel.connect(standing.home) as client:
        assert json.loads(client.request("GET", "/repos?x=1"))["complete"]
        assert json.loads(client.request("POST", "/repos", b'{"name":"raw"}'))["name"] == "raw"
        with pytest.raises(RavelError, match="no such endpoint") as caught:
            client.request("GET", "/of-a-later-version")
        assert caught.value.code == "not_found"


def test_the_command_api_calls_any_endpoint(standing: Peer, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"name": "by api"}')
    shown = run_ravel(standing, "api", "post", "/repos", "--data", f"@{body}").stdout
    assert json.loads(shown)["name"] == "by api"
    assert shown.startswith("{\n  "), "for people"
    write = ("api", "POST", "/branches/by%20api:main/commits", "--json", "--data")
    assert run_ravel(standing, *write, '{"text": "é"}').stdout.count("\n") == 1
    assert json.loads(run_ravel(standing, *write, "-", stdin='{"text": "x"}').stdout)["rank"] == 2
    listed = json.loads(run_ravel(standing, "api", "GET", "/branches/by%20api:main/timeline?limit=2").stdout)
    assert [item["text"] for item in listed["items"]] == [None, "é"]


@pytest.mark.parametrize(
    "arguments, code, word",
    [
        (("GET", "/nowhere"), "not_found", "no such endpoint"),
        (("PATCH", "/repos"), "bad_request", "none of GET"),
        (("GET", "repos"), "bad_request", "is no path"),
        (("GET", "/a b"), "bad_request", "is no path"),
        (("POST", "/repos", "--data", "{"), "bad_request", "expected form"),
        (("POST", "/repos", "--data", '{"x": 1}'), "bad_request", "x"),
        (("POST", "/repos", "--data", "@/nowhere"), "bad_input", "cannot be read"),
        (("POST", "/repos", "--data", '{"name": "' + "x" * 100_000 + '"}'), "bad_request", "name"),
    ],
)
def test_the_command_api_says_what_is_wrong(
    standing: Peer, arguments: tuple[str, ...], code: str, word: str
) -> None:
    done = run_ravel(standing, "api", *arguments, "--json", code=ERROR_KINDS[code].exit_code)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == code
    assert word in error["message"]


def test_the_command_api_takes_no_more_than_a_request_may_have(standing: Peer) -> None:
    body = "x" * (REQUEST_SIZE_MAX + 1)
    done = run_ravel(
        standing, "api", "POST", "/repos", "--data", "-", stdin=body, code=ERROR_KINDS["too_large"].exit_code
    )
    assert str(REQUEST_SIZE_MAX) in done.stderr


def test_an_answer_that_is_too_large_is_not_held(standing: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ravel.exchange.ANSWER_SIZE_MAX", 20)

    async def work() -> None:
        async with ravel.connect_async(standing.home) as client:
            with pytest.raises(RavelError, match="over 20 bytes"):
                await client.show_status()

    _under_trio(work)
    _under_asyncio(work)
    with ravel.connect(standing.home) as client, pytest.raises(RavelError, match="over 20 bytes"):
        client.show_status()
