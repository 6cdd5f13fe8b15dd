"""Names of documents: what a header can have, what a node writes, and what the header says of either."""

import pytest
from msgspec.structs import replace

from protocol.codec import encode
from protocol.formats.body import Body, Carried
from protocol.formats.content import Post
from protocol.formats.declared_kind import declare_kind, declared_kind, document_name
from protocol.formats.document_kinds import DictSnapshot, SetEdit, TextUpdate
from protocol.formats.document_names import DOCUMENT_NAME_SIZE_MAX, find_name_fault, is_document_name
from protocol.ids import BranchId, UserId
from tests.support.ids import as_commit_id
from tests.support.memberships import make_commit

CARRIED = Carried(BranchId(b"b" * 32), as_commit_id(b"c" * 32), UserId(b"u" * 32), 0, b"x")
GOOD = ["a", "profile", "notes/2026/May", ".titles", "...", "a b", "x" * DOCUMENT_NAME_SIZE_MAX, "é" * 64]
BAD = ["", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/..", "a/./b", "a\0", "a\n", "\x7f", "\x85"]
BAD += ["x" * (DOCUMENT_NAME_SIZE_MAX + 1), "é" * 64 + "a"]


def _said(metadata: bytes, *, is_root_branch: bool = False) -> tuple[type[Body] | None, str]:
    made = make_commit(1, "ann", ())
    commit = replace(made, content=replace(made.content, metadata=metadata))
    return (
        declared_kind(commit, is_root_branch=is_root_branch),
        document_name(commit, is_root_branch=is_root_branch),
    )


@pytest.mark.parametrize("name", GOOD)
def test_a_header_says_the_kind_and_the_name_of_a_document(name: str) -> None:
    assert is_document_name(name)
    for body in (SetEdit((), (), ()), DictSnapshot("", None, ()), TextUpdate(b"u", ())):
        said = declare_kind(body, name)
        assert _said(said) == (type(body), name)
        assert _said(said, is_root_branch=True) == (None, ""), "verdicts rest on bodies there"


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_no_header_can_have_says_nothing_not_even_a_kind(name: str) -> None:
    assert not is_document_name(name)
    assert _said(encode(["kind2", "set1", name])) == (None, "")
    assert bool(find_name_fault(name)) == bool(name), "the empty one is the unnamed document's"


def test_a_carried_commit_says_the_name_and_no_kind_and_other_bodies_have_no_name() -> None:
    assert _said(declare_kind(CARRIED, "a")) == (None, "a")
    assert declare_kind(CARRIED) == b""
    assert declare_kind(Post("x"), "a") == declare_kind(Post("x"))
    for other in (
        ["kind2", "post1", "a"],
        ["kind2", "set1", b"a"],
        ["kind2", "set1"],
        ["kind2", "set1", "a", 1],
    ):
        assert _said(encode(other)) == (None, "")


@pytest.mark.parametrize(
    "name", ["a\u0301", "a\u202eb", "\u2028", "\ue000", "\ufeffa", "a\u00ad", " a", "a/b ", "\u200d"]
)
def test_a_node_writes_no_name_that_looks_like_another_by_what_is_not_seen(name: str) -> None:
    assert is_document_name(name), "a header can have it: no verdict rests on tables of Unicode"
    assert find_name_fault(name)


@pytest.mark.parametrize("name", ["", "á", "می‌خواهم", "क्‍ष", "日本", *GOOD])
def test_a_node_writes_names_of_all_scripts(name: str) -> None:
    assert find_name_fault(name) == ""
