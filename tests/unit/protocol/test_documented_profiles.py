"""The profiles in protocol.md: every body and message stands in the core or on one profile's page, in its class.

A second implementation decides by these classes what it may leave out, so a wrong one would make it judge differently.
"""

import ast
import re
from pathlib import Path
from typing import Final, get_args

import pytest

from protocol.codec import DecodeError, encode
from protocol.formats.body import Body, UnknownBody, decode_body
from protocol.formats.document_kinds import DOCUMENT_KINDS, DocumentBody
from protocol.session.features import FEATURES
from protocol.session.session import MESSAGES

ROOT: Final = Path(__file__).parents[3]
CORE: Final = (ROOT / "docs" / "specification" / "protocol.md").read_text(encoding="utf-8")
FOLDER: Final = ROOT / "docs" / "specification" / "profiles"
TAG: Final = re.compile(r"`([a-z][a-z-]*[0-9])`")
RULED_BY: Final = {
    "verifier/membership.py": "authorise_root_commit",
    "verifier/verify.py": "_judge",
}
"""Where rules look at bodies' types."""
BODIES: Final = {
    str(kind.__struct_config__.tag): kind
    for kind in (*get_args(Body), *(body for document in DOCUMENT_KINDS for body in document.bodies))
    if kind is not DocumentBody
}


def profiles() -> dict[str, list[set[str]]]:
    """Of each profile by name the tags in its columns: free, shaped and ruled bodies, and what it has also."""
    rows = re.findall(r"^\| \[([a-z-]+)\]\(profiles/\1\.md\) \|(.*)\|$", CORE, re.MULTILINE)
    return {name: [set(TAG.findall(cell)) for cell in cells.split("|")] for name, cells in rows}


def tags_in_tables(text: str) -> set[str]:
    """The tags with which rows of a page's tables begin."""
    return set(re.findall(r"^\| `([a-z][a-z-]*[0-9])` \|", text, re.MULTILINE))


def column(number: int) -> set[str]:
    """The tags of one column."""
    return set[str]().union(*(cells[number] for cells in profiles().values()))


def test_each_profile_has_a_page_that_states_its_kinds() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == profiles().keys()
    for name, cells in profiles().items():
        page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert re.search(rf"Profile\S* `{name}`", page)
        assert tags_in_tables(page) == set[str]().union(*cells), name


def test_the_features_that_a_node_says_are_the_profiles() -> None:
    assert list(FEATURES) == sorted(profiles())


def test_every_body_and_message_is_of_the_core_or_of_one_profile() -> None:
    of_profiles = [tag for cells in profiles().values() for cell in cells for tag in cell]
    assert len(of_profiles) == len(set(of_profiles))
    known = {*BODIES, *(kind.__struct_config__.tag for kind in MESSAGES)}
    assert set(of_profiles) <= known
    assert tags_in_tables(CORE) == known - set(of_profiles)


@pytest.mark.parametrize("tag", sorted(BODIES))
def test_a_malformed_body_is_of_no_kind_where_its_kind_is_free(tag: str) -> None:
    malformed = encode(
        (tag, "surplus", "surplus", "surplus", "surplus", "surplus", "surplus", "surplus", "surplus")
    )
    if tag in column(0):
        assert decode_body(malformed) == UnknownBody(tag)
    else:
        with pytest.raises(DecodeError):
            decode_body(malformed)


def test_bodies_that_rules_look_at_are_ruled() -> None:
    looked_at: set[str] = set()
    for path, function in RULED_BY.items():
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                looked_at |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    ruled = {tag for tag, kind in BODIES.items() if any(one.__name__ in looked_at for one in kind.__mro__)}
    core = tags_in_tables(CORE) & BODIES.keys()
    assert ruled - core == column(2)
    assert core - ruled == {"branch-root1", "post1"}
