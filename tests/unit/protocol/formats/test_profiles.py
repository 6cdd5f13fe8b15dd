"""The rules of the names that people state: the vectors have the cases, here is what the messages say."""

import unicodedata

import pytest

from protocol.formats.profiles import find_fault, tidy_name


@pytest.mark.parametrize(
    "name, fault",
    [
        ("", "1 to 64 characters, not 0"),
        ("x" * 65, "not 65"),
        ("A\u202eB", "U+202E"),
        ("Ann ", "space"),
        ("\u0301A", "begin with a combining mark"),
        ("a" + "\u0301" * 5, "at most 4"),
        ("a2" * 26, "form of an id"),
    ],
)
def test_a_fault_is_named(name: str, fault: str) -> None:
    assert fault in find_fault(name)


def test_a_typed_name_is_put_into_its_form() -> None:
    assert tidy_name("Zoe\u0308 \u2764\ufe0f") == "Zo\u00eb \u2764"
    assert not find_fault(tidy_name("Zoe\u0308 \u2764\ufe0f"))


@pytest.mark.parametrize(
    "typed, stated",
    [
        (
            "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
            "\u0639\u0644\u06cc\u0631\u0636\u0627",
        ),  # Persian, with its joiner
        ("\u5c71\u7530\u3000\u592a\u90ce", "\u5c71\u7530 \u592a\u90ce"),  # Japanese, with its wide space
        ("Ann\xa0B", "Ann B"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\U0001f680"),
    ],
)
def test_spaces_of_other_widths_and_joiners_of_a_typed_name_give_a_name_that_all_nodes_take(
    typed: str, stated: str
) -> None:
    assert tidy_name(typed) == stated
    assert not find_fault(stated)


@pytest.mark.slow
def test_what_this_unicode_calls_unseen_or_a_space_is_forbidden() -> None:
    """The rules name code points; a character of these categories that they forgot would be found here."""
    unseen = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs")
    forgotten = [
        hex(point)
        for point in range(0x110000)
        if unicodedata.category(chr(point)) in unseen and point != 0x20 and not find_fault(f"a{chr(point)}b")
    ]
    assert forgotten == []
