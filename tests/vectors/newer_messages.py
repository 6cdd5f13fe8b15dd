"""Vectors of what a newer version may say: messages of unknown kinds, and known ones with further fields (section 9)."""

from typing import Any, Final

import msgspec

from protocol.codec import DecodeError, encode
from protocol.session.messages import UnknownMessage, decode_message, encode_message

JsonObject = dict[str, Any]
ID: Final = bytes(range(32))
_pack = msgspec.msgpack.encode


def _frames() -> dict[str, bytes]:
    receipt = _pack(["receipt1", ID])
    return {
        "a message of an unknown kind": _pack(["newer1"]),
        "one with a map and a negative number": _pack(["newer1", {"a": [1]}, -1]),
        "one whose fields are cut off": b"\x92\xa6newer1",
        "one with an array as long as the shortest header says": _pack(["newer1", *[None] * 14]),
        "one behind a longer header": b"\xdc\x00\x01\xa6newer1",
        "one whose tag has a longer header": b"\x91\xd9\x06newer1",
        "one whose tag begins with a capital": _pack(["Newer1"]),
        "an array without a tag": _pack([7]),
        "a map": _pack({"newer1": 1}),
        "a known message with a further field": _pack(["alive1", 1]),
        "one with two, the first a map": _pack(["receipt1", ID, {"a": 1}, b""]),
        "one with a further number that is longer than it needs to be": b"\x93"
        + receipt[1:]
        + b"\xcd\x00\x01",
        "one with as many fields as may be passed over": _pack(["alive1", *[None] * 14]),
        "one with a field more": _pack(["alive1", *[None] * 15]),
        "one whose further field is absent": b"\x92\xa6alive1",
        "one whose further field is cut off": b"\x92\xa6alive1\xc4\x05ab",
        "one with bytes behind its further field": _pack(["alive1", 1]) + b"\x00",
        "one whose known field is longer than it needs to be": _pack(["receipt1", ID, 1]).replace(
            b"\xc4\x20", b"\xc5\x00\x20"
        ),
        "one whose known field is of another type": _pack(["receipt1", 1, 1]),
        "one without all its fields": _pack(["sum3", ID]),
        "an address with a further field inside a message": encode(
            ("introduce1", ID, (("192.0.2.7:7474", ID, 1),))
        ),
    }


def newer_messages() -> list[JsonObject]:
    """Each frame with what is done: it is passed over, taken as another encoding, or refused with a reason."""
    made: list[JsonObject] = []
    for name, frame in _frames().items():
        one: JsonObject = {"frame": name, "encoded": frame.hex()}
        try:
            one["taken_as"] = encode_message(decode_message(frame)).hex()
        except UnknownMessage:
            one["passed_over"] = True
        except DecodeError as error:
            one["refused"] = error.reason
        made.append(one)
    return made
