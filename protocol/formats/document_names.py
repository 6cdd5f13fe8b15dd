"""Names of documents: which ones a header can have, and which ones a node writes.

A document is told by its branch, its kind and its name; the empty name is the one that each branch has of each kind. What a
header can have is told by code points alone, since verdicts rest on it. What else a name should not have depends on tables
of Unicode that change, so only the node that writes looks at it. A name is never a path on a disk.
"""

import re
import unicodedata
from typing import Final

DOCUMENT_NAME_SIZE_MAX: Final = 128
"""Bytes of a document's name: some segments of a path that people type. It stands in each of the document's commits."""
_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]|(?:\A|/)\.{0,2}(?:/|\Z)")
"""Controls, and segments that are empty, `.` or `..`."""
_JOINERS: Final = "\u200c\u200d"
_UNSEEN: Final = frozenset({"Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are not seen, or are none."""


def is_document_name(name: str) -> bool:
    """Return True if a header can have this name; the empty one stands in none."""
    return not _REFUSED.search(name) and len(name.encode(errors="surrogatepass")) <= DOCUMENT_NAME_SIZE_MAX


def find_name_fault(name: str) -> str:
    """Return the fault of a name to be written, as the end of a sentence about it; empty if it has none."""
    if not name:
        return ""
    if len(name.encode(errors="surrogatepass")) > DOCUMENT_NAME_SIZE_MAX:
        return f"has at most {DOCUMENT_NAME_SIZE_MAX} bytes"
    if not is_document_name(name):
        return "has no controls, and no segment between `/` that is empty, `.` or `..`"
    if any(not part.strip(_JOINERS) or part != part.strip() for part in name.split("/")):
        return "has no segment that begins or ends with a space, or that nobody sees"
    for character in name:
        if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
            return f"does not hold the character U+{ord(character):04X}"
    if not unicodedata.is_normalized("NFC", name):
        return "is in Unicode's form NFC"
    return ""
