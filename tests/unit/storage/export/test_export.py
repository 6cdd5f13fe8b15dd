"""Exports: every commit once, in acceptance order, published whole, added to, merged, and kept for who reads them."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from blake3 import blake3
from msgspec import structs
from sqlalchemy import Connection, select, update

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.exports.export_rights import open_rights
from node.exports.export_worker import ExportRequest, write_export
from protocol.crypto.keys import HashKey, InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Adopt, Grant, Invite, Permission, Remove
from protocol.formats.document_kinds import DICT
from protocol.formats.publication import decode_publication
from protocol.ids import PeerId
from ravel.exports.schema import COMMITS, KEPT_NAME, MANIFEST_NAME, SCHEMA_VERSION, TABLES
from storage.commits.commits import load_rows
from storage.commits.damaged import mark_commits_damaged
from storage.engine.database import StorageError
from storage.engine.id_keys import unpack_nums
from storage.export.destinations import Destination, LocalFolder, open_destination
from storage.export.export import ExportPlan, ExportSummary, export_store
from storage.export.manifest import Holdings, Quotas, decode_manifest
from storage.export.parts import ROWS_PER_PART, choose_merge
from storage.export.space_accounting import HoldingsCount
from storage.export.views import VIEWS_NAME
from storage.relay.quotas import RelayQuotas, Visitor
from storage.relay.relay import open_topics, store_publications
from storage.schema.schema import blocks
from tests.support.builders import NOW_MS, STORE_KEY, World, timeline
from tests.support.exports import change_manifest

NO_KEY = HashKey(b"")

KEY = HashKey(b"k" * 32)
JsonObject = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "export"


def export(world: World, where: Path | Destination, at: int = 1, **plan: Any) -> ExportSummary:  # noqa: ANN401  # fields of ExportPlan
    destination = LocalFolder(where) if isinstance(where, Path) else where
    return export_store(world.replica.database.read, destination, replace(ExportPlan("node", at), **plan))


def manifest_of(folder: Path) -> JsonObject:
    found: JsonObject = json.loads((folder / MANIFEST_NAME).read_bytes())
    return found


def rows_of(folder: Path, table: str, manifest: JsonObject | None = None) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for part in (manifest or manifest_of(folder))["tables"][table]:
        path = folder / part["path"]
        path = path if path.exists() else folder / KEPT_NAME / part["path"]
        assert part["bytes"] == path.stat().st_size
        assert part["blake3"] == blake3(path.read_bytes()).hexdigest()
        read = pq.read_table(path)
        assert read.schema == TABLES[table]
        assert read.num_rows == part["rows"]
        rows += read.to_pylist()
    return rows


def files_of(folder: Path) -> set[str]:
    """Return what lies in an export, but for the second names of what tables' folders have."""
    every = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {
        name
        for name in every
        if name.removeprefix(f"{KEPT_NAME}/") == name or name[len(KEPT_NAME) + 1 :] not in every
    }


