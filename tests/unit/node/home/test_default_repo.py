"""The chosen repo in a node's folder."""

from pathlib import Path

import pytest

from node.home.default_repo import load_default_repo, store_default_repo
from node.runtime.errors import ServiceError


def test_what_was_chosen_is_there_until_none_is(tmp_path: Path) -> None:
    assert load_default_repo(tmp_path) == ""
    store_default_repo(tmp_path, "a" * 52)
    assert load_default_repo(tmp_path) == "a" * 52
    store_default_repo(tmp_path, "")
    store_default_repo(tmp_path, "")
    assert load_default_repo(tmp_path) == ""


@pytest.mark.parametrize("content", [b"", b"notes", b"\xff" * 52, b"A" * 52, b"a" * 53])
def test_a_file_of_something_else_chooses_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "default-repo").write_bytes(content)
    assert load_default_repo(tmp_path) == ""


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="default-repo cannot be written"):
        store_default_repo(tmp_path / "gone", "a" * 52)
