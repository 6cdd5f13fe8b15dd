"""Answers fit a terminal of any width, say times and sizes as people do, and use colour for states alone."""

import time

import pytest

from node.cli import printing
from node.cli.printing import (
    Says,
    calendar_text,
    cell_width,
    cut,
    fit,
    moment,
    paint,
    print_next,
    print_table,
    say_wrapped,
    verbosely,
)
from node.runtime.wording import size_text

Capture = pytest.CaptureFixture[str]
NOON = time.mktime((2026, 11, 28, 12, 0, 0, 0, 0, -1))


@pytest.fixture(params=[40, 60, 80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal of that many columns."""
    found: int = request.param
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    monkeypatch.setattr(printing, "terminal_width", lambda: found)
    return found


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that shows colours."""
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_table_fits_the_terminal_and_cuts_its_longest_cells(width: int, capsys: Capture) -> None:
    rows = [("k7x2m4q3vbta", "Ann Okafor", "a word " * 30), ("4uzrbxlmxj67", "本名" * 20, "short")]
    print_table(("commit", "author", "text"), rows)
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["COMMIT", "AUTHOR", "TEXT"]
    assert all(cell_width(line) <= width for line in lines)
    assert all(row[0] in line for row, line in zip(rows, lines, strict=True)), "an id is needed whole"
    assert "…" in lines[0]


def test_a_column_in_which_nothing_stands_is_left_out_on_a_terminal(width: int, capsys: Capture) -> None:
    print_table(("name", "note"), [("a", ""), ("b", None)])
    assert capsys.readouterr().out == "NAME\na\nb\n"


def test_widths_are_taken_from_the_widest_columns_first() -> None:
    assert fit([12, 10, 50], 80) == [12, 10, 50]
    assert fit([12, 10, 100], 80) == [12, 10, 54]
    assert fit([40, 40], 42) == [20, 20]
    assert fit([9, 9, 9], 10) == [8, 8, 8], "a cell keeps a few characters"


@pytest.mark.parametrize(
    "text, room, shown", [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("本本", 3, "本…"), ("a b", 3, "a b")]
)
def test_a_cut_text_says_that_it_is_cut(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown
    assert cell_width(shown) <= room


def test_a_sentence_is_broken_between_words(width: int, capsys: Capture) -> None:
    sentence = "a sentence of some words that are not long " * 5
    say_wrapped(sentence.strip())
    lines = capsys.readouterr().out.splitlines()
    assert all(cell_width(line) <= width for line in lines)
    assert " ".join(lines) == sentence.strip()


@pytest.mark.parametrize(
    "ago, said",
    [
        (0, "just now"), (-30, "just now"), (61, "1 minute ago"), (3599, "59 minutes ago"), (2 * 3600, "10:00"),
        (22 * 3600, "yesterday 14:00"), (50 * 3600, "26 Nov 10:00"), (400 * 86_400, "24 Oct 2025"),
        (-86_400, "29 Nov 12:00"),
    ],
)  # fmt: skip
def test_times_are_said_as_people_say_them(ago: int, said: str, terminal: None) -> None:
    assert moment(NOON - ago, NOON) == said


def test_a_time_that_no_calendar_has_is_still_said(terminal: None) -> None:
    assert moment(1 << 60).endswith("UTC")
    assert calendar_text(1 << 60).endswith("UTC")


def test_a_pipe_gets_times_in_utc_and_no_colours(capsys: Capture) -> None:
    assert moment(0) == "1970-01-01 00:00 UTC"
    assert paint("well", "well") == "well"
    print_next(["ravel status"])
    assert capsys.readouterr().out == "", "programs need no next step"


def test_colours_are_not_shown_where_they_are_not_wanted(
    terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert paint("well", "well") == "\x1b[32mwell\x1b[0m"
    monkeypatch.setenv("TERM", "dumb")
    assert paint("well", "well") == "well"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    assert paint("well", "well") == "well"


@pytest.mark.parametrize(
    "size, said",
    [(0, "0 bytes"), (1, "1 byte"), (1536, "1.5 KiB"), (212 << 10, "212 KiB"), (5 << 30, "5.0 GiB")],
)
def test_sizes_have_units(size: int, said: str) -> None:
    assert size_text(size) == said


def test_a_sentence_names_values_and_commands_quote_them(terminal: None, capsys: Capture) -> None:
    says = Says("Created {name}, {size:size}, {count:post}.", "write {name}:main 'hello'")
    says({"name": "my garden", "size": 2048, "count": 1})
    assert capsys.readouterr().out.splitlines() == [
        "Created my garden, 2.0 KiB, 1 post.",
        "  ravel write 'my garden':main 'hello'",
    ]


def test_what_others_wrote_steers_no_terminal(terminal: None, capsys: Capture) -> None:
    Says("Created {name}.", "log {name}")({"name": "a\x1b[2Jb"})
    say_wrapped("a\x1b[2Jb", "well")
    assert "\x1b[2J" not in capsys.readouterr().out


def test_all_parts_are_asked_for_while_the_block_runs() -> None:
    with verbosely(True):
        assert printing.is_verbose()
    assert not printing.is_verbose()
