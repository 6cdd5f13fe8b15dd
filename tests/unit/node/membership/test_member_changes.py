"""Who came, left, was excluded or has another name is told, as the rules see it now, and at a bounded cost."""

from pathlib import Path
from unittest.mock import patch

from node.authoring.author import Author
from node.authoring.writing import write_commit
from node.membership.member_changes import list_changes
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import DeviceGrant, Invite, Join, Move, Permission
from protocol.formats.profiles import Profile
from protocol.formats.proofs import prove_invitation
from protocol.formats.text import id_text
from storage.repos.repos import Repo
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of
from verifier.resolution import Resolution

MINUTE_MS = 60_000
_INVITATION = InvitationSeed(b"i" * 32)


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


async def test_a_member_is_listed_with_how_it_came(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _set_clock(alice, 9)
        repo, _ = alice.create_repo()
        await _named(alice, repo, "Ann", 9)
        members = service_of(alice, tmp_path).people.members
        ann, ben = id_text(alice.author.user), id_text(bob.author.user)

        async def came(user: str) -> tuple[str, int | None, str, str]:
            listed = (await members.list_all("repo"))["members"]
            found = next(one["came"] for one in listed if one["user"] == user)
            assert found is not None
            minute = None if found["time"] is None else found["time"] // 60
            return found["kind"], minute, found["author"], found["author_name"]

        for minute, step in enumerate(
            (("grant", "read"), ("grant", "write"), ("remove", ""), ("grant", "read"))
        ):
            _set_clock(alice, 10 + minute)
            await (members.grant if step[0] == "grant" else members.remove)("repo", ben, step[1])
            if minute == 1:
                assert await came(ben) == ("granted", 10, ann, "Ann"), "the first of what is held"
        assert await came(ben) == ("granted", 13, ann, "Ann"), "not before one was excluded"
        assert await came(ann) == ("founded", None, ann, "Ann")
        root = alice.replica.root_branch(repo)
        written, _ = alice.author.write(root, Invite(key_pair(_INVITATION)[0], Permission.WRITE, 8, 10**12))
        guest = Author(alice.replica, UserSeed(b"j" * 32), lambda: 15 * MINUTE_MS)
        proof = prove_invitation(_INVITATION, repo.repo_id, guest.user)
        guest.write(root, Join(written.commit_id, proof))
        assert await came(id_text(guest.user)) == ("invited", 15, ann, "Ann")


async def test_who_has_a_place_came_as_who_had_it_before(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "phone") as (alice, phone):
        repo, _ = alice.create_repo()
        init = alice.replica.membership(repo.repo_id).operations.since(0)[0].commit_id
        root = alice.replica.root_branch(repo)
        user = phone.author.user
        for body in (DeviceGrant(user, Permission.OWNER), Move(user, init)):
            alice.author.write(root, body)
        listed = (await service_of(alice, tmp_path).people.members.list_all("repo"))["members"]
        assert [(one["user"], one["came"] and one["came"]["kind"]) for one in listed] == [
            (id_text(user), "founded")
        ]
        assert listed[0]["came"] is not None
        assert listed[0]["came"]["place_of"] == id_text(alice.author.user)
        assert listed[0]["came"]["place_since"] is not None


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
