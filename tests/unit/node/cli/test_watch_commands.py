"""Commands that `ravel watch --exec` runs, and the file that keeps how far they came."""

import os
import sys
from pathlib import Path

import pytest

from node.cli.watch_commands import CURSOR_SIZE_MAX, keep_cursor, parse_command, read_cursor, run_hook
from node.runtime.errors import ServiceError

_EVENT = {"event": "edit", "edit": "insert", "commit": "abcdefghijklmnop", "cursor": "7"}


def test_words_are_quoted_as_in_a_shell_and_no_shell_runs_them() -> None:
    assert parse_command("notify 'a b' $HOME;ls") == ["notify", "a b", "$HOME;ls"]
    for text in ("'open", "", "  "):
        with pytest.raises(ServiceError, match="--exec"):
            parse_command(text)


def test_a_command_gets_the_event(tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'w').write(os.environ['RAVEL_COMMIT'] + sys.stdin.read())"
    run_hook([sys.executable, "-c", code, str(tmp_path / "told")], "main", _EVENT)
    assert (tmp_path / "told").read_text() == (
        'abcdefghijklmnop{"event": "edit", "edit": "insert", "commit": "abcdefghijklmnop", "cursor": "7"}'
    )


@pytest.mark.parametrize(
    "command, message",
    [
        (["false"], "false ended with 1 at commit abcdefghijkl"),
        (["sh", "-c", "kill -9 $$"], "sh was ended by signal 9"),
        (["/nothing/here"], "/nothing/here: No such file"),
    ],
)
def test_a_command_that_fails_is_told_with_its_event(command: list[str], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        run_hook(command, "main", _EVENT)


def test_a_cursor_is_kept_and_what_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    assert read_cursor(path) is None
    keep_cursor(path, "7 of 9")
    assert read_cursor(path) == "7 of 9"
    path.write_bytes(b"x" * (CURSOR_SIZE_MAX + 1))
    with pytest.raises(ServiceError, match="too long"):
        read_cursor(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ServiceError, match="decode"):
        read_cursor(path)
    with pytest.raises(ServiceError, match="No such file"):
        keep_cursor(tmp_path / "nowhere" / "cursor", "7")


def test_an_empty_file_has_no_cursor_yet(tmp_path: Path) -> None:
    (tmp_path / "cursor").touch()
    assert read_cursor(tmp_path / "cursor") is None


def test_a_cursor_goes_through_a_link_and_replaces_no_device(tmp_path: Path) -> None:
    real, link, pipe = (tmp_path / name for name in ("real", "link", "pipe"))
    link.symlink_to(real)
    keep_cursor(link, "7")
    assert link.is_symlink()
    assert read_cursor(link) == real.read_text().strip() == "7"
    os.mkfifo(pipe)
    for special in (pipe, Path(os.devnull), tmp_path):
        with pytest.raises(ServiceError, match="is no file"):
            read_cursor(special)


def test_the_longest_name_of_a_cursor_file_is_taken(tmp_path: Path) -> None:
    for name in ("c" * 255, "ü" * 127):
        keep_cursor(tmp_path / name, "7")
        assert read_cursor(tmp_path / name) == "7"
