"""One range of stated ranks against the equations, by their definition."""

import random

import numpy as np

from analytics.order import kernel
from analytics.order.rank_check import Checked, Range, check_range
from tests.support.exports import id_of

Commit = tuple[int, bytes, tuple[bytes, ...], int]
"""Tangle, id, acks, stated rank; the sequence is its index."""


def _check(commits: list[Commit]) -> tuple[Checked, list[bool]]:
    part = Range(
        tangle=np.array([tangle for tangle, _, _, _ in commits], np.int64),
        commit_ids=_matrix([commit_id for _, commit_id, _, _ in commits]),
        ack_offsets=np.cumsum([0, *(len(acks) for _, _, acks, _ in commits)], dtype=np.int64),
        acks=_matrix([ack for _, _, acks, _ in commits for ack in acks]),
        sequence=np.arange(len(commits), dtype=np.int64),
        stated=np.array([stated for _, _, _, stated in commits], np.int64),
    )
    checked = check_range(part)
    return checked, checked.is_elsewhere.tolist()


def _matrix(ids: list[bytes]) -> kernel.Bytes:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, kernel.ID_SIZE)


def test_any_range_says_what_the_equations_say() -> None:
    generator = random.Random(1)
    outcomes = set()
    for _ in range(300):
        count = generator.randrange(1, 12)
        names = [id_of(f"c{number}") for number in range(count)]
        commits: list[Commit] = []
        for number, name in enumerate(names):
            known = names[max(0, number - 3) : number] or names
            chosen = generator.sample([*known, id_of("nowhere")], min(len(known), generator.randrange(3)))
            acked = [stated for _, one, _, stated in commits if one in chosen]
            stated = 1 + max(acked, default=-1)
            commits.append(
                (0, name, tuple(chosen), generator.choice([stated, stated, stated, stated + 1, -2]))
            )
        of = {name: (number, stated) for number, (_, name, _, stated) in enumerate(commits)}
        checked, elsewhere = _check(commits)
        assert elsewhere == [ack not in of for _, _, acks, _ in commits for ack in acks]
        for number, (_, _, acks, stated) in enumerate(commits):
            here = [of[ack] for ack in acks if ack in of]
            ranks = [rank for _, rank in here]
            assert checked.highest[number] == max([-1, *ranks])
            assert checked.forward_by_rank[number] == sum(rank >= stated for rank in ranks)
            assert checked.forward_by_sequence[number] == sum(at >= number for at, _ in here)
            may_hold = stated >= 0 and all(0 <= rank < stated for rank in ranks)
            is_solved = len(here) < len(acks) or stated == 1 + max(ranks, default=-1)
            assert checked.holds[number] == (may_hold and is_solved)
            outcomes.add((bool(checked.holds[number]), len(here) < len(acks)))
    assert len(outcomes) == 4


def test_what_is_overlooked_counts_as_elsewhere_and_another_tangles_commit_is_not_taken_for_a_cause() -> None:
    alike = [b"12345678" + bytes([number]) * 24 for number in range(4)]
    commits: list[Commit] = [(0, commit_id, (), 0) for commit_id in alike]
    commits.append((0, id_of("effect"), tuple(alike), 1))
    checked, elsewhere = _check(commits)
    assert sum(elsewhere) == 3, "one of those that begin alike is found"
    assert checked.holds.all()
    checked, elsewhere = _check([(0, id_of("root"), (), 0), (1, id_of("other"), (id_of("root"),), 1)])
    assert elsewhere == [True]
