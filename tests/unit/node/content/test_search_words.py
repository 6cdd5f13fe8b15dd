"""Words of texts and of queries: what is found by what, in several scripts, and the bounds."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.content.search_words import Words, index_keys, parse_query
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    SEARCH_QUERY_SIZE_MAX,
    SEARCH_TERM_COUNT_MAX,
    SEARCH_TEXT_KEYS_MAX,
    SEARCH_WORD_SIZE_MAX,
)


def _finds(query: str, text: str) -> bool:
    """Return True if the clear text fits. What fits must be in the index under all keys of the query."""
    terms = parse_query(query)
    fits = Words(text).has(terms)
    keys = set(index_keys([text]))
    assert not fits or all(term.keys <= keys for term in terms), (query, text)
    return fits


@pytest.mark.parametrize(
    "query,text",
    [
        ("budget", "The Budget, at last."),
        ("BUDGET meeting", "the meeting about the budget"),
        ("meet*", "Meetings"),
        ("meeti*", "Meetings"),
        ("report", "my_report-2024.pdf"),
        ("don't", "I don\u2019t"),
        ("strasse", "Straße"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("fine", "\ufb01ne"),
        ("123", "\uff11\uff12\uff13"),
        ('"new york"', "in New York, today"),
        ('"new york', "new york"),
        ('"new yo" york', "new yo york"),
        ("東京", "今日は東京都に行く"),
        ("東", "今日は東京都に行く"),
        ("京都", "東京都"),
        ('"python 入門"', "Python入門書"),
        ("안녕", "안녕하세요"),
        ("สวัสดี", "สวัสดีครับ"),
        ("हिन्दी", "यह हिन्दी है"),
        ("привет", "ПРИВЕТ, мир"),
        ("東京*", "東京都"),
        ("x" * 200, "x" * 200),
        ("istanbul", "İSTANBUL"),
        ("İstanbul", "istanbul"),
        ("ISPARTA", "\u0131sparta"),
        ("\U0001f389", "well done \U0001f389\U0001f389!"),
        ("\u2764", "a \u2764\ufe0f for you"),
        ("\u2764\ufe0f", "\u2764"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "us: \U0001f468\u200d\U0001f469\u200d\U0001f467."),
        ("\U0001f469", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("done", "done\u2705"),
        ("donaudampf", "Donau\xaddampf"),
        (
            "\u0dc1\u0dca\u0dbb\u0dd3",
            "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
        ),  # Sinhala, with and without its joiner
        (
            "\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),  # the second half of a Persian word
    ],
)
def test_a_query_finds(query: str, text: str) -> None:
    assert _finds(query, text)


@pytest.mark.parametrize(
    "query,text",
    [
        ("meet", "Meetings"),
        ("eeting*", "meetings"),
        ("meets*", "meetings"),
        ("new york", "new jersey"),
        ('"york new"', "new york"),
        ('"new york"', "new big york"),
        ("東都", "東京都"),
        ("का", "यह है"),
    ],
)
def test_a_query_does_not_find(query: str, text: str) -> None:
    assert not _finds(query, text)


@pytest.mark.parametrize(
    "query,code",
    [
        ("", "bad_request"),
        ("?! ...", "bad_request"),
        ('""', "bad_request"),
        ("ab*", "bad_request"),
        ("x" * (SEARCH_QUERY_SIZE_MAX + 1), "too_large"),
        (" ".join(f"a{number}" for number in range(SEARCH_TERM_COUNT_MAX + 1)), "too_large"),
    ],
)
def test_a_query_is_bounded(query: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_query(query)
    assert caught.value.code == code


def test_a_query_at_its_bounds() -> None:
    assert parse_query("x" * SEARCH_QUERY_SIZE_MAX)
    words = " ".join(f"a{number}" for number in range(SEARCH_TERM_COUNT_MAX))
    assert len(parse_query(words)) == SEARCH_TERM_COUNT_MAX


def test_a_text_has_a_bounded_number_of_keys() -> None:
    many = " ".join(f"w{number:05}" for number in range(SEARCH_TEXT_KEYS_MAX))
    assert len(index_keys([many])) == SEARCH_TEXT_KEYS_MAX
    assert len(index_keys(["東京" * 10, many])) == SEARCH_TEXT_KEYS_MAX
    exact = " ".join(f"{number:x}" for number in range(16))  # of one letter each: no beginnings
    assert len(index_keys([exact])) == 16
    [key] = [key for key in index_keys(["z" * 1000]) if key.startswith("w")]
    assert len(key) == SEARCH_WORD_SIZE_MAX + 1


@given(st.text(max_size=40))
def test_every_text_is_found_by_its_own_words(text: str) -> None:
    for term in Words(text).line.split("\0"):
        if term:
            assert _finds(f'"{term}"', text)


@given(st.text(max_size=60), st.text(max_size=20))
def test_what_fits_is_in_the_index(text: str, query: str) -> None:
    with suppress(ServiceError):  # no word, or a beginning that is too short
        _finds(query, text)


@pytest.mark.parametrize(
    "text",
    ["needle", "a " * 400 + "needle" + " b" * 400, "ß" * 300 + " needle " + "x " * 200],
    ids=["short", "long", "longer_when_folded"],
)
def test_an_excerpt_shows_the_word(text: str) -> None:
    shown = Words(text).excerpt(parse_query("needle"), 100)
    assert "needle" in shown
    assert len(shown) <= 100
