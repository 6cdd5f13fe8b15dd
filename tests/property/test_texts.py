"""Equal sets of updates give equal texts: against a reference that shares no code, in any order of arrival and grouping."""

import random
import tempfile
from base64 import b64decode
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pycrdt import Doc, Text

from node.authoring.author import Author
from node.content import text_keeping
from node.content import texts as texts_module
from node.content.text_reading import TextReader
from node.content.text_versions import Piece, merge_pieces
from node.content.texts import Texts
from node.sync.hub import Hub
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body, Carried, encode_body
from protocol.formats.declared_kind import declare_kind
from protocol.formats.document_kinds import SaidUpdate, TextSnapshot, TextUpdate
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text
from protocol.ids import BlockId, BranchId, CommitId, ObjectId
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.commits import load_timeline
from storage.commits.void_marks import load_judged, mark_void
from tests.support.blocking import inline
from tests.support.builders import NOW_MS, World, give
from tests.support.editors import Editor, client_id
from tests.support.forging import Forger
from tests.support.ids import as_commit_id
from tests.support.looking import look_here
from tests.support.reference_texts import SESSION_BITS, Word, fill, in_groups, reduce
from tests.support.text_histories import TYPED, TextHistory
from tests.vectors.second_texts import Clock
from tests.vectors.second_texts import read_update as read_second
from verifier.texts import Run, TextEdit, read_ranges, reduce_text

_SLOW_STORE = settings(
    max_examples=min(15, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)


_KEY = itemgetter("commit", "fault")


def _edit(word: Word) -> TextEdit:
    name = _name(word.name)
    place = (*word.place[:3], as_commit_id(word.place[3].to_bytes(32, "big")))
    return TextEdit(
        name,
        place,  # type: ignore[arg-type]  # four parts
        word.clients,
        read_ranges(word.update),
        tuple(map(_name, word.replaces)),
        word.is_copy,
        word.is_stray,
    )


def _name(name: str) -> CommitId:
    return as_commit_id(name.encode().ljust(32))


def _pieces(words: Sequence[Word]) -> tuple[list[Piece], set[CommitId]]:
    """Return what the product makes of words."""
    by_place = {word.place: word for word in words}
    state = reduce_text([_edit(word) for word in words])
    pieces = [
        Piece.left_of(by_place[*one.edit.place[:3], int.from_bytes(one.edit.place[3])].update, one.shape)
        for one in state.shown
    ]
    return pieces, {one.name for one, _ in state.passed_over}


def _document(update: bytes) -> "Doc[Any]":
    document: Doc[Any] = Doc(client_id=1)
    document.apply_update(update)
    return document


def _typed_letters(pieces: Sequence[Piece]) -> list[str]:
    """The letters that editors typed and nobody deleted."""
    found: dict[Clock, str] = {}
    for piece in pieces:
        for clock, (struct, at) in read_second(piece.encoded)[0].items():
            if struct.encoded[0] & 31 == 4:
                found[clock] = struct.encoded.decode("latin-1")[at - struct.length]
    gone = {clock for piece in pieces for clock in _clocks(piece.deletes)}
    return [letter for clock, letter in found.items() if clock not in gone and letter in TYPED]


@pytest.mark.slow
@pytest.mark.same_examples
@settings(max_examples=max(300, settings().max_examples))
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 24))
def test_texts_are_what_the_reference_says_in_any_order_and_grouping(seed: int, count: int) -> None:
    rng = random.Random(seed)
    words = TextHistory(rng).write(count)
    standing = [word for word in words if rng.random() < 0.85]  # the others are void
    expected = reduce(standing)
    pieces, passed_over = _pieces(standing)
    update = merge_pieces(pieces)
    document = _document(update)
    assert str(document.get("t", type=Text)) == expected.text
    assert document.get_update() == expected.document.get_update(), (
        "the canonical encoding of all that it holds"
    )
    assert passed_over == set(map(_name, expected.passed_over))
    letters = sorted(letter for letter in expected.text if letter in TYPED)
    assert letters == sorted(_typed_letters(pieces)), "beside no crafted item a letter is lost"
    for _ in range(3):
        shuffled = rng.sample(standing, len(standing))
        again, _ = _pieces(shuffled)
        rng.shuffle(again)
        assert merge_pieces(again) == update, "the very same bytes"
        # What followers are given, and merge by themselves.
        grouped = _document(in_groups([piece.encoded for piece in again], rng.randint(1, 6)))
        assert grouped.get_update() == document.get_update()


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 16))
def test_no_liar_changes_what_an_author_says(seed: int, count: int) -> None:
    """Whatever others write: an author's own words stand as if alone, and only commits that name them delete them."""
    words = TextHistory(random.Random(seed)).write(count)
    own = [
        word
        for word in words
        if word.clients == words[0].clients
        and not word.is_copy
        and all(client >> SESSION_BITS == word.clients for client in word.said)
    ]
    alone, together = (reduce_text(map(_edit, some)).shown for some in (own, words))
    runs = {one.edit.place: one.runs for one in alone if one.runs}
    assert runs == {one.edit.place: one.runs for one in together if one.edit.place in runs}
    named = {_name(name) for word in words for name in (*word.replaces, *[word.name] * bool(word.deletes))}
    spared = {clock for one in alone if one.edit.name not in named for clock in _clocks(one.runs)}
    assert not spared & {clock for one in together for clock in _clocks(one.deletes)}


