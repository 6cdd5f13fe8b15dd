"""Endpoints about posts refuse odd requests with their codes."""

from pathlib import Path

import pytest

from protocol.limits.formats import TEXT_SIZE_MAX
from tests.support.served import Served, served

BASE = "/api/v1"


async def _post(one: Served, text: str) -> str:
    answer = await one.client.post(f"{BASE}/branches/main/commits", json={"text": text})
    return str(answer.json()["commit"])


@pytest.mark.parametrize(
    "method,path,body,code",
    [
        ("PUT", "/commits/{post}/text", {"text": "x" * (TEXT_SIZE_MAX + 1)}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": 1}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": "\U0001f600" * (TEXT_SIZE_MAX // 2 + 1)}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": "x", "more": 1}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": " \n"}, "bad_request"),
        ("POST", "/commits/{post}/replies", {}, "bad_request"),
        ("POST", "/commits/{post}/replies", {"text": ""}, "bad_request"),
        ("POST", "/branches/main/commits", {"text": ""}, "bad_request"),
        ("POST", "/branches/main/commits/batch", {"texts": ["x", "\t"]}, "bad_request"),
        ("PUT", "/commits/{post}/hidden", {"hidden": "yes"}, "bad_request"),
        ("POST", "/commits/aaaaaaaa/replies", {"text": "x"}, "not_found"),
        ("DELETE", "/commits/a", None, "not_found"),
        ("GET", "/commits/{post}/versions?limit=1001", None, "bad_request"),
        ("GET", "/commits/{post}/versions?before=aaaaaaaa", None, "not_found"),
        ("GET", "/commits/{post}/thread?after=aaaaaaaa", None, "not_found"),
    ],
)
async def test_odd_requests_have_stated_answers(
    tmp_path: Path, method: str, path: str, body: object, code: str
) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        post = await _post(one, "a")
        answer = await one.client.request(method, BASE + path.format(post=post), json=body)
        assert answer.json()["error"]["code"] == code
        assert (await one.client.get(f"{BASE}/commits/{post}")).json()["text"] == "a"
