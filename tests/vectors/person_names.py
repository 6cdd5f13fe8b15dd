"""Names that a `profile1` may state, and names with which it says nothing."""

from typing import Any, Final

from protocol.formats.profiles import find_fault

_NAMES: Final = (
    "Ann", "a", "Zoë", "Ann Lee", "王小明", "Анна", "אנה", "مريم", "O'Neill-Smith", "❤", "😀", "x" * 64, "😀" * 64,
    "a\u0301\u0302\u0303\u0304", "a" * 51, "A" * 52, "a" * 53, "\u0628\u0640",
    "", "x" * 65, " Ann", "Ann ", "A  B", "A\tB", "A\nB", "\x00", "A\x1b[31m", "A\x7f", "A\x85",
    "A\xa0B", "A\u3000B", "A\u2009B", "A\u2028B", "A\u200bB", "A\u200dB", "A\u202eB", "A\u2066B", "A\xadB",
    "\u3164", "\u2800", "\u115f", "A\ufeff", "❤\ufe0f", "A\U000e0041", "A\ue000", "A\ufffd", "A\uffff",
    "A\U0001ffff", "A\U0010fffd", "A\ufdd0", "A\u0600", "A[b]", "]", "\u0301A", "\u20dd",
    "a\u0301\u0302\u0303\u0304\u0305", "a2" * 26,
)  # fmt: skip


def person_names() -> list[dict[str, Any]]:
    """Each name with whether it may be stated."""
    return [{"name": name, "may_be_stated": not find_fault(name)} for name in _NAMES]