def test_an_export_holds_every_commit_and_grows(world: World, folder: Path) -> None:
    world.write("a, a <- b, a <- c")
    first = export(world, folder, 1)
    world.write("b c <- d")
    second = export(world, folder, 2)
    again = export(world, folder, 3)
    assert (first.commits, second.commits, second.added, again.added, again.parts) == (6, 7, 1, 0, 4)

    rows = rows_of(folder, "commits")
    assert [row["sequence"] for row in rows] == sorted(row["sequence"] for row in rows)
    mine = [row for row in rows if row["branch_id"] == world.branch.branch_id]
    ordered = sorted(mine, key=lambda row: (row["rank"], row["commit_id"]))
    assert [row["commit_id"] for row in ordered] == timeline(world.replica, world.branch)
    assert [row["position"] for row in ordered] == list(range(5))
    d = world.commits["d"]
    row = next(row for row in mine if row["commit_id"] == d.commit_id)
    assert set(row["acks"]) == {world.commits[name].commit_id for name in "bc"}
    assert (row["author"], row["feed_sequence"], row["blocks"]) == (world.author.user, 5, 2)
    assert (row["repo_name"], row["branch_name"], row["repo_id"], row["topic"]) == (
        "world",
        "main",
        world.repo.repo_id,
        world.topic().topic,
    )
    assert {row["position_at"] for row in rows} == {first.watermark, second.watermark}
    listed = manifest_of(folder)["tables"]
    assert files_of(folder) == {
        MANIFEST_NAME,
        VIEWS_NAME,
        *(part["path"] for table in ("commits", "names", "topics") for part in listed[table]),
    }
    epoch = world.replica.writing_epoch(world.repo)
    assert rows_of(folder, "topics") == [
        {
            "topic": topic,
            "repo_id": world.repo.repo_id,
            "kind": kind,
            "branch_id": None,
            "epoch": world.repo.init_id,
        }
        for topic, kind in ((epoch.topic, "epoch"), (epoch.writers_topic, "writers"))
    ]
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"format": "other", "schema_version": 1, "node": "node"}']
)
def test_a_folder_with_another_manifest_is_refused(world: World, folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(StorageError, match=r"manifest|another"):
        export(world, folder)
    assert (folder / MANIFEST_NAME).read_bytes() == content


@pytest.mark.sqlite
def test_another_nodes_export_and_a_newer_schema_are_not_added_to(world: World, folder: Path) -> None:
    export(world, folder)
    with pytest.raises(StorageError, match="another node"):
        export(world, folder, node="other")
    newer = manifest_of(folder) | {"schema_version": SCHEMA_VERSION + 1}
    (folder / MANIFEST_NAME).write_text(json.dumps(newer))
    with pytest.raises(StorageError, match="another schema"):
        export(world, folder)


@pytest.mark.sqlite
def test_a_damaged_manifest_is_noticed_wherever_the_damage_is(world: World, folder: Path) -> None:
    export(world, folder)
    content = (folder / MANIFEST_NAME).read_bytes()
    for place in range(len(content)):
        damaged = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        if damaged.split() == content.split():
            continue  # between the words
        with pytest.raises(StorageError, match=r"damaged|manifest|another|outside"):
            decode_manifest(damaged, "it", "node")
    assert decode_manifest(content, "it", "node").node == "node"


@pytest.mark.sqlite
def test_a_manifest_that_names_files_elsewhere_has_none_of_them_deleted(world: World, folder: Path) -> None:
    export(world, folder)
    victim = folder.parent / "victim.parquet"
    victim.write_bytes(b"kept")
    change_manifest(folder, replaced=[{"path": "../victim.parquet", "at": 0}])
    with pytest.raises(StorageError, match="outside"):
        export(world, folder, 2)
    assert victim.read_bytes() == b"kept"


@pytest.mark.sqlite
def test_an_export_that_was_cut_before_its_manifest_is_made_again(world: World, folder: Path) -> None:
    (folder / "commits").mkdir(parents=True)
    (folder / "commits" / "half.parquet").write_bytes(b"half")
    (folder / ".scratch").mkdir()
    (folder / ".scratch" / "unnamed.parquet").write_bytes(b"half")
    assert export(world, folder).commits == 3
    assert len(files_of(folder)) == 5, "what nothing lists is swept"


def test_what_is_void_is_stated_anew_and_edits_tell_what_became_of_it(world: World, folder: Path) -> None:
    bob = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(bob.user, Permission.WRITE))
    world.write_one("a", [], bob)
    export(world, folder, 1)
    assert rows_of(folder, "voids") == []
    world.author.write(root, Remove(bob.user, None, ()))
    export(world, folder, 2)
    void = world.commits["a"].commit_id
    assert rows_of(folder, "voids") == [{"commit_id": void}]
    world.author.write(root, Adopt(world.branch.branch_id, (void,)))
    export(world, folder, 3)
    assert rows_of(folder, "voids") == []
    edits = [(row["kind"], row["commit_id"], row["branch_id"]) for row in rows_of(folder, "edits")]
    branch = world.branch.branch_id
    assert edits == [("remove", void, branch), ("insert", void, branch)]
    older = rows_of(folder, "voids", {"tables": {"voids": [_older(folder)]}})
    assert older == [{"commit_id": void}], "who reads by an older manifest still can"
    export(world, folder, 2 + 86_401)
    assert not [path for path in folder.rglob("*.parquet") if path.parent.name == "voids"]


