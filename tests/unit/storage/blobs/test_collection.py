"""Whatever happens while given-up contents are collected, all other files can be read."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from protocol.formats.block import Block, Reference
from protocol.formats.content import FileEntry, Files
from protocol.formats.object import build_object
from protocol.limits.formats import LEAF_SIZE
from storage.blobs import garbage_collection
from storage.blobs.files import StoredObject
from storage.blobs.garbage_collection import Collection, Outdated
from storage.blobs.pack_moves import remove_packs
from storage.blobs.packs import PackDraft
from storage.schema.schema import files, spared_files
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node

_ACTS = 250
_LEAVES = [bytes([number]) * LEAF_SIZE for number in range(6)]
"""Few, so that files share blocks."""


class _Play:
    """A node of which some files are given up, added again and collected, as chance has it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.node = Node(folder, "alice")
        self.node.create_repo()
        self._held: dict[
            str, tuple[Reference, bytes]
        ] = {}  # by name: files that were not given up since they came
        self._given_up: list[bytes] = []
        self._names = 0
        self._collection: Collection | None = None
        self._drafts: list[tuple[ExitStack, PackDraft, Reference, bytes]] = []

    def act(self) -> None:
        """Do something, and see that all is there."""
        acts: dict[Callable[[], None], int] = {
            self._put: 6,
            self._keep: 6,
            self._spare: 7,
            self._take_back: 1,
            self._begin: 3,
            self._step: 9,
            self._end: 1,
            self._restart: 1,
        }
        self.chance.choices([*acts], [*acts.values()])[0]()
        self._look()

    def close(self) -> None:
        """End, and see that the store is whole."""
        self._restart()
        self._look()
        self.node.replica.close()
        assert check_store(self.node.folder, STORE_KEY).problems == []

    def _put(self) -> None:
        """Begin to add a file; what it names must be here once it is kept, and not before."""
        data = b"".join(self.chance.sample(_LEAVES, k=self.chance.randrange(1, 3)))
        if self._given_up and self.chance.random() < 0.7:
            data = self.chance.choice(self._given_up)
        reference, blocks = build_object(data, self.node.epoch().convergence_secret)
        stack = ExitStack()
        draft = stack.enter_context(self.node.replica.packs.draft())
        self._drafts.append((stack, draft, reference, data))
        _put_all(draft, blocks)

    def _keep(self) -> None:
        if not self._drafts:
            return
        stack, draft, reference, data = self._drafts.pop(self.chance.randrange(len(self._drafts)))
        with stack:
            draft.finish()
            self._names += 1
            name = f"file {self._names}"
            added = Draft(Files((FileEntry(name, len(data)),)), files=(reference,))
            branch = self.node.branch()
            self.node.author.write(branch, added, after=lambda connection, _: draft.keep(connection))
            draft.is_kept = True
        self._held[name] = reference, data

    def _spare(self) -> None:
        if self._held:
            name = self.chance.choice(sorted(self._held))
            self._given_up.append(self._held.pop(name)[1])
            with self.node.replica.database.write() as connection:
                num = connection.execute(select(files.c.num).where(files.c.name == name)).scalar_one()
                connection.execute(
                    insert(spared_files).values(file_num=num, branch_num=self.node.branch().num)
                )

    def _take_back(self) -> None:
        """Give a file up no more: it is read as far as it is here."""
        with self.node.replica.database.write() as connection:
            nums = list(connection.execute(select(spared_files.c.file_num)).scalars())
            if nums:
                chosen = spared_files.c.file_num == self.chance.choice(nums)
                connection.execute(delete(spared_files).where(chosen))

    def _begin(self) -> None:
        self._end()
        self._collection = Collection(self.node.replica.database, self.node.replica.packs)
        self._collection.mark_given_up()

    def _step(self) -> None:
        if self._collection is None:
            self._begin()
        assert self._collection is not None
        try:
            self._collection.step()
        except Outdated:
            self._end()

    def _end(self) -> None:
        if self._collection is not None:
            self._collection.end()
            remove_packs(self.node.folder, self._collection.retired)
            self._collection = None

    def _restart(self) -> None:
        """Stop and start; what was retired and not yet deleted is the start's to delete."""
        for stack, *_ in self._drafts:
            stack.close()
        self._drafts.clear()
        if self._collection is not None:
            self._collection.end()
            self._collection = None
        self.node.replica.close()
        self.node.open()
        assert not (self.node.folder / "quarantine").exists()

    def _look(self) -> None:
        secret, replica = self.node.epoch().convergence_secret, self.node.replica
        for reference, data in self._held.values():
            stored = StoredObject(replica.database, replica.packs, reference, secret)
            assert b"".join(stored.read(0, stored.size)) == data


def _put_all(draft: PackDraft, blocks: list[Block]) -> None:
    for block in blocks:
        draft.put(block)
    draft._flush()  # so that it is told now what is here


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_file_loses_a_block_that_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(garbage_collection, "_STEP_ROWS", 2 + 3 * seed)
    monkeypatch.setattr(garbage_collection, "_SCANNED_ROWS", 7)
    play = _Play(tmp_path, seed)
    for _ in range(_ACTS):
        play.act()
    play.close()
