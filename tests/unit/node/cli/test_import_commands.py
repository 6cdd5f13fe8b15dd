"""Commands of imports: what they write beside what they send."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from node.cli.main import app
from node.runtime.errors import ERROR_KINDS, ServiceError
from tests.support.ssb import Feed


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


@pytest.mark.parametrize("kind", ["jsonl", pytest.param("ssb", marks=pytest.mark.slow)])
def test_an_import_that_is_stopped_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    feed, answers = Feed("a"), iter([{"imported": 500, "already": 0, "heads": 1}])

    def take(*_: object) -> object:
        found = next(answers, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    log = tmp_path / "log"
    lines = [
        f'{{"id": "{number}", "parents": [], "author": "", "time": 0, "text": "x"}}\n'
        for number in range(501)
    ]
    log.write_bytes(
        b"".join(feed.write(str(one)) for one in range(501)) if kind == "ssb" else "".join(lines).encode()
    )
    branch = {"branch": "b" * 52}
    api = SimpleNamespace(
        import_commits=take, list_branches=lambda _: {"branches": []}, create_branch=lambda *_: branch
    )
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    where = ("--repo", "notes") if kind == "ssb" else ("--branch", "main")
    stopped = CliRunner().invoke(app, ["import", kind, str(log), *where]).exception
    assert isinstance(stopped, ServiceError)
    assert (stopped.code, stopped.message) == (
        "interrupted",
        "the import was stopped; imported before that: 500",
    )
