"""Collaborative texts of branches: Yjs updates pushed and pulled by editors, merged in worker processes.

Every update is tried before it is written. One that came from elsewhere and that cannot be taken stays in the timeline;
the text passes it over and counts it. From time to time a push also writes a snapshot: what the smaller standing
updates come to, as one.
"""

import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import structlog
import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commit
from node.content.document_operations import DocumentOperationReader, deps_of, not_here
from node.contract.documents import TextPush, TextView
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.sync.hub import Hub
from protocol.document_kinds import TEXT, TEXT_UPDATE_SIZE_MAX, TextSnapshot, TextUpdate
from protocol.limits.formats import DEP_COUNT_MAX
from protocol.limits.users import DOCUMENT_SIZE_MAX, TEXT_MERGE_SECONDS, TEXT_SNAPSHOT_AFTER, TEXT_WORKERS_MAX
from protocol.text import id_text
from storage.commits.commits import load_rows
from storage.repos.repos import Branch
from verifier.documents import DocumentCommit, ErasedValues, TextState, pass_over_missing, reduce_text

log = structlog.get_logger()

_WORKER: Final = Path(__file__).with_name("text_worker.py")


class Merged(msgspec.Struct, frozen=True, array_like=True):
    """What the worker answers: see `text_worker.merge`."""

    taken: list[bool]
    update: bytes
    update_before: bytes
    text: str | None


