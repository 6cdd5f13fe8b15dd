"""The commands that run analyses: what they hand to the process that does it."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from node.cli import export_commands
from node.cli.main import app
from node.runtime.errors import ServiceError


@pytest.mark.slow
def test_an_analysis_is_told_the_names_that_the_running_node_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Any = SimpleNamespace(
        list_repos=lambda: {
            "repos": [
                {"repo": "r", "name": "notes", "whole": True},
                {"repo": "s", "name": "(second)", "whole": False},
            ]
        },
        list_members=lambda repo: {
            "r": {"members": [{"user": "a", "name": "Ann"}, {"user": "b", "name": ""}]}
        }[repo],
        list_petnames=lambda: {
            "petnames": [{"user": "a", "name": "Ann from work"}],
            "peers": [{"user": "p", "name": "laptop"}],
        },
        show_status=lambda: {"node": "n"},
    )
    ran: list[tuple[list[str], bytes | None]] = []

    def run(command: list[str], *, input: bytes | None = None, **more: object) -> object:
        ran.append((command, input))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(export_commands, "client", lambda context: api)
    analyze = ["--home", str(tmp_path), "analyze", "one", "two", "--engine", "local"]
    assert CliRunner().invoke(app, analyze).exit_code == 0
    assert CliRunner().invoke(app, [*analyze, "--no-names"]).exit_code == 0

    def refuse(context: object) -> None:
        raise ServiceError("not_running", "no daemon")

    monkeypatch.setattr(export_commands, "client", refuse)
    assert CliRunner().invoke(app, analyze).exit_code == 0
    named, *others = ran
    assert named[0][:6] == [sys.executable, "-P", "-m", "analytics", "one", "two"]
    assert "--names=-" in named[0]
    assert json.loads(named[1] or b"") == {
        "r": "notes",
        "a": "Ann from work",
        "p": "laptop",
        "n": "This node",
        "s": "(second)",
    }
    assert [("--names=-" in command, given) for command, given in others] == [(False, None)] * 2