def _clocks(runs: Sequence[Run]) -> set[Clock]:
    return {(client, clock) for client, start, end in runs for clock in range(start, end)}


class _Copy:
    """A node that gets the commits in its own order, and asks for the text in between."""

    def __init__(self, world: World) -> None:
        self.replica, self.branch = world.copy()
        self.start()

    def start(self) -> None:
        hub = Hub(self.replica, inline(), lambda: NOW_MS)
        author = Author(self.replica, UserSeed(b"c" * 32), lambda: NOW_MS)
        self.texts = Texts(hub, author, lambda _: self.replica.branches[self.branch.num])
        self._hub = hub

    def pull(self) -> dict[str, Any]:
        """Return the text, which is the same as what all its updates are reduced to."""
        self._hub.topics_changed()
        shown: dict[str, Any] = {**trio.run(self.texts.pull, "main", "t")}
        reader = TextReader(self.replica)
        with self.replica.database.read() as connection:
            read = reader.read(connection, self.branch)
            state = reduce_text(read.edits)
            shapes = {one.edit.commit: one.shape for one in state.shown}
            found = reader.load_updates(connection, read, shapes)
            pieces = [Piece.left_of(update, shapes[commit]) for commit, update in found]
        assert (b64decode(shown["update"]), shown["updates"]) == (merge_pieces(pieces), len(pieces))
        passed_over = [{"commit": id_text(one.commit), "fault": fault} for one, fault in state.passed_over]
        assert sorted(shown["faults"], key=_KEY) == sorted(passed_over, key=_KEY)
        return shown

    def mark(self, commit_id: CommitId, *, is_void: bool) -> None:
        with self.replica.database.write() as connection:
            judged = load_judged(connection, self.branch.num, [commit_id])
            mark_void(
                self.replica.database,
                connection,
                self.branch.num,
                [one.num for one in judged],
                is_void=is_void,
            )

    def erase(self, names: set[CommitId]) -> None:
        """Let go of bodies that snapshots hold."""
        with self.replica.database.write() as connection:
            rows = [
                row for row in load_timeline(connection, self.branch.num, 0, 1000) if row.commit_id in names
            ]
            gone = TextReader(self.replica).find_said_again(connection, self.branch)
            erasures = [
                Erasure(
                    row.num, row.topic_num, row.block_nums, ObjectId(BlockId(bytes(32)))
                )  # nobody asks for it
                for row in rows
                if row.commit_id in gone and not row.is_erased
            ]
            erase_bodies(connection, self.branch.num, erasures, 1)


