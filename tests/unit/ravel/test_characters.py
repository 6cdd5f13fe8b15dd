"""Tests for the rule of the characters that names may hold and terminals are shown."""

import unicodedata

import pytest

from ravel.characters import composed, display_safe, find_forbidden, name_fault

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize(
    "name",
    [
        "Screenshot 2026-05-12 at 4.42.48\u202fPM.png",  # macOS 14 and later
        "10\u00a0000 Kč",
        "\u4f1a\u8b70\u3000\u8cc7\u6599",  # Japanese, with its wide space
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "PDF\u200c\u0647\u0627",  # Persian, behind a Latin word
        "\u06f1\u06f0\u200c\u0633\u0627\u0644\u0647",  # Persian, behind a number
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3 \u0dbd\u0d82\u0d9a\u0dcf",  # Sinhala
        "\u0d28\u0d4d\u200d",  # ends in a joiner, after the mark that takes the vowel away
        "\u1797\u17b6\u179f\u17b6\u200b\u1781\u17d2\u1798\u17c2\u179a",  # Khmer, whose words are parted by what nobody sees
        FAMILY,
        "\u2764\ufe0f\u200d\U0001f525",  # heart on fire
        "\U0001f642\u200d\u2194\ufe0f",  # head shaking
        "\U0001f469\U0001f3fd\u200d\U0001f680",  # astronaut
        SCOTLAND,
        "Donau\u00addampf",
        "\u845b\U000e0100",  # a variant of the ideograph
        "Apple \uf8ff",
        "\u0378",  # unassigned so far
        "İstanbul",
    ],
)
def test_names_of_all_scripts_are_allowed_and_shown_as_they_are(name: str) -> None:
    assert find_forbidden(name) == ""
    assert display_safe(name) == name


@pytest.mark.parametrize(
    "name, forbidden",
    [
        ("\x1b[31mred", "\x1b"),
        ("a\x7fb", "\x7f"),
        ("a\x9b31m", "\x9b"),
        ("a\tb", "\t"),
        ("a\nb", "\n"),
        ("a\u2028b", "\u2028"),
        ("a\u2029b", "\u2029"),
        ("right\u202eleft", "\u202e"),
        ("a\u2066b", "\u2066"),
        ("\u05d0\u200f\u05d1", "\u200f"),
        ("\u0627\u061c\u0628", "\u061c"),
        ("\ufeffname", "\ufeff"),
        ("a\udce9", "\udce9"),
        ("a\U000e0062", "\U000e0062"),
        ("\U0001f3f4\U000e0062\U000e007f", "\U000e0062"),  # a flag of no region
        ("ma\u200bin", "\u200b"),
        ("ma\u200cin", "\u200c"),
        ("ma\u200din", "\u200d"),
        ("\u043c\u0430\u200d\u0438\u043d", "\u200d"),
        ("\u0645\u06cc\u200c", "\u200c"),
        ("\u200c\u0645\u06cc", "\u200c"),
        ("\u0645\u06cc\u200c\u200c\u062e", "\u200c"),
        ("\u0645\u06cc\u200c \u062e", "\u200c"),
        ("a \u00adb", "\u00ad"),
        ("a\u2063b", "\u2063"),
    ],
)
def test_what_steers_a_terminal_turns_the_direction_or_hides_is_forbidden_and_shown_as_a_mark(
    name: str, forbidden: str
) -> None:
    assert find_forbidden(name) == forbidden
    assert "\ufffd" in display_safe(name) or forbidden == "\t"
    assert find_forbidden(display_safe(name)) == ""


def test_a_text_of_any_characters_is_shown_without_controls_and_marks_of_direction() -> None:
    every = "".join(chr(point) for point in range(0x110000))
    shown = display_safe(every)
    assert len(shown) == len(every)
    assert {unicodedata.category(char) for char in shown}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert {unicodedata.bidirectional(char) for char in shown}.isdisjoint(turning)


def test_a_fault_says_the_code_point_and_its_name() -> None:
    assert name_fault("right\u202eleft") == "may not hold U+202E RIGHT-TO-LEFT OVERRIDE"
    assert name_fault("a\x1bb") == "may not hold U+001B"
    assert name_fault("plain") == ""


def test_a_name_is_kept_with_its_accents_on_the_letters() -> None:
    assert composed("Re\u0301sume\u0301") == "R\xe9sum\xe9"
