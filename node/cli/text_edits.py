"""Finds what was changed between two versions of a text: the fewer words an edit replaces, the more of others' stays."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final

Edit = tuple[int, int, str]
"""An edit: its first and last place in the old text, in characters, and the text that stands there then."""
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_COMPARED_MAX: Final = 5000
"""Parts between the first and the last change that are compared with one another, in O(n²) as people edit."""


def find_edits(before: str, after: str) -> list[Edit]:
    """Return the edits that make one text of another, in the order of the text: changed lines are compared by words."""
    return [
        (place, place + len(gone), new)
        for start, old_lines, new_lines in _changes(_LINE.findall(before), _LINE.findall(after))
        for place, gone, new in _changes(_WORD.findall(old_lines), _WORD.findall(new_lines), start)
    ]


def _changes(old: Sequence[str], new: Sequence[str], at: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield what differs between two lists of parts: the place, counted from `at`, what stood there, and what stands now."""
    least = min(len(old), len(new))
    head = next((number for number in range(least) if old[number] != new[number]), least)
    tail = next(
        (number for number in range(least - head) if old[-1 - number] != new[-1 - number]), least - head
    )
    places = [*accumulate(map(len, old), initial=at)]
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if not left or not right or max(len(left), len(right)) > _COMPARED_MAX:
        if left or right:
            yield places[head], "".join(left), "".join(right)
        return
    for kind, start, stop, from_new, to_new in SequenceMatcher(None, left, right).get_opcodes():
        if kind != "equal":
            yield places[head + start], "".join(left[start:stop]), "".join(right[from_new:to_new])
