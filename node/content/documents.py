"""Reads and writes documents of values, such as sets and dicts; each new operation names those that it replaces.

`verifier.documents` has the rules, and `document_state` reads what they come to.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import trio
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.writing import write_commits
from node.content.document_drafts import NewValue, check_sizes, group_values, has_value, make_draft
from node.content.document_operations import DocumentOperationReader, not_here
from node.content.document_snapshots import snapshot
from node.content.document_state import (
    NOTHING_SAID,
    DocumentState,
    LargeDocument,
    StandingDocument,
    Unwritten,
    read_fresh,
)
from node.content.lineage import lineage_nums
from node.content.opening import open_bodies, read_opened
from node.contract.document_values import ValuesWindow, WrittenValues
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.document_kinds import (
    JSON,
    REPLACED_COUNT_MAX,
    SET,
    SNAPSHOT_COMMIT_COUNT_MAX,
    ValuesEdit,
    ValuesKind,
)
from protocol.formats.document_names import find_name_fault
from protocol.formats.text import id_text
from protocol.ids import CommitId
from protocol.limits.users import DOCUMENT_HISTORY_MAX, DOCUMENT_SIZE_MAX
from ravel.types.document_values import DocumentSnapshot
from storage.commits.commits import load_nums
from storage.commits.document_counters import load_own_increments
from storage.commits.document_positions import load_positions
from storage.commits.document_reading import (
    ChangedDocuments,
    is_listed,
    load_changed,
    load_last_change,
    load_names,
)
from storage.commits.documents import Document
from storage.repos.repos import Branch
from verifier.documents import (
    DocumentCommit,
    DocumentEntry,
    DocumentValue,
    ErasedValues,
    find_settled,
    pass_over_missing,
    reduce_values,
)
from verifier.json_contents import WHOLE_NUMBER_MAX, increment_text
from verifier.json_registers import Registers

T = TypeVar("T")
TITLES: Final = ".titles"
REMOVED: Final = ".removed"
"""Names of the dict of documents' titles, and of the set of those that were removed, by `document_key`."""
UNREADABLE: Final = frozenset({"incomplete", "too_large"})
"""Errors of a document with absent bodies, and of one that is too large to read."""
_SUMMED_COUNT_MAX: Final = 64 * REPLACED_COUNT_MAX
"""Increments that are summed up before one snapshot: so many commits that each replace as many as one can."""


@dataclass(frozen=True, slots=True)
class Look(Registers):
    """Parts of a document read at one moment."""

    state: DocumentState
    connection: Connection
    document: StandingDocument | None
    has_turn: bool
    """True if nothing else that is large is read meanwhile. Else what loads raises LargeDocument for what is."""

    @property
    def held(self) -> Mapping[str, DocumentEntry] | None:
        """Return all entries where no rows are written of the document; None where there are rows."""
        if self.document is None:
            return {}
        return self.document.entries if isinstance(self.document, Unwritten) else None

    def load(self, keys: Sequence[str]) -> dict[str, DocumentEntry]:
        """Load entries with all that stands, by item or key. Costs O(keys), each O(log n)."""
        return self.state.entries(self.connection, self.document, keys, has_turn=self.has_turn)

    def load_replaced(self, keys: Sequence[str]) -> dict[str, tuple[DocumentValue, ...]]:
        """Load what an operation about each key replaces. Costs as `load`, and O(operations about counters)."""
        return self.state.replaced(self.connection, self.document, keys)

    def load_between(self, first: str, end: str, limit: int | None) -> dict[str, DocumentEntry]:
        """Load the first entries that are there of keys from one on, and before another, where there are rows."""
        assert isinstance(self.document, Document), "see `held`"
        return self.state.between(self.connection, self.document, first, end, limit, has_turn=self.has_turn)

    def load_positions(
        self, first: bytes, end: bytes, offset: int, limit: int | None, *, is_backwards: bool
    ) -> list[bytes]:
        """Load positions of items of lists, as `load_positions`, where there are rows."""
        assert isinstance(self.document, Document), "see `held`"
        return load_positions(
            self.connection,
            self.document.num,
            first,
            end,
            offset=offset,
            limit=self.document.entry_count if limit is None else limit,
            is_backwards=is_backwards,
        )


