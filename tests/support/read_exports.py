"""Reads a whole export of a folder, as the client does in steps."""

from collections.abc import Callable
from pathlib import Path

from ravel.exports.checking import Export, check_export, list_export, read_manifest


def read_export(
    folder: Path,
    *,
    with_blocks: bool = False,
    with_bodies: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Export:
    """Check an export's manifest and every listed part; parts of blocks and bodies only on request.

    Raises ExportError.

    Several parts are checked at once, and `progress` gets reports of long checks.
    """
    listed = list_export(str(folder), read_manifest(folder), with_blocks=with_blocks, with_bodies=with_bodies)
    return check_export(listed, progress=progress)
