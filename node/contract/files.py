"""Files of branches, and imports of other systems' commits."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import READ_BRANCH, WRITE_BRANCH
from node.contract.endpoint import (
    LONG_WRITE_SECONDS,
    WRITE_ERRORS,
    Endpoint,
    HeaderParameter,
    QueryParameter,
    limit_parameter,
)
from node.contract.values import Name, Request, Text
from protocol.limits.formats import FILE_SIZE_MAX, NAME_SIZE_MAX
from protocol.limits.users import (
    FILE_BATCH_COUNT_MAX,
    FILE_BLOCKS_LOOKED_MAX,
    FILE_WINDOW_MAX,
    IMPORT_BATCH_COUNT_MAX,
    IMPORTED_SECONDS_MAX,
    IMPORTED_WINDOW_MAX,
)
from ravel.characters import name_fault
from ravel.types.files import AddedFiles, FileList, FileView, ImportedWindow, ImportResult, RemovedFile

_AFTER: Final = QueryParameter(
    name="after", type=int, default=0, description="The `next` of the window before. 0: from the start."
)


class ImportItem(Request, frozen=True):
    """One commit of another system."""

    id: Name
    parents: Annotated[tuple[Name, ...], Meta(max_length=1000, description="Ids of earlier items.")]
    author: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    time: Annotated[int, Meta(ge=-IMPORTED_SECONDS_MAX, le=IMPORTED_SECONDS_MAX, description="Unix seconds.")]
    text: Text


class ImportRequest(Request, frozen=True):
    """Imports commits. A batch may be sent again: items that were imported are passed over."""

    items: Annotated[
        list[ImportItem], Meta(max_length=IMPORT_BATCH_COUNT_MAX, description="Parents before children.")
    ]
    source: Annotated[Name, Meta(description="The system whose ids these are.")]


class FileHead(Request, frozen=True):
    """Says what follows it in the body: the content of one file."""

    name: Annotated[
        Name,
        Meta(
            description=(
                "A path by `/` from where the files lie together, without controls. No part of it is empty, `.` or `..`."
            )
        ),
    ]
    size: Annotated[
        int, Meta(ge=0, le=FILE_SIZE_MAX, description="Bytes of the content, which follows the line.")
    ]


LIST_FILES: Final = Endpoint(
    name="list_files",
    method="GET",
    path="/branches/{branch}/files",
    stability="stable",
    scopes=READ_BRANCH,
    summary="List the files of a branch, window by window.",
    query=(
        _AFTER,
        limit_parameter(FILE_WINDOW_MAX),
        QueryParameter(
            name="places",
            type=bool,
            default=0,
            description=f"Say where the content of each file is. Costs O(blocks), at most {FILE_BLOCKS_LOOKED_MAX:,}.",
        ),
    ),
    answer=FileList,
)
ADD_FILE: Final = Endpoint(
    name="add_file",
    method="POST",
    path="/branches/{branch}/files",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Add a file to a branch. It is durable when the answer comes.",
    query=(QueryParameter(name="name", type=str, default="", description="The file's name."),),
    takes_bytes=True,
    answer=FileView,
    errors=WRITE_ERRORS,
)
ADD_FILES: Final = Endpoint(
    name="add_files",
    method="POST",
    path="/branches/{branch}/files/batch",
    scopes=WRITE_BRANCH,
    summary="Add many files to a branch, all or none. They are durable when the answer comes.",
    takes_bytes=True,
    entry=FileHead,
    answer=AddedFiles,
    seconds_max=LONG_WRITE_SECONDS,
    errors=WRITE_ERRORS,
    details=(
        f"At most {FILE_BATCH_COUNT_MAX} files, no two of one name. A request may be sent again: what the branch has "
        "under the same name and with the same content is passed over."
    ),
)
GET_FILE: Final = Endpoint(
    name="get_file",
    method="GET",
    path="/branches/{branch}/files/{file}",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Read a file, whole or one range of its bytes.",
    headers=(
        HeaderParameter("Range", "One range of bytes (RFC 9110). The answer is 206, or 416 behind the end."),
        HeaderParameter("If-Range", "The `ETag` of an earlier answer; the whole file where it differs."),
    ),
    answer=bytes,
    errors=("incomplete", "bad_input", "not_permitted"),
    details="`ETag` is the file's id; below 16 bytes more follows behind a `-`, since contents so small may share an id.",
)
REMOVE_FILE: Final = Endpoint(
    name="remove_file",
    method="DELETE",
    path="/branches/{branch}/files/{file}",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Remove a file from a branch. Its content stays on the nodes that have it.",
    answer=RemovedFile,
    errors=WRITE_ERRORS,
)
IMPORT_COMMITS: Final = Endpoint(
    name="import_commits",
    method="POST",
    path="/branches/{branch}/import",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Import a batch of another system's commits.",
    request=ImportRequest,
    answer=ImportResult,
    seconds_max=LONG_WRITE_SECONDS,
    errors=(*WRITE_ERRORS, "unknown_parent"),
)
LIST_IMPORTED: Final = Endpoint(
    name="list_imported",
    method="GET",
    path="/branches/{branch}/imported",
    stability="stable",
    scopes=READ_BRANCH,
    summary="List the ids that this node imported from a source.",
    query=(
        QueryParameter(name="source", type=str, default="", description="The source of the import."),
        _AFTER,
        limit_parameter(IMPORTED_WINDOW_MAX, default=1000),
    ),
    answer=ImportedWindow,
)


def find_name_fault(name: str) -> str:
    """Return what keeps a text from being a file's name, or an empty text."""
    if not 0 < len(name) <= NAME_SIZE_MAX:
        return f"a file's name has 1 to {NAME_SIZE_MAX} characters"
    fault = name_fault(name)
    return f"a file's name {fault}" if fault else ""


def find_path_fault(name: str) -> str:
    """Return the fault of a text as the name of one of many files; empty if it has none.

    Such names are paths. Who writes the files into a folder by them must not be led out of it.
    """
    fault = find_name_fault(name)
    if not fault and not {"", ".", ".."}.isdisjoint(name.split("/")):
        return "no part of a file's path is empty, `.` or `..`"
    return fault
