"""Collaborative texts of branches: Yjs updates pushed and pulled by editors, merged in worker processes.

Every update is tried before it is written. One that came from elsewhere and that cannot be taken stays in the timeline;
the text passes it over and counts it. From time to time a push also writes a snapshot: what the smaller standing
updates come to, as one.
"""

import subprocess
import sys
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
import structlog
import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commit
from node.content.document_operations import DocumentOperationReader, deps_of, not_here
from node.content.gathering import Gathering
from node.contract.documents import TextPush, TextView
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.sync.hub import Hub
from protocol.document_kinds import TEXT, TEXT_UPDATE_SIZE_MAX, TextSnapshot, TextUpdate
from protocol.ids import CommitId
from protocol.limits.formats import DEP_COUNT_MAX
from protocol.limits.users import (
    DOCUMENT_SIZE_MAX,
    TEXT_MERGE_SECONDS,
    TEXT_SNAPSHOT_AFTER,
    TEXT_WORKERS_MAX,
    TEXTS_KNOWN_SIZE_MAX,
)
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
    news: bytes
    text: str | None
    lacking: bytes | None
    clear: list["ClearText"] | None


class ClearText(msgspec.Struct, frozen=True, array_like=True):
    """One of the texts that a branch has: the name of its root, its title or "", and what it says."""

    root: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TextVersion:
    """A text as it stands: the commits that it is made of, by name, and what they come to."""

    standing: Mapping[CommitId, DocumentCommit]
    update: bytes
    refused: frozenset[CommitId]
    passed_over: int

    @property
    def taken(self) -> list[DocumentCommit]:
        """The commits whose updates could be taken."""
        return [one for name, one in self.standing.items() if name not in self.refused]

    @property
    def size(self) -> int:
        """Bytes that are held of it."""
        return len(self.update) + sum(len(update_of(one)) for one in self.standing.values())


