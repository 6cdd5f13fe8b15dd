"""How people are printed: by name, cut to a width without losing what tells look-alikes apart, else by id."""

from node.cli.wording import author_of, person

USER = "a" * 52
MARK = " [abcdefgh]"


def test_a_name_is_printed_else_the_beginning_of_the_id() -> None:
    assert person("Ann", USER) == "Ann"
    assert person("", USER) == "a" * 12


def test_a_long_name_is_cut_and_keeps_its_mark() -> None:
    assert person("x" * 64, USER, 24) == "x" * 23 + "…"
    assert person("x" * 64 + MARK, USER, 24) == "x" * 12 + "…" + MARK
    assert person("x" * 64 + MARK, USER, 5) == "x…" + MARK


def test_authors_from_elsewhere_do_not_pass_for_members() -> None:
    item = {"author": USER, "person": USER, "author_name": "Ann"}
    assert author_of(item) == "Ann"
    assert author_of({**item, "imported_author": "Ann"}) == "Ann (imported)"
    assert author_of({**item, "imported_author": "x" * 99}).endswith("… (imported)")
    assert author_of({**item, "origin": {"author": "b" * 52, "author_name": ""}}) == "b" * 12
    assert author_of({**item, "origin": {"author": "b" * 52, "author_name": "Ben"}}) == "Ben"
    assert author_of({"author": USER, "author_name": ""}) == "a" * 12
