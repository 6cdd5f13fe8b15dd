"""The command: exit codes of the one table, errors that say what to do, results as text or JSON."""

import fcntl
import json
import os
import pwd
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from threading import Barrier
from typing import NoReturn

import fsspec  # type: ignore[import-untyped]  # it has no types
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

from analytics import __main__, analyze, command, session
from analytics.audit import audit
from analytics.audit import command as audit_command
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.reading import given_exports
from analytics.reading.given_exports import GivenExports
from analytics.reading.limits import EXPORT_LIST_SIZE_MAX
from analytics.results import JOURNAL_NAME
from analytics.study import command as study_command
from node.runtime.errors import ERROR_KINDS, EXIT_OK
from ravel.exports import fetching
from ravel.exports.checking import Export, ExportError
from ravel.exports.schema import MANIFEST_NAME, text_id
from tests.support.exports import DAY_MS, T0_MS, Row, change_manifest, change_rows, id_of, write_export


def test_exit_codes_are_those_of_the_one_table() -> None:
    assert command.EXIT_OK == EXIT_OK
    named = {
        "internal": command.EXIT_UNEXPECTED,
        "bad_request": command.EXIT_BAD_REQUEST,
        "already_running": command.EXIT_ALREADY_RUNNING,
        "too_large": command.EXIT_TOO_LARGE,
        "storage_failed": command.EXIT_STORAGE_FAILED,
        "bad_export": command.EXIT_BAD_EXPORT,
        "missing_extra": command.EXIT_MISSING_EXTRA,
        "mismatch": command.EXIT_MISMATCH,
    }
    assert named == {code: ERROR_KINDS[code].exit_code for code in named}


def test_a_folder_that_is_no_export_is_an_error_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert __main__.main([str(tmp_path), "--out", str(out)]) == command.EXIT_BAD_EXPORT
    assert "next:  make it anew, where its node is: ravel export" in capsys.readouterr().err
    assert __main__.main([str(tmp_path), "--out", str(out), "--json"]) == command.EXIT_BAD_EXPORT
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "bad_export"
    assert not out.exists()


@pytest.mark.slow
def test_a_bad_export_is_set_aside_and_named_and_the_others_are_analyzed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_export(tmp_path / "good", [Row("a"), Row("b", ("a",))])
    bad = write_export(tmp_path / "bad", [Row("a")], node="stranger")
    change_rows(bad, "commits", lambda rows: rows[0].update(acks=[b"short"]))
    nowhere = "memory://nowhere/export"
    arguments = [str(bad), nowhere, str(good), "--engine", "local", "--out", str(tmp_path / "out")]

    assert __main__.main(arguments) == command.EXIT_OK
    told = capsys.readouterr()
    assert told.out.startswith("2 commits of 1 branch")
    assert f"NOT READ: {nowhere}: {nowhere}/manifest.json is not there" in told.out
    assert f"NOT READ: {bad}: " in told.out
    assert "row 0 (from 0): acks holds an id that has not 32 bytes" in told.err
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"Not read: {bad}. " in page
    assert __main__.main([*arguments, "--json"]) == command.EXIT_OK
    set_aside = json.loads(capsys.readouterr().out)["set_aside"]
    assert [one["source"] for one in set_aside] == [str(bad), nowhere]

    assert __main__.main([*arguments, "--strict"]) == command.EXIT_BAD_EXPORT
    assert "row 0 (from 0): acks holds" in capsys.readouterr().err
    alone = [str(bad), "--engine", "local", "--out", str(tmp_path / "out")]
    assert __main__.main(alone) == command.EXIT_BAD_EXPORT, "nothing else is there to read"


def test_an_export_elsewhere_is_set_aside_by_the_url_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    good = write_export(tmp_path / "good", [Row("a")])
    bad = write_export(tmp_path / "bad", [Row("a")], node="stranger")
    change_rows(bad, "commits", lambda rows: rows[0].update(acks=[b"short"]))
    fsspec.filesystem("memory").put(str(bad), "/stranger/export", recursive=True)
    given = GivenExports(lambda _: None, strict=False)
    assert [one.source for one in given.read(["memory://stranger/export", good])] == [str(good)]
    assert [one.source for one in given.set_aside] == ["memory://stranger/export"]
    assert "memory://stranger/export/commits/part-00000001.parquet row 0" in given.set_aside[0].reason


