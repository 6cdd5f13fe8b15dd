"""Fuzz targets for reconciliation: frames of either side, each given to the machine that takes it.

See `targets` for what a target is.
"""

from typing import Final

from protocol.codec import DecodeError, encode
from protocol.limits.peers import RANGE_FRAME_SIZE_MAX
from protocol.session.reconciliation.range_items import SortedItems
from protocol.session.reconciliation.ranges import RangesAsker, answer_ranges, decode_ranges
from protocol.session.reconciliation.riblt import Unreconciled
from protocol.session.reconciliation.symbols import (
    SymbolsAsker,
    answer,
    decode_ask,
    decode_lacks,
    decode_symbols,
    encode_lacks,
    opening,
)
from tests.support.sets import KEY, at_depths, ids, prefix_of

_IDS: Final = ids(60)
_SYMBOLS: Final = prefix_of(_IDS, 256).symbols()
_OTHERS: Final = prefix_of(ids(40, "other"), 64).symbols()
_ITEMS: Final = SortedItems(at_depths(_IDS))


def answers() -> dict[str, bytes]:
    """What honest answerers say to the first question: with the same ids, with others too, with many."""
    question = RangesAsker(_ITEMS, KEY).start()
    others = {"equal": 0, "ids": 3, "parts": 400}
    return {
        name: answer_ranges(SortedItems(at_depths(_IDS + ids(count, "more"))), KEY, question)
        for name, count in others.items()
    }


def take_symbols(data: bytes) -> str:
    """As an opening, and as what follows one."""
    refusals = []
    for heard in ((), (opening(_OTHERS),)):
        asker = SymbolsAsker(KEY, _SYMBOLS)
        for frame in heard:
            asker.handle_frame(frame)
        try:
            asker.handle_frame(data)
        except DecodeError as error:
            return str(error)
        except Unreconciled as error:
            refusals.append(error.reason)
        assert len(asker.differences) <= 256
    assert encode(decode_symbols(data)) == data
    return " ".join(refusals) if len(refusals) == 2 else ""


def take_ask_symbols(data: bytes) -> str:
    try:
        frames = list(answer(_SYMBOLS, data))
    except DecodeError as error:
        return str(error)
    assert encode(decode_ask(data)) == data
    assert all(decode_symbols(frame).length == 256 for frame in frames)
    return ""


def take_lacks(data: bytes) -> str:
    try:
        short_ids = decode_lacks(data)
    except DecodeError as error:
        return str(error)
    assert encode_lacks(short_ids) == [data]
    return ""


def take_ranges_question(data: bytes) -> str:
    try:
        reply = answer_ranges(_ITEMS, KEY, data)
    except DecodeError as error:
        return str(error)
    decode_ranges(reply)
    assert len(reply) <= RANGE_FRAME_SIZE_MAX
    return ""


def take_ranges_answer(data: bytes) -> str:
    """What is answered to the first question; whatever is asked then is a question."""
    asker = RangesAsker(_ITEMS, KEY)
    asker.start()
    try:
        question = asker.handle_frame(data)
    except (DecodeError, Unreconciled) as error:
        return str(error)
    if question is not None:
        answer_ranges(_ITEMS, KEY, question)
    return ""
