"""What exports say of members and epochs: what the node's own resolution says, and nothing that opens anything."""

import gc
import json
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import OperationalError

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.exports.export_rights import open_rights
from node.ingest.replica import load_membership
from node.ingest.tables import Tables
from node.timelines.tangles import TangleQuestion, show_tangle
from protocol.crypto.keys import HashKey, InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import DeviceGrant, Grant, Invite, Join, Permission, Remove, Revoke
from protocol.formats.content import Post
from protocol.formats.devices import Device
from protocol.formats.proofs import device_digest, prove_invitation
from protocol.formats.text import id_text, parse_id
from protocol.ids import RepoId
from ravel.exports.schema import MANIFEST_NAME, PERMISSIONS, RIGHTS
from storage.commits.damaged import mark_commits_damaged
from storage.engine.database import StorageError
from storage.engine.id_keys import unpack_nums
from storage.export.destinations import LocalFolder
from storage.export.export import ExportPlan, RepoRights, Unjudged, export_store
from storage.export.rows import Pseudonym
from storage.schema.schema import blocks, commits, damaged_commits
from tests.support.builders import NOW_MS, World
from verifier.membership import Membership

INVITATION = InvitationSeed(b"i" * 32)
KEY = HashKey(b"k" * 32)
JsonObject = dict[str, Any]


def _author(world: World, name: str) -> Author:
    return Author(world.replica, UserSeed(name.encode().ljust(32, b"-")), lambda: NOW_MS)


def _export(world: World, folder: Path, at: int = 1, **plan: Any) -> dict[str, list[JsonObject]]:  # noqa: ANN401  # fields of ExportPlan
    made = replace(ExportPlan("node", at, rights=open_rights), **plan)
    export_store(world.replica.database.read, LocalFolder(folder), made)
    listed = _manifest(folder)["tables"]
    return {
        table: [row for part in listed[table] for row in pq.read_table(folder / part["path"]).to_pylist()]
        for table in ("commits", *RIGHTS)
    }


def _manifest(folder: Path) -> JsonObject:
    found: JsonObject = json.loads((folder / MANIFEST_NAME).read_bytes())
    return found


def _tell(world: World) -> dict[str, Author]:
    """bob is granted, carol joins, dan is carol's device; bob grants erin while he is removed; carol's link is revoked."""
    root = world.replica.root_branch(world.repo)
    people = {name: _author(world, name) for name in ("bob", "carol", "dan", "erin")}
    ann, bob, carol, dan = world.author, people["bob"], people["carol"], people["dan"]
    ann.write(root, Grant(bob.user, Permission.ADMIN))
    invite = Invite(key_pair(INVITATION)[0], Permission.WRITE, 2, NOW_MS + 1)
    link, _ = ann.write(root, invite)
    carol.write(root, Join(link.commit_id, prove_invitation(INVITATION, world.repo.repo_id, carol.user)))
    carol.write(root, DeviceGrant(dan.user, Permission.WRITE))
    digest = device_digest(world.repo.repo_id, carol.user, dan.user, 1)
    said, _ = carol.write(root, Device(carol.user, dan.user, 1, carol.sign(digest), dan.sign(digest)))
    before = (said.commit_id,)
    bob.write(root, Draft(Grant(people["erin"].user, Permission.WRITE), before))
    ann.write(root, Draft(Remove(bob.user, None, ()), before))
    ann.write(world.branch, Post("before which the epoch begins that is due"))
    ann.write(root, Revoke(link.commit_id))
    ann.write(root, Remove(dan.user, Permission.READ, ()))
    ann.start_epoch(world.repo)
    return people