@dataclass(slots=True)
class _Known:
    """What is remembered of a branch's text: the version at a count of changes, and what it is once a commit stands too."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    count: int = -1
    version: TextVersion | None = None
    foreseen: tuple[frozenset[CommitId], bytes] | None = None


class Texts:
    """Pushes to and pulls from the texts of branches, which are named as `find_branch` takes them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        find_branch: Callable[[str], Branch],
        has_company: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """`has_company` tells of a branch, by its number, whether somebody else has its text open now."""
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._has_company = has_company
        self._reader = DocumentOperationReader(hub.replica)
        self._merging = trio.CapacityLimiter(TEXT_WORKERS_MAX)
        self._known: OrderedDict[int, _Known] = OrderedDict()  # by the branch's number, the latest last
        self._gathering: dict[int, Gathering[TextPush]] = {}  # by the branch's number

    async def push(self, branch: str, update: bytes, gather: bool = False) -> TextPush:
        """Write a Yjs update (format v1) that can be taken and says something new; durable when it returns.

        `gather`, it waits a moment for others, and all become one commit.
        Raises ServiceError `bad_input`, `too_large`, `not_permitted`, `incomplete`, `busy`.
        """
        target = self._find_branch(branch)
        if target.topic_seed is None:  # before it is merged
            raise ServiceError(
                "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
            )
        if not gather:
            [pushed] = await self._push_all(target, [update])
            if isinstance(pushed, ServiceError):
                raise pushed
            return pushed
        gathering = self._gathering.get(target.num)
        if gathering is None:
            gathering = self._gathering[target.num] = Gathering(lambda: self._has_company(target.num))

        async def write(updates: Sequence[bytes]) -> Sequence[TextPush | Exception]:
            return await self._push_all(target, updates)

        return await gathering.run(update, write)

    async def _push_all(self, target: Branch, updates: Sequence[bytes]) -> list[TextPush | ServiceError]:
        """Write what these updates say that is new, as one commit if it fits; what became of each, in order."""
        version = await self.version(target)
        merged = await self._merge([version.update, *updates], new_count=len(updates))
        taken = merged.taken[1:]
        commit: str | None = None
        snapshot: str | None = None
        if merged.update != merged.update_before:
            good = [update for update, is_taken in zip(updates, taken, strict=True) if is_taken]
            together = good[0] if len(good) == 1 else merged.news
            for said in [together] if len(together) <= TEXT_UPDATE_SIZE_MAX else good:
                written = await write_commit(self._hub, self._author, target, TextUpdate(said))
                commit = id_text(written.commit_id)
                if said is together:
                    self._foresee(target, version, written.commit_id, merged.update)
            try:
                snapshot = await self._write_snapshot(target, version.taken, after=TEXT_SNAPSHOT_AFTER)
            except Exception:  # the push is durable: its answer must not say that it failed
                log.exception("no snapshot of a text was written", branch=id_text(target.branch_id))
        pushed: TextPush = {"branch": id_text(target.branch_id), "commit": commit, "snapshot": snapshot}
        refusal = ServiceError(
            "bad_input",
            "that is no Yjs update of format v1 that goes with the text",
            "send what a Yjs editor encodes: encodeStateAsUpdate, or the events of the document",
        )
        return [pushed if is_taken else refusal for is_taken in taken]

    async def pull(self, branch: str, root: str | None) -> TextView:
        """The whole text as one update, and (with `root`) the plain text of the root type called so.

        Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`.
        """
        target = self._find_branch(branch)
        version, merged = await self._look(target, root)
        if root is not None and merged is None:
            merged = await self._merge([version.update], root=root)
        text = None if merged is None else merged.text
        if root is not None and text is None:
            raise ServiceError(
                "bad_input", f"the root {root!r} cannot be shown as text", "pull the update, and open that"
            )
        return {
            "branch": id_text(target.branch_id),
            "update": b64encode(version.update).decode(),
            "updates": len(version.standing),
            "refused": len(version.refused),
            "passed_over": version.passed_over,
            "text": text,
        }

    async def lacking(self, update: bytes, vector: bytes) -> bytes:
        """What an editor lacks of a merged text whose state vector this is. Raises ServiceError `bad_input`."""
        if not vector:
            return update
        found = (await self._merge([update], vector=vector)).lacking
        if found is None:
            raise ServiceError(
                "bad_input", "that is no state vector of Yjs", "send encodeStateVector, or none"
            )
        return found

    async def adds(self, old: bytes, new: bytes) -> bool:
        """Whether a merged text has all that another had: an editor of the old one has only to take the new one in."""
        return (await self._merge([old, new])).update == new

    async def render(self, branch: Branch, size: int) -> tuple[CommitId | None, list[ClearText]]:
        """All texts of the branch, `size` characters of them at most, and the last commit that they are made of.

        None: the branch says nothing of its own, and its text is that of the branch that it continues.
        Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`.
        """
        known = self._remember(branch)
        async with known.lock:
            # Always asked of the store: what became void counts no more before `changes` tells of it.
            state = await self._hub.run_blocking(self._load, branch)
            last = max((one.place for one in state.standing), default=None)
            if last is None or last[0] != await self._hub.run_blocking(self._own_depth, branch):
                return None, []
            version, _ = await self._merge_state(state, known, None)
        return last[-1], (await self._merge([version.update], clear_size=size)).clear or []

    async def version(self, branch: Branch) -> TextVersion:
        """The text as it stands. Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`."""
        return (await self._look(branch))[0]

    async def _look(self, branch: Branch, root: str | None = None) -> tuple[TextVersion, Merged | None]:
        """The text as it stands; and the answer of the worker, with the text of a root, where one had to be asked."""
        known = self._remember(branch)
        merged: Merged | None = None
        async with known.lock:  # what two ask for at once is merged once
            count = self._hub.changes.count
            if known.version is None or known.count != count:
                state = await self._hub.run_blocking(self._load, branch)
                known.version, merged = await self._merge_state(state, known, root)
                known.count, known.foreseen = count, None
            version = known.version
        self._forget_surplus()
        return version, merged

    async def _merge_state(
        self, state: TextState, known: _Known, root: str | None
    ) -> tuple[TextVersion, Merged | None]:
        """What the standing updates come to. What was merged before is not merged again, where it was taken whole."""
        standing = {one.name: one for one in state.standing}
        passed_over, before = state.passed_over, known.version
        if before is not None and not before.refused:
            if known.foreseen is not None and known.foreseen[0] == standing.keys():
                return TextVersion(standing, known.foreseen[1], frozenset(), passed_over), None
            if standing.keys() == before.standing.keys():
                return TextVersion(standing, before.update, frozenset(), passed_over), None
            if standing.keys() > before.standing.keys():
                news = [update_of(one) for name, one in standing.items() if name not in before.standing]
                merged = await self._merge([before.update, *news], root=root)
                if all(merged.taken):  # else the order counts, which is the same on all nodes
                    return TextVersion(standing, merged.update, frozenset(), passed_over), merged
        merged = await self._merge([*map(update_of, standing.values())], root=root)
        taken = zip(standing, merged.taken, strict=True)
        refused = frozenset(name for name, is_taken in taken if not is_taken)
        return TextVersion(standing, merged.update, refused, passed_over), merged

    def _foresee(self, branch: Branch, version: TextVersion, commit: CommitId, update: bytes) -> None:
        """Note what the text comes to with one commit more: it need not be merged again."""
        if not version.refused:
            self._remember(branch).foreseen = (frozenset({*version.standing, commit}), update)

    def _remember(self, branch: Branch) -> _Known:
        known = self._known.setdefault(branch.num, _Known())
        self._known.move_to_end(branch.num)
        return known

    def _forget_surplus(self) -> None:
        """Remember the texts that were asked for last, as far as there is room."""
        size = 0
        for num, known in reversed(self._known.copy().items()):
            size += 0 if known.version is None else known.version.size
            if size > TEXTS_KNOWN_SIZE_MAX and not known.lock.locked():
                del self._known[num]

    async def snapshot(self, branch_text: str, *, without_missing: bool = False) -> str | None:
        """Write a snapshot of what stands, where it is more than one update; its commit's id.

        `without_missing`, it also stands for updates that are not here, as if these said nothing.
        """
        branch = self._find_branch(branch_text)
        missing = await self._hub.run_blocking(self._find_missing, branch) if without_missing else ()
        state = await self._hub.run_blocking(self._load, branch, missing)
        if len(state.standing) < 2 and not missing:
            return None
        merged = await self._merge([*map(update_of, state.standing)])
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
        for one in sorted(standing, key=lambda one: (len(update_of(one)), one.place)):
            size += len(update_of(one))
            if size > TEXT_UPDATE_SIZE_MAX or len(chosen) + len(missing) == DEP_COUNT_MAX:
                break
            chosen.append(one)
        if 2 * len(chosen) < after:
            return None
        chosen.sort(key=lambda one: one.place)
        merged = await self._merge([*map(update_of, chosen)])
        if not all(merged.taken) or len(merged.update) > TEXT_UPDATE_SIZE_MAX:
            return None
        named = [*chosen, *missing]
        body = TextSnapshot(merged.update, tuple(dict.fromkeys(one.name for one in named)))
        draft = Draft(body, deps=deps_of(named, await self._hub.run_blocking(self._own_depth, branch)))
        written = await write_commit(self._hub, self._author, branch, draft)
        return id_text(written.commit_id)

    async def _merge(
        self,
        updates: list[bytes],
        *,
        new_count: int = 0,
        root: str | None = None,
        vector: bytes | None = None,
        clear_size: int | None = None,
    ) -> Merged:
        async with self._merging:
            return await self._hub.run_blocking(run_worker, updates, new_count, root, vector, clear_size)

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


