"""Browsers of the node's machine that stay signed in: a page asks for it, and its token is listed and ended as a browser."""

from pathlib import Path

import pytest

from protocol.limits.users import BROWSER_NAME_SIZE_MAX, BROWSER_SECONDS, BROWSERS_MAX, PAGE_TOKENS_MAX
from tests.support.served import code_of, holder, served


@pytest.mark.slow
async def test_a_page_stays_signed_in_for_half_a_year_however_many_others_are_opened(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0]) as one, holder(one, "page") as page:
        kept = (await page.post("/api/v1/browsers", json={"name": "Firefox"})).json()
        assert kept == {"name": "Firefox", "expires_at": int(now[0]) + BROWSER_SECONDS}
        for _ in range(PAGE_TOKENS_MAX + 1):
            await one.service.node.tokens.make_for_page()
        shown = (await page.get("/api/v1/token")).json()
        assert (shown["kind"], shown["name"]) == ("kept", "Firefox")
        listed = (await one.client.get("/api/v1/browsers")).json()["browsers"]
        assert [(view["name"], view["here"]) for view in listed] == [("Firefox", True)]
        tokens = (await one.client.get("/api/v1/tokens")).json()["tokens"]
        assert len(tokens) == PAGE_TOKENS_MAX, "it is none of them"

        now[0] += BROWSER_SECONDS - 1
        assert (await page.post("/api/v1/browsers", json={"name": "Firefox"})).json()["name"] == "Firefox"
        now[0] += BROWSER_SECONDS - 1
        assert (await page.get("/api/v1/status")).is_success, "who asks again has as long again"
        now[0] += 1
        assert code_of(await page.get("/api/v1/status")) == "token_expired"


async def test_a_kept_browser_is_signed_out_by_its_name(tmp_path: Path) -> None:
    async with served(tmp_path) as one, holder(one, "page") as page, holder(one, "page") as other:
        for client, name in ((page, "Firefox"), (other, "Firefox 2")):
            assert (await client.post("/api/v1/browsers", json={"name": "Firefox"})).json()["name"] == name
        assert (await one.client.delete("/api/v1/browsers/Firefox")).is_success
        assert code_of(await page.get("/api/v1/status")) == "unauthorized"
        assert (await other.get("/api/v1/status")).is_success


@pytest.mark.parametrize("kind", ["app", "browser", "home"])
async def test_only_a_page_of_this_machine_stays_signed_in(tmp_path: Path, kind: str) -> None:
    async with served(tmp_path) as one:
        if kind == "home":
            answer = await one.client.post("/api/v1/browsers", json={"name": "x"})
        else:
            async with holder(one, kind) as client:
                answer = await client.post("/api/v1/browsers", json={"name": "x"})
        assert code_of(answer) == {"home": "bad_request"}.get(kind, "insufficient_scope")
        assert not [
            view for view in (await one.client.get("/api/v1/browsers")).json()["browsers"] if view["here"]
        ]


async def test_names_and_numbers_of_kept_browsers_are_bounded(tmp_path: Path) -> None:
    async with served(tmp_path) as one, holder(one, "page") as page:
        longest = "x" * BROWSER_NAME_SIZE_MAX
        assert code_of(await page.post("/api/v1/browsers", json={"name": longest + "x"})) == "bad_request"
        for number in range(BROWSERS_MAX):
            await one.service.node.tokens.make_for_browser(f"phone {number}")
        assert code_of(await page.post("/api/v1/browsers", json={"name": longest})) == "too_large"
        assert (await one.client.delete("/api/v1/browsers/phone 0")).is_success
        assert (await page.post("/api/v1/browsers", json={"name": longest})).json()["name"] == longest
