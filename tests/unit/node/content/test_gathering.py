"""Updates of a text that come close together are written together, at a pace that follows who else is there."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from node.content.gathering import Gathering, is_full, next_write_at
from protocol.limits.users import (
    TEXT_GATHER_ALONE_SECONDS,
    TEXT_GATHER_COUNT_MAX,
    TEXT_GATHER_SECONDS,
    TEXT_GATHER_SIZE_MAX,
)
from tests.support.machine import fail_after


class Written:
    """Record of writes and their times."""

    def __init__(self) -> None:
        self.groups: list[tuple[float, list[bytes]]] = []

    async def write(self, updates: Sequence[bytes]) -> list[str | Exception]:
        await trio.lowlevel.checkpoint()
        self.groups.append((trio.current_time(), list(updates)))
        return [ValueError("refused") if update == b"bad" else update.decode() for update in updates]


async def _type(gathering: Gathering[str], written: Written, updates: Sequence[bytes], pause: float) -> None:
    async with trio.open_nursery() as nursery:
        for update in updates:
            nursery.start_soon(gathering.run, update, written.write)
            await trio.sleep(pause)


def test_the_pace_follows_who_is_there() -> None:
    assert next_write_at(10.0, has_other_editors=True) == 10.0 + TEXT_GATHER_SECONDS
    assert next_write_at(10.0, has_other_editors=False) == 10.0 + TEXT_GATHER_ALONE_SECONDS
    assert next_write_at(float("-inf"), has_other_editors=False) == float("-inf"), (
        "the first is written at once"
    )


def test_what_is_many_or_large_does_not_wait() -> None:
    assert not is_full([1] * (TEXT_GATHER_COUNT_MAX - 1))
    assert is_full([1] * TEXT_GATHER_COUNT_MAX)
    assert not is_full([TEXT_GATHER_SIZE_MAX - 1])
    assert is_full([TEXT_GATHER_SIZE_MAX - 1, 1])


@pytest.mark.parametrize(
    "has_other_editors, pause", [(True, TEXT_GATHER_SECONDS), (False, TEXT_GATHER_ALONE_SECONDS)]
)
async def test_ten_seconds_of_typing_make_few_commits(
    autojump_clock: MockClock, has_other_editors: bool, pause: float
) -> None:
    gathering: Gathering[str] = Gathering(lambda: has_other_editors)
    written = Written()
    began = trio.current_time()
    keys = [b"%d" % number for number in range(50)]
    with fail_after(60):
        await _type(gathering, written, keys, 0.2)
    assert [key for _, group in written.groups for key in group] == keys, "each once, in order"
    assert len(written.groups) <= 10 / pause + 2
    assert written.groups[0] == (began, [b"0"]), "the first at once"


async def test_each_learns_what_became_of_its_own(autojump_clock: MockClock) -> None:
    gathering: Gathering[str] = Gathering(lambda: True)
    written = Written()
    with fail_after(60):
        assert await gathering.run(b"first", written.write) == "first"
        answers: list[str] = []

        async def ask(update: bytes) -> None:
            try:
                answers.append(await gathering.run(update, written.write))
            except ValueError as error:
                answers.append(str(error))

        async with trio.open_nursery() as nursery:
            for update in (b"good", b"bad", b"more"):
                nursery.start_soon(ask, update)
    assert sorted(answers) == ["good", "more", "refused"]
    assert len(written.groups) == 2


async def test_a_large_update_and_many_do_not_wait_for_the_pace(autojump_clock: MockClock) -> None:
    gathering: Gathering[str] = Gathering(lambda: False)
    written = Written()
    with fail_after(60):
        await gathering.run(b"first", written.write)
        began = trio.current_time()
        await gathering.run(b"x" * TEXT_GATHER_SIZE_MAX, written.write)
        assert trio.current_time() == began
        await _type(gathering, written, [b"y"] * (TEXT_GATHER_COUNT_MAX + 1), 0)
        assert [len(group) for _, group in written.groups[2:]] == [TEXT_GATHER_COUNT_MAX, 1]


async def test_one_that_is_cancelled_while_it_waits_is_not_written_and_holds_nobody_up(
    autojump_clock: MockClock,
) -> None:
    gathering: Gathering[str] = Gathering(lambda: True)
    written = Written()
    with fail_after(60):
        await gathering.run(b"first", written.write)
        with trio.move_on_after(0.1):
            await gathering.run(b"gone", written.write)
        assert await gathering.run(b"next", written.write) == "next"
    assert [group for _, group in written.groups] == [[b"first"], [b"next"]]
