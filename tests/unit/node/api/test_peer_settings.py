"""Settings of peers over the API: what a request may hold."""

from pathlib import Path
from typing import Final

import httpx

from protocol.formats.text import id_text
from protocol.ids import AnyId
from protocol.limits.formats import LINK_PEER_COUNT_MAX
from protocol.limits.users import PEER_REPOS_MAX
from tests.support.answers import CHECKED
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from tests.support.served import AUTH, app_of, service_of

PEER: Final = f"/api/v1/peers/{id_text(AnyId(b'p' * 32))}"
REPO: Final = id_text(AnyId(b"r" * 32))
SETTINGS: Final = {"address": "host:7474", "others": [], "from_link": True, "relay": False, "repos": [REPO]}


WRONG: Final[list[dict[str, object]]] = [
    {"address": "nowhere"},
    {"others": ["nowhere"]},
    {"others": ["host:7474"] * (LINK_PEER_COUNT_MAX + 1)},
    {"repos": ["!" * 52]},
    {"repos": [REPO] * (PEER_REPOS_MAX + 1)},
]


async def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (node,):
        transport = httpx.ASGITransport(app=app_of(service_of(node, tmp_path)))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:7475", headers=AUTH, event_hooks=CHECKED
        ) as client:
            for wrong in WRONG:
                refused = await client.put(PEER, json=SETTINGS | wrong)
                assert refused.json()["error"]["code"] == "bad_request", wrong
            assert (await client.get(PEER)).json()["error"]["code"] == "not_found"
