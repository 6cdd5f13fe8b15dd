"""What an analysis leaves to the next one in its folder, and the check that it is still as it was left.

    OUT/state/state.json        what was analyzed, by what, and the checksums of all files that are kept
    OUT/state/branches.parquet  `part`, `branch_id`: the branches that have commits in a part of the export
    OUT/state/voids.parquet     `commit_id`: what was void
    OUT/state/ordered_commits/  what is counted over all branches of commits that have a place
    OUT/tables/NAME/            the tables of branches
    OUT/digests.json            the digests of branches

`state.json` is written last, so an analysis that was cut off leaves none. Nothing of it is trusted that its checksums do not
bear out: then the next analysis runs in full.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from blake3 import blake3

from analytics.engines.engine import KEPT_ORDER
from analytics.reading.limits import STATE_SIZE_MAX
from analytics.tables.definitions import TABLES

STATE_VERSION: Final = 3
"""Of all that is kept. Raised when its form changes: what has another version is not built on."""
FOLDER: Final = "state"
STATE_NAME: Final = "state.json"
BRANCHES_NAME: Final = "branches.parquet"
VOIDS_NAME: Final = "voids.parquet"
DIGESTS_NAME: Final = "digests.json"
VERIFICATIONS: Final = ("no", "ranks", "deep")
"""From the weakest to the strongest."""
BY_BRANCH: Final = tuple(name for name, table in TABLES.items() if table.is_by_branch)
"""Tables whose rows are kept."""

_CHUNK_SIZE: Final = 1 << 20


class Unfit(Exception):
    """The earlier analysis cannot be built on; the message says why."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file below the folder of results."""

    path: str  # relative
    size: int  # bytes
    blake3: str  # hex


@dataclass(frozen=True, slots=True)
class State:
    """What an analysis was, and what it left."""

    basis: Mapping[str, str]  # what must be the same again, by its name
    verify: str  # one of VERIFICATIONS
    unfit: str  # why nothing can be built on it; "" where something can
    parts: Mapping[str, int]  # keys of the exports' parts of commits (`parts_by_key`), and their rows
    voids: tuple[str, ...]  # checksums of their parts of voids
    files: tuple[KeptFile, ...]

    def files_of(self, folder: Path, name: str) -> list[Path]:
        """The files of a table, or of KEPT_ORDER, below a folder of results."""
        start = f"{FOLDER if name == KEPT_ORDER else 'tables'}/{name}/"
        return [folder / one.path for one in self.files if one.path.startswith(start)]


def load_state(out: Path) -> State | None:
    """What the analysis before left, or None where there was none that ended. Raises Unfit; OSError is that, too."""
    path = out / FOLDER / STATE_NAME
    try:
        with path.open("rb") as file:
            content = file.read(STATE_SIZE_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unfit(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > STATE_SIZE_MAX:
        raise Unfit(f"{path} has over {STATE_SIZE_MAX:,} bytes")
    try:
        stated = json.loads(content)
        version, checksum = stated.pop("version"), stated.pop("checksum")
        if version != STATE_VERSION:
            raise Unfit(
                f"the earlier analysis left its state in version {version}, this is version {STATE_VERSION}"
            )
        if checksum != _checksum(stated):
            raise Unfit(f"{path} is damaged: its checksum is wrong")
        files = tuple(KeptFile(**one) for one in stated.pop("files"))
        return State(**stated | {"voids": tuple(stated["voids"])}, files=files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unfit(f"{path} is damaged: it is no state of an analysis") from None


def check_files(state: State, out: Path) -> None:
    """See that all that was left is there, and unchanged. Raises Unfit."""
    for file in state.files:
        try:
            is_same = measure(out / file.path) == (file.size, file.blake3)
        except OSError:
            is_same = False
        if not is_same:
            raise Unfit(f"{out / file.path} is missing, or is not as the earlier analysis left it")
    for name in (*BY_BRANCH, KEPT_ORDER):
        if not state.files_of(out, name):
            raise Unfit(f"the earlier analysis has no files of {name}")


def save_state(out: Path, state: State) -> None:
    """Write what is known of an analysis whose files lie there, as the last of it. Raises OSError."""
    if not state.unfit:
        state = State(**{**_cells(state), "files": tuple(_list_files(out))})
    stated: dict[str, Any] = json.loads(
        json.dumps(_cells(state) | {"files": [asdict(one) for one in state.files]})
    )
    (out / FOLDER).mkdir(exist_ok=True)
    path = out / FOLDER / STATE_NAME
    unnamed = path.with_suffix(".new")
    content = {"version": STATE_VERSION, **stated, "checksum": _checksum(stated)}
    unnamed.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(unnamed, path)


def measure(path: Path) -> tuple[int, str]:
    """A file's size and BLAKE3 (hex). Raises OSError."""
    hasher, size = blake3(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_SIZE):
            hasher.update(chunk)
            size += len(chunk)
    return size, hasher.hexdigest()


def _cells(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in ("basis", "verify", "unfit", "parts", "voids")}


def _checksum(stated: Mapping[str, Any]) -> str:
    return blake3(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def _list_files(out: Path) -> Iterator[KeptFile]:
    folders = [out / "tables" / name for name in BY_BRANCH] + [out / FOLDER / KEPT_ORDER]
    paths = [path for folder in folders for path in sorted(folder.glob("*.parquet"))]
    for path in (*paths, out / FOLDER / BRANCHES_NAME, out / FOLDER / VOIDS_NAME, out / DIGESTS_NAME):
        yield KeptFile(path.relative_to(out).as_posix(), *measure(path))


def read_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Batches of some columns of a Parquet file. Raises OSError, pyarrow's errors."""
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(columns=list(columns))
