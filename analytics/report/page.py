"""HTML building blocks of the report: page frame, tables, number and date texts, escaping.

Every part escapes what it is given: names and authors come from anybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from ravel.exports.schema import text_id

_TEMPLATE: Final = Path(__file__).with_name("page.html")

_SHORT_ID_SIZE: Final = 10
"""Characters of an id that tell it from its neighbours on a page; commands take such prefixes."""

DASH: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Names:
    """Names of users, nodes and repos by text id, of those that have one."""

    known: Mapping[str, str]

    def of(self, text: str) -> str:
        """Return a name, or the beginning of the id; either shows the whole id to a pointer."""
        name = self.known.get(text, "")
        shown = named(name) if name else escape(short(text))
        return f'<{"span" if name else "code"} title="{escape(text)}">{shown}</{"span" if name else "code"}>'


NO_NAMES: Final = Names({})


def render(title: str, subtitle: str, body: str) -> str:
    """Return the whole page. The parts are HTML."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=title, subtitle=subtitle, body=body
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. The first cell of a row brings its own element. In a narrow window each cell shows its head."""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(
        f"<tr>{row[0]}"
        + "".join(
            f'<td data-head="{escape(name)}">{cell}</td>'
            for name, cell in zip(heads[1:], row[1:], strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def branch_label(name: str, branch_id: bytes) -> str:
    """Return a branch by its name and the beginning of its id."""
    text = text_id(branch_id)
    return f'{named(name)} <code title="{text}">{short(text)}</code>'


def branch_cell(name: str, branch_id: bytes) -> str:
    """Return the label of a branch as the first cell of a row."""
    return f'<th scope="row">{branch_label(name, branch_id)}</th>'


def bar(count: int, most: int) -> str:
    """Return a number, and a bar as long as its part of the largest one. Bars of a column end at one line."""
    return f'<span class="bar" style="--part:{count / max(most, 1):.3f}"></span><span class="count">{count:,}</span>'


def named(name: str) -> str:
    """Return a chosen name as HTML."""
    # A name may hold letters that turn the direction of text; it does so inside <bdi> only.
    return f"<bdi>{escape(name)}</bdi>" if name.strip() else "<i>(no name)</i>"


def link_to(table: str) -> str:
    """Return a link to the place that names the table and its files."""
    return f'<a href="#table-{table}"><code>tables/{table}</code></a>'


def short(text: str) -> str:
    """Return the beginning of an id."""
    return text[:_SHORT_ID_SIZE] + "\N{HORIZONTAL ELLIPSIS}" if len(text) > _SHORT_ID_SIZE else text


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def moment(milliseconds: int | None) -> str:
    """Return a date and time of day (UTC) from unix milliseconds, as HTML: much can happen in one day."""
    if milliseconds is None:
        return DASH
    return f"<time>{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}</time>"


def duration(milliseconds: int) -> str:
    """Return a time span in its largest whole unit."""
    for unit, name in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute")):
        if milliseconds >= unit:
            return counted(milliseconds // unit, name)
    return counted(milliseconds // 1000, "second")


def lasted(milliseconds: int | None) -> str:
    """Return a time span to compare with others, in a unit that suits it."""
    if milliseconds is None:
        return DASH
    if milliseconds < 1000:
        return f"{milliseconds:,} ms"
    for unit, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
        if milliseconds >= unit:
            return f"{milliseconds / unit:,.1f} {name}"
    return f"{milliseconds / 1000:,.1f} s"


def sized(count: int) -> str:
    """Bytes in a unit that suits them."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
