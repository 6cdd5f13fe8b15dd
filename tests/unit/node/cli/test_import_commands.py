"""Commands of imports: what they write beside what they send."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from node.cli.main import app
from node.runtime.errors import ERROR_KINDS, ServiceError


@pytest.mark.parametrize("named", ["log.jsonl", "link.jsonl"])
def test_a_log_is_not_emptied_for_what_is_refused_of_it(tmp_path: Path, named: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("what somebody collected for years\n")
    (tmp_path / "link.jsonl").symlink_to(log)
    import_log = ["import", "ssb", str(log), "--repo", "notes", "--refused", str(tmp_path / named)]
    refused = CliRunner().invoke(app, ["--home", str(tmp_path), *import_log]).exception
    assert isinstance(refused, ServiceError)
    assert (refused.code, log.read_text()) == ("bad_request", "what somebody collected for years\n")


def test_a_log_of_which_all_is_refused_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "a graph, and no log"}\n')
    api = SimpleNamespace(list_branches=lambda _repo: {"branches": []})
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    done = CliRunner().invoke(app, ["import", "ssb", str(log), "--repo", "notes"])
    assert done.exit_code == ERROR_KINDS["bad_input"].exit_code
    assert "Refused: 1." in done.output.splitlines()
