"""What strict POSIX leaves of a folder when the power goes."""

import random
from collections.abc import Iterable

from tests.powercut.disk import KEPT, LOST, Choice, Disk, random_choice
from tests.powercut.recording import Event

DATA = bytes(range(1, 201)) * 50


def _create(path: str, inode: int) -> Event:
    return Event("C", path, inode=inode, mode=0o600)


def _write(inode: int, offset: int, data: bytes) -> Event:
    return Event("W", inode=inode, offset=offset, data=data)


def _after(*events: Event) -> Disk:
    disk = Disk()
    for event in events:
        disk.apply(event)
    return disk


def _left(disk: Disk, choice: Choice) -> dict[str, bytes]:
    return {path: content for path, (_, content) in disk.state(choice).files.items()}


def _some(disk: Disk) -> Iterable[dict[str, bytes]]:
    return (_left(disk, random_choice(random.Random(seed))) for seed in range(200))


def test_a_synced_file_is_lost_with_its_name() -> None:
    made = (_create("a", 1), _write(1, 0, b"one"), Event("S", "a", inode=1))
    assert _left(_after(*made), LOST) == {}
    assert _left(_after(*made), KEPT) == {"a": b"one"}
    assert _left(_after(*made, Event("D")), LOST) == {"a": b"one"}


def test_a_name_without_its_content_is_an_empty_file() -> None:
    disk = _after(_create("a", 1), _write(1, 0, b"one"), Event("D"))
    assert _left(disk, LOST) == {"a": b""}


def test_a_folder_is_lost_with_its_name_whatever_was_synced_in_it() -> None:
    inside = (Event("M", "f"), _create("f/a", 1), Event("S", "f/a", inode=1), Event("D", "f"))
    assert _after(*inside).state(LOST).folders == ()
    assert _after(*inside, Event("D")).state(LOST).files == {"f/a": (0o600, b"")}


def test_sectors_of_an_unsynced_write_come_each_by_itself() -> None:
    old = bytes(len(DATA))
    disk = _after(
        _create("a", 1), _write(1, 0, old), Event("S", "a", inode=1), Event("D"), _write(1, 100, DATA[100:])
    )
    torn = set()
    for left in _some(disk):
        assert len(left["a"]) == len(DATA)
        for start in range(0, len(DATA), 512):
            part = slice(start, start + 512)
            before, after = old[part], (old[:100] + DATA[100:])[part]
            assert left["a"][part] in (before, after)
        torn.add(left["a"])
    assert len(torn) > 20


def test_what_was_synced_is_never_taken_back() -> None:
    disk = _after(
        _create("a", 1), _write(1, 0, b"sure"), Event("S", "a", inode=1), Event("D"), _write(1, 4, DATA)
    )
    assert all(left["a"].startswith(b"sure") for left in _some(disk))


def test_a_truncation_happens_or_does_not() -> None:
    disk = _after(
        _create("a", 1),
        _write(1, 0, b"long"),
        Event("S", "a", inode=1),
        Event("D"),
        Event("T", inode=1, offset=1),
    )
    assert {left["a"] for left in _some(disk)} == {b"long", b"l"}


def test_a_rename_inside_a_folder_is_one_change() -> None:
    made = (
        _create("a", 1),
        _write(1, 0, b"old"),
        Event("S", "a", inode=1),
        _create("b", 2),
        _write(2, 0, b"new"),
        Event("S", "b", inode=2),
        Event("D"),
    )
    disk = _after(*made, Event("R", "b", "a"))
    found = {tuple(sorted(left.items())) for left in _some(disk)}
    assert found == {(("a", b"old"), ("b", b"new")), (("a", b"new"),)}


def test_a_rename_between_folders_can_lose_the_file_or_show_it_twice() -> None:
    made = (Event("M", "f"), Event("M", "g"), _create("f/a", 1), Event("S", "f/a", inode=1), Event("D"))
    disk = _after(*made, Event("D", "f"), Event("R", "f/a", "g/a"))
    found = {tuple(sorted(left)) for left in _some(disk)}
    assert found == {(), ("f/a",), ("g/a",), ("f/a", "g/a")}
    disk.apply(Event("D", "g"))
    assert all("g/a" in left for left in _some(disk))


def test_a_link_gives_a_file_a_second_name() -> None:
    made = (_create("a", 1), _write(1, 0, b"one"), Event("S", "a", inode=1))
    disk = _after(*made, Event("L", "a", "b"), Event("U", "a"), Event("D"))
    assert _left(disk, LOST) == {"b": b"one"}


def test_a_number_is_used_again_for_another_file() -> None:
    first = (_create("a", 1), _write(1, 0, b"one"), Event("S", "a", inode=1), Event("D"))
    disk = _after(*first, Event("U", "a"), _create("b", 1), _write(1, 0, b"two"))
    assert _left(disk, LOST) == {"a": b"one"}
    assert _left(disk, KEPT) == {"b": b"two"}


def test_equal_states_have_one_digest_and_others_another() -> None:
    made = (_create("a", 1), _write(1, 0, b"one"))
    states = [_after(*made).state(KEPT), _after(*made, Event("S", "a", inode=1)).state(KEPT)]
    assert states[0].digest() == states[1].digest()
    assert states[0].digest() != _after(*made).state(LOST).digest()
