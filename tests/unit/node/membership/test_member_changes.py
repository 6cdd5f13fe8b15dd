"""Who came, left, was excluded or has another name is told, as the rules see it now, and at a bounded cost."""

from pathlib import Path
from unittest.mock import patch

from node.authoring.writing import write_commit
from node.membership.member_changes import list_changes
from protocol.formats.profiles import Profile
from protocol.formats.text import id_text
from storage.repos.repos import Repo
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of
from verifier.resolution import Resolution

MINUTE_MS = 60_000


def _set_clock(node: Node, minute: int) -> None:
    node.author.writer.clock_ms = lambda: minute * MINUTE_MS


async def _named(node: Node, repo: Repo, name: str, minute: int) -> None:
    _set_clock(node, minute)
    await write_commit(node.hub, node.author, node.replica.root_branch(repo), Profile(name, None))


async def test_each_change_of_members_is_a_row_with_who_did_it(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        members, ben = service_of(alice, tmp_path).people.members, id_text(bob.author.user)
        for minute, step in enumerate(
            (("grant", "write"), ("remove", "read"), ("remove", ""), ("grant", "read"))
        ):
            _set_clock(alice, 10 + minute)
            await (members.grant if step[0] == "grant" else members.remove)("repo", ben, step[1])
        rows = list_changes(alice.replica, repo, 100, 0)
        assert [(one["kind"], one["permission"], one["time"] // 60) for one in rows] == [
            ("granted", "write", 10),
            ("lowered", "read", 11),
            ("excluded", None, 12),
            ("granted", "read", 13),
        ]
        assert {(one["user"], one["author"]) for one in rows} == {(ben, id_text(alice.author.user))}
        assert list_changes(alice.replica, repo, 2, 0) == rows[-2:], "the latest"
        assert list_changes(alice.replica, repo, 100, 13 * 60) == rows[-1:]


async def test_a_new_name_is_a_row_and_the_first_one_is_none(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.create_repo()
        for minute, name in enumerate(("Ann", "Ann", "Ann Okafor")):
            await _named(alice, repo, name, 20 + minute)
        [row] = list_changes(alice.replica, repo, 100, 0)
        assert (row["kind"], row["earlier_name"], row["time"] // 60) == ("renamed", "Ann", 22)


async def test_the_rules_are_asked_once_of_each_change(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.create_repo()
        asked = []
        for size in (2, 4):
            for minute in range(2):
                await _named(alice, repo, f"Ann {size} {minute}", 30 + size + minute)
            with patch.object(Resolution, "counts", autospec=True, side_effect=Resolution.counts) as counts:
                list_changes(alice.replica, repo, 100, 0)
            asked.append(counts.call_count)
        assert asked == [2, 4]
