"""Types of answers: files."""

from typing import Annotated, NotRequired, TypedDict

from ravel.types.commits import Origin
from ravel.types.values import ByteCount, Count, Id, PersonText, UnixSeconds, means, one_of

NextAfter = Annotated[int | None, means("The `after` of the next window. Null: there is none.")]


class FileView(TypedDict):
    """A file of a branch. Name and size are as its author states them."""

    file: Annotated[Id, means("The id of the object.")]
    name: str
    size: ByteCount | None
    commit: Id
    author: Id
    author_name: PersonText
    origin: NotRequired[Annotated[Origin, means("Author of a file that a merge carried.")]]
    time: UnixSeconds
    relays: Annotated[
        int,
        means("Relays of this node that have said to keep the content. 0: none, as far as is known.", ge=0),
    ]
    place: NotRequired[
        Annotated[
            str,
            one_of(
                "only_here", "here", "away", "unknown",
                description=(
                    "Where the content is, where it is asked for. `only_here`: on this node, and no other is known to have "
                    "it. `away`: not or not wholly here, and it comes when the file is opened. `unknown`: not looked at, "
                    "since the files before it in the window have so many blocks."
                )
            )
        ]
    ]  # fmt: skip


class AddedFile(FileView):
    """A file of a request to add many."""

    is_new: Annotated[bool, means("False: the branch had that name with that content already.")]


class AddedFiles(TypedDict):
    """Files that are on the branch, all durable."""

    branch: Id
    files: Annotated[list[AddedFile], means("In the order of the request.")]


class FileRefusal(TypedDict):
    """A relay takes no more files of a branch."""

    relay: Id
    reason: Annotated[
        str, means("A code: `account_full`, `peer_full`, `topic_full`, `relay_full`, `not_known`...")
    ]


class FileList(TypedDict):
    """A window of a branch's files."""

    files: list[FileView]
    next: NextAfter
    uses_relays: Annotated[bool, means("True if this node has relays keep all that it follows.")]
    refusals: Annotated[list[FileRefusal], means("Of connected relays, as they said last.")]


class RemovedFile(TypedDict):
    """A file that was removed from a branch."""

    commit: Id
    file: Id
    names: list[str]


class ImportResult(TypedDict):
    """Result of a batch of files."""

    imported: Annotated[int, means("How many items became commits.", ge=0)]
    already: Annotated[int, means("How many items were imported before.", ge=0)]
    heads: Annotated[Count, means("How many heads the branch has now.")]


class ImportedWindow(TypedDict):
    """A window of what was imported from a source."""

    items: Annotated[list[str], means("Ids, in the order of their import.")]
    next: NextAfter
