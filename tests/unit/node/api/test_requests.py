"""Answers of any length are encoded as JSON, and others have their turn meanwhile."""

import msgspec
import pytest
import trio

from node.api.requests import encode_in_pieces


@pytest.mark.parametrize("count", [0, 1, 256, 257, 1000])
async def test_long_lists_are_encoded_in_pieces(count: int) -> None:
    topics = [{"topic": str(number)} for number in range(count)]
    answer = {"peers": [{"peer": "a", "topics": topics}, {"peer": "b"}], "repos": topics, "cursor": "x"}
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        encoded = await encode_in_pieces(answer)
        nursery.cancel_scope.cancel()
    assert msgspec.json.decode(encoded) == answer
    assert turns >= (max(count, 1) - 1) // 256
