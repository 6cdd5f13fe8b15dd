"""Files of branches: add from a stream, list, read by range, remove, in constant memory.

Memory stays flat whatever a file's size.

An add encrypts blocks as bytes come in and writes them to a pack; the commit that names the file and the rows that name
its blocks are one transaction, so an add that is cut leaves nothing that anyone sees. What travels to other nodes is the
commit; content that is not here is fetched from peers as it is read (`node.sync.fetching`), and kept.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypedDict

import trio
from blake3 import blake3
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.write_queue import Plan
from node.authoring.writing import write_commit, write_commits, write_job
from node.content.file_batch import EncryptedFile, FileBatch, draft_files, group_files
from node.content.file_places import find_places
from node.contract.files import find_name_fault
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.runtime.resolve import PREFIX_SIZE_MIN
from node.sync.fetching import fetch_blocks
from node.sync.hub import Hub
from node.timelines.commit_fields import CARRIED, find_origins
from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference, WrongKey
from protocol.formats.content import Files
from protocol.formats.object import MissingBlocks, ObjectBuilder
from protocol.formats.text import id_text, parse_id_prefix
from protocol.ids import BlockId, CommitId, ObjectId, PeerId, ShortId, UserId
from protocol.limits.formats import FILE_SIZE_MAX, LEAF_SIZE, OBJECT_DEPTH_MAX
from protocol.limits.peers import FETCH_WINDOW_COUNT_MAX
from protocol.limits.users import UPLOADS_MAX
from protocol.session.deposits import short_file
from ravel.types.commits import Origin
from ravel.types.files import AddedFile, AddedFiles, FileList, FileView, RemovedFile
from storage.blobs.files import FileRow, StoredObject, find_files, find_same_files, load_files
from storage.blobs.packs import PackDraft
from storage.blobs.relayed_files import find_keeping_relays
from storage.blobs.spared import keep_files
from storage.blobs.unfetched import note_files_added
from storage.commits.commits import load_rows
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch

PIECE_SIZE: Final = 4 * LEAF_SIZE
"""Bytes handled in one hop to a thread: a hop costs a quarter of a millisecond, encrypting this much two."""
_WINDOW_SIZE: Final = FETCH_WINDOW_COUNT_MAX * LEAF_SIZE - PIECE_SIZE
"""Bytes behind a piece of which it is made sure that they are here, too."""
_FOUND_MAX: Final = 50
_TINY_SIZE: Final = 16
"""Bytes of content from which no two share an id."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that can be read. `size` is that of its content, whatever its author said."""

    name: str
    object_id: ObjectId
    file_id: str
    tag: str
    """Tells contents apart: the id, and of very small content more."""
    size: int
    content: StoredObject
    branch: Branch


class _Author(TypedDict):
    author: str
    author_name: str