def _older(folder: Path) -> JsonObject:
    path = next(iter((folder / KEPT_NAME / "voids").iterdir()))
    content = path.read_bytes()
    return {
        "path": f"voids/{path.name}",
        "rows": 1,
        "bytes": len(content),
        "blake3": blake3(content).hexdigest(),
    }


def test_checkpoints_that_move_commits_are_edits(world: World, folder: Path) -> None:
    world.tell_story()
    export(world, folder)
    moves = [row for row in rows_of(folder, "edits") if row["kind"] == "move"]
    assert moves
    assert all(row["passed_before"] != row["passed_after"] for row in moves)
    sequences = [row["sequence"] for table in ("commits", "edits") for row in rows_of(folder, table)]
    assert len(sequences) == len(set(sequences)), "both are numbered by one sequence"


def test_a_store_that_went_back_to_a_backup_is_exported_anew(
    world: World, folder: Path, tmp_path: Path
) -> None:
    world.write("a")
    other = World(tmp_path / "other", is_another=True)
    try:
        other.write("a, a <- b")
        export(world, folder, 1)
        summary = export(other, folder, 2)
        assert (summary.commits, summary.added) == (5, 5)
        assert {row["repo_id"] for row in rows_of(folder, "commits")} == {other.repo.repo_id}
        assert export(world, folder, 3).commits == 4, "nor does a shorter store go on from a longer one"
    finally:
        other.close()


@pytest.mark.sqlite
@pytest.mark.slow
def test_many_parts_are_merged_and_the_former_manifest_stays_readable(world: World, folder: Path) -> None:
    plan = {"parts_max": 4, "keep_seconds": 100}
    for at, name in enumerate("abcd", 1):
        world.write(name)
        export(world, folder, at, **plan)
    former = manifest_of(folder)
    assert len(former["tables"]["commits"]) == 4
    for at, name in enumerate("ef", 5):
        world.write(name)
        export(world, folder, at, **plan)
    assert [part["rows"] for part in manifest_of(folder)["tables"]["commits"]] == [8, 1]
    rows = rows_of(folder, "commits")
    assert [row["sequence"] for row in rows] == sorted(row["sequence"] for row in rows)
    assert rows_of(folder, "commits", former) == rows[:7], "no part of it has gone"
    last = export(world, folder, 1000, **plan)
    listed = {part["path"] for parts in manifest_of(folder)["tables"].values() for part in parts}
    assert files_of(folder) == {MANIFEST_NAME, VIEWS_NAME, *listed}
    assert last.added == 0


@pytest.mark.sqlite
def test_a_part_that_was_altered_is_not_merged(world: World, folder: Path) -> None:
    for at, name in enumerate("abc", 1):
        world.write(name)
        export(world, folder, at, parts_max=3)
    before = manifest_of(folder)
    path = folder / before["tables"]["commits"][-1]["path"]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    world.write("d")
    with pytest.raises(StorageError, match="was altered"):
        export(world, folder, 4, parts_max=3)
    assert manifest_of(folder) == before


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "rows, start",
    [
        ([1, 1], None),  # few
        ([1, 1, 1, 1], 0),
        ([8, 1, 1, 1, 1], 1),  # the large one is worth no second writing
        ([8, 4, 2, 1], 2),  # the newest two, whatever their sizes
        ([4, 1, 1, 2], 0),
        ([ROWS_PER_PART, ROWS_PER_PART, ROWS_PER_PART, 1], None),
        ([ROWS_PER_PART, ROWS_PER_PART, 1, 1], 2),
    ],
)
def test_which_parts_are_merged(rows: list[int], start: int | None) -> None:
    assert choose_merge(rows, 3) == start


@pytest.mark.sqlite
def test_merging_writes_a_row_again_a_logarithm_of_times() -> None:
    parts: list[int] = []
    written = 0
    for _ in range(4096):
        parts.append(1)
        start = choose_merge(parts, 8)
        if start is not None:
            parts[start:] = [sum(parts[start:])]
            written += parts[-1]
    assert len(parts) <= 14
    assert written <= 4096 * 13


