"""Collaborative texts of branches: Yjs updates pushed and pulled by editors.

`text_reading` reads the updates that a branch has, `verifier.texts` says what each of them adds, `text_versions` merges
that, and a worker process tries what it comes to. A push writes what is new of an update and nothing else
(`text_pushes`); an update of which words would be lost is refused. One that came from elsewhere and that says nothing
stays in the timeline, and is counted.
"""

import subprocess
import sys
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import structlog
import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commits
from node.content.document_operations import find_depths, not_here
from node.content.gathering import Gathering
from node.content.text_clients import TextClients
from node.content.text_pushes import HIDDEN_ADVICE, PULL_ADVICE, PushPlan
from node.content.text_reading import TextReader
from node.content.text_versions import Piece, TextIndex, TextVersion, merge_pieces
from node.contract.documents import TextClient, TextClocks, TextFaultView, TextPush, TextView
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.formats.document_kinds import TextSnapshot, TextUpdate
from protocol.formats.text import id_text
from protocol.formats.yjs_updates import BadUpdate, read_update
from protocol.ids import CommitId
from protocol.limits.users import (
    TEXT_FAULTS_SHOWN_MAX,
    TEXT_IMPORT_SIZE_MAX,
    TEXT_MERGE_SECONDS,
    TEXT_WORKERS_MAX,
    TEXTS_KNOWN_SIZE_MAX,
)
from storage.repos.repos import Branch
from verifier.documents import ErasedValues
from verifier.text_places import Places, TextItem
from verifier.texts import TextFault, TextState, TooManyDeletions, read_ranges, reduce_text

log = structlog.get_logger()

_WORKER: Final = Path(__file__).with_name("text_worker.py")


class Looked(msgspec.Struct, frozen=True, array_like=True):
    """Answer of the worker: see `text_worker.look`."""

    taken: list[bool]
    text: str | None
    lacking: bytes | None
    clear: list["ClearText"] | None
    typed: bytes | None


class ClearText(msgspec.Struct, frozen=True, array_like=True):
    """One of the texts that a branch has: the name of its root, its title or "", and what it says."""

    root: str
    title: str
    text: str


@dataclass(slots=True)
class _Known:
    """Memory of a branch's text: the version at a count of changes, and the one that the last push makes of it."""

    reading: trio.Lock = field(default_factory=trio.Lock)
    writing: trio.Lock = field(default_factory=trio.Lock)
    count: int = -1
    version: TextVersion | None = None
    foreseen: TextVersion | None = None

    @property
    def is_in_use(self) -> bool:
        """True while somebody reads or writes the text."""
        return self.reading.locked() or self.writing.locked()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """State of a text as the store has it now, and the pieces of all that it shows."""

    state: TextState
    pieces: Mapping[CommitId, Piece]


@dataclass(frozen=True, slots=True)
class _Push:
    """Bodies that a push writes, what they add, what the text comes to with them, and what each update then has there."""

    bodies: list[TextUpdate]
    pieces: list[Piece]
    update: bytes
    has: list[list[TextClocks]]


