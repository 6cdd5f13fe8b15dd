"""Both machines of reconciliation by symbols: what they say, what it costs, what a peer cannot make them do."""

import pytest

from protocol.codec import DecodeError, encode
from protocol.ids import SHORT_ID_SIZE, ShortId
from protocol.limits.peers import SHORT_ID_FRAME_COUNT_MAX, SYMBOL_FRAME_COUNT_MAX, SYMBOL_PREFIX_LENGTH_MAX
from protocol.session.reconciliation.riblt import SYMBOL_SIZE, Unreconciled
from protocol.session.reconciliation.symbols import (
    OPENING_COUNT,
    AskSymbols,
    Lacks,
    Symbols,
    SymbolsAsker,
    answer,
    decode_ask,
    decode_lacks,
    decode_symbols,
    encode_lacks,
    opening,
)
from tests.support.sets import KEY, Talk, ids, prefix_of, talk_symbols


def _reconcile(
    difference: int, length: int = SYMBOL_PREFIX_LENGTH_MAX, common: int = 200
) -> tuple[SymbolsAsker, Talk]:
    shared, half = ids(common, "common"), difference // 2
    here, there = ids(half, "here"), ids(difference - half, "there")
    asker = SymbolsAsker(KEY, prefix_of(shared + here, length).symbols())
    talk = talk_symbols(asker, prefix_of(shared + there, length).symbols())
    assert asker.is_done
    assert set(asker.differences) == {member[:SHORT_ID_SIZE] for member in here + there}
    return asker, talk


