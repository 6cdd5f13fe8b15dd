"""`/repos/{repo}/keeping`: which branches' contents a node keeps."""

from pathlib import Path

import pytest

from node.cli.repo_commands import _print_keeping
from protocol.limits.users import KEPT_BRANCHES_MAX
from tests.support.served import code_of, served

PATH = "/api/v1/repos/repo/keeping"


async def test_branches_are_kept_as_named_and_others_are_said_not_to_be(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        for name in ("design", "talk"):
            await one.client.post("/api/v1/repos/repo/branches", json={"name": name})
        before = (await one.client.get(PATH)).json()
        assert (before["branches"], before["not_kept"], before["absent"]) == (None, 0, 0)
        said = (await one.client.put(PATH, json={"branches": ["main", "design"]})).json()
        assert said == (await one.client.get(PATH)).json()
        assert (len(said["branches"]), said["not_kept"]) == (2, 1)
        listed = (await one.client.get("/api/v1/repos/repo/branches")).json()["branches"]
        assert {branch["name"]: branch["kept"] for branch in listed} == {
            "main": True,
            "design": True,
            "talk": False,
        }
        [repo] = (await one.client.get("/api/v1/repos")).json()["repos"]
        assert {"code": "not_kept", "count": 1} in repo["standing"]["parts"]
        refused = await one.client.post("/api/v1/branches/talk/compactions", json={})
        assert code_of(refused) == "incomplete", "nobody gives up what others have"
        none = (await one.client.put(PATH, json={"branches": []})).json()
        assert (none["branches"], none["not_kept"]) == ([], 3)
        everything = (await one.client.put(PATH, json={"branches": None})).json()
        assert everything == before


async def test_what_names_no_branch_or_too_many_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        assert code_of(await one.client.put(PATH, json={"branches": ["nope"]})) == "not_found"
        many = ["main"] * (KEPT_BRANCHES_MAX + 1)
        assert code_of(await one.client.put(PATH, json={"branches": many})) == "bad_request"
        assert (await one.client.put(PATH, json={"branches": many[1:]})).status_code == 200


def test_people_are_told_whose_contents_are_here(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {"name": "notes", "names": ["main"], "branches": ["b"], "not_kept": 2, "absent": 7}
    _print_keeping(shown)
    _print_keeping({**shown, "branches": None})
    out = capsys.readouterr().out
    assert "notes: the contents of main are kept here." in out
    assert "those of 2 other branches, 7 commits." in out
    assert "contents of all branches are kept" in out
