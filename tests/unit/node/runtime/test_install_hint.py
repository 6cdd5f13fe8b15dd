"""The command that adds an extra fits how Ravel was installed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from node.runtime import install_hint
from node.runtime.install_hint import install_command


@pytest.mark.parametrize(
    "file, command, links",
    [
        ("uv-receipt.toml", "uv tool install --force", "--find-links '/tmp/a b'"),
        ("pipx_metadata.json", "pipx install --force", """--pip-args='--find-links '"'"'/tmp/a b'"'"''"""),
        ("pyvenv.cfg", f"{sys.executable} -m pip install", "--find-links '/tmp/a b'"),
    ],
)
def test_each_installer_gets_its_own_command_and_the_file_that_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, command: str, links: str
) -> None:
    (tmp_path / file).touch()
    monkeypatch.setattr(install_hint, "_source", lambda: "file:///tmp/a%20b/ravel_node.whl")
    said = install_command("s3", tmp_path, tmp_path)
    assert said == f"{command} {links} 'ravel-node[s3] @ file:///tmp/a%20b/ravel_node.whl'"
    monkeypatch.setattr(install_hint, "_source", lambda: "")
    assert install_command("s3", tmp_path, tmp_path) == f"{command} 'ravel-node[s3]'"


@pytest.mark.parametrize(
    "noted, source",
    [
        (
            '{"url":"https://a.example/ravel","vcs_info":{"vcs":"git","commit_id":"0a"}}',
            "git+https://a.example/ravel@0a",
        ),
        ('{"url":"file:///tmp/ravel","dir_info":{}}', "file:///tmp/ravel"),
    ],
)
def test_a_repository_and_a_folder_need_no_other_place_for_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: str, source: str
) -> None:
    (tmp_path / "uv-receipt.toml").touch()
    installed = SimpleNamespace(read_text=lambda _: noted)
    monkeypatch.setattr(install_hint, "distribution", lambda _: installed)
    said = install_command("s3", tmp_path, tmp_path)
    assert said == f"uv tool install --force 'ravel-node[s3] @ {source}'"


def test_pipx_is_told_where_the_client_lies_in_a_repository_or_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    client = tmp_path / "my clone" / "clients" / "python"
    client.mkdir(parents=True)
    address = client.parents[1].as_uri()
    git = "git+https://a.example/ravel@0a"
    for noted, source, there in (
        (
            '{"url":"https://a.example/ravel","vcs_info":{"vcs":"git","commit_id":"0a"}}',
            git,
            f"'{git}#subdirectory=clients/python'",
        ),
        (f'{{"url":"{address}","dir_info":{{}}}}', address, f"'{client}'"),
    ):
        installed = SimpleNamespace(read_text=lambda _, noted=noted: noted)
        monkeypatch.setattr(install_hint, "distribution", lambda _, installed=installed: installed)
        said = install_command("s3", tmp_path, tmp_path)
        assert said == f"pipx install --force --preinstall {there} 'ravel-node[s3] @ {source}'"


def test_a_checkout_is_installed_from_itself() -> None:
    assert "--editable" in install_command("analytics")
    assert "[analytics]" in install_command("analytics")
