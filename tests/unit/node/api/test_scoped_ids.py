"""What a token is not for looks as if it were not there: the same answer, whatever an id elsewhere stands for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from node.contract.access import ACTIONS, OF_THE_NODE
from node.contract.table import ENDPOINTS
from tests.support.answers import CHECKED
from tests.support.served import Served, served

BASE = "/api/v1"
ABOUT = {"repo", "branch", "commit", "repo of branch", "branches", "repos", "readable"}
"""What endpoints are about that a token for some repos or branches may use."""


@dataclass(frozen=True)
class Case:
    """A request that names something by an id; `ID` stands for that, in the path, the query or the body."""

    endpoint: str
    path: str
    kind: str = "commit"
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


CASES = (
    Case("show_commit", "/commits/ID"),
    Case("explain_verdict", "/commits/ID/verdict"),
    Case("reply_to_post", "/commits/ID/replies", body={"text": "x"}),
    Case("edit_post", "/commits/ID/text", body={"text": "x"}),
    Case("delete_post", "/commits/ID"),
    Case("hide_post", "/commits/ID/hidden", body={"hidden": True}),
    Case("show_versions", "/commits/ID/versions"),
    Case("show_versions", "/commits/OWN/versions", query={"before": "ID"}),
    Case("show_thread", "/commits/ID/thread"),
    Case("show_thread", "/commits/OWN/thread", query={"after": "ID"}),
    Case("show_timeline", "/branches/notes:main/timeline", query={"order": "time", "after": "ID"}),
    Case("show_timeline", "/branches/notes:main/timeline", query={"order": "time", "before": "ID"}),
    Case("show_past", "/branches/notes:main/past/ID"),
    Case("fork_branch", "/branches/notes:main/forks", body={"name": "draft", "commit": "ID"}),
    Case("set_tag", "/repos/notes/tags/v1", body={"commit": "ID"}),
    Case("adopt_commits", "/branches/notes:main/adoptions", body={"commits": ["ID"]}),
    Case("merge_branch", "/branches/notes:main/merges", "branch", body={"source": "ID"}),
    Case("make_offer", "/branches/notes:main/offers", "branch", body={"source": "ID"}),
    Case("show_digest", "/branches/ID/digest", "branch"),
    Case("list_branches", "/repos/ID/branches", "repo"),
    Case("search", "/search", "repo", query={"text": "x", "repo": "ID"}),
    Case("search", "/search", "branch", query={"text": "x", "branch": "ID"}),
    Case("search", "/search", "user", query={"text": "x", "author": "ID"}),
    Case("show_tangle", "/repos/notes/tangles/branch", "branch", query={"branch": "ID"}),
    Case("show_tangle", "/repos/notes/tangles/members", "epoch", query={"epoch": "ID"}),
    Case("show_tangle", "/repos/notes/tangles/feed", "user", query={"author": "ID"}),
    Case("show_tangle", "/repos/notes/tangles/thread", "source", query={"message": "ID"}),
    Case("revoke_invitation", "/repos/notes/invitations/ID", "invitation"),
    Case("close_ask_link", "/repos/notes/lobbies/ID", "lobby"),
    Case("answer_request", "/repos/notes/requests/ID/answers", "lobby", body={"accepts": True}),
    Case("approve_proposal", "/repos/notes/proposals/ID/approvals"),
    Case("make_checkpoint", "/repos/notes/proposals/ID/checkpoint"),
    Case("answer_offer", "/repos/notes/offers/ID/answers", body={"accepts": True}),
    Case("fetch_offer", "/repos/notes/offers/ID/fetch"),
    Case("preview_offer", "/repos/notes/offers/ID/preview"),
    Case("merge_offer", "/repos/notes/offers/ID/merges"),
    Case("get_file", "/branches/notes:main/files/ID", "file"),
    Case("remove_file", "/branches/notes:main/files/ID", "file"),
    Case("list_imported", "/branches/notes:main/imported", "source", query={"source": "ID"}),
    Case("grant_permission", "/repos/notes/members", "user", body={"user": "ID", "permission": "read"}),
    Case("remove_member", "/repos/notes/removals", "user", body={"user": "ID"}),
    Case("propose_removal", "/repos/notes/proposals", "user", body={"user": "ID"}),
)
FIELDS = {
    "commit", "commits", "before", "after", "source", "author", "epoch", "message", "user",
    "invitation", "lobby", "request", "proposal", "offer", "file",
}  # fmt: skip
"""Fields of requests that are ids, beside the repo or branch that a request is about."""
LABELS = {
    ("import_commits", "source"),
    ("search", "after"),
    ("list_files", "after"),
    ("list_imported", "after"),
}
"""What is called so and is no id: a name of the caller's own, a number, a cursor."""