class Documents:
    """Reads and writes documents of values. Branches are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._reader = DocumentOperationReader(hub.replica)
        self._state = DocumentState(hub.replica, self._reader)
        self._large = trio.CapacityLimiter(1)

    def id_of(self, branch: str) -> str:
        """Return the id of a branch."""
        return id_text(self._find_branch(branch).branch_id)

    async def read_window(
        self, kind: ValuesKind, branch: str, offset: int, limit: int, name: str = ""
    ) -> ValuesWindow:
        """List a window of the entries that are there, by UTF-8 bytes. Costs O(offset + limit), each O(log n)."""
        target = self._find_branch(branch)
        state = self._state

        def read(connection: Connection, has_turn: bool) -> ValuesWindow:
            document = state.find(connection, target, kind, name)
            total = 0 if document is None else document.entry_count
            end = offset + limit
            return ValuesWindow(
                state.window(connection, document, offset, limit, has_turn=has_turn),
                {
                    "branch": id_text(target.branch_id),
                    "total": total,
                    "next": end if end < total else None,
                },
            )

        return await self._read_fresh(target, kind, name, read)

    async def read_entry(
        self, kind: ValuesKind, branch: str, key: str, name: str = ""
    ) -> tuple[str, DocumentEntry]:
        """Return the branch's id, and one entry that holds something. Costs O(log n and what stands of it).

        Raises ServiceError `not_found`.
        """
        target = self._find_branch(branch)
        state = self._state

        def read(connection: Connection, has_turn: bool) -> DocumentEntry:
            document = state.find(connection, target, kind, name)
            return state.entries(connection, document, [key], has_turn=has_turn).get(key, NOTHING_SAID)

        entry = await self._read_fresh(target, kind, name, read)
        if not entry.values:
            raise ServiceError(
                "not_found",
                f"the {kind.name} has no key {key!r}",
                f"`ravel {kind.name} list BRANCH` shows what there is",
            )
        return id_text(target.branch_id), entry

    async def read_entries(
        self, kind: ValuesKind, branch: str, keys: Sequence[str], name: str
    ) -> dict[str, DocumentEntry]:
        """Return entries by item or key, without those that have no operation. Costs O(keys), each O(log n)."""
        target = self._find_branch(branch)
        state = self._state

        def read(connection: Connection, has_turn: bool) -> dict[str, DocumentEntry]:
            document = state.find(connection, target, kind, name)
            return state.entries(connection, document, keys, has_turn=has_turn)

        return await self._read_fresh(target, kind, name, read)

    async def read_marks(
        self, kind: ValuesKind, branch: str, keys: Sequence[str], name: str
    ) -> dict[str, DocumentEntry]:
        """Return entries of TITLES or REMOVED, as `read_entries`; none where that document cannot be read now.

        Any writer can bring that about, and the documents that they speak of are there all the same.
        """
        try:
            return await self.read_entries(kind, branch, keys, name)
        except ServiceError as error:
            if error.code not in UNREADABLE:
                raise
            return {}

    async def read(
        self, kind: ValuesKind, branch: str, name: str, view: Callable[[Mapping[str, DocumentEntry]], T]
    ) -> tuple[str, T]:
        """Return the branch's id, and the answer of `view` about all entries. Costs O(their operations).

        Large documents are read one after another: each takes memory.
        """

        def read(look: Look) -> T:
            (entries,) = self._state.read_whole(look.connection, [look.document], has_turn=look.has_turn)
            return view(entries)

        return await self.look(kind, branch, name, read)

    async def look(
        self, kind: ValuesKind, branch: str, name: str, read: Callable[[Look], T]
    ) -> tuple[str, T]:
        """Return the branch's id, and what `read` finds in a document. It may be called twice."""
        target = self._find_branch(branch)

        def find(connection: Connection, has_turn: bool) -> T:
            document = self._state.find(connection, target, kind, name)
            return read(Look(self._state, connection, document, has_turn))

        return id_text(target.branch_id), await self._read_fresh(target, kind, name, find)

    async def edit(
        self, kind: ValuesKind, branch: str, wanted: Mapping[str, str | None], name: str = ""
    ) -> WrittenValues:
        """Write the wanted values that do not hold yet, naming the operations that they replace. Costs O(those), each
        O(log n).

        Raises ServiceError `bad_request` for a bad name, item or key, `too_large` for a value that no commit puts.
        """
        for key, value in wanted.items():
            check_sizes(key, value or "")

        def choose(look: Look) -> list[NewValue]:
            entries = look.load(list(wanted))
            return [
                NewValue(key, value, entries.get(key, NOTHING_SAID).tips)
                for key, value in wanted.items()
                if not has_value(entries.get(key, NOTHING_SAID), value)
            ]

        return await self.write(kind, branch, name, choose)

    async def write(
        self, kind: ValuesKind, branch: str, name: str, choose: Callable[[Look], list[NewValue]]
    ) -> WrittenValues:
        """Write the operations that `choose` returns for what the document holds at that moment.

        Raises ServiceError `bad_request` for a bad name.
        """
        if fault := find_name_fault(name):
            raise ServiceError(
                "bad_request", f"the name of a document {fault}", "choose another name, such as `card/7`"
            )
        target = self._find_branch(branch)
        said: list[NewValue] = []
        drafts: list[Draft] = []
        nums: dict[CommitId, int] = {}

        def plan(connection: Connection) -> list[Draft]:
            document = self._refresh(connection, target, kind, name)
            said[:] = choose(Look(self._state, connection, document, has_turn=True))
            own = 0 if document is None else document.depth
            drafts[:] = [
                make_draft(kind, name, group, own) for group in group_values(said, kind.edit_count_max)
            ]
            return drafts + (self.drafts_of_return(connection, target, kind.name, name) if drafts else [])

        def number(connection: Connection, written: Sequence[WrittenCommit]) -> None:
            nums.update(load_nums(connection, [one.commit_id for one in written]))

        written = await read_opened(
            self._hub,
            target,
            lambda: write_commits(self._hub, self._author, target, plan, number),
            kind.bodies,
            name,
        )
        self._reader.keep_written(
            {
                nums[one.commit_id]: (one.commit_id, draft.body)
                for one, draft in zip(written, drafts, strict=False)  # what brings a document back comes last
                if one.commit_id in nums and isinstance(draft.body, ValuesEdit)
            }
        )
        return WrittenValues(
            id_text(target.branch_id),
            [id_text(one.commit_id) for one in written],
            [operation.key for operation in said if operation.value is not None],
            [operation.key for operation in said if operation.value is None],
        )

    async def snapshot(
        self, kind: ValuesKind, branch: str, name: str = "", *, without_missing: bool = False
    ) -> DocumentSnapshot:
        """Restate the whole content of the branch's document, in as few commits as possible, where others wrote it.

        With `without_missing`, absent bodies count as empty. Raises ServiceError `too_large` if one key's conflicts
        alone are too long, `not_found` and `incomplete`.
        """
        target = self._find_branch(branch)
        summed: list[WrittenCommit] = []
        if kind == JSON:
            sums = partial(self._draft_sums, branch=target, name=name)
            summed = await write_commits(self._hub, self._author, target, sums)

        def plan(connection: Connection) -> list[Draft]:
            said = self._read(connection, target, kind, name)
            # Of a name that was mistyped it would be said that nothing is left to do.
            if name and not said and not self._is_listed(connection, target, kind, name):
                raise ServiceError(
                    "not_found",
                    f"no {kind.name} is called {name!r}",
                    "`ravel document list BRANCH` shows what there is",
                )
            settled = {id(one) for one in find_settled(said)}
            if all(id(one) in settled or one.bit for one in said):
                return []
            entries = self._reduce_said(pass_over_missing(kind, said) if without_missing else said)
            return [Draft(body, document=name) for body in snapshot(entries, kind)]

        def write() -> Awaitable[list[WrittenCommit]]:
            return write_commits(self._hub, self._author, target, plan)

        written = await read_opened(self._hub, target, write, kind.bodies, name)
        return {
            "branch": id_text(target.branch_id),
            "commits": [id_text(one.commit_id) for one in (*summed, *written)],
        }

    def _draft_sums(self, connection: Connection, branch: Branch, name: str) -> list[Draft]:
        """Draft an increment in place of all that this user added, for counters of more than a snapshot restates.

        Each user's own alone: two users who put the sum of the same ones would have it counted twice.
        """
        try:
            document = self._refresh(connection, branch, JSON, name)
        except ServiceError as error:
            if error.code not in UNREADABLE:
                raise
            return []
        if not isinstance(document, Document):
            return []
        own = load_own_increments(
            connection,
            document.num,
            branch.num,
            self._author.user,
            SNAPSHOT_COMMIT_COUNT_MAX,
            _SUMMED_COUNT_MAX,
        )
        sums = [
            NewValue(
                one.key, increment_text(one.added), tuple(DocumentValue(*of, "") for of in one.increments)
            )
            for one in own
            if len(one.increments) > 1 and abs(one.added) <= WHOLE_NUMBER_MAX
        ]
        return [
            make_draft(JSON, name, group, document.depth) for group in group_values(sums, JSON.edit_count_max)
        ]

    async def open_all(self, kind: ValuesKind, branches: Sequence[str]) -> None:
        """Fetch the absent bodies of all documents of a kind, of branches that are not kept: for callers that read many
        documents.

        Costs O(branches of the repos), and in those not kept O(absent bodies) and one wait of `fetch_opened`.
        """
        targets = [self._find_branch(branch) for branch in branches]
        spared = {
            one.repo_num
            for one in targets
            if not all(other.is_kept for other in self._hub.replica.branches_in(one.repo_num))
        }
        if spared:
            await open_bodies(self._hub, [one for one in targets if one.repo_num in spared], kind.bodies)

    async def list_names(
        self, kind: ValuesKind, branch: str, prefix: str, after: str | None, limit: int
    ) -> list[str]:
        """List the document names with a prefix that follow a given one, by UTF-8 bytes. A document without content has
        its name still.

        Costs O(limit and log n).
        """
        return await self._load(
            branch, lambda connection, nums: load_names(connection, nums, kind.name, prefix, after, limit)
        )

    async def read_first(
        self,
        kind: ValuesKind,
        branch: str,
        names: Sequence[str],
        view: Callable[[Mapping[str, DocumentEntry]], T],
        is_enough: Callable[[], bool],
        *,
        opens: bool,
    ) -> list[T]:
        """Return what `view` makes of the first of some documents, read at one moment, until that is enough.

        One is read at least. One that is large or must be made anew is read alone: others read or write before the next.
        `opens`: the first is opened where it is not kept. Costs O(what stands of them). Raises ServiceError `incomplete`,
        `too_large` where the first cannot be read.
        """
        target = self._find_branch(branch)

        def read(connection: Connection, has_turn: bool) -> list[T]:
            documents = self._state.find_first(connection, target, kind, names)
            found: list[T] = []
            try:
                for entries in self._state.read_whole(connection, documents, has_turn=has_turn):
                    found.append(view(entries))
                    if is_enough():
                        break
            except LargeDocument:
                if not found:
                    raise
            except ServiceError as error:
                if error.code not in UNREADABLE or not found:
                    raise
            return found

        return await self._read_fresh(target, kind, names[0], read, opens=opens)

    async def list_changes(
        self, kind: ValuesKind, branch: str, since: int, limit: int
    ) -> ChangedDocuments | None:
        """List documents that have changed since a change, or must be made anew, and whether REMOVED has.

        None where these are over `limit`. Costs O(changes since then).
        """
        mark = (SET.name, REMOVED)
        return await self._load(
            branch, lambda connection, nums: load_changed(connection, nums, kind.name, mark, since, limit)
        )

    async def find_last_change(self, branch: str) -> int:
        """Return the last change of a branch's documents, for `list_changes`."""
        return await self._load(branch, load_last_change)

    def drafts_of_return(self, connection: Connection, branch: Branch, kind: str, name: str) -> list[Draft]:
        """Draft what brings back a document that was removed and is written to; none for others. Costs O(log n)."""
        if name.startswith("."):
            return []
        try:
            document = self._refresh(connection, branch, SET, REMOVED)
        except ServiceError as error:
            if error.code not in UNREADABLE:
                raise
            return []  # one document that cannot be read keeps nobody from writing others
        item = document_key(kind, name)
        entries = self._state.entries(connection, document, [item], has_turn=True)
        entry = entries.get(item, NOTHING_SAID)
        if document is None or not entry.values:
            return []
        return [make_draft(SET, REMOVED, [NewValue(item, None, entry.tips)], document.depth)]

    async def _load(self, branch: str, load: Callable[[Connection, list[int]], T]) -> T:
        """Run `load` with the numbers of a branch and of the branches that it continues."""
        target, replica = self._find_branch(branch), self._hub.replica

        def run() -> T:
            with replica.database.read() as connection:
                return load(connection, lineage_nums(replica, connection, target))

        return await self._hub.run_blocking(run)

    async def _read_fresh(
        self,
        branch: Branch,
        kind: ValuesKind,
        name: str,
        read: Callable[[Connection, bool], T],
        *,
        opens: bool = True,
    ) -> T:
        """Run `read` once a document is up to date and, with `opens`, its absent bodies were fetched.

        If `read` raises LargeDocument, it is called again with True, when no other large document is read.
        """

        def refresh(connection: Connection) -> None:
            self._refresh(connection, branch, kind, name)

        def run_once(has_turn: bool) -> Awaitable[T]:
            database = self._hub.replica.database
            return self._hub.run_blocking(
                read_fresh, database, lambda connection: read(connection, has_turn), refresh
            )

        async def run() -> T:
            with suppress(LargeDocument):
                return await run_once(has_turn=False)
            async with self._large:
                return await run_once(has_turn=True)

        return await read_opened(self._hub, branch, run, kind.bodies, name) if opens else await run()

    def _refresh(
        self, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> StandingDocument | None:
        return self._state.refresh(self._hub.replica.database, connection, branch, kind, name)

    def _is_listed(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> bool:
        return is_listed(connection, lineage_nums(self._hub.replica, connection, branch), kind.name, name)

    def _reduce_said(self, said: Sequence[DocumentCommit]) -> dict[str, DocumentEntry]:
        try:
            return reduce_values(said)
        except ErasedValues as error:
            raise not_here(error) from None

    def _read(
        self, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> list[DocumentCommit]:
        said: list[DocumentCommit] = []
        size = operations = 0
        for one, encoded_size in self._reader.read(connection, branch, kind, name):
            said.append(one)
            size += encoded_size
            operations += 1 if one.body is None else one.body.value_count
            if size > DOCUMENT_SIZE_MAX or operations > DOCUMENT_HISTORY_MAX:
                raise ServiceError(
                    "too_large",
                    f"the branch's {kind.name} was written in over {DOCUMENT_HISTORY_MAX} operations "
                    f"or {DOCUMENT_SIZE_MAX} bytes",
                    "compact the branch and let its old bodies go here (`ravel branch compact`, [storage] erase_after_days, "
                    "`ravel gc`), or begin another with what is in use",
                )
        return said


def document_key(kind: str, name: str) -> str:
    """Return the key of a document in `.titles`, and its item in `.removed`."""
    return f"{kind}/{name}"
