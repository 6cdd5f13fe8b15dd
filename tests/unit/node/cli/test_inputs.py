"""What commands read from standard input or a file."""

import io
import sys
from pathlib import Path

import pytest

from node.cli.inputs import read_input, read_typed
from node.runtime.errors import ServiceError


@pytest.fixture(params=["file", "standard input"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A source of 10 bytes."""
    if request.param == "file":
        (tmp_path / "source").write_bytes(b"0123456789")
        return str(tmp_path / "source")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0123456789")))
    return "-"


def test_all_is_read_up_to_the_bound(path: str) -> None:
    assert read_input(path, 10) == b"0123456789"


def test_more_than_the_bound_is_refused(path: str) -> None:
    with pytest.raises(ServiceError, match="at most 9 bytes") as caught:
        read_input(path, 9)
    assert caught.value.code == "too_large"


def test_what_has_no_end_is_refused_at_the_bound() -> None:
    with pytest.raises(ServiceError, match="at most 1000 bytes"):
        read_input("/dev/zero", 1000)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ServiceError, match=f"{path} cannot be read: ") as caught:
            read_input(str(path), 10)
        assert caught.value.code == "bad_input"


def test_of_a_pipe_all_is_taken_without_a_byte_order_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfone\ntwo\xff")))
    assert read_typed(100) == "one\ntwo\ufffd"
