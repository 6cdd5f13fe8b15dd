"""The listener for other machines: who is heard there, under which names, and what strangers can use up."""

import ipaddress
from pathlib import Path

import httpx
import pytest
import trio
from starlette.types import Scope
from trio.testing import MockClock, memory_stream_pair

from node.api.codes import OneTimeCodes
from node.contract.access import ACTIONS
from node.home.config_sections import ApiConfig, Config
from node.home.home import Home
from node.http import strangers as http_strangers
from node.http.remote import REMOTE, Remote, StrangerLimits
from node.http.strangers import Strangers
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    API_STRANGER_SECONDS,
    BROWSERS_MAX,
    PAIRING_CODE_SECONDS,
    PAIRING_TRIES_AT_ONCE_MAX,
    PAIRING_TRIES_MAX,
    PAIRING_TRY_SECONDS,
    REMOTE_OPENED_AT_ONCE_MAX,
    REMOTE_REQUESTS_AT_ONCE_MAX,
    REMOTE_SUBNETS_MAX,
)
from tests.support.connections import serve_alone
from tests.support.machine import fail_after
from tests.support.served import AUTH, Served, served

TLS = ApiConfig(tls="127.0.0.1:0", tls_names=())
NAMED = ApiConfig(
    tls="*:0",
    tls_names=("ravel.example:443", "192.0.2.9", "m\u00fcller.example"),
    trusted_proxies=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("fd00::/64")),
)


def _remote(folder: Path, api: ApiConfig = NAMED) -> Remote:
    return Remote(
        Home(folder, Config(api=api)), lambda: 1_700_000_000.0, lambda: ["192.0.2.1", "2001:db8::1"]
    )


async def _code(one: Served) -> str:
    return str((await one.client.post("/api/v1/browsers/codes")).json()["code"])


async def _paired(one: Served, name: str = "Ann's phone") -> str:
    async with one.elsewhere() as browser:
        answer = await browser.post("/open", json={"code": await _code(one), "name": name})
        return str(answer.json()["token"])


