"""Body by which a member states a name and a color for itself, and the rules of the text.

It stands in the root branch of each repo. No rule of membership looks at it: a body that does not decode is carried like
one of an unknown kind, so that nodes which do not know the kind judge alike. The rules of the text name code points and
ask no Unicode database: databases of different versions would show a name on one node and not on another.
"""

import re
import unicodedata
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import Wire
from protocol.formats.text import ID_TEXT
from protocol.limits.formats import PROFILE_COLOR_COUNT, PROFILE_NAME_LENGTH_MAX


class Profile(Wire, frozen=True, tag="profile1"):
    """The author calls itself `name` (None: no longer anything); `color` is the number of one of a few colors."""

    name: Annotated[str, Meta(min_length=1, max_length=PROFILE_NAME_LENGTH_MAX)] | None
    color: Annotated[int, Meta(ge=0, lt=PROFILE_COLOR_COUNT)] | None


_MARKS: Final = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
"""Blocks of marks that are drawn over the character before them."""
_MARKS_IN_A_ROW_MAX: Final = 4
_PLANE_ENDS: Final = "".join(
    f"{chr(plane << 16 | 0xFFFE)}-{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 14)
)
_FORBIDDEN: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls
    "\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # spaces other than U+0020, ends of lines
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # unseen, or turn
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"  # the direction of reading
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # format characters of scripts
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ufff0-\uffff"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\U000f0000-\U0010ffff"
    + _PLANE_ENDS  # private use, no characters
    + r"\[\]"  # what marks those who look alike
    "]"
)
_MARK_FIRST: Final = re.compile(f"[{_MARKS}]")
_MANY_MARKS: Final = re.compile(f"[{_MARKS}]{{{_MARKS_IN_A_ROW_MAX + 1}}}")
_DROPPED: Final = re.compile("[\ufe00-\ufe0f\xad\u200b-\u200d\u2060]")
"""Variation selectors that keyboards put behind emoji, soft hyphens and joiners: a name is read without them, too."""
_SPACES: Final = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")


def find_fault(name: str) -> str:
    """Return what is wrong with a person's name, as the end of a sentence about it; empty where nothing is."""
    if not 0 < len(name) <= PROFILE_NAME_LENGTH_MAX:
        return f"has 1 to {PROFILE_NAME_LENGTH_MAX} characters, not {len(name)}"
    if found := _FORBIDDEN.search(name):
        return f"does not hold the character U+{ord(found[0]):04X}"
    if name != name.strip(" ") or "  " in name:
        return "has no space at its ends, and never two in a row"
    if _MARK_FIRST.match(name):
        return "does not begin with a combining mark"
    if _MANY_MARKS.search(name):
        return f"has at most {_MARKS_IN_A_ROW_MAX} combining marks in a row"
    if ID_TEXT.fullmatch(name):
        return "does not have the form of an id"
    return ""


def tidy_name(typed: str) -> str:
    """Return a name as it is stated: in Unicode's form NFC, with plain spaces, and without joiners and selectors."""
    return unicodedata.normalize("NFC", _SPACES.sub(" ", _DROPPED.sub("", typed)))
