"""SVG charts: axes with few round ticks, and areas and lines in the page's colours.

Written here and not by Matplotlib, which takes longer to import and draw than a small analysis takes to count. Texts stay
texts, and colours are variables of the page, which has a dark and a light kind of each.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Final

QUIET: Final = "var(--soft-ink)"
_LINES: Final = "var(--lines)"

WIDTH: Final = 360.0
LOW: Final = 151.2
"""Points of a picture. Its letters have their size where it is that wide: about as a phone shows it."""
_LETTER: Final = 11
_BESIDE: Final = 10.0
_DIGIT: Final = 7.2
_RIGHT: Final = 21.6
_TITLE: Final = 23.0
_TICKS: Final = 24.5
_LABELLED: Final = 40.3
_BETWEEN: Final = 34.0
"""Points: between numbers and axis or edge; a digit; half of the last number; a title; numbers below; and a label below;
between two panels."""
_MARGIN: Final = 0.01
"""Free part of a horizontal axis at either end."""
_ABOVE: Final = 1.05
"""Height of a vertical axis, in parts of what it shows."""
_TIMES_MAX: Final = 7
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_MONTH: Final = 31 * _DAY

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """Range of numbers along one side, its ticks, and a word about them."""

    low: float
    high: float
    ticks: Mapping[float, str]
    label: str = ""
    is_log: bool = False
    is_time: bool = False  # the label then stands at the end, as the date of the last tick

    def part(self, value: float) -> float:
        """Return where a number stands, from 0 at the low end to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Mark:
    """Area or line through points."""

    points: Points
    fill: str = ""
    stroke: str = ""
    width: float = 1.5
    dashes: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with its marks."""

    y: Axis
    marks: Sequence[Mark]
    title: str = ""
    share: float = 1.0  # of the picture's height


def draw(label: str, x: Axis, panels: Sequence[Panel], height: float = LOW) -> str:
    """Return panels above one another, with one horizontal axis, as an SVG element."""
    longest = max(len(text) for panel in panels for text in panel.y.ticks.values())
    left, right = _BESIDE + longest * _DIGIT, WIDTH - _RIGHT
    top = _TITLE if panels[0].title else _BESIDE
    bottom = height - (_LABELLED if x.label else _TICKS)
    free = bottom - top - _BETWEEN * (len(panels) - 1)
    shares = sum(panel.share for panel in panels)
    parts = [
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH:g} {height:g}" font-size="{_LETTER}" '
        f'fill="none" stroke-linejoin="round">'
    ]
    for panel in panels:
        end = top + free * panel.share / shares
        frame = _Frame(left, right, top, end, x, panel.y)
        parts += _draw_panel(frame, panel)
        top = end + _BETWEEN
    parts += _draw_times(frame)
    return "\n".join((*parts, "</svg>"))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Sides of a panel in points, and its axes."""

    left: float
    right: float
    top: float
    bottom: float
    x: Axis
    y: Axis

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the place of a point."""
        return self.across(point[0]), self.bottom + (self.top - self.bottom) * self.y.part(point[1])

    def across(self, value: float) -> float:
        """Return the place of a number on the horizontal axis."""
        return self.left + (self.right - self.left) * self.x.part(value)


def _draw_panel(frame: _Frame, panel: Panel) -> Iterator[str]:
    if panel.title:
        yield _text(panel.title, frame.left, frame.top - 7)
    for value, text in panel.y.ticks.items():
        y = frame.at((frame.x.low, value))[1]
        yield f'<path d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}" stroke="{_LINES}" stroke-width=".8"/>'
        yield _text(text, frame.left - 4, y + 4, "end")
    yield f'<path d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}" stroke="{_LINES}"/>'
    for mark in panel.marks:
        yield from _draw_mark(frame, mark)


def _draw_mark(frame: _Frame, mark: Mark) -> Iterator[str]:
    way = _path([frame.at(point) for point in mark.points])
    if mark.fill:
        yield f'<path d="{way}Z" fill="{mark.fill}"/>'
        return
    dashes = f' stroke-dasharray="{" ".join(f"{length:g}" for length in mark.dashes)}"' if mark.dashes else ""
    yield f'<path d="{way}" stroke="{mark.stroke}" stroke-width="{mark.width:g}"{dashes}/>'


def _path(places: Points) -> str:
    """Return a path through these places, which goes right or down along most of them."""
    parts: list[str] = []
    before = ("", "")
    for x, y in places:
        at = (f"{x:.1f}", f"{y:.1f}")
        if not parts:
            parts.append(f"M{at[0]} {at[1]}")
        elif at[1] == before[1]:
            parts.append(f"H{at[0]}")
        elif at[0] == before[0]:
            parts.append(f"V{at[1]}")
        else:
            parts.append(f"L{at[0]} {at[1]}")
        before = at
    return "".join(parts)


def _draw_times(frame: _Frame) -> Iterator[str]:
    """Draw the ticks of the horizontal axis, and its label."""
    for value, text in frame.x.ticks.items():
        at = frame.across(value)
        yield f'<path d="M{at:.1f} {frame.bottom:.1f}v3.5" stroke="{_LINES}"/>'
        half = len(text) * _DIGIT / 2
        yield _text(text, min(max(at, half), WIDTH - half), frame.bottom + 15, "middle")
    if frame.x.label and frame.x.is_time:
        yield _text(frame.x.label, frame.right, frame.bottom + 30, "end")
    elif frame.x.label:
        yield _text(frame.x.label, (frame.left + frame.right) / 2, frame.bottom + 31, "middle")


def _text(text: str, x: float, y: float, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{QUIET}" text-anchor="{anchor}">{escape(text)}</text>'


def area(points: Points) -> Points:
    """Return the outline of the area below a line, down to zero."""
    return [(points[0][0], 0.0), *points, (points[-1][0], 0.0)]


def stairs(edges: Sequence[float], values: Sequence[float]) -> Points:
    """Return a line that has each value from its edge to the next one; there is one edge more than values."""
    return [
        point
        for at, value in enumerate(values)
        for point in ((edges[at], float(value)), (edges[at + 1], float(value)))
    ]


def stepped(points: Points) -> Points:
    """Return a line through points that keeps each value up to the next point."""
    before = points[:1]
    found = [*before]
    for (_, value), point in pairwise(points):
        found += [(point[0], value), point]
    return found


def count_axis(most: float, *, is_whole: bool = True) -> Axis:
    """Return a vertical axis from zero up to the most that it shows, with four steps at most."""
    high = (most or 1) * _ABOVE
    return Axis(0.0, high, number_ticks(0.0, high, 4, is_whole=is_whole))


def number_ticks(low: float, high: float, steps_max: int, *, is_whole: bool = True) -> dict[float, str]:
    """Return round numbers between two, at most so many steps apart, and their texts."""
    power = 10.0 ** math.floor(math.log10((high - low) / steps_max))
    step = next(power * one for one in (1, 2, 2.5, 5, 10, 20) if power * one * steps_max >= high - low)
    if is_whole:
        step = max(1, math.ceil(step))
    numbers = [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return {number: f"{number:,.0f}" if is_whole else f"{number:,.10g}" for number in numbers}


def widened(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis that leaves some room at either end."""
    room = (high - low) * _MARGIN
    return low - room, high + room


