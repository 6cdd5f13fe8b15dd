"""Threads of imported Scuttlebutt messages, as tangles built from links in their content.

Pure. A classic post links with `root` and `branch`; later applications state a place for each tangle under `tangles`,
by the tangle's name (ssbc's tangle convention): its root, and the tips that the author had seen. A kind made here
answers every question that native kinds do (`verifier.tangle_kinds`). That a text has the id under which it was imported
is checked; its signature was when it was imported.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from node.scuttlebutt.messages import ssb_id
from protocol.formats.content import Imported
from protocol.ids import BlockId, CommitId
from verifier.tangle_kinds import ReadCommit, TangleKind

THREAD: Final = "thread"
"""Name of the tangle that `root` and `branch` state, too."""


class _Place(msgspec.Struct, frozen=True):
    root: str | None = None
    previous: list[str] | None = None


class _Content(msgspec.Struct, frozen=True):
    root: object = None
    branch: object = None
    tangles: object = None


class _Message(msgspec.Struct, frozen=True):
    content: _Content


_DECODER: Final = msgspec.json.Decoder(_Message)


def find_place(text: str, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return root and predecessors of a message in the tangle of that name, as ids; None where it states none."""
    try:
        content = _DECODER.decode(text).content
        if isinstance(content.tangles, dict) and name in content.tangles:
            place = msgspec.convert(content.tangles[name], _Place)
            return None if place.root is None else (place.root, tuple(place.previous or (place.root,)))
    except (
        msgspec.DecodeError,
        ValueError,
        RecursionError,
    ):  # a box, or whatever a member has called a message
        return None
    if name != THREAD or not isinstance(content.root, str):
        return None
    branch = content.branch if isinstance(content.branch, list) else [content.branch]
    return content.root, tuple(one for one in branch if isinstance(one, str)) or (content.root,)


def source_of(commit: ReadCommit) -> str | None:
    """Return the id of the message that a commit keeps; None where it keeps none, or under another's id."""
    body = commit.body
    if not isinstance(body, Imported) or not body.source_id.startswith("%"):
        return None
    return body.source_id if ssb_id(body.text)[0] == body.source_id else None


def thread_kind(name: str, commits: Mapping[str, CommitId]) -> TangleKind:
    """Make the kind of tangles of that name; `commits` gives the commit of each imported message."""

    def is_candidate(commit: ReadCommit, root: ReadCommit) -> bool:
        place = _place_of(commit, name)
        return place is not None and place[0] == source_of(root)

    def recipe(commit: ReadCommit) -> tuple[CommitId, ...]:
        place = _place_of(commit, name)
        # What was not imported is named by what no commit is called: so it is waited for, as any missing cause.
        return tuple(commits.get(one) or CommitId(BlockId(one.encode())) for one in place[1]) if place else ()

    return TangleKind(name, is_candidate, recipe)


def _place_of(commit: ReadCommit, name: str) -> tuple[str, tuple[str, ...]] | None:
    return find_place(commit.body.text, name) if isinstance(commit.body, Imported) else None
