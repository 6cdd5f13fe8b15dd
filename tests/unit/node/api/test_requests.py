"""Answers of any length are encoded as JSON, and others have their turn meanwhile."""

import msgspec
import pytest
import trio

from node.api.requests import encode_in_pieces


@pytest.mark.parametrize("count, turns", [(0, 0), (256, 0), (257, 2), (1000, 6)])
async def test_others_have_their_turn_while_long_lists_are_encoded(
    count: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [{"topic": str(number)} for number in range(count)]
    answer = {"peers": [{"peer": "a", "topics": topics}, {"peer": "b"}], "repos": topics, "cursor": "x"}
    taken, checkpoint = 0, trio.lowlevel.checkpoint

    async def count_turns() -> None:
        nonlocal taken
        taken += 1
        await checkpoint()

    with monkeypatch.context() as counted:
        counted.setattr(trio.lowlevel, "checkpoint", count_turns)
        encoded = await encode_in_pieces(answer)
    assert (msgspec.json.decode(encoded), taken) == (answer, turns)
