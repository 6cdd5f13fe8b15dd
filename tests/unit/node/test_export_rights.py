"""What exports say of members and epochs: what the node's own resolution says, and nothing that opens anything."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, delete, insert, select

from node.drafting import Draft
from node.export_rights import open_rights
from node.outbound import Author
from protocol.body import Grant, Invite, Join, Permission, Remove, Revoke
from protocol.content import Post
from protocol.devices import Device
from protocol.proofs import device_digest, prove_invitation
from protocol.signing import key_pair
from storage.destinations import LocalFolder
from storage.export import ExportPlan, Rights, export_store
from storage.export_rows import Pseudonym
from storage.export_schema import MANIFEST_NAME, PERMISSIONS, RIGHTS
from storage.id_keys import unpack_nums
from storage.schema import awaited_commits, blocks, commits
from tests.builders import NOW_MS, World

INVITATION = b"i" * 32
KEY = b"k" * 32
JsonObject = dict[str, Any]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "world")
    yield world
    world.close()


def _author(world: World, name: str) -> Author:
    return Author(world.replica, name.encode().ljust(32, b"-"), lambda: NOW_MS)


def _export(world: World, folder: Path, at: int = 1, **plan: Any) -> dict[str, list[JsonObject]]:  # noqa: ANN401
    made = replace(ExportPlan("node", at, rights=open_rights), **plan)
    export_store(world.replica.database.read, LocalFolder(folder), made)
    listed = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]
    return {
        table: [row for part in listed[table] for row in pq.read_table(folder / part["path"]).to_pylist()]
        for table in ("commits", *RIGHTS)
    }


def _tell(world: World) -> dict[str, Author]:
    """bob is granted, carol joins, dan is carol's device; bob grants erin while he is removed; carol's link is revoked."""
    root = world.replica.root_branch(world.repo)
    people = {name: _author(world, name) for name in ("bob", "carol", "dan", "erin")}
    ann, bob, carol, dan = world.author, people["bob"], people["carol"], people["dan"]
    ann.write(root, Grant(bob.user, Permission.ADMIN, None))
    ann.write(root, Grant(dan.user, Permission.WRITE, None))
    invite = Invite(key_pair(INVITATION)[0], Permission.WRITE, 2, NOW_MS + 1)
    link, _ = ann.write(root, invite)
    carol.write(root, Join(link.commit_id, prove_invitation(INVITATION, world.repo.repo_id, carol.user)))
    digest = device_digest(world.repo.repo_id, carol.user, dan.user, 1)
    said, _ = carol.write(root, Device(carol.user, dan.user, 1, carol.sign(digest), dan.sign(digest)))
    before = (said.commit_id,)
    bob.write(root, Draft(Grant(people["erin"].user, Permission.WRITE, None), before))
    ann.write(root, Draft(Remove(bob.user, None, ()), before))
    ann.write(world.branch, Post("before which the epoch begins that is due"))
    ann.write(root, Revoke(link.commit_id))
    ann.write(root, Remove(dan.user, Permission.READ, ()))
    ann.start_epoch(world.repo)
    return people


def test_operations_and_members_are_those_of_the_nodes_own_resolution(world: World, tmp_path: Path) -> None:
    people = _tell(world)
    names = {one.user: name for name, one in people.items()} | {world.author.user: "ann"}
    told = _export(world, tmp_path / "export")
    by_id = {row["commit_id"]: row for row in told["commits"]}
    rows = told["memberships"]
    roots = [row for row in told["commits"] if row["branch_id"] == world.repo.repo_id]
    assert [(row["sequence"], row["operation"]) for row in rows] == [
        (row["sequence"], row["body_kind"]) for row in roots
    ]
    said = [
        (row["operation"], names.get(row["member"]), row["permission"], row["counts"])
        for row in rows
        if row["operation"] in ("init", "grant", "invite", "join", "remove", "revoke", "device")
    ]
    assert said == [
        ("init", "ann", "owner", True),
        ("grant", "bob", "admin", True),
        ("grant", "dan", "write", True),
        ("invite", None, "write", True),
        ("join", "carol", "write", True),
        ("device", None, None, True),
        ("grant", "erin", "write", False),
        ("remove", "bob", None, True),
        ("revoke", None, None, True),
        ("remove", "dan", "read", True),
    ]
    epochs = [
        (row["reason"], row["sealed_to"], row["epoch"] == row["commit_id"]) for row in rows if row["reason"]
    ]
    assert epochs == [("founding", 1, True), ("removal", 3, True), ("removal", 3, True)]
    now = world.replica.members(world.repo)
    assert {row["member"]: row["permission"] for row in told["members"]} == {
        user: held.name.lower() for user, held in now.items()
    }
    persons = {names[row["member"]]: names.get(row["person"]) for row in told["members"]}
    assert persons == {"ann": None, "carol": None, "dan": "carol"}
    assert {by_id[row["commit_id"]]["author"] for row in rows if row["operation"] == "join"} == {
        people["carol"].user
    }


def test_permissions_are_called_as_the_node_calls_them() -> None:
    assert [permission.name.lower() for permission in sorted(Permission)] == list(PERMISSIONS)


def test_members_have_the_pseudonyms_of_authors(world: World, tmp_path: Path) -> None:
    people = _tell(world)
    told = _export(world, tmp_path / "export", pseudonym_key=KEY)
    (joined,) = (row for row in told["memberships"] if row["operation"] == "join")
    authors = {row["commit_id"]: row["author"] for row in told["commits"]}
    assert joined["member"] == authors[joined["commit_id"]]
    assert {row["person"] for row in told["members"]} == {None, joined["member"]}
    shown = {row[name] for table in RIGHTS for row in told[table] for name in ("member",)}
    assert shown.isdisjoint(one.user for one in [*people.values(), world.author])


class Counting:
    """Opens root branches, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, connection: Connection, pseudonym: Pseudonym | None) -> Rights:
        self.count += 1
        return open_rights(connection, pseudonym)


