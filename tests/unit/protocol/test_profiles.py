"""The rules of the names that people state: the vectors have the cases, here is what the messages say."""

import unicodedata

import pytest

from protocol.profiles import find_fault, tidy_name


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
