"""Words counts, times, durations and sizes for people."""

import time
from typing import Final

_LAST_SHOWN: Final = 253_402_300_799
"""Unix seconds of the end of the year 9999: authors may state later times."""
_SIZES: Final = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: "1 commit", "2 commits". `many` is the plural where it takes more than an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def size_text(size: int) -> str:
    """Return a number of bytes in the unit that fits: "1.5 GiB", "212 KiB", "7 bytes"."""
    for unit, power in _SIZES:
        if size >= power:
            share = size / power
            return f"{share:.0f} {unit}" if share >= 100 else f"{share:.1f} {unit}"
    return counted(size, "byte")


def duration_text(seconds: int) -> str:
    """Return a duration in the unit that fits: "7 s", "3 min", "2 h 5 min", "4 d"."""
    if seconds < 60:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{round(minutes / (24 * 60))} d"


def date_text(seconds: float) -> str:
    """Return Unix seconds as a date and time in UTC, between the years 1970 and 9999."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(min(max(seconds, 0), _LAST_SHOWN)))
