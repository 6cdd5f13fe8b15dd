"""Pages of other origins: refused, until a token was made for their origin; and then for that one alone."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from protocol.limits.users import API_TOKEN_ORIGINS_MAX
from tests.support.served import Served, served

OURS = "https://polls.example"
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
ALLOWED = "access-control-allow-origin"


async def _token(one: Served, name: str, *origins: str, **more: Any) -> str:  # noqa: ANN401  # of the request
    body = {"name": name, "actions": ["read"], "origins": list(origins), **more}
    return str((await one.client.post("/api/v1/tokens", json=body)).json()["token"])


def _from(origin: str, token: str = "") -> dict[str, str]:
    return {"Origin": origin, "Authorization": f"Bearer {token}" if token else ""}


def _code(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["code"])


async def test_pages_of_an_origin_call_with_the_token_that_was_made_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        token, other = await _token(one, "poll", OURS), await _token(one, "plain")
        answer = await one.client.get("/api/v1/repos", headers=_from(OURS, token))
        assert (answer.status_code, answer.headers[ALLOWED], answer.headers["vary"]) == (200, OURS, "Origin")
        assert "ravel-run" in answer.headers["access-control-expose-headers"]
        for wrong in (other, "t" * 64):
            refused = await one.client.get("/api/v1/repos", headers=_from(OURS, wrong))
            assert (refused.status_code, _code(refused)) == (403, "forbidden_origin")
            assert "--origin" in refused.json()["error"]["next"]
        unknown = await one.client.get("/api/v1/repos", headers=_from(OURS, token[:-1]))
        assert (_code(unknown), unknown.headers[ALLOWED]) == ("unauthorized", OURS), "the page can read why"
        for origin in ("https://evil.example", "null", "http://polls.example", f"{OURS}:443", f"{OURS}.evil"):
            refused = await one.client.get("/api/v1/repos", headers=_from(origin, token))
            assert (refused.status_code, _code(refused)) == (403, "forbidden_origin")
            assert ALLOWED not in refused.headers
        plain = await one.client.get("/api/v1/repos", headers={"Authorization": f"Bearer {token}"})
        assert (plain.status_code, ALLOWED in plain.headers) == (200, False)


async def test_a_browser_is_told_beforehand_whether_it_may_ask(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        closed = await one.client.options("/api/v1/repos", headers={**_from(OURS), **ASKED})
        assert (closed.status_code, ALLOWED in closed.headers) == (403, False)
        await _token(one, "poll", OURS)
        answer = await one.client.options("/api/v1/repos", headers={**_from(OURS), **ASKED})
        assert (answer.status_code, answer.headers[ALLOWED]) == (204, OURS)
        assert "idempotency-key" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-private-network" not in answer.headers
        near = {**_from(OURS), **ASKED, "Access-Control-Request-Private-Network": "true"}
        answer = await one.client.options("/api/v1/repos", headers=near)
        assert answer.headers["access-control-allow-private-network"] == "true"
        bare = await one.client.options("/api/v1/repos", headers=_from(OURS))
        assert bare.status_code == 401, "only the question needs no token"
        await one.client.delete("/api/v1/tokens/poll")
        gone = await one.client.options("/api/v1/repos", headers={**_from(OURS), **ASKED})
        assert gone.status_code == 403, "with the token goes the permission"


async def test_the_pages_own_files_and_codes_stay_with_its_own_origin(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        token = await _token(one, "poll", OURS)
        assert (await one.client.get("/healthz", headers=_from(OURS))).headers[ALLOWED] == OURS
        for method, path in (("POST", "/open"), ("GET", "/"), ("GET", "/readyz"), ("GET", "/metrics")):
            refused = await one.client.request(method, path, headers=_from(OURS, token))
            assert (refused.status_code, ALLOWED in refused.headers) == (403, False), path


async def test_an_expired_token_of_a_page_says_that_it_has_expired(tmp_path: Path) -> None:
    now = 1_700_000_000.0
    async with served(tmp_path, clock=lambda: now) as one:
        token = await _token(one, "poll", OURS, expires_seconds=60)
        now += 60
        answer = await one.client.get("/api/v1/repos", headers=_from(OURS, token))
        assert (_code(answer), answer.headers[ALLOWED]) == ("token_expired", OURS)


@pytest.mark.parametrize(
    "origin",
    [
        "*", "null", "polls.example", "http://polls.example", "https://polls.example/", "https://Polls.example",
        "https://polls.example:123456", "ftp://polls.example", "https://a b", "https://polls.example\n", "https://",
        "https://" + "a" * 260,
    ],
)  # fmt: skip
async def test_what_no_browser_states_as_an_origin_is_refused(tmp_path: Path, origin: str) -> None:
    async with served(tmp_path) as one:
        body = {"name": "poll", "actions": ["read"], "origins": [origin]}
        assert (await one.client.post("/api/v1/tokens", json=body)).status_code == 400
        body = {"name": "poll", "actions": ["read"], "origins": [OURS] * (API_TOKEN_ORIGINS_MAX + 1)}
        assert (await one.client.post("/api/v1/tokens", json=body)).status_code == 400