def test_members_are_judged_again_when_a_root_branch_has_grown(world: World, tmp_path: Path) -> None:
    rights, folder = Counting(), tmp_path / "export"
    first = _export(world, folder, 1, rights=rights)
    world.write("a, a <- b")
    again = _export(world, folder, 2, rights=rights)
    assert ({table: again[table] for table in RIGHTS}, rights.count) == (
        {table: first[table] for table in RIGHTS},
        1,
    )
    bob = _author(world, "bob")
    world.author.write(world.replica.root_branch(world.repo), Grant(bob.user, Permission.READ, None))
    assert {row["member"] for row in _export(world, folder, 3, rights=rights)["members"]} == {
        world.author.user,
        bob.user,
    }
    without = _export(world, folder, 4, rights=None)
    assert [without[table] for table in RIGHTS] == [[], []], "nothing stays that nobody looked at"
    assert rights.count == 2


def test_a_root_commit_that_is_awaited_stops_no_export(world: World, tmp_path: Path) -> None:
    rights, folder = Counting(), tmp_path / "export"
    root = world.replica.root_branch(world.repo)
    with world.replica.database.write() as connection:
        query = select(commits.c.num, commits.c.block_nums).where(commits.c.branch_num == root.num)
        num, packed = connection.execute(query.order_by(commits.c.num.desc()).limit(1)).one()
        taken = connection.execute(select(blocks).where(blocks.c.num == unpack_nums(packed)[0])).one()
        connection.execute(delete(blocks).where(blocks.c.num == taken.num))
        connection.execute(insert(awaited_commits).values(commit_num=num, topic_num=root.topic_num))
    told = _export(world, folder, 1, rights=rights)
    assert ([told[table] for table in RIGHTS], len(told["commits"])) == ([[], []], 3)
    with world.replica.database.write() as connection:
        connection.execute(insert(blocks).values(**taken._mapping))
        connection.execute(delete(awaited_commits))
    told = _export(world, folder, 2, rights=rights)
    assert [len(told[table]) for table in RIGHTS] == [2, 1], "though no root commit has come"
    assert rights.count == 2