def test_a_file_names_exports_a_line_each(tmp_path: Path) -> None:
    named = [write_export(tmp_path / name, [Row("a")], node=name) for name in "ab"]
    listed = tmp_path / "nodes.txt"
    listed.write_text(f"{named[0]}\n\n  {named[1]}\n{tmp_path}/none\n")
    given = GivenExports(lambda _: None, strict=False)
    assert [one.node for one in given.read([f"@{listed}"])] == ["a", "b"]
    assert [one.source for one in given.set_aside] == [f"{tmp_path}/none"]
    with pytest.raises(ExportError, match="is given twice"):
        given.read([named[0], f"@{listed}"])
    listed.write_text("\n")
    with pytest.raises(ExportError, match=f"{listed} names no export"):
        given.read([f"@{listed}"])
    with pytest.raises(ExportError, match=f"{tmp_path} is no list of exports"):
        given.read([f"@{tmp_path}"])
    listed.write_text(" " * (EXPORT_LIST_SIZE_MAX + 1))
    with pytest.raises(ExportError, match="too large for a list of exports"):
        given.read([f"@{listed}"])


def test_manifests_of_many_exports_are_asked_for_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_export(tmp_path / "export", [Row("a")])
    together = Barrier(3, timeout=60)  # one that waits for the others ends only where all were begun

    def list_source(_source: str, *, with_blocks: bool) -> Export:
        together.wait()
        return fetching.list_source(str(export), with_blocks=with_blocks)

    monkeypatch.setattr(given_exports, "list_source", list_source)
    given = GivenExports(lambda _: None, strict=True)
    assert len(given.read(["memory://a", "memory://b", "memory://c"], is_here=False)) == 3


@pytest.mark.slow
def test_results_go_to_a_url_and_what_an_earlier_run_left_in_their_folders_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = fsspec.filesystem("memory")
    export = write_export(tmp_path / "export", [Row("a"), Row("b", ("a",))])
    arguments = [str(export), "--engine", "local", "--out", "memory://results/of/one/", "--json"]
    files.pipe_file("/results/of/one/tables/branches/part-00007.parquet", b"of before")
    for _ in range(2):  # the second reads the summary of the first
        assert __main__.main(arguments) == command.EXIT_OK
        told = json.loads(capsys.readouterr().out)
        assert told["report"] == "memory://results/of/one/report.html"
        assert b"<html" in files.cat_file("/results/of/one/report.html")
        assert files.ls("/results/of/one/tables/branches", detail=False) == [
            "/results/of/one/tables/branches/part-00000.parquet"
        ]
    (digest,) = json.loads(files.cat_file(told["digests"])).values()
    assert digest["commits"] == 2
    files.rm("/results", recursive=True)


def test_runs_of_an_interrupted_study_stay_at_its_url_and_the_next_one_has_them() -> None:
    files = fsspec.filesystem("memory")
    found: list[str] = []

    def work() -> int:
        journal = options.out / JOURNAL_NAME
        found.append(journal.read_text() if journal.exists() else "")
        journal.write_text(f"{found[-1]}run\n")
        (options.out / "study.html").write_text("half")
        raise KeyboardInterrupt

    for _ in range(2):
        options = Namespace(out="memory://results/study", engine="local", export_dir=[], json=True)
        if True:
            command.guarded(options, work)
    assert found == ["", "run\n"]
    assert files.find("/results/study") == [f"/results/study/{JOURNAL_NAME}"], "no page of a part"
    files.rm("/results", recursive=True)


def test_a_python_that_a_cluster_lacks_is_named_with_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    failure = (
        'java.io.IOException: Cannot run program "/no/python3": error=2, None\n'
        "Caused by: java.io.IOException: error=2, None"
    )

    def work() -> int:
        (options.out / "spark.log").touch()  # as where the JVM is of spark-submit, which has its own output
        raise Py4JError(failure)

    options = Namespace(out="memory://results/none", engine="spark", export_dir=["x"], json=False)
    assert command.guarded(options, work) == command.EXIT_UNEXPECTED
    told = capsys.readouterr().err
    assert failure.partition("\n")[0] in told
    assert "set PYSPARK_PYTHON to a Python that is on each machine; Spark's own output tells more" in told
    assert fsspec.filesystem("memory").find("/results/none") == [], "an empty log tells nothing"


def test_results_that_their_url_refuses_are_an_error_and_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(tmp_path), "--engine", "local", "--out", "nothing://such/place", "--json"]
    assert __main__.main(arguments) == command.EXIT_STORAGE_FAILED
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["code"], told["message"]) == (
        "storage_failed",
        "cannot write to nothing://such/place: ValueError",
    )


