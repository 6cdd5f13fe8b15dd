"""Which names look alike: by Unicode's table, whatever the case, accents and spaces."""

import pytest

from node.runtime.look_alikes import skeletons


def look_alike(first: str, second: str) -> bool:
    """Whether two names have a skeleton in common."""
    return any(one == other for one, other in zip(skeletons(first), skeletons(second), strict=True))


@pytest.mark.parametrize(
    "first, second",
    [
        ("Ann", "\u0410nn"),  # Cyrillic A
        ("ANN", "\u0391\u039d\u039d"),  # Greek
        ("Ann", "ann"),
        ("ANN", "Ann"),
        ("Ann", "\uff21\uff4e\uff4e"),  # fullwidth
        ("Ann", "\U0001d400nn"),  # mathematical bold
        ("Alice", "AIice"),
        ("Alice", "A1ice"),
        ("Bob", "B0b"),
        ("modern", "rnodern"),
        ("Jose", "Jos\u00e9"),
        ("Jos\u00e9", "Jose\u0301"),
        ("Ann Lee", "AnnLee"),
        ("Ann", "A\u200dnn"),
        ("\u0639\u0644\u06cc\u0631\u0636\u0627", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"),  # Persian
        ("\ufb01n", "fin"),  # a ligature
    ],
)
def test_they_look_alike(first: str, second: str) -> None:
    assert look_alike(first, second)
    assert look_alike(second, first)


@pytest.mark.parametrize(
    "first, second", [("Ann", "Anna"), ("Ann", "Ben"), ("\u738b", "\u674e"), ("Ann", "Ann 2"), ("", "a")]
)
def test_they_do_not(first: str, second: str) -> None:
    assert not look_alike(first, second)
