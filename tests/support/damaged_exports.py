"""Exports that are damaged in one way each, as disks, strangers and liars leave them: a generator.

`DAMAGES` maps a name to what is done to a sound export. What must come of each is the test's to say: it is refused with its
file, or read; and nothing that can be read ends as an internal error.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ravel.exports.schema import MANIFEST_NAME, TABLES
from tests.support.exports import (
    Row,
    change_manifest,
    change_rows,
    id_of,
    listing,
    stated_places,
    write_export,
)

Damage = Callable[[Path], None]
"""Damages the export in a folder."""
Rows = list[dict[str, Any]]

SOUND: Final = (
    Row("root"),
    Row("left", ("root",)),
    Row("right", ("root",), author="bob"),
    Row("merge", ("left", "right")),
    Row("side", branch="side"),
)
_REPO: Final = id_of("repo")
_BESIDE: Final[Mapping[str, Rows]] = {
    "memberships": [
        {
            "sequence": 1, "commit_id": id_of("root"), "repo_id": _REPO, "operation": "post", "member": id_of("ada"),
            "permission": "owner", "epoch": id_of("root"), "reason": "founding", "sealed_to": 1, "counts": True,
        }
    ],
    "members": [{"repo_id": _REPO, "member": id_of("ada"), "permission": "owner", "person": None}],
    "topics": [
        {"topic": id_of("t"), "repo_id": _REPO, "kind": "epoch", "branch_id": None, "epoch": id_of("root")}
    ],
    "names": [{"repo_id": _REPO, "branch_id": id_of("main"), "repo_name": "repo", "branch_name": "main"}],
    "tangles": stated_places(("reply", "root", "left", ("root",)), ("vote", "root", "merge", ("root",))),
    "edits": [
        {"sequence": 7, "branch_id": id_of("main"), "commit_id": id_of("left"), "kind": "move", "passed_before": 0,
         "passed_after": 1}
    ],
    "relay_commits": [
        {"sequence": 1, "topic": id_of("t"), "commit_id": id_of("r"), "acks": [], "blocks": 2, "size": 9, "received_at": 1}
    ],
    "relay_topics": [{"topic": id_of("t"), "is_pinned": True, "commits": 1, "size": 9, "touched_at": 1}],
}  # fmt: skip
NUMBERS: Final = (-(2**63), -1, 2**53, 2**62, 2**63 - 1)
TEXTS: Final = (
    "",
    "x" * 100_000,
    "a\0b",
    "<script>alert(1)</script>",
    "=1+1",
    "\u202etxt.exe",
    "'; DROP TABLE x",
)


def write_sound(folder: Path) -> Path:
    """Write the export that is damaged."""
    return write_export(folder, SOUND[:3], SOUND[3:], tables=_BESIDE)


def _manifest_bytes(change: Callable[[bytes], bytes], folder: Path) -> None:
    path = folder / MANIFEST_NAME
    path.write_bytes(change(path.read_bytes()))


def _part_of(folder: Path) -> Path:
    return folder / "commits" / "part-00000001.parquet"


def _part_bytes(change: Callable[[bytes], bytes], folder: Path) -> None:
    path = _part_of(folder)
    path.write_bytes(change(path.read_bytes()))


def _listed(folder: Path, **changes: object) -> None:
    tables = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"][0].update(changes)
    change_manifest(folder, tables=tables)


def _part_columns(change: Callable[[pa.Table], pa.Table], folder: Path) -> None:
    path = _part_of(folder)
    pq.write_table(change(pq.read_table(path)), path)
    _listed(folder, **listing(path, 3))


def _cell(table: str, row: int, column: str, value: object, folder: Path) -> None:
    if table != "commits":
        change_rows(folder, table, lambda rows: rows[row].update({column: value}))
        return
    path = _part_of(folder)
    rows = pq.read_table(path).to_pylist()
    rows[row][column] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES["commits"]), path)
    _listed(folder, **listing(path, len(rows)))


def _make_folder(folder: Path) -> None:
    _part_of(folder).unlink()
    _part_of(folder).mkdir()


def _rewrite(content: bytes, folder: Path) -> None:
    (folder / MANIFEST_NAME).write_bytes(content)


def _key(key: str, value: object, folder: Path) -> None:
    change_manifest(folder, **{key: value})


def _listed_key(key: str, value: object, folder: Path) -> None:
    _listed(folder, **{key: value})


def _place(changes: Mapping[str, object], folder: Path) -> None:
    change_rows(folder, "tangles", lambda rows: rows[0].update(changes))


def _doubled(table: str, folder: Path) -> None:
    change_rows(folder, table, lambda rows: rows.extend([*rows]))


def _link(folder: Path) -> None:
    path = _part_of(folder)
    path.rename(folder.with_suffix(".part"))
    path.symlink_to(folder.with_suffix(".part"))


def _link_folder(folder: Path) -> None:
    place = folder.with_suffix(".commits")
    (folder / "commits").rename(place)
    (folder / "commits").symlink_to(place)


def _link_out(folder: Path) -> None:
    """Have a part lie in the folder of another export."""
    _link_folder(folder)
    _listed(folder, path=f"commits/../../{folder.name}.commits/part-00000001.parquet")


def _anew(parts: Sequence[Sequence[Row]], folder: Path, voids: Sequence[str] = ()) -> None:
    shutil.rmtree(folder)
    write_export(folder, *parts, voids=voids)


def _twice(folder: Path) -> None:
    tables = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"].append(tables["commits"][0])
    change_manifest(folder, tables=tables)


def _named_rank(table: pa.Table) -> pa.Table:
    return table.append_column("RANK", table["rank"])


def _texts_for_acks(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("acks")
    return table.set_column(place, "acks", pa.array(["x"] * len(table)))


def _null_ids(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("commit_id")
    return table.set_column(place, "commit_id", pa.nulls(len(table), pa.binary(32)))


def _refused() -> Iterator[tuple[str, Damage]]:
    yield "no manifest", lambda folder: (folder / MANIFEST_NAME).unlink()
    for name, content in (
        ("empty", b""),
        ("text", b"{"),
        ("list", b"[]"),
        ("deep", b"[" * 100_000),
        ("null", b"null"),
    ):
        yield f"manifest is {name}", partial(_rewrite, content)
    yield "manifest was cut", partial(_manifest_bytes, lambda content: content[:-9])
    wrong: Mapping[str, tuple[object, ...]] = {
        "format": ("other", None),
        "schema_version": (0, -1, 99, "7", True, None),
        "created_at": (-1, 2**62, 1.5, "now", None),
        "watermark": (-1, 2**63, 0.5, None),
        "tables": ({}, [], None),
    }
    for key, values in wrong.items():
        for value in values:
            yield (
                f"{key} is {value!r}",
                partial(_key, key, value),
            )
    listed: Mapping[str, object] = {
        "rows": 2, "bytes": 1, "blake3": "00", "path": "../elsewhere.parquet",
    }  # fmt: skip
    for key, value in listed.items():
        yield f"listed {key} is {value}", partial(_listed_key, key, value)
    yield "listed path is absolute", lambda folder: _listed(folder, path="/etc/passwd")
    yield "a part is listed twice", _twice
    yield "a part is missing", lambda folder: _part_of(folder).unlink()
    yield "a part is a folder", _make_folder
    yield "a part is a link", _link
    yield "a folder is a link", _link_folder
    yield "a path leads out by a link", _link_out
    yield "a folder is missing", lambda folder: shutil.rmtree(folder / "commits")
    yield "a part was cut", partial(_part_bytes, lambda content: content[:-1])
    yield (
        "a bit was flipped",
        partial(_part_bytes, lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:]),
    )
    yield "a column is missing", partial(_part_columns, lambda table: table.drop_columns(["rank"]))
    yield "a column is of another type", partial(_part_columns, _texts_for_acks)
    yield "a column is there twice but for case", partial(_part_columns, _named_rank)
    yield "ids are null", partial(_part_columns, _null_ids)
    for size in (0, 5, 31, 33):
        yield f"an ack has {size} bytes", partial(_cell, "commits", 1, "acks", [b"x" * size])
    for table, column in (("tangles", "previous"), ("relay_commits", "acks")):
        yield f"an id of {table} is short", partial(_cell, table, 0, column, [b"x"])
    for column in ("size", "blocks", "files", "file_bytes"):
        for value in (-(2**63), 2**62, 2**63 - 1):
            yield f"{column} is {value}", partial(_cell, "commits", 1, column, value)


def _read() -> Iterator[tuple[str, Damage]]:
    yield "nothing is there", partial(_anew, ())
    yield "one commit", partial(_anew, ((Row("root"),),))
    yield "200 branches", partial(_anew, (tuple(Row(f"b{n}", branch=f"b{n}") for n in range(200)),))
    yield "100 parts", partial(_anew, tuple((Row(f"c{n}", (f"c{n - 1}",) if n else ()),) for n in range(100)))
    yield "all are void", partial(_anew, (SOUND,), voids=[row.name for row in SOUND])
    yield "an unknown column", partial(_part_columns, lambda table: table.append_column("odd", table["rank"]))
    yield "an unknown key", lambda folder: change_manifest(folder, odd=1)
    for column in (
        "sequence",
        "rank",
        "position",
        "time",
        "received_at",
        "shown_at",
        "arrived_at",
        "arrival",
        "feed_sequence",
        "position_at",
    ):
        for value in NUMBERS:
            yield f"{column} is {value}", partial(_cell, "commits", 1, column, value)
    for column in ("repo_name", "branch_name", "body_kind"):
        for text in TEXTS:
            yield f"{column} is {text[:20]!r}", partial(_cell, "commits", 1, column, text)
    for name, acks in {
        "twice": ["root", "root"], "itself": ["left"], "nowhere": ["gone"], "elsewhere": ["side"], "later": ["merge"],
    }.items():  # fmt: skip
        yield f"it acks {name}", partial(_cell, "commits", 1, "acks", [id_of(one) for one in acks])
    for column, name in (
        ("commit_id", "root"),
        ("branch_id", "side"),
        ("repo_id", "other"),
        ("topic", "other"),
        ("author", "eve"),
    ):
        yield f"{column} is another's", partial(_cell, "commits", 1, column, id_of(name))
    for table, columns in {
        "memberships": ("operation", "permission", "reason"), "members": ("permission",), "topics": ("kind",),
        "edits": ("kind",), "names": ("branch_name", "repo_name"), "tangles": ("kind",),
    }.items():  # fmt: skip
        for column in columns:
            yield f"{column} of {table} is odd", partial(_cell, table, 0, column, "odd\0\u202e")
    for table, column in (
        ("memberships", "sequence"), ("memberships", "sealed_to"), ("edits", "passed_before"), ("tangles", "sequence"),
        ("relay_commits", "received_at"), ("relay_topics", "touched_at"),
    ):  # fmt: skip
        for value in (-(2**63), 2**40):
            yield f"{column} of {table} is {value}", partial(_cell, table, 0, column, value)
    for name, root, previous in (
        ("its own root", "left", ["left"]),
        ("a cycle", "root", ["merge"]),
        ("nothing", "root", []),
    ):
        changes = {"root": id_of(root), "previous": [id_of(one) for one in previous]}
        yield (
            f"a place follows {name}",
            partial(_place, changes),
        )
    for table in _BESIDE:
        yield (
            f"rows of {table} stand twice",
            partial(_doubled, table),
        )


REFUSED: Final[Mapping[str, Damage]] = dict(_refused())
"""Damages that no reader takes."""
READ: Final[Mapping[str, Damage]] = dict(_read())
"""Damages that are read: lies, and what other versions may write. The analysis and the audit judge them."""