def test_every_id_of_a_request_has_a_case() -> None:
    methods = {one.name: one for one in ENDPOINTS}
    covered = {
        (case.endpoint, name)
        for case in CASES
        for name in (
            *(part.name for part in methods[case.endpoint].path_parameters),
            *case.query,
            *(case.body or ()),
        )
    }
    for endpoint in ENDPOINTS:
        if endpoint.scopes and {scope.target for scope in endpoint.scopes} <= ABOUT:
            parts = {one.name for one in endpoint.path_parameters} | {one.name for one in endpoint.query}
            for name in FIELDS & (parts | endpoint.body_fields.keys()):
                assert (endpoint.name, name) in covered | LABELS, f"{endpoint.name}: {name}"


async def _fill(one: Served) -> dict[str, str]:
    """Repos `notes` and `plans`; ids of what there is in the second one, and in the branch `side` of the first."""

    async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await one.client.post(f"{BASE}{path}", json=body)
        assert answer.is_success, answer.text
        return dict(answer.json())

    found: dict[str, str] = {}
    for repo in ("notes", "plans"):
        found["repo"] = (await post("/repos", {"name": repo}))["repo"]
        for branch in ("main", "side"):
            if branch == "side":
                await post(f"/repos/{repo}/branches", {"name": branch})
            written = await post(f"/branches/{repo}:{branch}/commits", {"text": "hello"})
            found[f"{repo}:{branch}"] = written["commit"]
            found[f"branch {repo}:{branch}"] = written["branch"]
    items = {"items": [{"id": "message-7", "time": 1, "text": "x"}], "source": "mail"}
    await one.client.post(f"{BASE}/branches/plans:main/import", json=items)
    file = await one.client.post(
        f"{BASE}/branches/plans:main/files", params={"name": "plan.txt"}, content=b"x"
    )
    invitation = await post("/repos/plans/invitations", {"permission": "read"})
    epochs = (await one.client.get(f"{BASE}/repos/plans/epochs")).json()["epochs"]
    await post("/repos/plans/lobbies", {"permission": "read"})
    links = (await one.client.get(f"{BASE}/repos/plans/lobbies")).json()["links"]
    await one.client.put(f"{BASE}/petnames", json={"user": epochs[0]["author"], "name": "Zoe"})
    return {
        **found,
        "file": file.json()["file"],
        "invitation": invitation["invitation"],
        "epoch": epochs[0]["epoch"],
        "lobby": links[0]["lobby"],
        "source": "message-7",
    }


def _nowhere(known: str) -> str:
    """An id of the same length that nothing has."""
    return "7" * len(known)


async def _ask(client: httpx.AsyncClient, case: Case, own: str, named: str) -> tuple[int, str]:
    """Status and answer, without the id that was named."""
    method = next(one.method for one in ENDPOINTS if one.name == case.endpoint)

    def put(value: object) -> object:
        if isinstance(value, list):
            return [put(one) for one in value]
        return named if value == "ID" else value

    answer = await client.request(
        method,
        BASE + case.path.replace("ID", named).replace("OWN", own),
        params={name: str(put(value)) for name, value in case.query.items()},
        json=None if case.body is None else {name: put(value) for name, value in case.body.items()},
    )
    return answer.status_code, answer.text.replace(named, "…")


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["repo", "branch"])
async def test_an_id_elsewhere_is_answered_like_one_that_is_nowhere(tmp_path: Path, scope: str) -> None:
    async with served(tmp_path) as one:
        made = await _fill(one)
        where = {"repos": ["notes"]} if scope == "repo" else {"branches": ["notes:main"]}
        may = [action for action in ACTIONS if action not in OF_THE_NODE]
        token = (
            await one.client.post(f"{BASE}/tokens", json={"name": "app", "actions": may, **where})
        ).json()
        place = "plans:main" if scope == "repo" else "notes:side"
        elsewhere = {**made, "commit": made[place], "branch": made[f"branch {place}"]}
        headers = {"Authorization": f"Bearer {token['token']}"}
        different = []
        async with httpx.AsyncClient(
            base_url=str(one.client.base_url), headers=headers, event_hooks=CHECKED
        ) as client:
            for case in CASES:
                if (
                    case.kind == "user"
                ):  # keys are nobody's secret: a full id is taken, whether it is known or not
                    continue
                known = elsewhere[case.kind]
                for size in (len(known), 12):
                    asked, absent = known[:size], _nowhere(known[:size])
                    first = await _ask(client, case, made["notes:main"], asked)
                    is_refused = first[0] >= 400 or case.endpoint == "list_imported"  # an empty list
                    if first != await _ask(client, case, made["notes:main"], absent) or not is_refused:
                        different.append((case, asked, first))
        assert not different
