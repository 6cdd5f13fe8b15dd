"""Bodies of the commits that members write in branches: posts, files, and compactions.

Posts, imported commits and files make timelines. What is said of documents stands in `protocol.formats.document_kinds`.
"""

from typing import Annotated

from msgspec import Meta

from protocol.codec import Wire
from protocol.ids import CommitId
from protocol.limits.formats import (
    FILE_COUNT_MAX,
    FILE_SIZE_MAX,
    GIVEN_UP_COUNT_MAX,
    NAME_SIZE_MAX,
    TEXT_SIZE_MAX,
    TIMESTAMP_MAX_MS,
)

Name = Annotated[str, Meta(min_length=1, max_length=NAME_SIZE_MAX)]
Text = Annotated[str, Meta(max_length=TEXT_SIZE_MAX)]
UnixMilliseconds = Annotated[int, Meta(ge=0, le=TIMESTAMP_MAX_MS)]


class Post(Wire, frozen=True, tag="post1"):
    """A text."""

    text: Text


class Imported(Wire, frozen=True, tag="imported1"):
    """A commit of another system: its id, author and time there (unix milliseconds, may be before 1970), its text."""

    source_id: Annotated[str, Meta(min_length=1, max_length=NAME_SIZE_MAX)]
    author: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    time: Annotated[int, Meta(ge=-TIMESTAMP_MAX_MS, le=TIMESTAMP_MAX_MS)]
    text: Text


class FileEntry(Wire, frozen=True):
    """Name of a file, and the size that its author states."""

    name: Name
    size: Annotated[int, Meta(ge=0, le=FILE_SIZE_MAX)]


class Files(Wire, frozen=True, tag="files1"):
    """Names the files that the commit's header adds, in its order. What the header removes needs no names."""

    added: Annotated[tuple[FileEntry, ...], Meta(max_length=FILE_COUNT_MAX)]


class Compaction(Wire, frozen=True, tag="compaction1"):
    """Lets go: replicas may erase bodies of content in its past that no document of the branch needs any more.

    Updates of the text whose commits it gives up, by the ids that these had first, say nothing any more.
    """

    given_up: Annotated[tuple[CommitId, ...], Meta(max_length=GIVEN_UP_COUNT_MAX)]
