"""`/repos/{repo}/keeping`: which branches' contents a node keeps."""

from pathlib import Path

import pytest

from node.cli.repo_commands import _parse_days, _print_keeping
from node.runtime.errors import ServiceError
from protocol.limits.users import KEPT_BRANCHES_MAX, KEPT_DAYS_MAX
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


async def test_an_age_of_posts_is_kept_beside_branches_and_let_go_again(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        before = (await one.client.get(PATH)).json()
        assert (before["last_days"], before["older_here"], before["keepers"]) == (None, 0, 0)
        said = (await one.client.put(PATH, json={"branches": ["main"], "last_days": 90})).json()
        assert said == (await one.client.get(PATH)).json()
        assert (said["last_days"], len(said["branches"]), said["older_absent"]) == (90, 1, 0)
        [repo] = (await one.client.get("/api/v1/repos")).json()["repos"]
        assert {"code": "older_not_kept", "count": 90} in repo["standing"]["parts"]
        assert (await one.client.put(PATH, json={"branches": None})).json() == before, "no age: of any"


@pytest.mark.parametrize("days", [0, -1, KEPT_DAYS_MAX + 1, 2**70, 1.5, "90d"])
async def test_what_is_no_age_is_refused(tmp_path: Path, days: object) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        refused = await one.client.put(PATH, json={"branches": None, "last_days": days})
        assert code_of(refused) == "bad_request"
        assert one.node.repo().kept_days == 0


@pytest.mark.parametrize("text", ["0d", "-3d", "30m", "36h", "5y", "90", "", "9999999d", "90d,all"])
def test_what_is_no_number_of_whole_days_is_refused_at_the_terminal(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        _parse_days(text)
    assert (refused.value.code, refused.value.advice) == ("bad_request", "say 90d, or all")


def test_days_are_read_at_the_terminal() -> None:
    assert [_parse_days(text) for text in ("90d", "48h", "all")] == [90, 2, 0]


def test_people_are_told_whose_contents_are_here(capsys: pytest.CaptureFixture[str]) -> None:
    ages = {
        "last_days": None,
        "bound_days": None,
        "files": "all",
        "older_here": 2,
        "older_absent": 5,
        "keepers": 1,
    }
    shown = {"name": "notes", "names": ["main"], "branches": ["b"], "not_kept": 2, "absent": 7, **ages}
    _print_keeping(shown)
    _print_keeping({**shown, "branches": None})
    assert "lder" not in capsys.readouterr().out.replace("contents of all", ""), "posts of any age are kept"
    _print_keeping({**shown, "last_days": 90})
    _print_keeping({**shown, "last_days": 1, "older_absent": 0, "older_here": 0})
    out = " ".join(capsys.readouterr().out.split())
    _print_keeping({**shown, "bound_days": 30})
    bound = " ".join(capsys.readouterr().out.split())
    assert "(storage.size_max) has them kept for 30 days, as far as it needs room. Older posts" in bound
    assert "notes: the contents of main are kept here." in out
    assert "those of 2 other branches, 7 commits." in out
    assert (
        "kept for 90 days. Older posts and files that come when you open them: 5. Older posts and files of others here: 2."
        in out
    )
    assert "Such computers connected now: 1. What you wrote here stays." in out
    assert out.endswith("Contents of posts are kept for 1 day.")
    assert out.count("Files come by themselves.") == 2


async def test_posts_are_counted_for_an_age_before_it_is_kept_and_rules_before_and_after(
    tmp_path: Path,
) -> None:
    """A proof under one rule is of no use under the next, from before the next is stored."""
    async with served(tmp_path) as one:
        one.node.create_repo()
        counted = (await one.client.get(PATH, params={"last_days": 90})).json()
        assert (counted["last_days"], counted["older_here"], counted["older_absent"]) == (None, 0, 0)
        assert code_of(await one.client.get(PATH, params={"last_days": 0})) == "bad_request"
        rules = one.node.hub.proofs.rules.count
        await one.client.put(PATH, json={"branches": None, "last_days": 90})
        assert one.node.hub.proofs.rules.count == rules + 2
        topics = {topic.topic for topic in one.node.replica.topics.values()}
        assert one.node.hub.opened == topics, "peers are asked anew, from the newest body that is awaited"