class Texts:
    """Pushes to and pulls from the texts of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._reader = DocumentOperationReader(hub.replica)
        self._merging = trio.CapacityLimiter(TEXT_WORKERS_MAX)

    async def push(self, branch: str, update: bytes) -> TextPush:
        """Write a Yjs update (format v1) that can be taken and says something new; durable when it returns.

        Raises ServiceError `bad_input`, `too_large`, `not_permitted`, `incomplete`.
        """
        target = self._find_branch(branch)
        if target.topic_seed is None:  # before it is merged
            raise ServiceError(
                "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
            )
        state = await self._hub.run_blocking(self._load, target)
        merged = await self._merge([*map(_update_of, state.standing), update])
        if not merged.taken[-1]:
            raise ServiceError(
                "bad_input",
                "that is no Yjs update of format v1 that goes with the text",
                "send what a Yjs editor encodes: encodeStateAsUpdate, or the events of the document",
            )
        if merged.update == merged.update_before:
            return {"branch": id_text(target.branch_id), "commit": None, "snapshot": None}
        written = await write_commit(self._hub, self._author, target, TextUpdate(update))
        taken = [one for one, is_taken in zip(state.standing, merged.taken[:-1], strict=True) if is_taken]
        return {
            "branch": id_text(target.branch_id),
            "commit": id_text(written.commit_id),
            "snapshot": await self._write_snapshot(target, taken, after=TEXT_SNAPSHOT_AFTER),
        }

    async def pull(self, branch: str, root: str | None) -> TextView:
        """The whole text as one update, and (with `root`) the plain text of the root type called so.

        Raises ServiceError `bad_input`, `too_large`, `incomplete`.
        """
        target = self._find_branch(branch)
        state = await self._hub.run_blocking(self._load, target)
        merged = await self._merge([*map(_update_of, state.standing)], root)
        if root is not None and merged.text is None:
            raise ServiceError(
                "bad_input", f"the root {root!r} cannot be shown as text", "pull the update, and open that"
            )
        return {
            "branch": id_text(target.branch_id),
            "update": b64encode(merged.update).decode(),
            "updates": len(merged.taken),
            "refused": merged.taken.count(False),
            "passed_over": state.passed_over,
            "text": merged.text,
        }

    async def snapshot(self, branch_text: str, *, without_missing: bool = False) -> str | None:
        """Write a snapshot of what stands, where it is more than one update; its commit's id.

        `without_missing`, it also stands for updates that are not here, as if these said nothing.
        """
        branch = self._find_branch(branch_text)
        missing = await self._hub.run_blocking(self._find_missing, branch) if without_missing else ()
        state = await self._hub.run_blocking(self._load, branch, missing)
        if len(state.standing) < 2 and not missing:
            return None
        merged = await self._merge([*map(_update_of, state.standing)])
        taken = [one for one, is_taken in zip(state.standing, merged.taken, strict=True) if is_taken]
        return await self._write_snapshot(branch, taken, after=3, missing=missing)

    async def _write_snapshot(
        self,
        branch: Branch,
        standing: Sequence[DocumentCommit],
        *,
        after: int,
        missing: Sequence[DocumentCommit] = (),
    ) -> str | None:
        """The snapshot's id, if one was due: at least half of `after` updates fit into one, of those that stand.

        It also names those that are `missing`; then one is due.
        """
        after = 0 if missing else after
        missing = missing[:DEP_COUNT_MAX]
        if len(standing) + 1 < after:
            return None
        chosen: list[DocumentCommit] = []
        size = 0
        for one in sorted(standing, key=lambda one: (len(_update_of(one)), one.place)):
            size += len(_update_of(one))
            if size > TEXT_UPDATE_SIZE_MAX or len(chosen) + len(missing) == DEP_COUNT_MAX:
                break
            chosen.append(one)
        if 2 * len(chosen) < after:
            return None
        chosen.sort(key=lambda one: one.place)
        merged = await self._merge([*map(_update_of, chosen)])
        if not all(merged.taken) or len(merged.update) > TEXT_UPDATE_SIZE_MAX:
            return None
        named = [*chosen, *missing]
        body = TextSnapshot(merged.update, tuple(dict.fromkeys(one.name for one in named)))
        draft = Draft(body, deps=deps_of(named, await self._hub.run_blocking(self._own_depth, branch)))
        written = await write_commit(self._hub, self._author, branch, draft)
        return id_text(written.commit_id)

    async def _merge(self, updates: list[bytes], root: str | None = None) -> Merged:
        async with self._merging:
            return await self._hub.run_blocking(run_worker, updates, root)

    # --- in threads ---

    def _own_depth(self, branch: Branch) -> int:
        with self._hub.replica.database.read() as connection:
            return self._reader.depths(connection, branch)[branch.num]

    def _find_missing(self, branch: Branch) -> tuple[DocumentCommit, ...]:
        """Updates that would stand and are not here."""
        with self._hub.replica.database.read() as connection:
            said = [one for one, _ in self._reader.read(connection, branch, TEXT)]
        away = {one.name for one in said if one.body is None}
        return tuple(one for one in reduce_text(pass_over_missing(TEXT, said)).standing if one.name in away)

    def _load(self, branch: Branch, missing: Sequence[DocumentCommit] = ()) -> TextState:
        """What stands, but for what is `missing`."""
        names = {one.name for one in missing}
        with self._hub.replica.database.read() as connection:
            try:
                said = self._reader.read(connection, branch, TEXT)
                state = reduce_text(one for one, _ in said if one.name not in names)
            except ErasedValues as error:
                raise not_here(error) from None
            rows = load_rows(connection, [one.place[-1] for one in state.standing])
            ordered = [rows[one.place[-1]] for one in state.standing]
            standing: list[DocumentCommit] = []
            size = 0
            for one, encoded_size in self._reader.read_updates(connection, state.standing, ordered):
                standing.append(one)
                size += encoded_size
                if size > DOCUMENT_SIZE_MAX:
                    raise ServiceError(
                        "too_large",
                        f"the text's updates have over {DOCUMENT_SIZE_MAX} bytes",
                        "begin another branch with the text as it is",
                    )
        return replace(state, standing=tuple(standing))


def _update_of(one: DocumentCommit) -> bytes:
    assert isinstance(one.body, TextUpdate | TextSnapshot), "texts are made of these"
    return one.body.update


def run_worker(updates: list[bytes], root: str | None) -> Merged:
    """What `text_worker.merge` gives in a process of its own. Raises ServiceError `bad_input` where that fails."""
    try:
        finished = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],  # -P: never a module of the current folder
            input=msgspec.msgpack.encode((updates, root)),
            capture_output=True,
            timeout=TEXT_MERGE_SECONDS,
            check=True,
            start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else b""
        log.error("merging a text failed", error=str(error), said=said[-1000:].decode(errors="replace"))
        raise ServiceError("bad_input", f"the text's updates could not be merged: {error}") from None
    return msgspec.msgpack.decode(finished.stdout, type=Merged)