class Texts:
    """Pushes to and pulls from the texts of branches, which are named as `find_branch` takes them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        find_branch: Callable[[str], Branch],
        has_other_editors: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """`has_other_editors` tells of a branch, by its number, whether somebody else has its text open now."""
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._has_other_editors = has_other_editors
        self._reader = TextReader(hub.replica)
        self._clients = TextClients(hub, author.user)
        self._merging = trio.CapacityLimiter(TEXT_WORKERS_MAX)
        self._known: OrderedDict[int, _Known] = OrderedDict()  # by the branch's number, the latest last
        self._gathering: dict[int, Gathering[TextPush]] = {}  # by the branch's number

    async def open(self, branch: str) -> TextClient:
        """Give an editor a client id that nobody else has. Raises ServiceError `not_permitted`, and those of `pull`."""
        target = self._find_writable(branch)
        version = await self.version(target)
        client = await self._clients.give(target, version)
        clock = version.state.places.end(client)
        return {"branch": id_text(target.branch_id), "client": client, "clock": clock}

    async def push(self, branch: str, update: bytes, gather: bool = False) -> TextPush:
        """Write what a Yjs update (format v1) says that is new; durable when it returns.

        `gather`, it waits a moment for others, and all become one commit.
        Raises ServiceError `bad_input`, `too_large`, `not_permitted`, `incomplete`, `busy`.
        """
        target = self._find_writable(branch)
        if not gather:
            [pushed] = await self._push_all(target, [update])
            if isinstance(pushed, ServiceError):
                raise pushed
            return pushed
        gathering = self._gathering.get(target.num)
        if gathering is None:
            gathering = self._gathering[target.num] = Gathering(lambda: self._has_other_editors(target.num))

        async def write(updates: Sequence[bytes]) -> Sequence[TextPush | Exception]:
            return await self._push_all(target, updates)

        return await gathering.run(update, write)

    async def import_text(self, branch: str, update: bytes) -> TextPush:
        """Type what the texts of another Yjs document say at the ends of the texts of the same names.

        Raises ServiceError as `push`, and `too_large` where it is more than one commit says.
        """
        target = self._find_writable(branch)
        try:
            await self._hub.run_blocking(read_update, update)
        except BadUpdate as error:
            raise ServiceError(
                "bad_input", f"that is no Yjs update of format v1 that texts take: {error}"
            ) from None
        found = await self._look_at([update], clear_size=TEXT_IMPORT_SIZE_MAX + 1)
        texts = [(one.root, one.text) for one in found.clear or () if one.text]
        if sum(len(text) for _, text in texts) > TEXT_IMPORT_SIZE_MAX:
            raise ServiceError("too_large", f"over {TEXT_IMPORT_SIZE_MAX} characters", "import it in parts")
        async with self._remember(target).writing:
            version = await self.version(target)
            client = await self._clients.give_own(target, version)
            typed = (await self._look_at([version.update], typed=(client, texts))).typed
            if typed is None:
                raise ServiceError("bad_input", "the text cannot be typed here")
            [pushed] = await self._write_new(target, version, [typed])
        return pushed

    async def _push_all(self, target: Branch, updates: Sequence[bytes]) -> list[TextPush | ServiceError]:
        """Write these updates as one commit, or apart where one of them does not go with the others."""
        try:
            async with self._remember(target).writing:
                return [*await self._write_new(target, await self.version(target), updates)]
        except ServiceError as error:
            if len(updates) == 1 or error.code not in ("bad_input", "too_large"):
                return [error] * len(updates)
        return [outcome for update in updates for outcome in await self._push_all(target, [update])]

    async def _write_new(
        self, target: Branch, version: TextVersion, updates: Sequence[bytes]
    ) -> list[TextPush]:
        """Write what these updates say that `version` has not. To be called while `writing` is held."""
        clients = text_clients(self._author.user, target.branch_id)
        push = await self._hub.run_blocking(_prepare, version, clients, updates)
        if push.bodies and not all((await self._look_at([push.update])).taken):
            raise ServiceError("bad_input", "the update does not go with the text", PULL_ADVICE)
        commit: str | None = None
        if push.bodies:
            drafts = [Draft(body) for body in push.bodies]
            written = await write_commits(self._hub, self._author, target, drafts)
            commit = id_text(written[0].commit_id)
            if not version.refused:
                new = {one.commit_id: piece for one, piece in zip(written, push.pieces, strict=True)}
                foreseen = TextVersion(version.state, {**version.pieces, **new}, push.update)
                self._remember(target).foreseen = foreseen
        branch = id_text(target.branch_id)
        return [{"branch": branch, "commit": commit, "has": has} for has in push.has]

    async def pull(self, branch: str, root: str | None) -> TextView:
        """Return the whole text as one update, and (with `root`) the plain text of the root type of that name.

        Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`.
        """
        target = self._find_branch(branch)
        version = await self._look(target)
        text = None if root is None else (await self._look_at([version.update], root=root)).text
        if root is not None and text is None:
            raise ServiceError(
                "bad_input", f"the root {root!r} cannot be shown as text", "pull the update, and open that"
            )
        faults = _fault_views(version)
        return {
            "branch": id_text(target.branch_id),
            "update": b64encode(version.update).decode(),
            "updates": len(version.pieces),
            "refused": sum(one["fault"] == TextFault.UNREADABLE for one in faults),
            "passed_over": sum(one["fault"] != TextFault.UNREADABLE for one in faults),
            "faults": faults[:TEXT_FAULTS_SHOWN_MAX],
            "text": text,
        }

    async def lacking(self, update: bytes, vector: bytes) -> bytes:
        """Return what an editor of that state vector lacks of a merged text. Raises ServiceError `bad_input`."""
        if not vector:
            return update
        found = (await self._look_at([update], vector=vector)).lacking
        if found is None:
            raise ServiceError(
                "bad_input", "that is no state vector of Yjs", "send encodeStateVector, or none"
            )
        return found

    async def render(self, branch: Branch, size: int) -> tuple[CommitId | None, list[ClearText]]:
        """Return all texts of the branch, `size` characters of them at most, and the last commit that they are made of.

        None: the branch says nothing of its own, and its text is that of the branch that it continues.
        Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`.
        """
        known = self._remember(branch)
        async with known.reading:
            # Always asked of the store: what became void counts no more before `changes` tells of it.
            loaded = await self._hub.run_blocking(self._load, branch, known.version)
            last = max((one.edit.place for one in loaded.state.shown), default=None)
            if last is None or last[0] != await self._hub.run_blocking(self._own_depth, branch):
                return None, []
            version = await self._make(loaded, known)
        return last[-1], (await self._look_at([version.update], clear_size=size)).clear or []

    async def version(self, branch: Branch) -> TextVersion:
        """Read the text as it stands. Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`."""
        return await self._look(branch)

    async def find_missing(self, branch: str) -> list[CommitId]:
        """Commits whose bodies the text needs, and that are neither here nor in snapshots."""
        return await self._hub.run_blocking(self._missing, self._find_branch(branch))

    async def snapshot(self, branch_text: str) -> list[str]:
        """Write snapshots of all bodies that none holds, where these are two or more; their commits' ids."""
        branch = self._find_branch(branch_text)
        bodies = await self._hub.run_blocking(self._snapshots, branch)
        written = await write_commits(self._hub, self._author, branch, [Draft(body) for body in bodies])
        return [id_text(one.commit_id) for one in written]

    # --- steps ---

    def _find_writable(self, branch: str) -> Branch:
        target = self._find_branch(branch)
        if not self._author.may_write(target):
            raise ServiceError(
                "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
            )
        return target

    async def _look(self, branch: Branch) -> TextVersion:
        known = self._remember(branch)
        async with known.reading:  # what two ask for at once is made once
            count = self._hub.changes.count
            if known.version is None or known.count != count:
                loaded = await self._hub.run_blocking(self._load, branch, known.foreseen or known.version)
                known.version = await self._make(loaded, known)
                known.count, known.foreseen = count, None
            version = known.version
        self._forget_surplus()
        return version

    async def _make(self, loaded: _Loaded, known: _Known) -> TextVersion:
        """Make a version of the pieces. A library looks at it unless it has before."""
        for before in (known.foreseen, known.version):
            if before is not None and not before.refused and before.pieces == loaded.pieces:
                return TextVersion(loaded.state, loaded.pieces, before.update)
        update = await self._hub.run_blocking(merge_pieces, loaded.pieces.values())
        looked = await self._look_at([update])
        refused: frozenset[CommitId] = frozenset()
        if not all(looked.taken):
            # Which of them do not go with those before them, in the order of the walk: it is the same on all nodes.
            looked = await self._look_at([piece.encoded for piece in loaded.pieces.values()])
            taken = zip(loaded.pieces, looked.taken, strict=True)
            refused = frozenset(commit for commit, is_taken in taken if not is_taken)
            update = merge_pieces(piece for commit, piece in loaded.pieces.items() if commit not in refused)
        return TextVersion(loaded.state, loaded.pieces, update, refused)

    def _remember(self, branch: Branch) -> _Known:
        known = self._known.setdefault(branch.num, _Known())
        self._known.move_to_end(branch.num)
        return known

    def _forget_surplus(self) -> None:
        """Remember the texts that were asked for last, as far as there is room."""
        size = 0
        for num, known in reversed(self._known.copy().items()):
            size += 0 if known.version is None else known.version.size
            if size > TEXTS_KNOWN_SIZE_MAX and not known.is_in_use:
                del self._known[num]

    async def _look_at(
        self,
        updates: list[bytes],
        *,
        root: str | None = None,
        vector: bytes | None = None,
        clear_size: int | None = None,
        typed: tuple[int, list[tuple[str, str]]] | None = None,
    ) -> Looked:
        async with self._merging:
            return await self._hub.run_blocking(run_worker, updates, root, vector, clear_size, typed)

    # --- in threads ---

    def _own_depth(self, branch: Branch) -> int:
        with self._hub.replica.database.read() as connection:
            return find_depths(self._hub.replica, connection, branch)[branch.num]

    def _snapshots(self, branch: Branch) -> list[TextSnapshot]:
        with self._hub.replica.database.read() as connection:
            return self._reader.make_snapshots(connection, branch)

    def _missing(self, branch: Branch) -> list[CommitId]:
        with self._hub.replica.database.read() as connection:
            return self._reader.find_missing(connection, branch)

    def _load(self, branch: Branch, before: TextVersion | None) -> _Loaded:
        """Read what the store has now, and the bytes of those pieces that an earlier version has not."""
        with self._hub.replica.database.read() as connection:
            text = self._reader.read(connection, branch)
            try:
                state = reduce_text(text.edits)
            except ErasedValues as error:
                raise not_here(error) from None
            except TooManyDeletions:
                raise ServiceError(
                    "too_large",
                    "the text's deletions name too many commits",
                    "begin another branch with the text as it is",
                ) from None
            known = {} if before is None else before.shapes
            shapes = {one.edit.commit: one.shape for one in state.shown}
            pieces: dict[CommitId, Piece | None] = dict.fromkeys(shapes)  # in the order of the walk
            if before is not None:
                for commit, shape in shapes.items():
                    if commit in known and known[commit] == shape:
                        pieces[commit] = before.pieces[commit]
            missing = [commit for commit, piece in pieces.items() if piece is None]
            for commit, update in self._reader.load_updates(connection, text, missing):
                pieces[commit] = Piece.left_of(update, shapes[commit])
        return _Loaded(state, {commit: piece for commit, piece in pieces.items() if piece is not None})


def _prepare(version: TextVersion, clients: int, updates: Sequence[bytes]) -> _Push:
    """Find what updates say that a text has not. Raises ServiceError `bad_input`, `too_large`."""
    plan = PushPlan(TextIndex(version), clients)
    for update in updates:
        plan.add(update)
    bodies = plan.bodies()
    places = Places(version.state.places)
    places.add(dict(item for body in bodies for item in _items_of(body)))
    has: list[list[TextClocks]] = []
    for ends in plan.ends:
        for client, end in ends.items():
            if places.end(client) < end:
                raise ServiceError(
                    "bad_input",
                    f"the update builds on words that the text has not here: of the client id {client} it would show "
                    f"{places.end(client)} clocks of {end}",
                    HIDDEN_ADVICE,
                )
        has.append([{"client": client, "clock": places.end(client)} for client in ends])
    pieces = [Piece.whole(body.update) for body in bodies]
    if not pieces:
        return _Push([], [], version.update, has)
    shown = [piece for commit, piece in version.pieces.items() if commit not in version.refused]
    return _Push(bodies, pieces, merge_pieces([*shown, *pieces]), has)


def _items_of(body: TextUpdate) -> Iterator[tuple[int, Sequence[TextItem]]]:
    """Yield what a body says of each client id."""
    ranges = read_ranges(body.update)
    for (client, _, _), items in zip(ranges.runs, ranges.items, strict=True):
        yield client, items


def _fault_views(version: TextVersion) -> list[TextFaultView]:
    faults: list[TextFaultView] = [
        {"commit": id_text(one.commit), "fault": fault.value} for one, fault in version.state.passed_over
    ]
    return faults + [
        {"commit": id_text(one), "fault": TextFault.UNREADABLE.value} for one in sorted(version.refused)
    ]


def run_worker(
    updates: list[bytes],
    root: str | None = None,
    vector: bytes | None = None,
    clear_size: int | None = None,
    typed: tuple[int, list[tuple[str, str]]] | None = None,
) -> Looked:
    """Run `text_worker.look` in a process of its own.

    Raises ServiceError: `bad_input` where that fails, `busy` where the machine lacks memory, processes or time for it.
    """
    try:
        finished = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],  # -P: never a module of the current folder
            input=msgspec.msgpack.encode((updates, root, vector, clear_size, typed)),
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
    return msgspec.msgpack.decode(finished.stdout, type=Looked)