def test_neither_keys_nor_secrets_nor_bodies_are_exported(world: World, folder: Path) -> None:
    text = "a text that nobody else has"
    world.write_one(text, [])
    invitation = key_pair(InvitationSeed(b"i" * 32))[0]
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Invite(invitation, Permission.WRITE, 1, NOW_MS + 1))
    world.author.start_epoch(world.repo)
    export(world, folder, rights=open_rights)
    write_export(_request(world, folder.parent / "with", has_bodies=True, has_blocks=True))
    secrets = [*_secrets(world), invitation]
    assert len(secrets) > 8
    for exported in (folder, folder.parent / "with"):
        content = _content(exported)
        assert bytes(world.commits[text].commit_id) in content, "what is searched is what was written"
        assert [secret for secret in secrets if secret in content] == []
        assert b"epoch-init" in content, "what root branches say is told"
    assert text.encode() not in _content(folder)
    assert text.encode() in _content(folder.parent / "with")


def _secrets(world: World) -> list[bytes]:
    """Return all keys that the store holds: of commits, epochs and repos; and the user's."""
    columns = {
        "commits": ("commit_key", "signature"),
        "epochs": ("key", "writers_secret"),
        "repos": ("init_key",),
    }
    found = [b"w" * 32]
    for epoch in world.replica.tables.epochs.values():
        found += [epoch.key, epoch.writers_secret or b"", *epoch.keys[:3]]  # but for what relays see of it
    with world.replica.database.read() as connection:
        for table, names in columns.items():
            for name in names:
                found += connection.exec_driver_sql(f"SELECT {name} FROM {table}").scalars()  # noqa: S608  # names of ours
    return [secret for secret in found if secret]


