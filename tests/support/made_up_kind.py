"""A kind of document that only a test has, added as a new kind would be: its bodies and a line of the table, its endpoints.

A process imports this before anything else of the project, so that all lists are derived from the longer table.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Final, Self, TypedDict

from msgspec import Meta

import protocol.formats.document_kinds as kinds_module
from protocol.codec import Wire
from protocol.formats.document_kinds import (
    DOCUMENT_KINDS,
    Replaced,
    Replaces,
    ValuesEdit,
    ValuesSnapshot,
    by_commit,
    values_kind,
)
from protocol.ids import CommitId

Thing = Annotated[str, Meta(max_length=20)]
Number = Annotated[int, Meta(ge=0, le=1000)]


class Tally(Wire, frozen=True):
    """A thing and its number."""

    thing: Thing
    number: Number


class TallyEdit(ValuesEdit, frozen=True, tag="tally1"):
    """Counts things, and strikes others."""

    counted: Annotated[tuple[Tally, ...], Meta(max_length=2)]
    struck: Annotated[tuple[Thing, ...], Meta(max_length=2)]
    replaces: Replaces

    @classmethod
    def make(
        cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: Mapping[str, Iterable[CommitId]]
    ) -> Self:
        """An edit that says just this."""
        counted = tuple(Tally(thing, int(number)) for thing, number in there.items())
        return cls(counted, gone, by_commit((*there, *gone), replaces))

    def operation_keys(self) -> tuple[str, ...]:
        """What is counted, then what is struck."""
        return (*(one.thing for one in self.counted), *self.struck)

    def stated_replaces(self) -> tuple[Replaced, ...]:
        """Its field."""
        return self.replaces

    def stated_values(self) -> dict[str, str | None]:
        """The number of each thing that is there."""
        return dict[str, str | None](dict.fromkeys(self.struck)) | {
            one.thing: str(one.number) for one in self.counted
        }


class TalliesOfCommit(Wire, frozen=True):
    """What one commit counted, and nobody replaced."""

    name: CommitId
    tallies: tuple[Tally, ...]


class TallySnapshot(ValuesSnapshot, frozen=True, tag="tally-snapshot1"):
    """All numbers that stand, of things from `first` to before `end`."""

    first: Thing
    end: Thing | None
    operations: tuple[TalliesOfCommit, ...]

    @classmethod
    def make(
        cls, first: str, end: str | None, operations: Iterable[tuple[CommitId, Mapping[str, str]]]
    ) -> Self:
        """A snapshot of this range."""
        return cls(
            first,
            end,
            tuple(
                TalliesOfCommit(name, tuple(Tally(thing, int(number)) for thing, number in values.items()))
                for name, values in operations
            ),
        )

    def stated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, thing, number) of each."""
        return (
            (one.name, tally.thing, str(tally.number)) for one in self.operations for tally in one.tallies
        )


TALLY: Final = values_kind("tally", TallyEdit, TallySnapshot, 2)
# What the line in the module does. It is not assigned there, because the name is final.
vars(kinds_module)["DOCUMENT_KINDS"] = (*DOCUMENT_KINDS, TALLY)

# From here on: node/contract/documents.py, whose imports derive their lists from the table.
from node.contract import documents as documents_module  # noqa: E402  # below the table, as said above
from node.contract.access import READ_BRANCH, WRITE_BRANCH  # noqa: E402  # below the table, as said above
from node.contract.document_values import EDIT_ERRORS, READ_ERRORS, WINDOW  # noqa: E402  # below the table, as said above
from node.contract.endpoint import Endpoint  # noqa: E402  # below the table, as said above
from node.contract.values import Request  # noqa: E402  # below the table, as said above
from ravel.types.document_values import Commits, DocumentSnapshot, NextOffset  # noqa: E402  # below the table, as said above
from ravel.types.values import Count  # noqa: E402  # below the table, as said above
from ravel.types.values import Id as IdText  # noqa: E402  # below the table, as said above


class TallyRequest(Request, frozen=True):
    """Counts things, and strikes others."""

    count: dict[Thing, Number]
    strike: list[Thing]


class TallyWindow(TypedDict):
    """A window of a tally."""

    branch: IdText
    counted: dict[str, int]
    total: Count
    next: NextOffset


class TallyResult(TypedDict):
    """What was written to a tally."""

    branch: IdText
    commits: Commits
    counted: list[str]
    struck: list[str]


_ENTRIES: Final = (
    Endpoint(
        name="show_tally",
        method="GET",
        path="/branches/{branch}/tally",
        scopes=READ_BRANCH,
        summary="Show a window of a branch's tally.",
        query=WINDOW,
        answer=TallyWindow,
        errors=READ_ERRORS,
    ),
    Endpoint(
        name="edit_tally",
        method="POST",
        path="/branches/{branch}/tally",
        scopes=WRITE_BRANCH,
        summary="Count things, and strike others.",
        request=TallyRequest,
        answer=TallyResult,
        errors=EDIT_ERRORS,
    ),
    Endpoint(
        name="snapshot_tally",
        method="POST",
        path="/branches/{branch}/tally/snapshots",
        scopes=WRITE_BRANCH,
        summary="Compact a tally's history.",
        answer=DocumentSnapshot,
        errors=EDIT_ERRORS,
    ),
)
vars(documents_module).update({one.name.upper(): one for one in _ENTRIES})

# From here on: node/api/value_documents.py and node/api/answers.py.
from node.api import answers as answers_module  # noqa: E402  # below the table, as said above
from node.content.documents import Documents  # noqa: E402  # below the table, as said above


async def show_tally(documents: Documents, branch: str, offset: int, limit: int) -> TallyWindow:
    """A window of the branch's tally. Of what several counted at the same time, the highest number holds."""
    window = await documents.read_window(TALLY, branch, offset, limit)
    counted = {
        thing: max(int(operation.value or 0) for operation in entry.values) for thing, entry in window.entries
    }
    return {"counted": counted, **window.fields}


async def edit_tally(
    documents: Documents, branch: str, count: dict[str, int], strike: list[str]
) -> TallyResult:
    """Count things, and strike others."""
    wanted: dict[str, str | None] = dict.fromkeys(strike)
    written = await documents.edit(
        TALLY, branch, wanted | {thing: str(number) for thing, number in count.items()}
    )
    return {
        "branch": written.branch,
        "commits": written.commits,
        "counted": written.there,
        "struck": written.gone,
    }


async def snapshot_tally(documents: Documents, branch: str) -> DocumentSnapshot:
    """Say again what the branch's tally holds."""
    return await documents.snapshot(TALLY, branch)


def _answer_tally(documents: Documents) -> tuple[answers_module.Answer, ...]:
    show, edit, snapshot = _ENTRIES
    return (
        answers_module.Answer(show, partial(show_tally, documents)),
        answers_module.Answer(edit, partial(edit_tally, documents)),
        answers_module.Answer(snapshot, partial(snapshot_tally, documents)),
    )


_answer_others = answers_module._document_answers
vars(answers_module)["_document_answers"] = lambda documents: (
    *_answer_others(documents),
    *_answer_tally(documents),
)