class FileService:
    """Adds, lists, reads and removes files of branches, which are named as `find_branch` takes them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        find_branch: Callable[[str], Branch],
        uses_relays: Callable[[], bool] = lambda: False,
    ) -> None:
        self._uses_relays = uses_relays
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._adding = trio.CapacityLimiter(UPLOADS_MAX)

    async def add(self, branch_text: str, name: str, chunks: AsyncGenerator[bytes]) -> FileView:
        """Add a file of this content; durable when it returns.

        Raises ServiceError `bad_request`, `too_large`, `not_permitted`; StorageError.
        """
        _check_name(name)
        branch, epoch = await self._open_for_writing(branch_text)
        run = self._hub.run_blocking
        async with self._adding:
            with self._hub.replica.packs.draft() as draft:
                builder = ObjectBuilder(epoch.convergence_secret, draft.put)
                async with aclosing(_pieces(chunks)) as pieces:
                    async for piece in pieces:
                        if builder.size + len(piece) > FILE_SIZE_MAX:
                            raise ServiceError("too_large", f"a file has at most {FILE_SIZE_MAX} bytes")
                        await run(builder.add, piece)
                reference = await run(_finish, builder, draft)
                file = EncryptedFile(name, builder.size, reference)
                [written] = await self._write(branch, epoch, draft, [draft_files([file])])
        return _added_view(file, written, self._own_fields(branch))

    async def add_many(self, branch_text: str, chunks: AsyncGenerator[bytes]) -> AddedFiles:
        """Add the files of a stream (`FileBatch`), all or none; durable when it returns.

        Files that the branch has already, by name and content, are passed over. Raises ServiceError as `add`.
        """
        branch, epoch = await self._open_for_writing(branch_text)
        run = self._hub.run_blocking
        async with self._adding:
            with self._hub.replica.packs.draft() as draft:
                batch = FileBatch(epoch.convergence_secret, draft.put)
                async with aclosing(_pieces(chunks)) as pieces:
                    async for piece in pieces:
                        await run(batch.add, piece)
                adding = _Adding(branch, await run(_finish_batch, batch, draft), self._keep_again)
                written = await self._write(branch, epoch, draft, adding.plan, adding.keep_known)
                if not written:
                    # Others may have added the same, and their content has not come here, or was given up.
                    await self._hub.write(self._keep_content, draft, adding)
        files = await run(adding.views, written, self._own_fields(branch), self._names(branch))
        return {"branch": id_text(branch.branch_id), "files": files}

    async def _open_for_writing(self, branch_text: str) -> tuple[Branch, Epoch]:
        """Return the branch, and the epoch that files are encrypted for. Raises ServiceError, before gigabytes come in."""
        branch = self._find_branch(branch_text)
        replica = self._hub.replica
        repo = replica.repos[branch.repo_num]
        if not self._author.may_write(branch):
            raise ServiceError(
                "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
            )
        await write_job(self._hub, partial(self._author.preparation.prepare, repo))
        return branch, replica.writing_epoch(repo)

    async def _write(
        self,
        branch: Branch,
        epoch: Epoch,
        draft: PackDraft,
        drafts: Sequence[Draft] | Plan,
        keep_known: Callable[[Connection], None] = lambda _: None,
    ) -> list[WrittenCommit]:
        """Write commits that name what the draft holds."""
        written = await write_commits(
            self._hub,
            self._author,
            branch,
            drafts,
            after=partial(_keep_added, draft, branch.num, keep_known),
            files_epoch=epoch.num,
        )
        draft.is_kept = bool(written)
        return written

    def _own_fields(self, branch: Branch) -> _Author:
        """Return this user's fields in a view of a file."""
        user = self._author.user
        return _Author(author=id_text(user), author_name=self._names(branch)(user))

    def _names(self, branch: Branch) -> Callable[[UserId], str]:
        """Return the function that names people of the branch's repo."""
        return partial(self._hub.replica.people.name, branch.facts.repo_id)

    async def window(self, branch: str, after: int, limit: int, *, places: bool = False) -> FileList:
        """List a window of the files that are there: those after number `after` (0: from the start).

        `places`: say where the content of each is, at the cost of `find_places`.
        """
        target = self._find_branch(branch)
        rows, relayed, origins, found = await self._hub.run_blocking(
            partial(self._load, target, after, limit, places=places)
        )
        names = self._names(target)
        return {
            "files": [
                _view(
                    row,
                    names,
                    len(relayed.get(short_file(row.object_id), ())),
                    origins.get(row.commit_id),
                    found.get(row.num),
                )
                for row in rows
            ],
            "next": rows[-1].num if len(rows) == limit else None,
            "uses_relays": self._uses_relays(),
            "refusals": [
                {"relay": id_text(relay), "reason": reason}
                for (relay, repo_num), reason in sorted(self._hub.file_refusals.items())
                if repo_num == target.repo_num
            ],
        }

    async def open(self, branch_text: str, text: str) -> OpenFile:
        """Open the file of that name, id or unique prefix. Raises ServiceError `not_found`, `ambiguous`, `incomplete`."""
        branch = self._find_branch(branch_text)
        for _ in range(OBJECT_DEPTH_MAX):
            try:
                row, content = await self._hub.run_blocking(self._open, branch, text)
                break
            except MissingBlocks as error:  # of the tree's right edge, which tells the size
                row = await self._hub.run_blocking(self._find_readable, branch, text)
                await self._fetch(branch, row.object_id, error.ids)
        else:
            raise ServiceError("bad_input", "the file was not made as its author says: it is too deep")
        if row.size is not None and content.size != row.size:
            raise ServiceError(
                "bad_input", f"the file has {content.size} bytes, and its author says {row.size}"
            )
        file_id = id_text(row.object_id)
        # The id is a hash of ciphertext, of which one byte has 256 values, under whatever key.
        tag = (
            file_id if content.size >= _TINY_SIZE else f"{file_id}-{blake3(row.object_key).hexdigest()[:16]}"
        )
        return OpenFile(row.name, row.object_id, file_id, tag, content.size, content, branch)

    async def read(self, file: OpenFile, start: int, stop: int) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` to before `stop`. Raises ServiceError `incomplete` or StorageError on the way."""
        held = file.content.read_held(start, stop)
        if held is not None:  # a small file takes no hop to a thread
            if held:
                yield held
            return
        checked = start
        while start < stop:
            end = min(start + PIECE_SIZE, stop)
            if end > checked:
                checked = min(end + _WINDOW_SIZE, stop)
                await self._fetch_missing(file, start, checked)
            for part in await self._hub.run_blocking(_read, file, start, end):
                yield part
            start = end

    async def remove(self, branch: str, file: str) -> RemovedFile:
        """Remove a file from the branch; its content stays where nodes have it. Raises ServiceError."""
        target = self._find_branch(branch)
        rows = await self._hub.run_blocking(self._find_one, target, file)
        adders = tuple(dict.fromkeys(row.commit_id for row in rows))
        draft = Draft(Files(()), deps=adders, removed_files=(rows[0].object_id,))
        written = await write_commit(self._hub, self._author, target, draft)
        return {
            "commit": id_text(written.commit_id),
            "file": id_text(rows[0].object_id),
            "names": sorted({row.name for row in rows}),
        }

    async def fetch(self, branch: Branch, object_id: ObjectId, has_room: Callable[[], bool]) -> bool:
        """Fetch all of a content and return True; return False once the disk is full: a file may have a TiB.

        Raises ServiceError as `open` and `read`, StorageError.
        """
        file = await self.open(id_text(branch.branch_id), id_text(object_id))
        for start in range(0, file.size, _WINDOW_SIZE):
            if not await self._hub.run_blocking(has_room):
                return False
            await self._fetch_missing(file, start, min(start + _WINDOW_SIZE, file.size))
        return True

    async def _fetch_missing(self, file: OpenFile, start: int, stop: int) -> None:
        """Get what is not here of a range: level by level of its tree, then its leaves."""
        while True:
            missing = await self._hub.run_blocking(_find_missing, file, start, stop)
            if not missing:
                return
            await self._fetch(file.branch, file.object_id, missing)

    async def _fetch(self, branch: Branch, object_id: ObjectId, ids: Sequence[BlockId]) -> None:
        """Fetch blocks of a content. It is not given up for what was shown before. Raises as `fetch_blocks`."""
        repo = self._hub.replica.repos.get(branch.repo_num)  # None: it was deleted meanwhile
        if repo is not None and repo.kept_days:
            await self._hub.write(self._keep_fetched, branch, object_id)
        await fetch_blocks(self._hub, branch, ids)

    # --- in threads ---

    def _keep_fetched(self, branch: Branch, object_id: ObjectId) -> None:
        with self._hub.replica.database.write() as connection:
            self._keep_again(connection, branch, [object_id])

    def _keep_again(self, connection: Connection, branch: Branch, ids: Sequence[ObjectId]) -> None:
        for object_id in ids:
            self._hub.proofs.lose_file(object_id)
        keep_files(connection, branch.num, ids)

    def _keep_content(self, draft: PackDraft, adding: "_Adding") -> None:
        with self._hub.replica.database.write() as connection:
            draft.keep(connection)
            adding.keep_known(connection)
        draft.is_kept = True

    def _load(
        self, branch: Branch, after: int, limit: int, *, places: bool
    ) -> tuple[list[FileRow], dict[ShortId, set[PeerId]], dict[CommitId, Origin], dict[int, str]]:
        with self._hub.replica.database.read() as connection:
            rows = load_files(connection, branch.num, after, limit)
            carried = {row.commit_id for row in rows if row.body_kind == CARRIED}
            origins = find_origins(connection, self._hub.replica, load_rows(connection, carried).values())
            relayed = find_keeping_relays(connection, [row.object_id for row in rows])
            found = find_places(connection, self._hub.replica, rows, relayed) if places else {}
            return rows, relayed, origins, found

    def _find(self, branch: Branch, text: str) -> list[FileRow]:
        try:
            ids = parse_id_prefix(text) if len(text) >= PREFIX_SIZE_MIN else None
        except DecodeError:
            ids = None
        with self._hub.replica.database.read() as connection:
            return find_files(connection, branch.num, text, ids, _FOUND_MAX)

    def _find_readable(self, branch: Branch, text: str) -> FileRow:
        row = next((row for row in self._resolve(branch, text) if row.reference is not None), None)
        if row is None:
            raise ServiceError("not_permitted", "the file's author gave no key to it")
        return row

    def _open(self, branch: Branch, text: str) -> tuple[FileRow, StoredObject]:
        row = self._find_readable(branch, text)
        assert row.reference is not None, "it has a key"
        replica = self._hub.replica
        with _content_faults():
            secret = replica.convergence_secret(row)
            content = StoredObject(replica.database, replica.packs, row.reference, secret)
        return row, content

    def _resolve(self, branch: Branch, text: str) -> list[FileRow]:
        """Return the entries of one content: it may have been added more than once."""
        rows = self._find_one(branch, text)
        if len(_keys_of(rows)) > 1:
            raise ServiceError(
                "ambiguous",
                f"{rows[0].name!r} was added with several contents of a few bytes that have one id",
                "`ravel file rm` removes them; add one again under another name",
            )
        return rows

    def _find_one(self, branch: Branch, text: str) -> list[FileRow]:
        """Return the entries of one id; contents that share it all have the same name."""
        rows = self._find(branch, text)
        if not rows:
            raise ServiceError(
                "not_found", f"no file is called {text!r}", "`ravel file list BRANCH` shows what there is"
            )
        if len({row.object_id for row in rows}) > 1:
            raise ServiceError("ambiguous", f"more than one file fits {text!r}", "give an id, or more of it")
        names = sorted({row.name for row in rows})
        if len(_keys_of(rows)) > 1 and len(names) > 1:
            raise ServiceError(
                "ambiguous",
                f"contents of a few bytes share the id {text!r}: they are called {', '.join(map(repr, names))}",
                "give the name",
            )
        return rows


def _keys_of(rows: Sequence[FileRow]) -> set[BlockKey]:
    """Return the keys of one id: content of a byte or two can have the id of other content, under another key."""
    return {row.object_key for row in rows if row.object_key}


class _Adding:
    """Files of one request on their way into the store."""

    def __init__(
        self,
        branch: Branch,
        files: list[EncryptedFile],
        keep_again: Callable[[Connection, Branch, Sequence[ObjectId]], None],
    ) -> None:
        self._branch = branch
        self._files = files
        self._keep_again = keep_again
        self._known: dict[int, FileRow] = {}
        self._groups: list[list[int]] = []

    def plan(self, connection: Connection) -> list[Draft]:
        """Draft the commits that add what the branch lacks now."""
        wanted = [(file.name, file.reference) for file in self._files]
        same = find_same_files(connection, self._branch.num, wanted)
        self._known = {place: same[one] for place, one in enumerate(wanted) if one in same}
        new = [place for place in range(len(wanted)) if place not in self._known]
        self._groups = group_files(self._files, new)
        return [draft_files(self._files[place] for place in group) for group in self._groups]

    def keep_known(self, connection: Connection) -> None:
        """Mark contents that the branch has already as not to be given up: they may be nowhere else."""
        self._keep_again(connection, self._branch, list({row.object_id for row in self._known.values()}))

    def views(
        self, written: Sequence[WrittenCommit], author: _Author, name_of: Callable[[UserId], str]
    ) -> list[AddedFile]:
        """Return the answer once these commits were written."""
        found: dict[int, AddedFile] = {
            place: {**_view(row, name_of), "is_new": False} for place, row in self._known.items()
        }
        for group, commit in zip(self._groups, written, strict=True):
            commit_text = id_text(commit.commit_id)
            for place in group:
                view = _added_view(self._files[place], commit, author, commit_text)
                found[place] = {**view, "is_new": True}
        return [found[place] for place in range(len(self._files))]


def _keep_added(
    draft: PackDraft,
    branch_num: int,
    keep_known: Callable[[Connection], None],
    connection: Connection,
    written: Sequence[WrittenCommit],
) -> None:
    """Keep in the storing transaction the content that commits add, and note that it is here alone."""
    draft.keep(connection)
    keep_known(connection)
    note_files_added(connection, branch_num, {one.commit_id for one in written})


def _finish_batch(batch: FileBatch, draft: PackDraft) -> list[EncryptedFile]:
    files = batch.finish()
    draft.finish()
    return files


def _finish(builder: ObjectBuilder, draft: PackDraft) -> Reference:
    reference = builder.finish()
    draft.finish()
    return reference


def _find_missing(file: OpenFile, start: int, stop: int) -> list[BlockId]:
    with _content_faults():
        return file.content.find_missing(start, stop, FETCH_WINDOW_COUNT_MAX)


def _read(file: OpenFile, start: int, stop: int) -> list[bytes]:
    try:
        with _content_faults():
            return file.content.read(start, stop)
    except MissingBlocks as error:  # it was here a moment ago
        raise ServiceError("incomplete", f"the file's content has gone: {error}", "get it again") from None


@contextmanager
def _content_faults() -> Iterator[None]:
    """Turn what may be wrong with content that others made into errors for people."""
    try:
        yield
    except (WrongKey, DecodeError) as error:
        raise ServiceError("bad_input", f"the file was not made as its author says: {error}") from None


async def _pieces(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[memoryview]:
    """Yield the bytes in pieces of PIECE_SIZE, the last one what remains. A piece is gone when the next is asked for.

    One buffer serves them all: it grows while the first piece comes in, so that small files do not pay for a large one.
    """
    buffer = bytearray()
    filled = 0
    async with aclosing(chunks):
        async for chunk in chunks:
            rest = memoryview(chunk)
            while rest:
                part = rest[: PIECE_SIZE - filled]
                rest = rest[len(part) :]
                if filled == len(buffer):
                    buffer += part
                else:
                    memoryview(buffer)[filled : filled + len(part)] = part
                filled += len(part)
                if filled == PIECE_SIZE:
                    yield memoryview(buffer)
                    filled = 0
    if filled:
        yield memoryview(buffer)[:filled]


def _check_name(name: str) -> None:
    fault = find_name_fault(name)
    if fault:
        raise ServiceError("bad_request", fault)


def _view(
    row: FileRow,
    name_of: Callable[[UserId], str],
    relays: int = 0,
    origin: Origin | None = None,
    place: str | None = None,
) -> FileView:
    view: FileView = {
        "file": id_text(row.object_id),
        "name": row.name,
        "size": row.size,
        "commit": id_text(row.commit_id),
        "author": id_text(row.author),
        "author_name": name_of(row.author),
        "time": row.timestamp // 1000,
        "relays": relays,
    }
    if origin is not None:
        view["origin"] = origin
    if place is not None:
        view["place"] = place
    return view


def _added_view(
    file: EncryptedFile, commit: WrittenCommit, author: _Author, commit_text: str = ""
) -> FileView:
    """Return a file's view. Author and commit are given as text: many files share them, and the texts cost more than
    all else."""
    return {
        "file": id_text(file.reference.object_id),
        "name": file.name,
        "size": file.size,
        "commit": commit_text or id_text(commit.commit_id),
        "author": author["author"],
        "author_name": author["author_name"],
        "time": commit.timestamp // 1000,
        "relays": 0,
    }
