"""Damaged exports: each is refused with its file, or analyzed; and none ends as an internal error."""

from pathlib import Path

import pytest

from analytics import __main__, command
from ravel.exports.checking import ExportError
from tests.support.damaged_exports import READ, REFUSED, write_sound
from tests.support.read_exports import read_export


def test_the_generator_knows_the_ways_in_which_exports_are_damaged(tmp_path: Path) -> None:
    assert len(REFUSED) + len(READ) > 73
    assert read_export(write_sound(tmp_path / "sound")).rows == 5


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_file(tmp_path: Path, name: str) -> None:
    folder = write_sound(tmp_path / "export")
    REFUSED[name](folder)
    with pytest.raises(ExportError, match=str(folder)):
        read_export(folder)


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_analyzed_or_found_wrong(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_sound(tmp_path / "export")
    READ[name](folder)
    read_export(folder)
    found = __main__.main([str(folder), "--engine", "local", "--out", str(tmp_path / "out")])
    assert found in (command.EXIT_OK, command.EXIT_MISMATCH), capsys.readouterr().err
