"""Canonical JSON text of a classic Scuttlebutt message, byte for byte as V8 would write it.

Ids and signatures of the classic format are those of this text, so its rules are part of the format: keys that are array
indices come first, in numeric order, others as they stood; of a key that stands twice the last value counts, at the first
place; numbers are doubles, written as ECMAScript does (262, 6.1.6.1.20); strings escape what JSON must, and lone surrogates.

There are two ways to the same text. Almost all messages hold nothing odd, and there msgspec does all of it at a tenth of
the time of a signature check; the rest take the long way, which follows the rules one by one.
"""

import json
import re
from decimal import Decimal
from math import isfinite
from typing import Final, NoReturn

import msgspec

from protocol.limits.files import SSB_NESTING_MAX

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | float | bool | None
"""Value of a text; whole numbers may be int, where a double holds them exactly."""

_ODD: Final = re.compile(
    rb"[:,\[][ \t\r\n]*-?(?:[0-9]+[.eE]|[0-9]{16})"  # a fraction, an exponent, or over 2^53 perhaps
    rb'|"[0-9]+"[ \t\r\n]*:'  # a key that may be an array index
    rb"|\\u(?:003|[dD][89a-fA-F])"  # the same in disguise, or a surrogate
)
"""Finds all that msgspec would write in another way than V8, and harmless strings that look like it."""
_FIRST_ODD: Final = re.compile(rb"[ \t\r\n]*[-0-9]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ARRAY_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_ARRAY_INDEX_MAX: Final = 2**32 - 2
_BIG_EXPONENT: Final = 21
_SMALL_EXPONENT: Final = -6


class NotJson(Exception):
    """The bytes are no JSON text in UTF-8, or one of numbers that a double does not hold, or nested too deeply."""


def canonical(text: bytes) -> tuple[JsonValue, str]:
    """Parse a JSON text; return its value and its canonical text. Raises NotJson."""
    if not _ODD.search(text) and not _FIRST_ODD.match(text):
        try:
            value: JsonValue = msgspec.json.decode(text)
            return value, msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the long way says why, in one form
    value = parse_by_rules(text)
    return value, write_by_rules(value)


def parse_by_rules(text: bytes) -> JsonValue:
    """Parse a JSON text, whose strings may have lone surrogates. Raises NotJson."""
    try:
        value: JsonValue = json.loads(
            text.decode(), parse_int=_number, parse_float=_number, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)[:100]) from None
    return value


def write_by_rules(value: JsonValue) -> str:
    """Write a value as canonical text, rule by rule. Raises NotJson where it is nested too deeply."""
    parts: list[str] = []
    _write(value, "\n", 0, parts)
    return "".join(parts)


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise NotJson("a number is out of range")
    return value


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python reads."""
    raise NotJson(f"{name} is no JSON")


def _write(value: JsonValue, margin: str, depth: int, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_string(value))
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, (int, float)):
        parts.append(format_number(float(value)))
    elif depth >= SSB_NESTING_MAX:
        raise NotJson("nested too deeply")
    elif isinstance(value, list):
        inner = margin + "  "
        for place, item in enumerate(value):
            parts.append(("," if place else "[") + inner)
            _write(item, inner, depth + 1, parts)
        parts.append(margin + "]" if value else "[]")
    else:
        inner = margin + "  "
        for place, key in enumerate(_in_order(value)):
            parts.append(("," if place else "{") + inner + _string(key) + ": ")
            _write(value[key], inner, depth + 1, parts)
        parts.append(margin + "}" if value else "{}")


def _in_order(value: dict[str, JsonValue]) -> list[str]:
    """Order keys as ECMA-262 does (OrdinaryOwnPropertyKeys)."""
    return [*sorted(filter(_is_index, value), key=int), *(key for key in value if not _is_index(key))]


def _is_index(key: str) -> bool:
    return _ARRAY_INDEX.fullmatch(key) is not None and int(key) <= _ARRAY_INDEX_MAX


def _string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def format_number(value: float) -> str:
    """Write a finite double as ECMAScript does: the shortest digits that mean it, in its own notation."""
    if value == 0:
        return "0"
    sign, digit_values, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "finite"
    digits = "".join(map(str, digit_values))
    point = exponent + len(digits)  # before which digit the point stands
    minus = "-" if sign else ""
    if len(digits) <= point <= _BIG_EXPONENT:
        return minus + digits + "0" * (point - len(digits))
    if 0 < point <= _BIG_EXPONENT:
        return f"{minus}{digits[:point]}.{digits[point:]}"
    if _SMALL_EXPONENT < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{fraction}e{point - 1:+d}"
