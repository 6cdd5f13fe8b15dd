"""Collaborative texts of branches: Yjs updates pushed and pulled by editors.

`text_words` holds a text and grows by what came since, and the store keeps it (`text_keeping`). Where more changed than was
added, `text_reading` reads all updates that a branch has, `verifier.texts` says what each of them adds, and `text_versions`
merges that. A worker process tries what it comes to. A push writes what is new of an update and nothing else
(`text_pushes`); an update of which words would be lost is refused. One that came from elsewhere and that says nothing
stays in the timeline, and is counted.
"""

from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import structlog
import trio
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commits
from node.content.document_operations import find_depths, not_here
from node.content.gathering import Gathering
from node.content.lineage import is_whole, lineage
from node.content.opening import read_opened
from node.content.text_clients import TextClients
from node.content.text_keeping import dump, is_due, restore
from node.content.text_process import (
    ClearText,
    HeldText,
    Looked,
    TextAnswer,
    TextProcess,
    Typed,
    run_worker,
)
from node.content.text_pushes import HIDDEN_ADVICE, PULL_ADVICE, PushPlan
from node.content.text_reading import ReducedText, TextReader
from node.content.text_versions import merge_pieces
from node.content.text_words import TextIndex, TextVersion, TextWords
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.sync.hub import Hub
from protocol.crypto.hashing import text_clients
from protocol.formats.document_kinds import TEXT, TextSnapshot, TextUpdate
from protocol.formats.text import id_text
from protocol.formats.yjs_updates import BadUpdate, read_update
from protocol.ids import CommitId
from protocol.limits.users import (
    TEXT_IMPORT_SIZE_MAX,
    TEXT_WORKERS_MAX,
    TEXTS_KNOWN_SIZE_MAX,
)
from ravel.types.documents import TextClient, TextClocks, TextFaultView, TextPush, TextView
from storage.commits.edits import load_last_change
from storage.commits.kept_texts import KeptText, begin_text, keep_text, load_text, load_text_blocks
from storage.engine.column_encryption import BadSecret
from storage.engine.errors import StorageError
from storage.engine.id_keys import pack_nums
from storage.repos.repos import Branch
from verifier.documents import ErasedValues
from verifier.text_places import Places, TextItem
from verifier.texts import TextFault, TooManyDeletions, read_ranges

log = structlog.get_logger()

_END: Final = 1 << 53
"""A place behind the end of any text."""


