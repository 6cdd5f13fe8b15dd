"""Tells which names look alike: by Unicode's table of confusable characters, whatever the case, accents, spaces and joiners.

After the skeletons of UTS 39. The table is that of the package confusable-homoglyphs; its classes are made once.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

_DROPPED: Final = re.compile("[\u0300-\u036f\xad\u200b-\u200d\u2060\ufe00-\ufe0f]")
"""Accents, soft hyphens, joiners and variation selectors."""
_REMEMBERED_MAX: Final = 16_384
_ROUNDS: Final = 3
"""Times that characters are replaced: a ligature becomes letters, which have others that look like them."""


@lru_cache(_REMEMBERED_MAX)
def skeletons(name: str) -> tuple[str, str]:
    """Return the looks of a name, in two ways; two names look alike if they share one.

    Capitals first show a capital I to be like a small l, and small letters first ANN to be like Ann.
    """
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", name)).replace(" ", "")
    return _skeleton(_skeleton(plain).casefold()), _skeleton(_skeleton(plain.casefold()).casefold())


def _skeleton(text: str) -> str:
    table = _load_table()
    for _ in range(_ROUNDS):
        text, before = "".join(table.get(char, char) for char in text), text
        if text == before:
            break
    return text


@cache
def _load_table() -> Mapping[str, str]:
    """Map each character that looks like others to a text that stands for all of them."""
    raw = files("confusable_homoglyphs").joinpath("confusables.json").read_text(encoding="utf-8")
    parents: dict[str, str] = {}

    def find(text: str) -> str:
        while parents.setdefault(text, text) != text:
            text = parents[text]
        return text

    # Right-to-left characters stand between marks of direction there.
    pairs = [
        (char.strip("\u200e"), other["c"].strip("\u200e"))
        for char, others in json.loads(raw).items()
        for other in others
    ]
    for char, other in [*pairs, ("0", "o")]:  # the table has 0 and the capital alone
        first, second = find(char), find(other)
        if first != second:
            # The root is what is longest, else what comes first: "rn" stands for m, and 1 for I and l.
            kept, joined = sorted((first, second), key=lambda text: (-len(text), text))
            parents[joined] = kept
    return {text: find(text) for text in list(parents) if len(text) == 1}
