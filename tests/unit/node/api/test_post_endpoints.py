"""The endpoints about posts: what they answer has the stated types, and odd requests their codes."""

from pathlib import Path

import pytest

from protocol.limits.formats import TEXT_SIZE_MAX
from tests.support.served import Served, served

BASE = "/api/v1"


async def _post(one: Served, text: str) -> str:
    answer = await one.client.post(f"{BASE}/branches/main/commits", json={"text": text})
    return str(answer.json()["commit"])


async def test_a_conversation(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        post = await _post(one, "a")
        at = f"{BASE}/commits/{post}"
        reply = (await one.client.post(f"{at}/replies", json={"text": "re"})).json()
        assert reply["post"] == post
        edit = (await one.client.put(f"{at}/text", json={"text": "b"})).json()
        versions = (await one.client.get(f"{at}/versions")).json()["versions"]
        assert [(item["version"], item["text"]) for item in versions] == [("original", "a"), ("edit", "b")]
        thread = (await one.client.get(f"{BASE}/commits/{reply['commit'][:12]}/thread?limit=1")).json()
        assert (thread["items"][0]["text"], thread["next"]) == ("b", post)
        rest = (await one.client.get(f"{at}/thread", params={"after": post})).json()
        assert [item["reply_to"]["state"] for item in rest["items"]] == ["shown"]
        hidden = (await one.client.put(f"{at}/hidden", json={"hidden": True})).json()
        assert hidden["commit"]
        assert (await one.client.get(at)).json()["hidden_by"] == (await one.client.get(at)).json()["author"]
        assert (await one.client.put(f"{at}/hidden", json={"hidden": False})).status_code == 200
        deleted = (await one.client.delete(at)).json()
        assert deleted["post"] == post
        shown = (await one.client.get(f"{BASE}/branches/main/timeline")).json()["items"][1:]
        assert [item["text"] for item in shown] == [None, "re", None, None]
        assert (shown[0]["deleted"], shown[2]["edits"], shown[3]["deletes"]) == (True, post, post)
        edits = (await one.client.get(f"{BASE}/branches/main/edits")).json()["edits"]
        by_commit = {each["commit"]: each["item"] for each in edits}
        assert by_commit[edit["commit"]]["edits"] == post
        assert by_commit[post]["deleted"]


@pytest.mark.parametrize(
    "method,path,body,code",
    [
        ("PUT", "/commits/{post}/text", {"text": "x" * (TEXT_SIZE_MAX + 1)}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": 1}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": "\U0001f600" * (TEXT_SIZE_MAX // 2 + 1)}, "bad_request"),
        ("PUT", "/commits/{post}/text", {"text": "x", "more": 1}, "bad_request"),
        ("POST", "/commits/{post}/replies", {}, "bad_request"),
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
