"""What waits to be written to a peer is bounded in messages and in bytes."""

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from node.wire.send_queue import SendQueue
from node.wire.transport import SecureStream, accept, dial
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from protocol.ids import BlindTopic
from protocol.limits.peers import OUTGOING_COUNT_MAX, OUTGOING_SIZE_MAX, SEND_TIMEOUT_SECONDS
from protocol.session.messages import Blocks, KeepAlive, encode_message
from tests.support.machine import fail_after
from tests.support.streams import PassingStream

MIB = 1 << 20
BLOCK = Blocks(BlindTopic(b"t" * 32), (bytes(MIB),))


def test_no_more_bytes_wait_than_the_bound() -> None:
    outgoing = SendQueue()
    room = OUTGOING_SIZE_MAX // len(encode_message(BLOCK))
    assert [outgoing.put(BLOCK) for _ in range(room + 1)] == [True] * room + [False]
    assert outgoing.count == room


def test_no_more_messages_wait_than_the_bound() -> None:
    outgoing = SendQueue()
    assert all(outgoing.put(KeepAlive()) for _ in range(OUTGOING_COUNT_MAX))
    assert not outgoing.put(KeepAlive())


@pytest.mark.slow
async def test_what_was_written_makes_room_and_nothing_is_put_after_the_end(
    autojump_clock: MockClock,
) -> None:
    outgoing = SendQueue()
    while outgoing.put(BLOCK):
        pass
    waiting = outgoing.count
    ours, theirs = memory_stream_pair()
    with fail_after(60):
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                stream = await accept(theirs, NodeSeed(b"b" * 32), AgreementSecret(b"2" * 32))
                for _ in range(waiting):
                    await stream.receive_frame()
                assert outgoing.count == 0
                assert outgoing.put(BLOCK)
                outgoing.close()

            nursery.start_soon(read)
            stream = await dial(
                ours, NodeSeed(b"a" * 32), public_key(NodeSeed(b"b" * 32)), AgreementSecret(b"1" * 32)
            )
            assert await outgoing.write(stream) == ""
    with pytest.raises(trio.ClosedResourceError):
        outgoing.put(KeepAlive())


class _Line(PassingStream):
    """A line of so many bytes a second, once it `is_slow`. Nobody reads at its far end."""

    def __init__(self, stream: trio.abc.Stream, rate: float) -> None:
        super().__init__(stream)
        self._rate, self.is_slow = rate, False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_slow:
            await trio.sleep(len(data) / self._rate)
        else:
            await self._stream.send_all(data)


@pytest.mark.parametrize("rate, reason", [(5_000, ""), (4_000, "peer_does_not_read")])
async def test_a_write_that_goes_on_is_not_cut_however_long_it_takes(
    autojump_clock: MockClock, rate: float, reason: str
) -> None:
    ours, theirs = memory_stream_pair()
    line, streams = _Line(ours, rate), list[SecureStream]()

    async def open_side() -> None:
        streams.append(await accept(theirs, NodeSeed(b"b" * 32), AgreementSecret(b"2" * 32)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_side)
        key = public_key(NodeSeed(b"b" * 32))
        stream = await dial(line, NodeSeed(b"a" * 32), key, AgreementSecret(b"1" * 32))
    line.is_slow = True
    outgoing = SendQueue()
    assert outgoing.put(BLOCK)
    outgoing.close()
    began = trio.current_time()
    with fail_after(600):
        assert await outgoing.write(stream) == reason
    if reason:
        assert trio.current_time() - began == pytest.approx(SEND_TIMEOUT_SECONDS)
    else:
        assert trio.current_time() - began > MIB / rate
