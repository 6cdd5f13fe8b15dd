"""Accounts of a relay over its API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.support.answers import CHECKED
from tests.support.machine import fail_after
from tests.support.nodes import Node
from tests.support.relays import open_relay
from tests.support.served import AUTH, app_of, service_of

ACCOUNTS = "/api/v1/relay/accounts"


@asynccontextmanager
async def _relay(folder: Path) -> AsyncIterator[tuple[Node, httpx.AsyncClient]]:
    with fail_after(60), open_relay(folder) as node:
        transport = httpx.ASGITransport(app=app_of(service_of(node, folder)))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:7475", headers=AUTH, event_hooks=CHECKED
        ) as client:
            yield node, client


async def test_an_account_with_a_slash_in_its_name_can_be_changed_and_revoked(tmp_path: Path) -> None:
    async with _relay(tmp_path) as (_, client):
        made = await client.post(ACCOUNTS, json={"name": "ann/phone", "quota": 5})
        assert made.is_success, made.text
        path = f"{ACCOUNTS}/{quote('ann/phone', safe='')}"
        assert (await client.put(path, json={"quota": 7})).json()["quota"] == 7
        assert (await client.delete(path)).json() == {}
        assert (await client.get(ACCOUNTS)).json()["accounts"] == []


@pytest.mark.parametrize("name", ["..", "a:b", " ann", "ann\n", "-ann"])
async def test_an_account_has_a_name_that_can_be_typed(tmp_path: Path, name: str) -> None:
    async with _relay(tmp_path) as (_, client):
        refused = await client.post(ACCOUNTS, json={"name": name, "quota": 5})
        assert refused.json()["error"]["code"] == "bad_request"
        assert (await client.get(ACCOUNTS)).json()["accounts"] == []


async def test_quotas_of_all_accounts_together_fit_the_relay(tmp_path: Path) -> None:
    async with _relay(tmp_path) as (node, client):
        assert node.hub.relay is not None
        size_max = node.hub.relay.quotas.total
        assert (await client.post(ACCOUNTS, json={"name": "ann", "quota": size_max - 1})).is_success
        assert (await client.post(ACCOUNTS, json={"name": "ben", "quota": 1})).is_success
        for refused in (
            await client.post(ACCOUNTS, json={"name": "cy", "quota": 1}),
            await client.put(f"{ACCOUNTS}/ben", json={"quota": 2}),
            await client.post(ACCOUNTS, json={"name": "ben", "quota": 2}),
        ):
            assert refused.json()["error"]["code"] == "too_large"
            assert "config set relay.size_max" in refused.json()["error"]["next"]
        assert (await client.put(f"{ACCOUNTS}/ann", json={"quota": 5})).json()["quota"] == 5
        assert (await client.put(f"{ACCOUNTS}/ben", json={"quota": 2})).json()["quota"] == 2
