"""A second reader of the logs of Delta Lake that exports write: no library, and none of the exporter's code."""

import io
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq


@dataclass
class DeltaTable:
    """A table as its log has it at a version."""

    version: int
    sizes: dict[str, int] = field(default_factory=dict)  # of parts, by their paths in the export
    manifest: str = ""  # the checksum of the manifest that the version is of


def read_delta(
    table: str, names: Collection[str], read: Callable[[str], bytes], version: int | None = None
) -> DeltaTable | None:
    """A table of an export with these files, at a version or the last; None where it has no log.

    Fails where a version is missing, or a part that it lists.
    """
    folder = f"kept/{table}/_delta_log"
    files = [name.removeprefix(f"{folder}/") for name in names if name.startswith(f"{folder}/")]
    versions = sorted(int(one[:20]) for one in files if re.fullmatch(r"\d{20}\.json", one))
    if not versions:
        return None
    last = versions[-1] if version is None else version
    checkpoints = [int(one[:20]) for one in files if re.fullmatch(r"\d{20}\.checkpoint\.parquet", one)]
    start = max((one for one in checkpoints if one <= last), default=0)
    adds: dict[str, Any] = {}
    if start:
        for row in pq.read_table(io.BytesIO(read(f"{folder}/{start:020}.checkpoint.parquet"))).to_pylist():
            if row["add"] is not None:
                adds[row["add"]["path"]] = row["add"]
    manifest = ""
    for number in range(start, last + 1):
        for line in read(f"{folder}/{number:020}.json").splitlines():
            ((kind, said),) = json.loads(line).items()
            if kind == "add":
                adds[said["path"]] = said
            elif kind == "remove" and not (start and number == start):  # which the checkpoint has done
                del adds[said["path"]]
            elif kind == "commitInfo":
                manifest = said["ravelManifest"]
    made = DeltaTable(last, {f"kept/{table}/{path}": add["size"] for path, add in adds.items()}, manifest)
    for path, size in made.sizes.items():
        assert path in names, f"{path} is missing, and version {last} lists it"
        assert len(read(path)) == size, path
    return made