@pytest.mark.slow
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
        if row["operation"]
        in ("init", "grant", "invite", "join", "remove", "revoke", "device", "device-grant")
    ]
    assert said == [
        ("init", "ann", "owner", True),
        ("grant", "bob", "admin", True),
        ("invite", None, "write", True),
        ("join", "carol", "write", True),
        ("device-grant", "dan", "write", True),
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


@pytest.mark.slow
def test_places_in_tangles_of_epochs_and_members_are_those_that_the_node_shows(
    world: World, tmp_path: Path
) -> None:
    _tell(world)
    found = {
        (row["kind"], row["root"], row["commit_id"]): sorted(row["previous"])
        for row in _export(world, tmp_path / "export")["memberships"]
        if row["kind"] is not None
    }
    root, replica = world.replica.root_branch(world.repo), world.replica
    epochs = [id_text(one.commit_id) for one in replica.membership(world.repo.repo_id).operations.epochs]
    shown = {}
    for question in (
        TangleQuestion("epoch", 100),
        *(TangleQuestion("members", 100, epoch=one) for one in epochs),
    ):
        answer = show_tangle(replica, world.repo, question, root, world.author.user)
        for one in answer["commits"]:
            commit_id, begin = parse_id(one["commit"]), parse_id(answer["root"])
            if question.kind == "epoch" or commit_id != begin:
                shown[question.kind, begin, commit_id] = sorted(map(parse_id, one["previous"]))
    assert found == shown
    assert {len(epochs), sum(kind == "epoch" for kind, _, _ in found)} == {3}


def test_permissions_are_called_as_the_node_calls_them() -> None:
    assert [permission.name.lower() for permission in sorted(Permission)] == list(PERMISSIONS)


@pytest.mark.slow
def test_members_have_the_pseudonyms_of_authors(world: World, tmp_path: Path) -> None:
    people = _tell(world)
    told = _export(world, tmp_path / "export", pseudonym_key=KEY)
    (joined,) = (row for row in told["memberships"] if row["operation"] == "join")
    authors = {row["commit_id"]: row["author"] for row in told["commits"]}
    assert joined["member"] == authors[joined["commit_id"]]
    assert {row["person"] for row in told["members"]} == {None, joined["member"]}
    shown = {row["member"] for table in RIGHTS for row in told[table]}
    shown |= {row["person"] for row in told["members"]}
    assert shown.isdisjoint(one.user for one in [*people.values(), world.author])


class Counting:
    """Opens root branches, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, connection: Connection, pseudonym: Pseudonym | None
    ) -> Iterator[RepoRights | Unjudged]:
        self.count += 1
        return open_rights(connection, pseudonym)


@pytest.mark.slow
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
    world.author.write(world.replica.root_branch(world.repo), Grant(bob.user, Permission.READ))
    assert {row["member"] for row in _export(world, folder, 3, rights=rights)["members"]} == {
        world.author.user,
        bob.user,
    }
    without = _export(world, folder, 4, rights=None)
    assert [without[table] for table in RIGHTS] == [[], []], "nothing stays that nobody looked at"
    assert rights.count == 2


def _last_root_commit(world: World, connection: Connection) -> Row[Any]:
    root = world.replica.root_branch(world.repo)
    query = select(commits).where(commits.c.branch_num == root.num)
    return connection.execute(query.order_by(commits.c.num.desc()).limit(1)).one()


def test_a_root_commit_that_is_awaited_stops_no_export(world: World, tmp_path: Path) -> None:
    rights, folder = Counting(), tmp_path / "export"
    whole = _export(world, folder, 1, rights=rights)
    with world.replica.database.write() as connection:
        row = _last_root_commit(world, connection)
        taken = connection.execute(select(blocks).where(blocks.c.num == unpack_nums(row.block_nums)[0])).one()
        connection.execute(delete(blocks).where(blocks.c.num == taken.num))
        mark_commits_damaged(connection, [row.num])
    for at in (2, 3):
        told = _export(world, folder, at, rights=rights)
        assert ([told[table] for table in RIGHTS], len(told["commits"])) == ([[], []], 3)
        assert _manifest(folder)["unjudged_repos"] == 1
    assert rights.count == 2, "while nothing comes nothing is judged again"
    with world.replica.database.write() as connection:
        connection.execute(insert(blocks).values(**taken._mapping))
        connection.execute(delete(damaged_commits))
    assert _export(world, folder, 4, rights=rights) == whole, "though no root commit has come"
    assert (rights.count, _manifest(folder)["unjudged_repos"]) == (3, 0)


def _flip(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


def _damage_body(connection: Connection, row: Row[Any]) -> None:
    num = unpack_nums(row.block_nums)[1]
    encoded = connection.execute(select(blocks.c.encoded).where(blocks.c.num == num)).scalar_one()
    connection.execute(update(blocks).where(blocks.c.num == num).values(encoded=_flip(encoded)))


def _damage_key(connection: Connection, row: Row[Any]) -> None:
    values = {"commit_key": _flip(row.commit_key)}
    connection.execute(update(commits).where(commits.c.num == row.num).values(values))


def _lose_numbers(connection: Connection, row: Row[Any]) -> None:
    connection.execute(update(commits).where(commits.c.num == row.num).values(block_nums=b""))


@pytest.mark.parametrize("damage", [_damage_body, _damage_key, _lose_numbers])
def test_damage_of_a_root_branch_that_nobody_knows_of_yet_stops_no_export(
    world: World, tmp_path: Path, damage: Callable[[Connection, Row[Any]], None]
) -> None:
    rights, folder = Counting(), tmp_path / "export"
    other, _ = world.author.founding.create_repo("other")
    with world.replica.database.write() as connection:
        damage(connection, _last_root_commit(world, connection))
    for at in (1, 2):
        told = _export(world, folder, at, rights=rights, blocks=True)
        assert [{row["repo_id"] for row in told[table]} for table in RIGHTS] == [{other.repo_id}] * 2
        assert (len(told["commits"]), _manifest(folder)["unjudged_repos"]) == (4, 1)
    assert rights.count == 2, "nothing says when it is whole again"


def test_a_database_that_fails_is_no_damage(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Membership:
        raise OperationalError("SELECT", {}, sqlite3.OperationalError("disk I/O error"))

    monkeypatch.setattr("node.exports.export_rights.open_membership", fail)
    with pytest.raises(StorageError, match="disk I/O error"):
        _export(world, tmp_path / "export")


@pytest.mark.extended
@pytest.mark.slow
def test_one_membership_is_in_memory_at_a_time(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.author.founding.create_repo("other")
    world.author.founding.create_repo("third")
    loaded: list[weakref.ref[Membership]] = []

    def load(connection: Connection, tables: Tables, repo_id: RepoId) -> Membership:
        gc.collect()
        assert [one for one in loaded if one() is not None] == []
        made = load_membership(connection, tables, repo_id)
        loaded.append(weakref.ref(made))
        return made

    monkeypatch.setattr("node.exports.export_rights.open_membership", load)
    assert len(_export(world, tmp_path / "export")["members"]) == len(loaded) == 3