async def test_a_code_pairs_a_browser_once_over_tls(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one, one.elsewhere() as browser:
        assert one.remote is not None
        made = (await one.client.post("/api/v1/browsers/codes")).json()
        digits = made["fingerprint"].replace(":", "").lower()
        assert bytes.fromhex(digits) == one.remote.certificate.fingerprint
        assert made["addresses"] == [f"{browser.base_url}/#pair={made['code']}&sha256={digits}"]
        assert (await browser.get("/")).status_code == 200
        typed = made["code"].upper().replace("-", " ")
        token = (await browser.post("/open", json={"code": typed, "name": " Ann's phone "})).json()["token"]
        again = await browser.post("/open", json={"code": made["code"], "name": "Eve"})
        assert (again.status_code, again.json()["error"]["code"]) == (401, "unauthorized")

        own = {"Authorization": f"Bearer {token}"}
        shown = (await browser.get("/api/v1/token", headers=own)).json()
        assert (shown["name"], shown["kind"], len(shown["actions"])) == (
            "Ann's phone",
            "browser",
            len(ACTIONS),
        )
        (listed,) = (await browser.get("/api/v1/browsers", headers=own)).json()["browsers"]
        assert (listed["name"], listed["last_used_at"]) == ("Ann's phone", 1_700_000_000)
        assert (await one.client.get("/api/v1/tokens")).json()["tokens"] == []
        for method, path in (
            ("POST", "/browsers/codes"),
            ("DELETE", "/browsers/Ann's phone"),
            ("POST", "/codes"),
        ):
            refused = await browser.request(method, f"/api/v1{path}", headers=own)
            assert refused.json()["error"]["code"] == "insufficient_scope", path
        assert (await one.client.delete("/api/v1/browsers/Eve")).status_code == 404
        assert (await one.client.delete("/api/v1/tokens/Ann's phone")).status_code == 404
        assert (await one.client.delete("/api/v1/browsers/Ann's phone")).status_code == 200
        gone = await browser.get("/api/v1/token", headers=own)
        assert gone.json()["error"]["code"] == "unauthorized"


async def test_a_page_on_the_machine_pairs_too_and_codes_stay_where_they_belong(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one, one.elsewhere() as browser:
        local = (await one.client.post("/api/v1/codes")).json()["code"]
        assert (await browser.post("/open", json={"code": local})).status_code == 401
        code = await _code(one)
        assert (await one.client.post("/open", json={"code": code})).status_code == 401
        page = (await one.client.post("/open", json={"code": local})).json()["token"]
        own = {"Authorization": f"Bearer {page}"}
        assert (await one.client.post("/api/v1/browsers/codes", headers=own)).status_code == 200
        refused = await browser.get("/api/v1/status", headers=own)
        assert (refused.status_code, "machine alone" in refused.text) == (401, True), "a page's token"
        assert (await browser.post("/open", json={"code": code})).status_code == 200


async def test_without_tls_nothing_is_paired(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        refused = (await one.client.post("/api/v1/browsers/codes")).json()["error"]
        assert (refused["code"], "api.tls" in refused["next"]) == ("bad_config", True)
        assert (await one.client.get("/api/v1/browsers")).json() == {"browsers": [], "remote": None}


async def test_other_machines_get_less_than_this_one(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one, one.elsewhere() as browser:
        for path in ("/healthz", "/readyz", "/metrics", "/api/v1/status"):
            assert (await browser.get(path)).status_code == 401, path
        refused = await browser.get("/api/v1/status", headers=AUTH)
        assert (refused.status_code, "this machine" in refused.text) == (401, False)
        assert "node's machine alone" in refused.text
        app = await one.client.post("/api/v1/tokens", json={"name": "chat", "actions": ["node"]})
        own = {"Authorization": f"Bearer {app.json()['token']}"}
        assert (await browser.get("/api/v1/status", headers=own)).status_code == 200
        origin = "https://app.example"
        request = {"name": "web", "actions": ["node"], "origins": [origin]}
        shared = (await one.client.post("/api/v1/tokens", json=request)).json()["token"]
        own = {"Authorization": f"Bearer {shared}", "Origin": origin}
        assert (await one.client.get("/api/v1/status", headers=own)).status_code == 200
        assert (await browser.get("/api/v1/status", headers=own)).status_code == 403, "on this machine alone"
        assert "strict-transport-security" not in (await browser.get("/")).headers


HOSTS = {
    "127.0.0.1:7": 200,
    "192.168.1.2": 200,
    "[2001:db8::1]:7476": 200,
    "localhost:1": 200,
    "ravel.example": 200,
    "RAVEL.example:443": 200,
    "xn--mller-kva.example": 200,
    "evil.example": 403,
    "ravel.example.evil.example": 403,
    "": 403,
    "x@127.0.0.1": 403,
}


async def test_names_that_are_not_its_own_and_pages_of_others_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path, api=NAMED) as one:
        token = await one.service.node.tokens.make_for_browser("x")
        assert one.remote is not None
        here = f"https://127.0.0.1:{one.remote.port}"
        async with one.elsewhere() as browser:
            for host, status in HOSTS.items():
                for path in ("/", "/api/v1/token"):
                    headers = {"Host": host, "Authorization": f"Bearer {token}"}
                    assert (await browser.get(here + path, headers=headers)).status_code == status, host
            origins = {
                "https://ravel.example": 200,
                "http://ravel.example": 403,
                "https://evil.example": 403,
                "null": 403,
            }
            for origin, status in origins.items():
                headers = {"Host": "ravel.example", "Origin": origin}
                assert (await browser.get(f"{here}/", headers=headers)).status_code == status, origin


def test_addresses_are_those_that_browsers_use(tmp_path: Path) -> None:
    remote = _remote(tmp_path)
    remote.port = 7476
    named = ["https://ravel.example", "https://192.0.2.9:7476", "https://m\u00fcller.example:7476"]
    assert remote.addresses() == named
    remote = _remote(tmp_path, ApiConfig(tls="*:0"))
    remote.port = 7476
    assert remote.addresses() == ["https://192.0.2.1:7476", "https://[2001:db8::1]:7476"]


PROXIED = {
    ("127.0.0.1", ""): "127.0.0.0/24",
    ("127.0.0.1", "203.0.113.9"): "203.0.113.0/24",
    ("127.0.0.1", "198.51.100.1, 203.0.113.9"): "203.0.113.0/24",  # the first is what a client said of itself
    ("127.0.0.1", "nonsense"): "unknown",
    ("fd00::7", "2001:db8::1"): "2001:db8::/48",
    ("::ffff:127.0.0.1", "203.0.113.9"): "203.0.113.0/24",
    ("198.51.100.1", "203.0.113.9"): "198.51.100.0/24",
}


@pytest.mark.parametrize("client, said", PROXIED)
def test_only_a_trusted_proxy_says_who_asks(client: str, said: str, tmp_path: Path) -> None:
    headers = [(b"x-forwarded-for", b"192.0.2.255"), (b"x-forwarded-for", said.encode())] if said else []
    scope: Scope = {
        "type": "http",
        "client": (client, 1),
        "headers": [(b"forwarded", b"for=192.0.2.60"), *headers],
    }
    assert _remote(tmp_path).subnet_of(scope) == PROXIED[client, said]


def test_strangers_are_counted_by_subnet_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    limits = StrangerLimits(lambda: now)
    for _ in range(REMOTE_REQUESTS_AT_ONCE_MAX):
        limits.take_request("a")
    with pytest.raises(ServiceError, match="too many requests") as caught:
        limits.take_request("a")
    assert caught.value.code == "busy"
    limits.take_request("b")
    for _ in range(PAIRING_TRIES_AT_ONCE_MAX):
        limits.take_try("a")
    with pytest.raises(ServiceError, match="too many codes"):
        limits.take_try("a")
    assert [limits.may_connect("a") for _ in range(REMOTE_OPENED_AT_ONCE_MAX + 1)].count(False) == 1
    now = PAIRING_TRY_SECONDS
    assert limits.may_connect("a")
    limits.take_try("a")
    with pytest.raises(ServiceError, match="too many codes"):
        limits.take_try("a")
    for number in range(REMOTE_SUBNETS_MAX):
        limits.take_request(str(number))
    assert len(limits._subnets) == REMOTE_SUBNETS_MAX
    limits.take_try("a")  # it was forgotten


def test_wrong_codes_end_all_that_were_made_before() -> None:
    made = iter("abcdef")
    now = 0.0
    codes = OneTimeCodes(
        lambda: next(made),
        seconds=PAIRING_CODE_SECONDS,
        count_max=2,
        tries_max=3,
        advice="",
        clock=lambda: now,
    )
    assert codes.make() == "a"
    for _ in range(2):
        with pytest.raises(ServiceError):
            codes.redeem("\ud800")
    codes.redeem("a")
    codes.make()  # nothing was good any more, so the count began again
    for _ in range(3):
        with pytest.raises(ServiceError):
            codes.redeem("wrong")
    with pytest.raises(ServiceError):
        codes.redeem("b")
    assert codes.make() == "c"
    now = PAIRING_CODE_SECONDS
    with pytest.raises(ServiceError):
        codes.redeem("c")
    assert PAIRING_TRIES_AT_ONCE_MAX + PAIRING_CODE_SECONDS / PAIRING_TRY_SECONDS < PAIRING_TRIES_MAX, (
        "one subnet does not end a code for all"
    )


def test_wrong_codes_do_not_count_for_a_code_that_is_made_after_the_others_expired() -> None:
    made = iter("ab")
    now = 0.0
    codes = OneTimeCodes(
        lambda: next(made), seconds=60, count_max=2, tries_max=2, advice="", clock=lambda: now
    )
    codes.make()
    with pytest.raises(ServiceError):
        codes.redeem("wrong")
    now = 60.0
    codes.make()
    with pytest.raises(ServiceError):
        codes.redeem("wrong")
    codes.redeem("b")


async def test_codes_that_come_too_fast_are_not_looked_at(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one, one.elsewhere() as browser:
        code = await _code(one)
        for _ in range(PAIRING_TRIES_AT_ONCE_MAX):
            assert (await browser.post("/open", json={"code": "wrong"})).status_code == 401
        refused = await browser.post("/open", json={"code": code})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        assert refused.headers["retry-after"]


async def test_names_of_browsers_are_told_apart_and_few(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one, one.elsewhere() as browser:
        tokens = one.service.node.tokens
        for _ in range(2):
            await tokens.make_for_browser("x" * 64)
        names = [view["name"] for view in await tokens.list_browsers()]
        assert names == ["x" * 64, "x" * 62 + " 2"]
        for bad in ("a\u202eb", "a\nb", "x" * 65):
            code = await _code(one)
            assert (await browser.post("/open", json={"code": code, "name": bad})).status_code == 400
        for _ in range(BROWSERS_MAX - 2):
            await tokens.make_for_browser("phone")
        with pytest.raises(ServiceError, match="not more"):
            await tokens.make_for_browser("phone")


async def test_the_stream_of_a_revoked_browser_ends(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one:
        headers = {"Authorization": f"Bearer {await _paired(one)}", "Accept": "text/event-stream"}
        async with one.elsewhere(**headers) as browser, browser.stream("GET", "/api/v1/events") as answer:
            lines = answer.aiter_lines()
            assert "event: repos" in [await anext(lines) for _ in range(6)]
            await one.client.delete("/api/v1/browsers/Ann's phone")
            await one.client.post("/api/v1/repos", json={"name": "secret"})
            rest = [line async for line in lines]
        assert "event: error" in rest
        assert "secret" not in "".join(rest)


async def _read_all(stream: trio.abc.ReceiveStream) -> bytes:
    try:
        return b"".join([bytes(part) async for part in stream])
    except trio.BrokenResourceError:
        return b""


class _Socket:
    """What the server looks at of a connection."""

    family = 2

    def getpeername(self) -> tuple[str, int]:
        return ("203.0.113.9", 1)

    def getsockname(self) -> tuple[str, int]:
        return ("192.0.2.1", 7476)


async def test_who_says_nothing_is_left(tmp_path: Path, autojump_clock: MockClock) -> None:
    client, stream = memory_stream_pair()
    stream.socket = _Socket()  # type: ignore[attr-defined]  # as above
    began = trio.current_time()
    with fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, _refuse, stream, Strangers(_remote(tmp_path)))  # type: ignore[arg-type]  # a stream is enough
            assert await _read_all(client) == b""
    assert trio.current_time() - began <= API_STRANGER_SECONDS + 2


async def test_one_connection_too_many_costs_no_handshake(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one:
        assert one.remote is not None
        while one.remote.limits.may_connect("127.0.0.0/24"):
            pass
        async with one.elsewhere() as browser:
            with pytest.raises(httpx.TransportError):
                await browser.get("/")
        assert (await one.client.get("/api/v1/status")).status_code == 200, "this machine is not concerned"


async def test_who_speaks_no_tls_is_left(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one:
        assert one.remote is not None
        async with await trio.open_tcp_stream("127.0.0.1", one.remote.port) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"HTTP" not in await _read_all(stream)


async def test_one_subnet_does_not_take_the_places_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_strangers, "REMOTE_STRANGERS_SUBNET_MAX", 2)
    strangers = Strangers(_remote(tmp_path))
    scopes = {}
    async with trio.open_nursery() as nursery:

        async def hold(name: str, subnet: str) -> None:
            with (
                trio.CancelScope() as scopes[name],
                strangers.admit(scopes[name], subnet),
            ):
                await trio.sleep_forever()

        for name, subnet in (("a", "far"), ("b", "near"), ("c", "near"), ("d", "near")):
            nursery.start_soon(hold, name, subnet)
            await trio.testing.wait_all_tasks_blocked()
        assert [name for name, scope in scopes.items() if scope.cancel_called] == ["b"]
        nursery.cancel_scope.cancel()


async def test_a_certificate_that_changes_is_taken_and_a_bad_one_is_not(tmp_path: Path) -> None:
    async with served(tmp_path, api=TLS) as one:
        remote = one.remote
        assert remote is not None
        before, path = remote.certificate, remote.certificate.path
        remote.look()
        assert remote.certificate is before
        path.unlink()  # it makes another
        remote.look()
        assert remote.certificate.fingerprint != before.fingerprint
        async with one.elsewhere() as browser:
            assert (await browser.get("/")).status_code == 200
        path.write_text("half")
        with pytest.raises(ServiceError, match="is damaged"):
            remote.look()
        assert remote.certificate.fingerprint != before.fingerprint, "connections go on with what was good"


async def _refuse(scope: Scope, _receive: object, _send: object) -> None:
    raise AssertionError(f"nobody is heard: {scope.get('extensions', {}).get(REMOTE)}")
