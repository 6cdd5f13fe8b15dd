"""`GET /search`: who finds what, in the stated form, and the codes of odd requests."""

from pathlib import Path

import pytest

from node.content.search_indexer import SearchIndexer
from protocol.formats.text import id_text
from protocol.limits.users import SEARCH_QUERY_SIZE_MAX
from storage.commits.search_texts import mark_texts_due
from tests.support.served import Served, served

BASE = "/api/v1"


async def _fill(one: Served) -> dict[str, str]:
    """Two repos of two branches, each with a post that says the same; ids of repos and posts by name."""
    found: dict[str, str] = {}
    for repo in ("notes", "plans"):
        found[repo] = (await one.client.post(f"{BASE}/repos", json={"name": repo})).json()["repo"]
        await one.client.post(f"{BASE}/repos/{repo}/branches", json={"name": "side"})
        for branch in ("main", "side"):
            answer = await one.client.post(
                f"{BASE}/branches/{repo}:{branch}/commits", json={"text": f"hello from {repo} {branch}"}
            )
            found[f"{repo}:{branch}"] = answer.json()["commit"]
    await one.client.put(f"{BASE}/repos/notes/tags/hello-v1", json={"commit": found["notes:main"]})
    indexer = SearchIndexer(one.node.hub, is_enabled=True)
    while indexer.work():
        pass
    return found


async def _find(one: Served, text: str = "hello", token: str = "", **more: str) -> list[str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = await one.client.get(f"{BASE}/search", params={"text": text, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [hit["commit"] for hit in answer.json()["hits"]]


async def test_where_one_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("api", "content"):  # a slow machine takes long
        monkeypatch.setattr(f"node.{module}.search.SEARCH_SECONDS", 60.0)
    async with served(tmp_path) as one:
        made = await _fill(one)
        posts = [made[f"{repo}:{branch}"] for repo in ("notes", "plans") for branch in ("main", "side")]
        assert await _find(one) == posts[::-1]
        assert await _find(one, repo="notes") == posts[1::-1]
        assert await _find(one, branch="plans:side") == [posts[3]]
        assert await _find(one, repo="plans", branch="main") == [posts[2]]
        user = id_text(one.node.author.user)
        assert await _find(one, author=user) == await _find(one, author=user[:10]) == posts[::-1]
        assert await _find(one, since="2000000000") == []
        assert await _find(one, until="1") == []
        answer = (await one.client.get(f"{BASE}/search", params={"text": "hello", "limit": "3"})).json()
        assert answer["index"] == {"state": "ready", "percent": 100, "texts_due": 0}
        assert [(name["kind"], name["name"], name["commit"]) for name in answer["names"]] == [
            ("tag", "hello-v1", made["notes:main"])
        ]
        rest = {"text": "hello", "after": answer["next"]}
        answer = (await one.client.get(f"{BASE}/search", params=rest)).json()
        assert [hit["commit"] for hit in answer["hits"]] == posts[:1]
        assert (answer["names"], answer["next"]) == ([], None)
        names = (await one.client.get(f"{BASE}/search", params={"text": "side"})).json()["names"]
        assert [(name["kind"], name["repo_name"]) for name in names] == [
            ("branch", "notes"),
            ("branch", "plans"),
        ]
        status = (await one.client.get(f"{BASE}/status")).json()
        assert status["search"]["state"] == "ready"


async def test_a_token_finds_in_its_own_repos_and_branches(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        made = await _fill(one)

        async def token(**fields: object) -> str:
            given = {
                "name": f"app{len(one.service.node.tokens.file.tokens())}",
                "actions": ["read"],
                **fields,
            }
            return str((await one.client.post(f"{BASE}/tokens", json=given)).json()["token"])

        of_repo = await token(repos=["notes"])
        of_branch = await token(branches=["plans:side"])
        assert await _find(one, token=of_repo) == [made["notes:side"], made["notes:main"]]
        assert await _find(one, token=of_branch) == [made["plans:side"]]
        headers = {"Authorization": f"Bearer {of_branch}"}
        answer = await one.client.get(f"{BASE}/search", params={"text": "side"}, headers=headers)
        assert [name["repo_name"] for name in answer.json()["names"]] == ["plans"]
        refusals = []
        for repo in ("notes", "nothing"):  # what it is not for looks as if it were not there
            params = {"text": "hello", "repo": repo}
            answer = await one.client.get(f"{BASE}/search", params=params, headers=headers)
            refusals.append((answer.status_code, answer.json()["error"]["message"].replace(repo, "")))
        assert refusals[0] == refusals[1]
        assert refusals[0][0] == 404
        main = one.node.branch("main")
        assert main.repo_num == one.node.branch("side").repo_num, "of notes"
        await one.client.post(f"{BASE}/branches/notes:main/commits", json={"text": "not looked at yet"})
        with one.node.replica.database.write() as connection:
            mark_texts_due(connection, [main.num])
        due = {"state": "building", "texts_due": 1}
        for known, expected in (("", due), (of_repo, due), (of_branch, {"state": "ready", "texts_due": 0})):
            headers = {"Authorization": f"Bearer {known}"} if known else {}
            answer = await one.client.get(f"{BASE}/search", params={"text": "hello"}, headers=headers)
            index = answer.json()["index"]
            assert {name: index[name] for name in expected} == expected
        writer = await token(actions=["write"])
        headers = {"Authorization": f"Bearer {writer}"}
        answer = await one.client.get(f"{BASE}/search", params={"text": "hello"}, headers=headers)
        assert answer.json()["error"]["code"] == "insufficient_scope"


@pytest.mark.parametrize(
    "query,code",
    [
        ({}, "bad_request"),
        ({"text": "?"}, "bad_request"),
        ({"text": "x" * (SEARCH_QUERY_SIZE_MAX + 1)}, "too_large"),
        ({"text": "x", "limit": "101"}, "bad_request"),
        ({"text": "x", "limit": "0"}, "bad_request"),
        ({"text": "x", "since": "-1"}, "bad_request"),
        ({"text": "x", "until": str(2**53 + 1)}, "bad_request"),
        ({"text": "x", "after": "nonsense"}, "bad_request"),
        ({"text": "x", "repo": "nothing"}, "not_found"),
        ({"text": "x", "branch": "nothing"}, "not_found"),
        ({"text": "x", "author": "Nobody"}, "not_found"),
    ],
)
async def test_odd_requests(tmp_path: Path, query: dict[str, str], code: str) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        answer = await one.client.get(f"{BASE}/search", params=query)
        assert answer.json()["error"]["code"] == code


async def test_names_and_authors_are_looked_for_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        monkeypatch.setattr("node.api.search.SEARCH_SECONDS", -1.0)
        found = (await one.client.get(f"{BASE}/search", params={"text": "main"})).json()
        assert (found["names"], found["hits"]) == ([], [])
        params = {"text": "main", "author": id_text(one.node.author.user)}
        refused = (await one.client.get(f"{BASE}/search", params=params)).json()["error"]
        assert (refused["code"], "name a repo" in refused["next"]) == ("busy", True)
