"""Calls: files. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Iterable, Mapping, Sequence

    from ravel.types.files import AddedFiles, FileList, FileView, ImportedWindow, ImportResult, RemovedFile

LIST_FILES: Final[Operation[FileList]] = Operation(
    "GET", "/branches/{branch}/files", "files.FileList", defaults={"after": 0, "limit": 100}
)
ADD_FILE: Final[Operation[FileView]] = Operation(
    "POST", "/branches/{branch}/files", "files.FileView", defaults={"name": ""}, takes_bytes=True
)
ADD_FILES: Final[Operation[AddedFiles]] = Operation(
    "POST", "/branches/{branch}/files/batch", "files.AddedFiles", takes_bytes=True, seconds_max=3600.0
)
GET_FILE: Final[Operation[bytes]] = Operation("GET", "/branches/{branch}/files/{file}")
REMOVE_FILE: Final[Operation[RemovedFile]] = Operation(
    "DELETE", "/branches/{branch}/files/{file}", "files.RemovedFile"
)
IMPORT_COMMITS: Final[Operation[ImportResult]] = Operation(
    "POST", "/branches/{branch}/import", "files.ImportResult", seconds_max=3600.0
)
LIST_IMPORTED: Final[Operation[ImportedWindow]] = Operation(
    "GET",
    "/branches/{branch}/imported",
    "files.ImportedWindow",
    defaults={"source": "", "after": 0, "limit": 1000},
)


class FilesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_files(self, branch: str, *, after: int = 0, limit: int = 100) -> FileList:
        """List the files of a branch, window by window."""
        return self._call(LIST_FILES, {"branch": branch, "after": after, "limit": limit})

    def add_file(self, branch: str, content: bytes | Iterable[bytes], *, name: str = "") -> FileView:
        """Add a file to a branch. It is durable when the answer comes."""
        return self._call(ADD_FILE, {"branch": branch, "name": name}, content)

    def add_files(self, branch: str, content: bytes | Iterable[bytes]) -> AddedFiles:
        """Add many files to a branch, all or none. They are durable when the answer comes.

        At most 1024 files, no two of one name. A request may be sent again: what the branch has under the same
        name and with the same content is passed over.
        """
        return self._call(ADD_FILES, {"branch": branch}, content)

    def remove_file(self, branch: str, file: str) -> RemovedFile:
        """Remove a file from a branch. Nodes that have its content keep it."""
        return self._call(REMOVE_FILE, {"branch": branch, "file": file})

    def import_commits(self, branch: str, items: Sequence[Mapping[str, object]], source: str) -> ImportResult:
        """Import a batch of another system's commits."""
        return self._call(IMPORT_COMMITS, {"branch": branch, "items": items, "source": source})

    def list_imported(
        self, branch: str, *, source: str = "", after: int = 0, limit: int = 1000
    ) -> ImportedWindow:
        """List the ids that this node imported from a source."""
        return self._call(LIST_IMPORTED, {"branch": branch, "source": source, "after": after, "limit": limit})
