"""Printing of people and posts: names cut to a width without losing what tells look-alikes apart; files of posts."""

from node.cli.wording import author_of, person, post_text, without_attached

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


def test_a_post_is_printed_with_its_files_and_these_by_themselves_no_more() -> None:
    files = [
        {"name": "plan.pdf", "size": 217_088, "file": "f" * 52},
        {"name": "old", "size": None, "file": "o" * 52},
    ]
    post = {"commit": "p" * 52, "text": "x" * 90, "attachments": [{"commit": "c" * 52, "files": files}]}
    assert post_text({**post, "text": "hi"}, 72) == "hi [plan.pdf (212 KiB), old]"
    assert post_text(post, 72) == f"{'x' * 45}… [plan.pdf (212 KiB), old]"
    assert len(post_text(post, 40)) == 40, "words and names share what room there is"
    assert without_attached([{"commit": "c" * 52, "text": None}, post]) == [post]
