"""Words of texts and of search queries: one tokeniser for both, and what an index has to know of a text.

A text is compared after Unicode NFKC and case folding, without what nobody sees. A word is a run of letters, digits and
marks. Scripts that are written without spaces, Hangul, whose words end in particles, and emoji are searched by their
characters: any stretch of such a run is found. Whether a text fits a query is decided here, on the clear text; the index
only says which texts may.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from node.runtime.errors import ServiceError
from protocol.limits.users import (
    SEARCH_PREFIX_SIZE_MIN,
    SEARCH_QUERY_SIZE_MAX,
    SEARCH_TERM_COUNT_MAX,
    SEARCH_TEXT_KEYS_MAX,
    SEARCH_WORD_SIZE_MAX,
)

RULES: Final = 2
"""Version of the rules of this module. Raise it with each change of what is found: an index made by other rules is
made anew."""
_EMOJI: Final = "\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff"
_DENSE: Final = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
    f"{_EMOJI}]+)"
)
"""Thai, Lao, Burmese, Khmer, Han, Kana, Hangul and emoji."""
_UNSEEN: Final = re.compile(
    "[\xad\u034f\u180b-\u180f\u200b\u200d-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
"""What Unicode's NFKC_Casefold leaves out, but the non-joiner, which parts words of Persian."""
_DOTS_OF_I: Final = re.compile("i\u0307|\u0131")
"""What is left of a capital I with a dot, and the small i without one: Turkish writes both, other keyboards neither."""
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_PART: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')
"""Of a query: what stands in quotes, where the last may lack its end, or between spaces."""
_EDGE: Final = "\0"
"""Stands between words: no word has it."""
_ADVICE: Final = (
    'words are all to be found, "words in quotes" in this order, and BEGINNING* stands for any end'
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text, or a run of a script without spaces, and where it begins in the normalised text."""

    text: str
    is_dense: bool
    start: int


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that a query asks for.

    `needle` is what `Words.line` must contain; `keys` are in the index of every text that has it.
    """

    needle: str
    keys: frozenset[str]


class Words:
    """The words of one text."""

    def __init__(self, text: str) -> None:
        self._normal = normalise(text)
        self._text = text
        self._tokens = list(_tokens(self._normal))
        self.line = _EDGE + _EDGE.join(token.text for token in self._tokens) + _EDGE
        """All words, with an edge around each."""

    def has(self, terms: Iterable[Term]) -> bool:
        """Return True if the text has all of these terms."""
        return all(term.needle in self.line for term in terms)

    def excerpt(self, terms: Iterable[Term], size: int) -> str:
        """Return at most `size` characters of the text, around the first of these terms that it has."""
        if len(self._text) <= size:
            return self._text
        places = [place for term in terms if (place := self.line.find(term.needle)) >= 0]
        at = 0
        if places:
            edges = self.line.count(_EDGE, 0, min(places) + 1)
            at = self._tokens[min(edges, len(self._tokens)) - 1].start
            if len(self._normal) != len(self._text):  # folding has made other characters of some
                at = (
                    bisect_right(range(len(self._text)), at, key=lambda end: len(normalise(self._text[:end])))
                    - 1
                )
        start = max(0, min(at - size // 4, len(self._text) - size))
        return ("…" if start else "") + self._text[start : start + size - 2] + "…"


def normalise(text: str) -> str:
    """Normalise a text for comparison."""
    if text.isascii():
        return text.lower()
    folded = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return unicodedata.normalize("NFKC", _DOTS_OF_I.sub("i", folded))


def index_keys(texts: Iterable[str], count_max: int = SEARCH_TEXT_KEYS_MAX) -> list[str]:
    """Return the index keys of an item that says these texts: the first `count_max`, each once."""
    found: dict[str, None] = {}
    for text in texts:
        normal = normalise(text)
        if normal.isascii():  # most texts, and three times as quick as by tokens
            for word in dict.fromkeys(_ASCII_WORD.findall(normal)):
                found.update(dict.fromkeys(_keys_of_word(word[:SEARCH_WORD_SIZE_MAX])))
        else:
            for token in _tokens(normal):
                keys = _keys_of_run(token.text) if token.is_dense else _keys_of_word(token.text)
                found.update(dict.fromkeys(keys))
        if len(found) > count_max:
            return list(found)[:count_max]
    return list(found)


def parse_query(text: str) -> list[Term]:
    """Return the terms of a query, all of which a text must have.

    Raises ServiceError: `too_large` for a query or a number of terms over the limits, `bad_request` for one without a word,
    or with a beginning of too few letters.
    """
    if len(text) > SEARCH_QUERY_SIZE_MAX:
        raise ServiceError("too_large", f"a query has at most {SEARCH_QUERY_SIZE_MAX} characters")
    terms: dict[str, Term] = {}
    for quoted, plain in _PART.findall(text):
        is_beginning = plain.endswith("*")
        tokens = list(_tokens(normalise(quoted or plain)))
        groups = [tokens] if quoted else [[token] for token in tokens]
        for number, group in enumerate(groups):
            if group:
                term = _term(group, is_beginning=is_beginning and number == len(groups) - 1)
                terms[term.needle] = term
    if not terms:
        raise ServiceError("bad_request", "there is no word to look for", _ADVICE)
    if len(terms) > SEARCH_TERM_COUNT_MAX:
        raise ServiceError("too_large", f"a query has at most {SEARCH_TERM_COUNT_MAX} words")
    return list(terms.values())


def _term(tokens: list[Token], *, is_beginning: bool) -> Term:
    first, last = tokens[0], tokens[-1]
    if is_beginning and not last.is_dense and len(last.text) < SEARCH_PREFIX_SIZE_MIN:
        raise ServiceError(
            "bad_request",
            f"{last.text}* is too short: a beginning has at least {SEARCH_PREFIX_SIZE_MIN} letters",
            _ADVICE,
        )
    before = "" if first.is_dense else _EDGE
    behind = "" if last.is_dense or is_beginning else _EDGE
    keys = {key for token in tokens[:-1] for key in _keys_to_find(token)}
    if is_beginning and not last.is_dense:
        keys.add(_beginning(last.text))
    else:
        keys.update(_keys_to_find(last))
    return Term(before + _EDGE.join(token.text for token in tokens) + behind, frozenset(keys))


def _keys_to_find(token: Token) -> list[str]:
    """Keys of every text that has a token: of a run its pairs of characters, which stand for the single ones."""
    if not token.is_dense:
        return [f"w{token.text}"]
    if len(token.text) == 1:
        return [f"1{token.text}"]
    return [f"2{first}{second}" for first, second in pairwise(token.text)]


def _keys_of_word(text: str) -> list[str]:
    return [f"w{text}"] if len(text) < SEARCH_PREFIX_SIZE_MIN else [f"w{text}", _beginning(text)]


def _keys_of_run(text: str) -> list[str]:
    return [*[f"1{char}" for char in text], *[f"2{first}{second}" for first, second in pairwise(text)]]


def _beginning(text: str) -> str:
    """Return the key of all words with this beginning; longer ones find it too, and the clear text tells them apart."""
    return f"b{text[:SEARCH_PREFIX_SIZE_MIN]}"


def _tokens(normal: str) -> Iterator[Token]:
    """Yield the tokens of a normalised text, in order."""
    if normal.isascii():
        for match in _ASCII_WORD.finditer(normal):
            yield Token(match[0][:SEARCH_WORD_SIZE_MAX], False, match.start())
        return
    for match in _word().finditer(normal):
        start = match.start()
        for number, part in enumerate(_DENSE.split(match[0])):
            if part:
                is_dense = number % 2 == 1
                yield Token(part if is_dense else part[:SEARCH_WORD_SIZE_MAX], is_dense, start)
                start += len(part)


@cache
def _word() -> re.Pattern[str]:
    """Match letters, digits, marks and emoji. Python's own class lacks the marks, by which words of India would part."""
    marks = [chr(code) for code in range(0x300, 0x1E950) if unicodedata.category(chr(code))[0] == "M"]
    spans: list[list[str]] = []
    for mark in marks:
        if spans and ord(mark) == ord(spans[-1][1]) + 1:
            spans[-1][1] = mark
        else:
            spans.append([mark, mark])
    ranges = "".join(f"{first}-{last}" for first, last in spans)
    return re.compile(f"(?:[^\\W_]|[{ranges}{_EMOJI}])+")