def _content(folder: Path) -> bytes:
    """Return every value of every part, neither compressed nor encoded, and the manifest."""
    content = [(folder / MANIFEST_NAME).read_bytes()]
    for path in sorted(folder.rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            for value in row.values():
                content += (
                    value
                    if isinstance(value, list)
                    else [value if isinstance(value, bytes) else str(value).encode()]
                )
    return b"\n".join(content)


def _request(
    world: World,
    where: Path | str,
    *,
    has_bodies: bool = False,
    has_blocks: bool = False,
    pseudonym_key: HashKey = NO_KEY,
) -> ExportRequest:
    return ExportRequest(
        home=str(world.folder),
        destination=str(where),
        options={},
        node="node",
        created_at=1,
        keep_seconds=0,
        parts_max=32,
        has_bodies=has_bodies,
        has_blocks=has_blocks,
        pseudonym_key=pseudonym_key.hex(),
        storage_url="",
        store_key=STORE_KEY.hex(),
        quotas=None,
    )


def test_what_is_held_is_counted_last_and_in_a_read_of_its_own(world: World, folder: Path) -> None:
    # Counting takes long, and while a read is open SQLite's log only grows.
    events: list[str] = []
    stated = Holdings(4, 3, 2, 1)

    @contextmanager
    def read() -> Iterator[Connection]:
        with world.replica.database.read() as connection:
            events.append("begin")
            yield connection
            events.append("end")

    def count(_: Connection, before: HoldingsCount) -> HoldingsCount:
        events.append(before.state or "nothing")
        return HoldingsCount(stated, "this much")

    for at in (1, 2):
        export_store(read, LocalFolder(folder), ExportPlan("node", at, holdings=count))
    assert events == ["begin", "end", "begin", "nothing", "end", "begin", "end", "begin", "this much", "end"]
    assert decode_manifest((folder / MANIFEST_NAME).read_bytes(), "it", "node").holdings == stated
    export(world, folder, 3)
    assert manifest_of(folder)["holdings"] is None


def test_bodies_are_those_of_branches_and_none_of_root_branches(world: World, folder: Path) -> None:
    world.write("a, a <- b")
    world.author.write(world.branch, Draft(DICT.edit.make({"k": "v"}, (), {}), document="profile"))
    assert write_export(_request(world, folder, has_bodies=True)).commits == 6
    bodies = rows_of(folder, "bodies")
    of_branch = [row for row in rows_of(folder, "commits") if row["branch_id"] == world.branch.branch_id]
    assert [row["commit_id"] for row in bodies] == [row["commit_id"] for row in of_branch]
    told = [(row["body_kind"], row["document"]) for row in bodies]
    assert told == [("branch-root", ""), ("post", ""), ("post", ""), ("dict", "profile")]


def test_bodies_that_are_damaged_are_left_out_and_stop_no_export(world: World, folder: Path) -> None:
    world.write("a, b, c")
    ids = [world.commits[name].commit_id for name in "abc"]
    with world.replica.database.write() as connection:
        found = load_rows(connection, ids)
        own, body = (unpack_nums(found[ids[at]].block_nums)[at] for at in (0, 1))
        connection.execute(blocks.delete().where(blocks.c.num == own))
        mark_commits_damaged(connection, [found[ids[0]].num])
        encoded = connection.execute(select(blocks.c.encoded).where(blocks.c.num == body)).scalar_one()
        flipped = encoded[:-1] + bytes([encoded[-1] ^ 1])
        connection.execute(update(blocks).where(blocks.c.num == body).values(encoded=flipped))
    assert write_export(_request(world, folder, has_bodies=True)).commits == 6
    told = {row["commit_id"] for row in rows_of(folder, "bodies")}
    assert told == {world.branch.facts.root_id, ids[2]}


@pytest.mark.sqlite
def test_bodies_that_are_no_longer_wanted_are_gone_at_once(world: World, folder: Path) -> None:
    write_export(_request(world, folder, has_bodies=True))
    assert [path for path in folder.rglob("*.parquet") if path.parent.name == "bodies"]
    export(world, folder, 2, keep_seconds=1000)
    assert not [path for path in folder.rglob("*.parquet") if path.parent.name == "bodies"]


def test_pseudonyms_stand_for_authors_alike_on_nodes_of_one_key(world: World, folder: Path) -> None:
    bob = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    world.author.write(world.replica.root_branch(world.repo), Grant(bob.user, Permission.WRITE))
    world.write_one("a", [], bob)
    export(world, folder, 1)
    plain = rows_of(folder, "commits")
    export(world, folder, 2, pseudonym_key=KEY, rights=open_rights, blocks=True)
    hidden = rows_of(folder, "commits")
    assert {row["repo_name"] for row in plain} == {"world"}
    assert {row["repo_name"] for row in hidden} == {None}, "what a node calls a repo may name people"
    commits = [path for path in folder.rglob("*.parquet") if path.parent.name == "commits"]
    assert len({path.name for path in commits}) == 1, "what names authors does not stay for a day"
    names = {(row["author"], other["author"]) for row, other in zip(plain, hidden, strict=True)}
    assert len(names) == len({name for name, _ in names}) == len({hidden for _, hidden in names}) == 2
    content = _content(folder)
    assert bytes(KEY) not in content
    assert KEY.hex().encode() not in content
    assert [user for user in (world.author.user, bob.user) if bytes(user) in content] == []
    others = folder.parent / "other"
    export(world, others, 1, pseudonym_key=KEY)
    assert rows_of(others, "commits") == hidden
    assert manifest_of(others)["pseudonyms"] == manifest_of(folder)["pseudonyms"]
    export(world, others, 2, pseudonym_key=b"x" * 32)
    assert {row["author"] for row in rows_of(others, "commits")}.isdisjoint(name for _, name in names)


def test_a_relay_exports_what_it_knows_of_what_it_keeps(world: World, folder: Path, tmp_path: Path) -> None:
    world.write("a, a <- b")
    publications = world.publications(world.branch)
    relay = World(tmp_path / "relay", is_another=True)
    visitor, size = Visitor(PeerId(b"p" * 32)), 1 << 30
    quotas = RelayQuotas(size, size, size, size, 10, 10, 10)
    try:
        database = relay.replica.database
        with database.write() as connection:
            open_topics(database, connection, [world.topic().topic], visitor, quotas, 5)
            items = [(decode_publication(one), one) for one in publications]
            store_publications(database, connection, 1, visitor, items[:2], quotas, 7)
        plan = {"quotas": Quotas(3, 2, 1)}
        assert export(relay, folder, 1, **plan).relayed == 2
        with database.write() as connection:
            store_publications(database, connection, 1, visitor, items, quotas, 9)
        assert export(relay, folder, 2, **plan).relayed == 3
    finally:
        relay.close()
    rows = rows_of(folder, "relay_commits")
    assert [row["commit_id"] for row in rows] == timeline(world.replica, world.branch)
    assert [row["acks"] for row in rows] == [[], *([row["commit_id"]] for row in rows[:2])]
    assert [row["size"] for row in rows] == list(map(len, publications))
    assert [(row["blocks"], row["received_at"]) for row in rows] == [(2, 7), (2, 7), (2, 9)]
    (topic,) = rows_of(folder, "relay_topics")
    assert topic == {
        "topic": world.topic().topic,
        "is_pinned": False,
        "commits": 3,
        "size": sum(map(len, publications)),
        "touched_at": 9,
        "touched_utc": datetime.fromtimestamp(0.009, UTC),
    }
    assert manifest_of(folder)["quotas"] == {"total": 3, "topic": 2, "peer": 1}
    assert b"p" * 32 not in _content(folder), "who brought it is nobody's business"


@pytest.mark.sqlite
def test_no_batch_is_larger_than_a_group_of_rows(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rows", "parts"):
        monkeypatch.setattr(f"storage.export.{module}.ROWS_AT_ONCE", 2)
    monkeypatch.setattr("storage.export.parts.ROWS_PER_GROUP", 3)
    monkeypatch.setattr("storage.export.parts.ROWS_PER_PART", 6)
    world.write("a, a <- b, a <- c, b c <- d, d <- e, a <- f")
    export(world, folder)
    parts = manifest_of(folder)["tables"]["commits"]
    assert [part["rows"] for part in parts] == [6, 3]
    groups = pq.ParquetFile(folder / parts[0]["path"]).metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [4, 2]
    monkeypatch.setattr("storage.export.parts.SIZE_PER_GROUP", 1)
    export(world, folder.with_name("small"))
    (first, *_) = manifest_of(folder.with_name("small"))["tables"]["commits"]
    assert pq.ParquetFile(folder.with_name("small") / first["path"]).metadata.num_row_groups == 3
    mine = [row for row in rows_of(folder, "commits") if row["branch_id"] == world.branch.branch_id]
    by_position = sorted(mine, key=lambda row: row["position"])
    assert [row["commit_id"] for row in by_position] == timeline(world.replica, world.branch)


@pytest.mark.sqlite
def test_merging_bodies_holds_no_more_of_them_than_writing_did(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("storage.export.export", "node.exports.export_worker"):
        monkeypatch.setattr(f"{module}.BODIES_PER_GROUP", 2)
    monkeypatch.setattr("storage.export.parts.HEAVY_SIZE_PER_GROUP", 1)
    request = structs.replace(_request(world, folder, has_bodies=True), parts_max=1)
    world.write("a, a <- b, b <- c, c <- d")
    write_export(request)
    world.write("d <- e, e <- f, f <- g")
    write_export(request)
    (part,) = manifest_of(folder)["tables"]["bodies"]
    groups = pq.ParquetFile(folder / part["path"]).metadata
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert (sum(sizes), max(sizes)) == (8, 2)
    assert len(manifest_of(folder)["tables"]["commits"]) == 1, (
        "of all other tables, groups become larger ones"
    )


@pytest.mark.sqlite
def test_few_columns_of_commits_have_nulls() -> None:
    optional = [field.name for field in COMMITS if field.nullable]
    assert optional == [
        "repo_name",
        "source_author",
        "time_utc",
        "received_utc",
        "shown_utc",
        "arrived_at",
        "arrived_utc",
    ]


@pytest.mark.sqlite
def test_two_exports_of_one_node_do_not_meet(world: World, folder: Path) -> None:
    with (world.folder / "export.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="still being written"):
            write_export(_request(world, folder), patience=0.0)
    assert write_export(_request(world, folder)).commits == 3
    assert open_destination(str(folder), {}, folder).name == str(folder)


@pytest.mark.sqlite
@pytest.mark.parametrize("where", ["memory://killed/exports", "folder"])
def test_what_a_killed_export_to_another_machine_left_goes_with_the_next_to_anywhere(
    world: World, tmp_path: Path, where: str
) -> None:
    before = {path.name for path in world.folder.iterdir()}
    scratch = world.folder / ".export-scratch"
    scratch.mkdir()
    (scratch / "unnamed.parquet").write_bytes(b"bodies in the clear")
    destination = str(tmp_path / where) if where == "folder" else where
    assert write_export(_request(world, destination, has_bodies=True)).commits == 3
    assert {path.name for path in world.folder.iterdir()} == before | {"content.lock", "export.lock"}
