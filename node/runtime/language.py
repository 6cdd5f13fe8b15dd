"""Sentences in the reader's language, as LC_ALL, LC_MESSAGES or LANG name it. English, where there is no table of it.

A table has English sentences with holes ({0}), and what they are in the language: one that was filled is found by what
stands between its holes. What the node says is in the page's table (`node/web/strings`), what commands say in one beside.
Help is in a table of its own, by whole paragraphs: whoever changes one in the code changes its key there.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_OF_NODE: Final = "web/strings/{}_said*.js"
_SAID_MAX: Final = 2000
"""Characters of a sentence that is looked for: an error may quote a peer's words, and no sentence of ours is longer."""
_HOLE: Final = re.compile(r"\{(\d)(\*?)\}")
_SENTENCE_END: Final = re.compile(r"(?<=;) |(?<=\.) (?=[A-Z`])")


def in_language(text: str) -> str:
    """Return a sentence in the reader's language; in English where its table has nothing for it."""
    speaker = _speaker(_chosen_language())
    if speaker is None or len(text) > _SAID_MAX:
        return text
    bare = text.lstrip(" ")
    return text[: len(text) - len(bare)] + speaker(bare)


def help_in_language(text: str) -> str:
    """Return a paragraph of help in the reader's language; in English where its table has nothing for it."""
    return load_help(_chosen_language()).get(text, text)


@cache
def load_help(language: str) -> Mapping[str, str]:
    """Return the translations of help's paragraphs; empty for a language without a table."""
    path = _FOLDER / f"{language}_help.json"
    if not re.fullmatch("[a-z]{2}", language) or not path.exists():
        return {}
    table: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return table


def _chosen_language() -> str:
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return re.split(r"[_.@]", locale, maxsplit=1)[0].lower()


@cache
def _speaker(language: str) -> Callable[[str], str] | None:
    own = _FOLDER / f"{language}.json"
    if not re.fullmatch("[a-z]{2}", language) or not own.exists():
        return None
    return Speaker(load_table(language))


def load_table(language: str) -> dict[str, str]:
    """Return what sentences of the node and of commands are in a language that has tables."""
    of_node: dict[str, str] = {}
    for path in sorted(_FOLDER.parent.glob(_OF_NODE.format(language))):
        script = path.read_text(encoding="utf-8")
        of_node |= json.loads(script.partition("export const SAID = ")[2].rstrip().removesuffix(";"))
    of_commands: dict[str, str] = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return of_node | of_commands


class Speaker:
    """Function that says sentences by a table, as `said.js` of the page does; what the table has not stays as it is."""

    def __init__(self, table: Mapping[str, str]) -> None:
        pieces = [(re.split(r"\{\d\}", english), meant) for english, meant in table.items()]
        # The one that says most fits best.
        self._known = sorted(pieces, key=lambda one: -len("".join(one[0])))

    def __call__(self, said: str) -> str:
        """Return a sentence in the language; of one that is not in the table as a whole, its parts."""
        for parts in ([said], _SENTENCE_END.split(said)):
            spoken = " ".join(map(self._part, parts))
            if spoken != said:
                return spoken
        found = self._whole(said, is_one=False)
        return ", ".join(map(self._part, said.split(", "))) if found is None else found

    def _part(self, said: str) -> str:
        """Return a sentence, with or without the mark that ends it."""
        found = None if said.endswith(";") else self._whole(said)  # no sentence of the table has that mark
        if found is not None:
            return found
        bare = said.rstrip(".;")
        return (self._whole(bare) or bare) + said[len(bare) :]

    def _whole(self, said: str, *, is_one: bool = True) -> str | None:
        """Fill the sentence of the table that fits. `is_one`: no value in it has a sentence's end."""
        for pieces, meant in self._known:
            values = _values_in(said, pieces)
            if values is not None and not (is_one and any(map(_SENTENCE_END.search, values))):
                return _HOLE.sub(partial(self._fill, values), meant)
        return None

    def _fill(self, values: list[str], hole: re.Match[str]) -> str:
        value = values[int(hole[1])]
        return self(value) if hole[2] else value


def _values_in(said: str, pieces: list[str]) -> list[str] | None:
    """Return the values in the holes between pieces of a text; None where it has others. Costs O(text)."""
    first, *others = pieces
    if not others:
        return [] if said == first else None
    last = others.pop()
    if not said.startswith(first) or not said.endswith(last):
        return None
    values, start = [], len(first)
    for piece in others:
        end = said.find(piece, start + 1)
        if end < 0:
            return None
        values.append(said[start:end])
        start = end + len(piece)
    end = len(said) - len(last)
    return [*values, said[start:end]] if end > start else None