@pytest.mark.slow
def test_what_a_bad_export_calls_its_parts_moves_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_export(tmp_path / "good", [Row("a")])
    bad = write_export(tmp_path / "bad", [Row("a")], node="stranger")
    tables = json.loads((bad / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"][0]["path"] = "commits/\x1b[2J\nNOT READ: nothing"
    change_manifest(bad, tables=tables)
    common = ["--engine", "local", "--out", str(tmp_path / "out")]
    assert __main__.main([str(bad), str(good), *common]) == command.EXIT_OK
    assert __main__.main([str(bad), *common]) == command.EXIT_BAD_EXPORT
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "\nNOT READ: nothing" not in told.out + told.err


@pytest.mark.slow
@pytest.mark.extended
def test_an_audit_names_what_it_cannot_read_as_something_found(
    spark_for_commands: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_export(tmp_path / "good", [Row("a")])
    bad = write_export(tmp_path / "bad", [Row("a")], node="stranger")
    (bad / "manifest.json").write_bytes(b"{")
    arguments = [str(good), str(bad), "--out", str(tmp_path / "out")]
    assert audit_command.main(arguments) == command.EXIT_MISMATCH
    assert f"NOT READ: {bad}: " in capsys.readouterr().out
    assert audit_command.main([*arguments, "--strict"]) == command.EXIT_BAD_EXPORT


def test_a_file_in_the_place_of_the_output_folder_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = write_export(tmp_path / "export", [Row("a")])
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    assert __main__.main([str(export), "--out", str(tmp_path / "out")]) == command.EXIT_STORAGE_FAILED
    assert f"cannot write to {tmp_path / 'out'}" in capsys.readouterr().err
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_another_analysis_writes_to_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export, out = write_export(tmp_path / "export", [Row("a")]), tmp_path / "out"
    out.mkdir()
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for main, arguments in (
            (__main__.main, [str(export)]),
            (__main__.main, [str(export), "--engine", "local"]),
            (audit_command.main, [str(export)]),
            (study_command.main, ["scuttlesort", "--quick"]),
        ):
            assert main([*arguments, "--out", str(out)]) == command.EXIT_ALREADY_RUNNING
            assert "give another --out" in capsys.readouterr().err
    finally:
        os.close(handle)
    assert list(out.iterdir()) == []


def test_a_user_whom_java_would_not_find_is_told_of_the_other_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nobody(user: int) -> NoReturn:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", find_nobody)
    export = write_export(tmp_path / "export", [Row("a")])
    assert __main__.main([str(export), "--out", str(tmp_path / "out")]) == command.EXIT_MISSING_EXTRA
    said = capsys.readouterr().err
    assert "/etc/passwd" in said
    assert "--engine local" in said
    assert audit_command.main([str(export), "--out", str(tmp_path / "out")]) == command.EXIT_MISSING_EXTRA
    assert "--engine" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.extended
def test_files_of_the_working_folder_are_not_run_and_nothing_is_left_there(tmp_path: Path) -> None:
    export, here = write_export(tmp_path / "export", [Row("a"), Row("b", ("a",))]), tmp_path / "here"
    here.mkdir()
    for name in ("random.py", "types.py", "socket.py"):
        (here / name).write_text("raise SystemExit('this is not the one of Python')\n", encoding="utf-8")
    out = tmp_path / "new{1,2} [old]"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "analytics", str(export), "--out", str(out)],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == command.EXIT_OK, done.stderr
    assert sorted(one.name for one in here.iterdir()) == ["random.py", "socket.py", "types.py"]


def test_expected_digests_that_are_none_are_a_bad_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = write_export(tmp_path / "export", [Row("a")])
    for content in ("", "[]", '{"!": {"digest": ""}}', '{"aaaa": {}}'):
        path = tmp_path / "digests.json"
        path.write_text(content, encoding="utf-8")
        arguments = [str(export), "--out", str(tmp_path / "out"), "--expected", str(path)]
        assert __main__.main(arguments) == command.EXIT_BAD_REQUEST
        assert "digests.json" in capsys.readouterr().err


@pytest.mark.slow
def test_names_stand_for_keys_unless_these_are_pseudonyms(tmp_path: Path) -> None:
    rows = [Row("a", time=T0_MS), Row("b", ("a",), time=T0_MS + DAY_MS, author="bob")]
    names = tmp_path / "names.json"
    names.write_text(json.dumps({text_id(id_of("ada")): "Ada <i>", "node": "This node"}))
    pages = []
    for number, pseudonyms in enumerate(("", "11")):
        export = write_export(tmp_path / f"export {number}", rows, pseudonyms=pseudonyms)
        out = tmp_path / f"out {number}"
        arguments = [str(export), "--out", str(out), "--engine", "local", "--names", str(names)]
        assert __main__.main(arguments) == command.EXIT_OK
        pages.append((out / "report.html").read_text(encoding="utf-8"))
    for name in ("Ada &lt;i&gt;", "This node"):
        assert [name in page for page in pages] == [True, False]
    [line] = [line for line in pages[0].splitlines() if " exported on <time>2023-11-14 00:00</time>" in line]
    assert "Node: " in line
    assert "This node" in line


def test_names_that_are_none_are_a_bad_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "NAMES_SIZE_MAX", 100)
    names = tmp_path / "names.json"
    for content in ("", "[]", '{"a": 1}', "[" * 100, " " * 101):
        names.write_text(content)
        arguments = [str(tmp_path), "--out", str(tmp_path / "out"), "--names", str(names)]
        assert __main__.main(arguments) == command.EXIT_BAD_REQUEST
        assert "these are not names" in capsys.readouterr().err


def test_a_machine_without_java_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(session.JavaMissing, match=r"apt-get install default-jre-headless"):
        session.find_java_home()


def test_partitions_follow_the_rows_of_the_exports() -> None:
    few = [session.partitions_for(rows) for rows in (0, 100_000)]
    assert few == [1, 1]
    unknown = session.partitions_for(None)
    assert session.partitions_for(100_001) == unknown >= 4
    assert session.partitions_for(500_000_000) == 500
    assert session.partitions_for(1 << 62) == 2_000, "each has a cost"


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", encoding="utf-8")
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(session.JavaMissing, match="version 11"):
        session.find_java_home()


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.usefixtures("spark_for_commands")
def test_a_mismatch_has_its_exit_code_and_json_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("a", time=T0_MS), Row("b", ("a",), time=T0_MS + DAY_MS, rank=3)]
    export = write_export(tmp_path / "export[1] {a,b}*", rows)  # to Spark a pattern, unless it is escaped
    code = __main__.main([str(export), "--out", str(tmp_path / "out"), "--json"])
    told = capsys.readouterr()
    assert code == command.EXIT_MISMATCH, told.err
    result = json.loads(told.out)
    assert (result["commits"], result["mismatches"]) == (2, 1)
    assert "6/6 write the report" in told.err
    assert Path(result["report"]).is_file()


@pytest.mark.extended
@pytest.mark.slow
def test_a_master_that_spark_does_not_know_is_a_clear_error(tmp_path: Path) -> None:
    import subprocess
    import sys

    export = write_export(tmp_path / "export", [Row("a")])
    arguments = [str(export), "--out", str(tmp_path / "out"), "--master", "nonsense"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "analytics", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == command.EXIT_BAD_REQUEST, done.stderr
    assert "next:  give a --master that Spark knows" in done.stderr
    assert "SparkException" in (tmp_path / "out" / "spark.log").read_text(encoding="utf-8")
    assert "Traceback" not in done.stderr


def test_a_branch_that_is_not_there_cannot_be_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **options: object) -> None:
        raise analyze.NoSuchBranch(f"no branch {options['draw']}")

    monkeypatch.setattr(analyze, "run", refuse)
    arguments = ["export", "--out", str(tmp_path / "out"), "--draw", "gone"]
    assert __main__.main(arguments) == command.EXIT_BAD_REQUEST
    assert "error: no branch gone\nnext:  give NAME, REPO:NAME" in capsys.readouterr().err


def test_from_where_on_branches_are_giants_reaches_the_job_and_a_refusal_has_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **options: object) -> None:
        raise LargeBranchRefused(f"giants from {options['giant_from']}")

    monkeypatch.setattr(analyze, "run", refuse)
    monkeypatch.setattr(audit, "run", refuse)
    arguments = ["export", "--out", str(tmp_path / "out"), "--giant-from"]
    for main in (__main__.main, audit_command.main):
        assert main([*arguments, "7"]) == command.EXIT_TOO_LARGE
        said = "error: giants from 7\nnext:  give --giant-from more than its commits\n"
        assert capsys.readouterr().err == said
        with pytest.raises(SystemExit):
            main([*arguments, "0"])
        assert "'0' is not a number from 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_result_that_nobody_reads_to_its_end_is_no_failure_and_a_full_disk_is_one() -> None:
    code = "from analytics.command import show; show('x' * 100_000)"
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    ended = [
        subprocess.run(
            [sys.executable, "-c", code], stdout=handle, stderr=subprocess.PIPE, text=True, check=False
        )
        for handle in (writer, full)
    ]
    os.close(writer)
    os.close(full)
    assert (ended[0].returncode, ended[0].stderr) == (0, "")
    assert ended[1].returncode == 1
    assert "No space left on device" in ended[1].stderr
