"""A folder that comes out of a branch stays below the place that it was given."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from node.cli.file_commands import _get_folder
from node.runtime.errors import ServiceError


@contextmanager
def _download(*_: str) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(pieces=iter([b"x"]), size=1)


_API: Any = SimpleNamespace(get_file=_download)


@pytest.mark.parametrize("name", ["photos/../../out", "photos//out", "photos/./out"])
def test_a_name_that_leads_out_of_the_folder_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    files: Any = [{"file": "a", "name": "photos/good"}, {"file": "b", "name": name}]
    with pytest.raises(ServiceError) as caught:
        _get_folder(_API, "main", "photos", files, tmp_path / "in", force=True)
    assert caught.value.code == "bad_input"
    assert not (tmp_path / "in").exists()
    assert not (tmp_path / "out").exists()


def test_files_of_a_folder_lie_as_their_names_say(tmp_path: Path) -> None:
    files: Any = [{"file": "a", "name": "photos/one"}, {"file": "b", "name": "photos/two/three"}]
    done = _get_folder(_API, "main", "photos", files, tmp_path / "in", force=False)
    assert done == {"path": str(tmp_path / "in"), "files": 2, "size": 2}
    assert (tmp_path / "in" / "two" / "three").read_bytes() == b"x"


def test_files_of_equal_content_are_each_at_their_place(tmp_path: Path) -> None:
    files: Any = [{"file": "a", "name": "photos/one"}, {"file": "a", "name": "photos/two"}]
    assert _get_folder(_API, "main", "photos", files, tmp_path / "in", force=False)["files"] == 2
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"one", "two"}


def test_a_file_whose_id_other_contents_share_is_taken_by_its_name(tmp_path: Path) -> None:
    @contextmanager
    def get_file(branch: str, file: str) -> Iterator[SimpleNamespace]:
        if file == "a":
            raise ServiceError("ambiguous", "contents of a few bytes share the id")
        with _download(branch, file) as download:
            yield download

    api: Any = SimpleNamespace(get_file=get_file)
    files: Any = [{"file": "a", "name": "photos/one"}, {"file": "a", "name": "photos/two"}]
    _get_folder(api, "main", "photos", files, tmp_path / "in", force=False)
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"one", "two"}
