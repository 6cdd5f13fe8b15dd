"""The archive of Java's classes: made by a second run, used by later ones, and never tried twice."""

import os
import time
from pathlib import Path

import pytest

from analytics.java_archive import archive_options


def test_a_second_run_makes_an_archive_and_later_ones_start_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    java = tmp_path / "java"
    assert archive_options(java) == ""
    made = archive_options(java)
    assert "-Xlog:disable" in made, "standard output has the results"
    assert archive_options(java) == "", "one that failed is not tried again"
    _, told = made.split('"-XX:ArchiveClassesAtExit=')
    Path(told.rstrip('"')).touch()
    assert archive_options(java) == made.split(" -XX")[0] + f' "-XX:SharedArchiveFile={told}'
    java.mkdir()
    (java / "release").write_text('JAVA_VERSION="21"')
    assert archive_options(java) == "", "another Java begins anew"


def test_an_archive_that_no_run_has_used_for_a_month_goes_when_another_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    archive_options(tmp_path / "java")
    folder = tmp_path / "ravel"
    for name, days in (("old", 31), ("used", 29)):
        for ending in (".jsa", ".seen", ".tried"):
            (folder / f"spark-{name}{ending}").touch()
        os.utime(folder / f"spark-{name}.jsa", times=(time.time() - days * 86_400,) * 2)
    assert archive_options(tmp_path / "java")
    assert {file.name for file in folder.glob("spark-old.*")} == set()
    assert len([*folder.glob("spark-used.*")]) == 3


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [archive_options(tmp_path) for _ in range(3)] == ["", "", ""]