def update_of(one: DocumentCommit) -> bytes:
    """The Yjs update of a commit."""
    assert isinstance(one.body, TextUpdate | TextSnapshot), "texts are made of these"
    return one.body.update


def run_worker(
    updates: list[bytes],
    new_count: int = 0,
    root: str | None = None,
    vector: bytes | None = None,
    clear_size: int | None = None,
) -> Merged:
    """What `text_worker.merge` gives in a process of its own.

    Raises ServiceError: `bad_input` where that fails, `busy` where the machine lacks memory, processes or time for it.
    """
    try:
        finished = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],  # -P: never a module of the current folder
            input=msgspec.msgpack.encode((updates, new_count, root, vector, clear_size)),
            capture_output=True,
            timeout=TEXT_MERGE_SECONDS,
            check=True,
            start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
        )
    except (OSError, subprocess.TimeoutExpired) as error:  # another time may go well: editors try again
        log.error("merging a text found no room or no time", error=str(error))
        raise ServiceError(
            "busy", f"the text's updates could not be merged now: {error}", "try again later"
        ) from None
    except subprocess.CalledProcessError as error:
        log.error(
            "merging a text failed", error=str(error), said=error.stderr[-1000:].decode(errors="replace")
        )
        raise ServiceError("bad_input", f"the text's updates could not be merged: {error}") from None
    return msgspec.msgpack.decode(finished.stdout, type=Merged)
