"""Posts as a terminal shows them: by days, with the time, who wrote it, the text, and the id that commands take."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from node.cli.printing import ID_WIDTH, cell_width, cut, pad, terminal_width
from node.cli.wording import author_of, person
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text
from ravel.characters import display_safe

_AUTHOR_MAX: Final = 20
_TEXT_MIN: Final = 16


def print_days(items: Sequence[Mapping[str, Any]], text_of: Callable[[Any], str]) -> None:
    """Print commits in order. Each day is printed above its commits, an author once above a run of commits."""
    if not items:
        print(in_language("Nothing is written here yet."))
        return
    authors = [display_safe(author_of(item)) for item in items]
    width = min(max(map(cell_width, authors)), _AUTHOR_MAX)
    room = max(terminal_width() - width - ID_WIDTH - len("  00:00") - 6, _TEXT_MIN)
    day = clock = author = ""
    for item, who in zip(items, authors, strict=True):
        then_day, then_clock = _day_and_clock(item["time"])
        if then_day != day:
            print(then_day)
            day, clock, author = then_day, "", ""
        shown = (then_clock if then_clock != clock else "", who if who != author else "")
        text = cut(display_safe(text_of(item)), room)
        print(
            f"  {shown[0]:<5}  {pad(cut(shown[1], width), width)}  {pad(text, room)}  {item['commit'][:ID_WIDTH]}"
        )
        clock, author = then_clock, who


def print_arriving(arriving: Mapping[str, Any], text_of: Callable[[Any], str]) -> None:
    """Print the newest commits of a branch whose past is on its way, and how much is at least."""
    if arriving["items"]:
        earlier = counted(arriving["earlier"], "earlier post is on its", "earlier posts are on their")
        print(f"(At least {earlier} way.)")
        if (by := arriving.get("vouched")) is not None:
            print(f"(As {display_safe(by['name'])} had them: {date_text(by['at'])}.)")
        print_days(arriving["items"], text_of)
    if arriving["waiting"]:
        waiting = counted(arriving["waiting"], "newer post waits", "newer posts wait")
        named = "it" if arriving["waiting"] == 1 else "them"
        print(f"({waiting}: no owner or admin has confirmed {named} so far.)")


def with_changes(
    items: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]], *, is_end: bool
) -> list[Mapping[str, Any]]:
    """Return commits in their order, with changes of members before the first commit that is later.

    `changes` are sorted by time. Those after the last commit are shown where that is the end of the timeline.
    """
    found: list[Mapping[str, Any]] = []
    rows = [_change_row(one) for one in changes]
    for item in items:
        while rows and rows[0]["time"] <= item["time"]:
            found.append(rows.pop(0))
        found.append(item)
    return found + rows if is_end else found


_CHANGES: Final[Mapping[str, str]] = {
    "joined": "joined: may {may}",
    "granted": "granted {who}: may {may}",
    "lowered": "lowered {who}: may {may}",
    "excluded": "excluded {who}",
    "left": "left",
    "device_added": "added the computer {device}: may {may}",
    "device_removed": "removed the computer {device}",
    "moved": "passed its place to the computer {device}, and left: may {may}",
    "recovered": "was let in again with the key {key} by {friends}: may {may}",
    "friends_named": "named friends who may let it in again: {friends}",
    "renamed": "was called {before} before",
}
"""Kind of a change of members -> what its author did."""


def _change_row(one: Mapping[str, Any]) -> Mapping[str, Any]:
    who = person(one["user_name"], one["user"])
    device = person(one["device_name"] or "", one["user"])  # all devices are called as the person is
    may = (
        one["permission"]
        if one["permission"] in ("read", "write", "manage")
        else f"all that an {one['permission']} may"
    )
    friends = ", ".join(map(person, one["friend_names"], one["friends"])) or "none"
    said = _CHANGES.get(one["kind"], one["kind"]).format(
        who=who,
        may=may,
        device=device,
        before=one["earlier_name"],
        key=one["user"][:ID_WIDTH],
        friends=friends,
    )
    return {**one, "change": f"({in_language(said)})"}


def _day_and_clock(seconds: float) -> tuple[str, str]:
    """Return a local day, with its year where that is another one, and the time of the day."""
    try:
        then, now = time.localtime(seconds), time.localtime()
    except (OverflowError, OSError, ValueError):  # authors may state times that no calendar here has
        return date_text(seconds), ""
    year = "" if then.tm_year == now.tm_year else f" {then.tm_year}"
    day = in_language(f"{then.tm_mday} {time.strftime('%B', then)}")
    return f"{day}{year}", time.strftime("%H:%M", then)