@pytest.mark.parametrize(
    "difference, rounds, size",
    [(0, 0, 1600), (1, 0, 1600), (20, 0, 2048), (100, 1, 8000), (1000, 1, 64_000)],
)
def test_a_difference_costs_what_it_deserves(difference: int, rounds: int, size: int) -> None:
    """Frames of symbols and of the ids to ask for, at the longest prefix, whose marks are most."""
    _, talk = _reconcile(difference)
    lacking = [ShortId(raw) for raw in ids(difference - difference // 2)]  # longer ids than are sent
    lacks = sum(len(frame) for frame in encode_lacks(lacking))
    assert talk.asks == rounds
    assert talk.asked + talk.answered + lacks // 2 <= size


@pytest.mark.slow
def test_ten_thousand_cost_60_bytes_each() -> None:
    _, talk = _reconcile(10_000)
    assert talk.asks == 1
    assert talk.asked + talk.answered + SHORT_ID_SIZE * 5000 <= 60 * 10_000


def test_prefixes_of_different_lengths_agree_on_what_they_share() -> None:
    members, more = ids(300), ids(30, "more")
    for ours, theirs in ((64, 1024), (1024, 64)):
        asker = SymbolsAsker(KEY, prefix_of(members, ours).symbols())
        talk_symbols(asker, prefix_of(members + more, theirs).symbols())
        assert set(asker.differences) == {member[:SHORT_ID_SIZE] for member in more}


def test_too_large_a_difference_is_seen_from_the_opening() -> None:
    asker = SymbolsAsker(KEY, prefix_of(ids(1000, "here"), 256).symbols())
    with pytest.raises(Unreconciled, match="too_many_differences"):
        asker.handle_frame(opening(prefix_of([], 256).symbols()))


def test_a_prefix_that_does_not_suffice_is_asked_for_to_its_end_and_no_further() -> None:
    asker = SymbolsAsker(KEY, prefix_of(ids(60, "here"), 64).symbols())
    with pytest.raises(Unreconciled, match="too_many_differences"):
        talk_symbols(asker, prefix_of([], 64).symbols())


def test_a_large_answer_comes_in_frames_of_bounded_size() -> None:
    symbols = prefix_of(ids(10), SYMBOL_PREFIX_LENGTH_MAX).symbols()
    frames = list(answer(symbols, encode(AskSymbols(48, 2 * SYMBOL_FRAME_COUNT_MAX + 1))))
    counts = [len(decode_symbols(frame).symbols) // SYMBOL_SIZE for frame in frames]
    assert counts == [SYMBOL_FRAME_COUNT_MAX, SYMBOL_FRAME_COUNT_MAX, 1]


def test_symbols_that_there_are_not_are_not_sent() -> None:
    symbols = prefix_of([], 64).symbols()
    assert len(list(answer(symbols, encode(AskSymbols(48, 16))))) == 1
    with pytest.raises(DecodeError, match="bad_shape"):
        answer(symbols, encode(AskSymbols(48, 17)))


def _symbols(count: int = 48, length: int = 64, start: int = 0, marks: int = 0) -> bytes:
    return encode(Symbols(length, start, bytes(SYMBOL_SIZE * count), bytes(marks)))


@pytest.mark.parametrize(
    "frame",
    [
        _symbols(length=128),
        _symbols(count=65),
        _symbols(start=17),
        _symbols(marks=1),
        _symbols(length=256, marks=63),
        _symbols(length=256, start=48, marks=64),
        encode(Symbols(64, 0, bytes(SYMBOL_SIZE + 1), b"")),
        encode(Symbols(64, 0, b"", b"")),
        _symbols(count=SYMBOL_FRAME_COUNT_MAX + 1, length=SYMBOL_PREFIX_LENGTH_MAX, start=48),
        encode(["symbols1", 64, 0, bytes(SYMBOL_SIZE), b"", 0]),
        encode(["symbols2", 64, 0, bytes(SYMBOL_SIZE), b""]),
        b"",
    ],
    ids=lambda frame: frame[-8:].hex() + str(len(frame)),
)
def test_frames_of_no_prefix_are_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_symbols(frame)


def test_the_largest_frame_is_taken() -> None:
    decode_symbols(_symbols(count=SYMBOL_FRAME_COUNT_MAX, length=SYMBOL_PREFIX_LENGTH_MAX, start=48))


@pytest.mark.parametrize("start, count", [(0, 1), (1, 0), (SYMBOL_PREFIX_LENGTH_MAX, 1), (1, 2**20)])
def test_questions_out_of_range_are_refused(start: int, count: int) -> None:
    with pytest.raises(DecodeError, match="bad_shape"):
        decode_ask(encode(AskSymbols(start, count)))


@pytest.mark.parametrize(
    "frame",
    [
        _symbols(start=48, count=16),
        _symbols(count=47),
        _symbols(count=49),
    ],
    ids=["not the first", "too few", "too many"],
)
def test_a_conversation_begins_with_an_opening(frame: bytes) -> None:
    with pytest.raises(Unreconciled, match="out_of_turn"):
        SymbolsAsker(KEY, prefix_of([], 64).symbols()).handle_frame(frame)


@pytest.mark.parametrize(
    "start, count, length",
    [(48, 1, 1024), (49, 1, 256), (96, 100, 256), (48, 208, 256)],
    ids=["other length", "gap", "far", "more than asked"],
)
def test_what_was_not_asked_for_is_out_of_turn(start: int, count: int, length: int) -> None:
    # 40 ids that no answerer could explain with zeros, of which some 80 symbols are asked.
    asker = SymbolsAsker(KEY, prefix_of(ids(40), 256).symbols())
    assert asker.handle_frame(_symbols(length=256, marks=64)) is not None
    with pytest.raises(Unreconciled, match="out_of_turn"):
        asker.handle_frame(_symbols(count, length, start))


def test_after_the_end_nothing_more_is_wanted() -> None:
    members = ids(9)
    asker = SymbolsAsker(KEY, prefix_of(members).symbols())
    assert asker.handle_frame(opening(prefix_of(members).symbols())) is None
    assert asker.is_done
    with pytest.raises(Unreconciled, match="out_of_turn"):
        asker.handle_frame(_symbols(start=OPENING_COUNT, count=1, length=4096))


def test_marks_that_lie_cost_rounds_and_no_result() -> None:
    members, more = ids(300), ids(100, "more")
    honest = prefix_of(members + more).symbols()

    def lie(frame: bytes) -> bytes:
        said = decode_symbols(frame)
        # As though nothing differed: those of the asker's own prefix.
        own = decode_symbols(opening(prefix_of(members).symbols())).marks
        return encode(Symbols(said.length, said.start, said.symbols, own)) if said.marks else frame

    asker = SymbolsAsker(KEY, prefix_of(members).symbols())
    talk = talk_symbols(asker, honest, lie)
    assert set(asker.differences) == {member[:SHORT_ID_SIZE] for member in more}
    assert 1 < talk.asks < 10


def test_short_ids_travel_in_frames_of_bounded_size() -> None:
    short = [ShortId(number.to_bytes(SHORT_ID_SIZE)) for number in range(SHORT_ID_FRAME_COUNT_MAX + 1)]
    frames = encode_lacks(short)
    assert [len(decode_lacks(frame)) for frame in frames] == [SHORT_ID_FRAME_COUNT_MAX, 1]
    assert [one for frame in frames for one in decode_lacks(frame)] == short
    assert encode_lacks([]) == []


@pytest.mark.parametrize(
    "short_ids, reason",
    [
        (b"", "bad_shape"),
        (bytes(SHORT_ID_SIZE + 1), "bad_shape"),
        (bytes(2 * SHORT_ID_SIZE), "duplicate_ids"),
        (bytes(SHORT_ID_SIZE * (SHORT_ID_FRAME_COUNT_MAX + 1)), "bad_shape"),
    ],
)
def test_lacks_that_name_nothing_or_too_much_are_refused(short_ids: ShortId, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_lacks(encode(Lacks(short_ids)))
