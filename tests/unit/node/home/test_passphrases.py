"""Where passphrases come from: files, descriptors, standard input, systemd's credentials; what is refused on the way."""

import io
import os
import sys
import unicodedata
from codecs import BOM_UTF8
from pathlib import Path

import pytest

from node.home.passphrases import (
    ask_new_passphrase,
    ask_passphrase,
    check_new,
    given_passphrase,
    read_passphrase,
)
from node.runtime.errors import ServiceError
from protocol.limits.users import PASSPHRASE_LENGTH_MIN, PASSPHRASE_SIZE_MAX


def _file(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_end_is_not_part_of_it(tmp_path: Path, end: bytes) -> None:
    assert read_passphrase(_file(tmp_path / "p", b" two  words " + end)) == b" two  words "


def test_a_byte_order_mark_is_not_part_of_it(tmp_path: Path) -> None:
    assert read_passphrase(_file(tmp_path / "p", BOM_UTF8 + b"two words\n")) == b"two words"
    longest = b"x" * PASSPHRASE_SIZE_MAX
    assert read_passphrase(_file(tmp_path / "p", BOM_UTF8 + longest + b"\r\n")) == longest
    for content in (BOM_UTF8, BOM_UTF8 + longest + b"x"):
        with pytest.raises(ServiceError, match="has not 1 to"):
            read_passphrase(_file(tmp_path / "p", content))


def test_composed_and_decomposed_letters_are_one_passphrase(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "clé à l'été").encode()
    assert read_passphrase(_file(tmp_path / "p", decomposed)) == "clé à l'été".encode()


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * (PASSPHRASE_SIZE_MAX + 1), b"\xff\xfe"])
def test_what_is_no_passphrase_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        read_passphrase(_file(tmp_path / "p", content))
    assert caught.value.code == "bad_request"


def test_the_longest_is_taken(tmp_path: Path) -> None:
    longest = b"x" * PASSPHRASE_SIZE_MAX
    assert read_passphrase(_file(tmp_path / "p", longest + b"\r\n")) == longest


def test_a_file_that_others_may_read_or_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="read by others"):
        read_passphrase(_file(tmp_path / "p", b"a passphrase", 0o640))
    with pytest.raises(ServiceError) as caught:
        read_passphrase(str(tmp_path / "gone"))
    assert caught.value.code == "locked"


def test_a_descriptor_and_standard_input_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"by a pipe\n")
    os.close(writing)
    assert read_passphrase(f"/dev/fd/{reading}") == b"by a pipe"
    os.close(reading)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"by input\n")))
    assert read_passphrase("-") == b"by input"


def test_a_file_goes_before_a_credential_and_that_before_asking(tmp_path: Path) -> None:
    credentials = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert given_passphrase(None, credentials) is None
    _file(tmp_path / "ravel-passphrase", b"of systemd\n", 0o440)
    assert given_passphrase(None, credentials) == b"of systemd"
    assert given_passphrase(_file(tmp_path / "p", b"of a file"), credentials) == b"of a file"
    assert given_passphrase(None, {}) is None


def test_without_a_terminal_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"not to be read\n")))
    with pytest.raises(ServiceError) as caught:
        ask_passphrase("Passphrase: ")
    assert caught.value.code == "locked"
    assert "--passphrase-file" in caught.value.advice


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed at the terminal next."""
    lines: list[str] = []
    monkeypatch.setattr("node.home.passphrases.is_terminal", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: lines.pop(0))
    return lines


def test_a_new_one_is_typed_twice(typed: list[str]) -> None:
    typed += ["four random words"] * 2
    assert ask_new_passphrase() == b"four random words"
    typed += ["short", "four random words", "four random swords"] + ["five random words"] * 2
    assert ask_new_passphrase() == b"five random words", "asked again: what was typed before is not lost"
    typed += ["four random words", "four random swords"] * 3
    with pytest.raises(ServiceError, match="3 tries"):
        ask_new_passphrase()


def test_an_empty_one_stands_for_none_where_that_was_offered(typed: list[str]) -> None:
    typed.append("")
    assert ask_new_passphrase(may_be_empty=True) == b""
    typed += [""] * 3
    with pytest.raises(ServiceError):
        ask_new_passphrase()


def test_a_short_one_is_refused() -> None:
    check_new(("é" * PASSPHRASE_LENGTH_MIN).encode())
    with pytest.raises(ServiceError) as caught:
        check_new(("é" * (PASSPHRASE_LENGTH_MIN - 1)).encode())
    assert caught.value.code == "bad_request"