@dataclass(slots=True)
class _Known:
    """Memory of a branch's text: the version at a count of changes, and an update of all of it that a library took."""

    reading: trio.Lock = field(default_factory=trio.Lock)
    writing: trio.Lock = field(default_factory=trio.Lock)
    count: int = -1
    version: TextVersion | None = None
    tried: bytes = b""

    @property
    def is_in_use(self) -> bool:
        """True while somebody reads or writes the text."""
        return self.reading.locked() or self.writing.locked()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A text as the store has it now. `reduced`: all its updates were opened."""

    words: TextWords
    token: int
    update: bytes
    reduced: ReducedText | None = None


@dataclass(frozen=True, slots=True)
class _Push:
    """Push of updates: the bodies to write, the update that they make together, and the clocks that each then has."""

    bodies: list[TextUpdate]
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
        process: TextProcess | None = None,
    ) -> None:
        """`has_other_editors` tells of a branch, by its number, whether somebody else has its text open now.

        `process` holds texts in use; without it, each look starts a process.
        """
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._has_other_editors = has_other_editors
        self._process = process
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
        clock = version.words.places.end(client)
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
        texts = [one for one in found.clear or () if one.text]
        if sum(len(one.text) for one in texts) > TEXT_IMPORT_SIZE_MAX:
            raise ServiceError("too_large", f"over {TEXT_IMPORT_SIZE_MAX} characters", "import it in parts")
        async with self._remember(target).writing:
            version = await self.version(target)
            client = await self._clients.give_own(target, version)
            edits = [(one.root, [(_END, _END, one.text)]) for one in texts]
            typed = (await self._look_at([version.update], typed=(client, edits))).typed
            if typed is None:
                raise ServiceError("bad_input", "the text cannot be typed here")
            [pushed] = await self._write_new(target, version, [typed])
        return pushed

    async def _push_all(self, target: Branch, updates: Sequence[bytes]) -> list[TextPush | ServiceError]:
        """Write updates as one commit; write them separately if they cannot be merged."""
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
        """Write the part of these updates that `version` lacks. The caller holds `writing`."""
        clients = text_clients(self._author.user, target.branch_id)
        known = self._remember(target)
        async with known.reading:  # what is read of it must not grow meanwhile
            push = await self._hub.run_blocking(_prepare, version, clients, updates)
        new = [body.update for body in push.bodies]
        if (
            new
            and await self._show(target, version, tried=new) is None
            and not all((await self._look_at([version.update, *new])).taken)
        ):
            raise ServiceError("bad_input", "the update does not go with the text", PULL_ADVICE)
        commit: str | None = None
        if push.bodies:
            drafts = [Draft(body) for body in push.bodies]
            written = await write_commits(self._hub, self._author, target, drafts)
            commit = id_text(written[0].commit_id)
            if not version.words.has_refused:
                known.tried = push.update
        branch = id_text(target.branch_id)
        return [{"branch": branch, "commit": commit, "has": has} for has in push.has]

    async def pull(self, branch: str, root: str | None) -> TextView:
        """Return the whole text as one update, and (with `root`) the plain text of the root type of that name.

        Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`.
        """
        target = self._find_branch(branch)
        version = await self.version(target)
        shown = None if root is None else await self._show(target, version, root=root)
        text = None if shown is None else shown.text
        if root is not None and text is None:
            text = (await self._look_at([version.update], root=root)).text
        if root is not None and text is None:
            raise ServiceError(
                "bad_input", f"the root {root!r} cannot be shown as text", "pull the update, and open that"
            )
        words = version.words
        faults: list[TextFaultView] = [
            {"commit": id_text(commit), "fault": fault.value} for commit, fault in words.faults
        ]
        refused = words.fault_counts[TextFault.UNREADABLE]
        return {
            "branch": id_text(target.branch_id),
            "update": b64encode(version.update).decode(),
            "updates": version.count,
            "refused": refused,
            "passed_over": words.fault_counts.total() - refused,
            "faults": faults,
            "text": text,
        }

    async def lacking(self, branch: Branch, version: TextVersion, vector: bytes) -> bytes:
        """Return what an editor of that state vector lacks of a text. Raises ServiceError `bad_input`."""
        if not vector:
            return version.update
        shown = await self._show(branch, version, vector=vector)
        found = None if shown is None else shown.lacking
        if found is None:
            found = (await self._look_at([version.update], vector=vector)).lacking
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
        # Always asked of the store: what became void counts no more before `changes` tells of it.
        self._remember(branch).count = -1
        version = await self.version(branch)
        last = version.words.last
        if last is None or last[0] != version.words.depth:
            return None, []
        shown = await self._show(branch, version, clear_size=size)
        if shown is not None and shown.clear is not None:
            return last[-1], [ClearText(*one) for one in shown.clear]
        return last[-1], (await self._look_at([version.update], clear_size=size)).clear or []

    async def version(self, branch: Branch) -> TextVersion:
        """Read the text as it stands. Raises ServiceError `bad_input`, `too_large`, `incomplete`, `busy`."""
        known = self._remember(branch)
        async with known.reading:  # what two ask for at once is made once
            count = self._hub.changes.count
            if known.version is None or known.count != count:
                load = partial(self._load, branch, known.version)
                loaded = await read_opened(self._hub, branch, load, TEXT.bodies, "")
                known.version = await self._make(branch, loaded, known)
                known.count = count
                if is_due(known.version.words):
                    await self._keep(branch, known.version)
            version = known.version
        self._forget_surplus()
        return version

    async def find_missing(self, branch: str) -> list[CommitId]:
        """Commits whose bodies the text needs, and that are neither here nor in snapshots."""
        return await self._hub.run_blocking(self._missing, self._find_branch(branch))

    async def write_snapshots(self, branch_text: str) -> list[str]:
        """Write snapshots of all bodies that no snapshot holds, if there are two or more; return the new commits'
        ids."""
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

    async def _load(self, branch: Branch, before: TextVersion | None) -> _Loaded:
        """Read the text as the store has it: what was added since, or all of it where more has changed."""
        token: int | None = None
        while True:
            loaded = await self._hub.run_blocking(self._read, branch, before, token)
            if loaded is not None:
                return loaded
            token = await self._hub.write(self._begin, branch)

    async def _make(self, branch: Branch, loaded: _Loaded, known: _Known) -> TextVersion:
        """Make a version of a text. A library looks at it unless it has before."""
        words, update = loaded.words, loaded.update
        version = TextVersion(words, loaded.token, words.count, update)
        if (
            update != known.tried
            and await self._ask_process(self._hold(version)) is None
            and not all((await self._look_at([update])).taken)
        ):
            if loaded.reduced is None:
                await self._hub.write(self._begin, branch)
                loaded = await self._load(branch, None)
            assert loaded.reduced is not None, "nothing is kept of it"
            pieces = loaded.reduced.pieces
            # Which of them do not go with those before them, in the order of the walk: it is the same on all nodes.
            taken = (await self._look_at([piece.encoded for piece in pieces.values()])).taken
            refused = frozenset(
                commit for commit, is_taken in zip(pieces, taken, strict=True) if not is_taken
            )
            update = merge_pieces(piece for commit, piece in pieces.items() if commit not in refused)
            words = _words(loaded.reduced, words.depth, refused)
            version = TextVersion(words, loaded.token, words.count, update)
        known.tried = update
        return version

    async def _keep(self, branch: Branch, version: TextVersion) -> None:
        """Keep a text in the store. A store that cannot take it now can later: nothing rests on it."""
        try:
            await self._hub.write(self._put, branch, version.words, version.token)
        except StorageError as error:
            log.warning("a text could not be kept", branch=branch.name, error=str(error))

    def _remember(self, branch: Branch) -> _Known:
        known = self._known.setdefault(branch.num, _Known())
        self._known.move_to_end(branch.num)
        return known

    def _forget_surplus(self) -> None:
        """Remember the texts that were asked for last, as far as there is room."""
        size = 0
        for num, known in reversed(self._known.copy().items()):
            size += 0 if known.version is None else known.version.memory
            if size > TEXTS_KNOWN_SIZE_MAX and not known.is_in_use:
                del self._known[num]

    def _hold(self, version: TextVersion) -> HeldText | None:
        """Return what the process that holds texts is asked about. To be called while `reading` is held."""
        words = version.words
        if self._process is None or words.has_refused:
            return None
        before = self._process.version_of(words.mark)
        news = words.news(before) if 0 <= before <= version.count else None
        if news is None:
            return HeldText(words.mark, version.count, version.update)
        news = news[: version.count - before]
        return HeldText(words.mark, version.count, version.update, before, news)

    async def _show(
        self,
        branch: Branch,
        version: TextVersion,
        *,
        tried: Sequence[bytes] = (),
        root: str | None = None,
        vector: bytes | None = None,
        clear_size: int | None = None,
    ) -> TextAnswer | None:
        """Ask the process that holds texts; None where another process has to look."""
        async with self._remember(branch).reading:
            held = self._hold(version)
        return await self._ask_process(held, tried, root, vector, clear_size)

    async def _ask_process(self, held: HeldText | None, *asked: Any) -> TextAnswer | None:  # noqa: ANN401  # as `look` takes it
        if held is None or self._process is None:
            return None
        async with self._merging:
            return await self._hub.run_blocking(self._process.look, held, *asked)

    async def _look_at(
        self,
        updates: list[bytes],
        *,
        root: str | None = None,
        vector: bytes | None = None,
        clear_size: int | None = None,
        typed: Typed | None = None,
    ) -> Looked:
        async with self._merging:
            return await self._hub.run_blocking(run_worker, updates, root, vector, clear_size, typed)

    # --- in threads ---

    def _snapshots(self, branch: Branch) -> list[TextSnapshot]:
        with self._hub.replica.database.read() as connection:
            return self._reader.make_snapshots(connection, branch)

    def _missing(self, branch: Branch) -> list[CommitId]:
        with self._hub.replica.database.read() as connection:
            return self._reader.find_missing(connection, branch)

    def _begin(self, branch: Branch) -> int:
        with self._hub.replica.database.write() as connection:
            parts = lineage(self._hub.replica, connection, branch)
            return begin_text(connection, branch.num, pack_nums([part.num for part, _ in parts]))

    def _put(self, branch: Branch, words: TextWords, token: int) -> None:
        summary, blocks = dump(words)
        with self._hub.replica.database.write() as connection:
            keep_text(connection, branch.num, KeptText(token, words.upto, summary), blocks)
        words.touched, words.unkept, words.summary_size = {}, 0, len(summary)

    def _read(self, branch: Branch, before: TextVersion | None, token: int | None) -> _Loaded | None:
        """Read a text; None where it is to be begun anew first. `token` was given when it was."""
        with self._hub.replica.database.read() as connection:
            kept = load_text(connection, branch.num)
            if kept is None:
                return None
            words = None if before is None or before.token != kept.token else before.words
            if words is None and kept.summary is not None:
                words = self._restore(connection, branch, kept)
            if words is not None and self._grow(connection, branch, words):
                return _Loaded(words, kept.token, words.encode())
            if kept.token != token and (words is not None or kept.summary is not None):
                return None  # what was made of it before has this token
            return self._reduce(connection, branch, before, kept.token)

    def _restore(self, connection: Connection, branch: Branch, kept: KeptText) -> TextWords | None:
        assert kept.summary is not None, "it is kept"
        try:
            words = restore(kept.summary, load_text_blocks(connection, branch.num))
        except BadSecret:
            return None
        if words is not None:
            words.upto = kept.upto
        return words

    def _grow(self, connection: Connection, branch: Branch, words: TextWords) -> bool:
        """Add what came since; False where it is not simple, and the text is of no more use then."""
        if not words.is_simple:
            return False
        last = load_last_change(connection, branch.num)
        new = self._reader.read_new(connection, branch, words.upto, words.depth)
        words.upto = last
        return new is not None and all(words.grow(*one) for one in new)

    def _reduce(
        self, connection: Connection, branch: Branch, before: TextVersion | None, token: int
    ) -> _Loaded:
        try:
            known = None if before is None or before.words.has_refused else before.words
            reduced = self._reader.reduce(connection, branch, known)
        except ErasedValues as error:
            raise not_here(error) from None
        except TooManyDeletions:
            raise ServiceError(
                "too_large",
                "the text's deletions name too many commits",
                "begin another branch with the text as it is",
            ) from None
        depth = find_depths(self._hub.replica, connection, branch)[branch.num]
        words = _words(reduced, depth)
        words.upto = load_last_change(connection, branch.num)
        words.is_simple = words.is_simple and is_whole(self._hub.replica, connection, branch)
        if before is not None and words.has_all(before.words):
            words.before |= {before.words.mark, *before.words.before}
        return _Loaded(words, token, words.encode(), reduced if reduced.is_opened else None)


def _words(reduced: ReducedText, depth: int, refused: frozenset[CommitId] = frozenset()) -> TextWords:
    read = reduced.read
    return TextWords.reduced(
        read.edits,
        reduced.state,
        reduced.pieces,
        refused,
        depth=depth,
        given_up=read.given_up,
        size=read.size,
        weight=read.weight,
    )


def _prepare(version: TextVersion, clients: int, updates: Sequence[bytes]) -> _Push:
    """Find what updates say that a text has not. Raises ServiceError `bad_input`, `too_large`."""
    index = TextIndex(version.words)
    plan = PushPlan(index, clients)
    for update in updates:
        plan.add(update)
    bodies = plan.bodies()
    places = Places(version.words.places)
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
    return _Push(bodies, index.encode() if bodies else version.update, has)


def _items_of(body: TextUpdate) -> Iterator[tuple[int, Sequence[TextItem]]]:
    """Yield what a body says of each client id."""
    ranges = read_ranges(body.update)
    for (client, _, _), items in zip(ranges.runs, ranges.items, strict=True):
        yield client, items