@pytest.mark.extended
@pytest.mark.slow
@_SLOW_STORE
@given(seed=st.integers(0, 1 << 32))
def test_nodes_with_equal_commits_show_equal_texts_before_and_after_a_restart(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts_module, "run_worker", look_here)
        patch.setattr(text_keeping, "KEPT_AFTER", 1)
        patch.setattr(text_keeping, "BLOCK_SIZE", 40)
        world = World(Path(folder) / "world")
        try:
            items = _write_history(world, rng)
            void = {name for name in items if rng.random() < 0.2}
            copies = [_Copy(world) for _ in range(3)]
            shown = [_run(copy, items, void, rng) for copy in copies]
            assert shown[0] == shown[1] == shown[2]
            for copy in copies:
                copy.start()  # as after a restart: nothing is remembered
                assert copy.pull() == shown[0]
        finally:
            world.close()


def _write_history(world: World, rng: random.Random) -> dict[CommitId, bytes]:
    """Publications of honest and lying commits of three authors, causes first."""
    main = world.branch.branch_id
    forgers = [Forger(world, UserSeed(bytes([number]) * 32)) for number in (1, 2, 3)]
    editors = [Editor(client_id(rng.choice(forgers).user, main, rng.randrange(3))) for _ in range(5)]
    items: dict[CommitId, bytes] = {}
    said: dict[CommitId, TextUpdate] = {}
    while len(items) < 14:
        forger, editor = rng.choice(forgers), rng.choice(editors)
        body: Body
        match rng.choice(["type", "type", "type", "delete", "fill", "snapshot", "carry"]):
            case "type":
                for known in said.values():
                    if rng.random() < 0.5:
                        editor.document.apply_update(known.update)
                body = TextUpdate(editor.write(0, rng.choice(["one", "two ", "three"])), ())
            case "delete" if said:
                other: Editor = Editor(9)
                for known in said.values():
                    other.document.apply_update(known.update)
                size = len(str(other.text))
                if not size:
                    continue
                body = TextUpdate(
                    other.delete(0, rng.randint(1, size)), tuple(rng.sample([*said], len(said)))
                )
            case "fill":
                body = TextUpdate(fill(editor.client, range(rng.randrange(3), rng.randint(4, 30))), ())
            case "snapshot" if said:
                body = _snapshot(rng, said)
            case "carry" if said:
                origin = rng.choice([*said])
                branch_id = rng.choice([main, BranchId(b"other branch".ljust(32))])
                body = Carried(branch_id, origin, rng.choice(forgers).user, 1, encode_body(said[origin]))
            case _:
                continue
        acks = tuple(rng.sample([*items], 1)) if items and rng.random() < 0.7 else ()
        publication = forger.write(encode_body(body), declare_kind(body), acks)
        name = decode_publication(publication).commit_id
        items[name] = publication
        if isinstance(body, TextUpdate):
            said[name] = body
    return items


def _snapshot(rng: random.Random, said: dict[CommitId, TextUpdate]) -> TextSnapshot:
    chosen = rng.sample([*said], rng.randint(1, len(said)))
    return TextSnapshot(
        tuple(
            SaidUpdate(name, b"\0\0" if rng.random() < 0.2 else said[name].update, said[name].replaces)
            for name in chosen
        )
    )


def _run(
    copy: _Copy, items: dict[CommitId, bytes], void: set[CommitId], rng: random.Random
) -> dict[str, Any]:
    """Give a node the commits in any order, and let it look, mark commits void, and restart in between."""
    ahead = rng.sample([*items.values()], len(items))
    marked: set[CommitId] = set()
    while ahead:
        count = rng.randint(1, 5)
        give(copy.replica, ahead[:count])
        del ahead[:count]
        if rng.random() < 0.5:
            copy.pull()
        if rng.random() < 0.3:
            some = rng.choice([*items])
            copy.mark(some, is_void=some not in marked)
            marked ^= {some}
            copy.pull()
        if rng.random() < 0.2:
            copy.start()
    for name in items:
        copy.mark(name, is_void=name in void)
    if rng.random() < 0.7:
        copy.erase({name for name in items if rng.random() < 0.7})
        if rng.random() < 0.5:
            copy.start()
    return copy.pull()