def time_axis(start: float, end: float) -> Axis:
    """Return an axis of unix milliseconds, with the date that its ticks are of, where they have one."""
    low, high = widened(start, end)
    ticks, label = time_ticks(low, high)
    return Axis(low, high, ticks, label, is_time=True)


def time_ticks(low: float, high: float) -> tuple[dict[float, str], str]:
    """Return few whole times between two in unix milliseconds with their texts, and the date that these leave out.

    Each text is as short as its neighbours allow: a year stands at its January, a month at its first day.
    """
    first, last = (datetime.fromtimestamp(at / 1000, UTC) for at in (low, high))
    form, times = next(found for found in _choices(first, last) if len(found[1]) <= _TIMES_MAX)
    named = {one.timestamp() * 1000: _name_time(one, form) for one in times}
    has_year = form == "%Y" or (form == "%b" and any(one.month == 1 for one in times))
    dated = {"%b": "%Y", "%d": "%Y-%m"}.get(form, "%Y-%m-%d")
    return named, "" if has_year or not times else f"{times[-1]:{dated}}"


def _name_time(time: datetime, form: str) -> str:
    if form == "%b" and time.month == 1:
        return f"{time:%Y}"
    if form == "%d" and time.day == 1:
        return f"{time:%b}"
    if form == "%H:%M" and (time.hour, time.minute) == (0, 0):
        return f"{time:%b %d}"
    return f"{time:{form}}"


def _choices(first: datetime, last: datetime) -> Iterator[tuple[str, list[datetime]]]:
    """Yield the form and the times of ever wider steps."""
    span = (last - first).total_seconds()
    for unit, form in ((1, "%H:%M:%S"), (_MINUTE, "%H:%M")):
        for step in (1, 2, 5, 10, 15, 30):
            if span <= _TIMES_MAX * step * unit * 2:  # else far too many
                yield form, _by_seconds(first, last, step * unit)
    for hours in (1, 2, 3, 4, 6, 12):
        if span <= _TIMES_MAX * hours * _HOUR * 2:
            yield "%H:%M", _by_seconds(first, last, hours * _HOUR)
    for days in (1, 2, 4, 7, 14):
        if span <= _TIMES_MAX * days * _DAY * 2:
            yield "%d", [one for one in _by_seconds(first, last, _DAY) if _is_day(one.day, days)]
    for months in (1, 2, 3, 6):
        if span <= _TIMES_MAX * months * _MONTH * 2:
            yield "%b", _by_months(first, last, months)
    for years in (1, 2, 5, 10, 20, 50, 100, 1000):
        yield "%Y", _by_months(first, last, 12 * years)


def _is_day(day: int, step: int) -> bool:
    """Return True for a day of a month that a step meets, unless the next month is nearer than that."""
    return (day - 1) % step == 0 and day - 1 + step <= 31


def _by_seconds(first: datetime, last: datetime, step: int) -> list[datetime]:
    start = math.ceil(first.timestamp() / step) * step
    stop = math.floor(last.timestamp() / step) * step
    return [datetime.fromtimestamp(at, UTC) for at in range(start, stop + 1, step)]


def _by_months(first: datetime, last: datetime, step: int) -> list[datetime]:
    """Return the first days of each so many months, counted from the year 0."""
    start, stop = (one.year * 12 + one.month - 1 for one in (first, last))
    starts = range(math.ceil(start / step) * step, stop + 1, step)
    months = [datetime(at // 12, at % 12 + 1, 1, tzinfo=UTC) for at in starts]
    return [month for month in months if first <= month]
