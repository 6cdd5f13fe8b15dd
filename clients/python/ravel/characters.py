"""Rule of the characters that names may hold and terminals are shown: all scripts, and nothing that misleads a reader.

Forbidden are controls, ends of lines, lone surrogates, marks that turn the direction of reading, byte order marks, and
characters that carry hidden text. Spaces of all widths are allowed. Joiners make words of Persian, Khmer and the scripts of
India, and emoji of several people. They are allowed where they do so, after UTS 39 and UAX 31, and forbidden elsewhere:
readers of Latin, Greek and Cyrillic words do not see them. The rule names code points where possible: Python's Unicode
tables grow, and a name that one node makes should not be forbidden on another.
"""

import re
import unicodedata
from typing import Final

_REPLACEMENT: Final = "\ufffd"
_FLAGS: Final = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
"""The three flags that Unicode spells with tags. All other tags are hidden text."""
_JOINERS: Final = "\u00ad\u200b-\u200d\u2060"
"""Soft hyphen, zero width space, both joiners, word joiner."""
_CANDIDATE: Final = re.compile(
    f"{_FLAGS}|["
    "\x00-\x1f\x7f-\x9f"  # controls
    "\ud800-\udfff"  # halves of characters: a name of a file that is no UTF-8
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of reading
    "\u2028\u2029"  # ends of lines and paragraphs
    "\u2061-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible operators, old controls, byte order mark, annotations
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags, and what is to be invisible one day
    f"{_JOINERS}]"
)
_JOINER: Final = re.compile(f"[{_JOINERS}]")
_SOFT_HYPHEN: Final = "\u00ad"
_ZERO_WIDTH_SPACE: Final = "\u200b"
_ZERO_WIDTH_JOINER: Final = "\u200d"
_VIRAMA_CLASS: Final = 9
"""Canonical combining class of the marks that take a consonant's vowel away."""
_UNJOINED: Final = re.compile(
    "[\u0000-\u052f\u1c80-\u1c8f\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\ua640-\ua69f\ua720-\ua7ff\uab30-\uab6f"
    "\ufb00-\ufb06\uff00-\uff5e]"
)
"""Latin, Greek and Cyrillic, their digits and marks: scripts whose words need no joiner."""


def find_forbidden(text: str) -> str:
    """Return the first character of a text that a name may not hold, or an empty text."""
    for match in _CANDIDATE.finditer(text):
        if not _is_allowed(match):
            return match[0]
    return ""


def composed(name: str) -> str:
    """Return a name in Unicode's form NFC, in which names are made, kept and compared.

    Keyboards and the file manager of macOS give letters and their accents apart, which look the same.
    """
    return unicodedata.normalize("NFC", name)


def name_fault(text: str) -> str:
    """Return the end of a sentence on what a name may not hold, or an empty text."""
    found = find_forbidden(text)
    return f"may not hold U+{ord(found):04X} {unicodedata.name(found, '')}".rstrip() if found else ""


def display_safe(text: str) -> str:
    """Return a text for a terminal: tabs become spaces, and each forbidden character U+FFFD."""
    return _CANDIDATE.sub(
        lambda match: match[0] if _is_allowed(match) else _REPLACEMENT, text.replace("\t", " ")
    )


def _is_allowed(match: re.Match[str]) -> bool:
    """Return True for a flag, and for a joiner that its neighbours need."""
    if len(match[0]) > 1:
        return True
    if not _JOINER.match(match[0]):
        return False
    start, end = match.span()
    before, after = match.string[max(start - 1, 0) : start], match.string[end : end + 1]
    if match[0] == _ZERO_WIDTH_JOINER and before and unicodedata.combining(before) == _VIRAMA_CLASS:
        return True  # it may end a word there
    if match[0] == _ZERO_WIDTH_SPACE:  # scripts without spaces part their words, and sentences, by it
        return _needs_joiners(before) or _needs_joiners(after)
    is_inside = _is_of_word(before) and _is_of_word(after)
    return is_inside and (match[0] == _SOFT_HYPHEN or _needs_joiners(before) or _needs_joiners(after))


def _needs_joiners(char: str) -> bool:
    return _is_of_word(char) and not _UNJOINED.match(char)


def _is_of_word(char: str) -> bool:
    """Return True for a letter, digit, mark or emoji, also one that is newer than Python's tables."""
    if not char or _JOINER.match(char):
        return False
    category = unicodedata.category(char)
    return category[0] in "LMNS" or category in ("Cn", "Co")
