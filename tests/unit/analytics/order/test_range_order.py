"""What a task makes of one range of a large branch: the order by whole ids, and places counted by tangle."""

import random

import numpy as np
import pytest

from analytics.order.kernel import sort_rows
from analytics.order.range_order import count_places


@pytest.mark.parametrize("start", [b"", b"\x00" * 8, b"\xff12345678"], ids=["differ", "zeros", "alike"])
def test_rows_stand_by_tangle_checkpoints_rank_and_whole_id(start: bytes) -> None:
    generator = random.Random(1)
    rows = [
        (
            generator.randrange(3),
            generator.randrange(2),
            generator.randrange(3),
            (start + generator.randbytes(32))[:32]
            if number % 2
            else start.ljust(31, b"\x00") + bytes([number]),
        )
        for number in range(200)
    ]
    tangle, passed, rank = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    ids = np.frombuffer(b"".join(row[3] for row in rows), np.uint8).reshape(-1, 32)
    assert [rows[at] for at in sort_rows(tangle, passed, rank, ids)] == sorted(rows)


def test_no_rows_have_an_order() -> None:
    nothing = np.empty(0, np.int64)
    assert len(sort_rows(nothing, nothing, nothing, np.empty((0, 32), np.uint8))) == 0
    assert len(count_places(nothing, np.empty(0, np.bool_))) == 0


def test_places_count_what_is_not_left_out_of_each_tangle() -> None:
    tangle = np.array([0, 0, 0, 2, 2, 5])
    is_placed = np.array([False, True, True, True, False, True])
    assert count_places(tangle, is_placed).tolist() == [0, 0, 1, 0, 1, 0]
