"""Where a node's folder is."""

from pathlib import Path

import pytest

from ravel.errors import RavelError
from ravel.home import find_home


def test_what_is_given_goes_before_the_environment_and_that_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAVEL_HOME", "/named")
    monkeypatch.setenv("XDG_DATA_HOME", "~/data")
    monkeypatch.chdir(tmp_path)
    assert find_home("given") == tmp_path / "given"
    assert find_home(Path("~/given")) == tmp_path / "given"
    assert find_home() == Path("/named")
    monkeypatch.delenv("RAVEL_HOME")
    assert find_home() == tmp_path / "data" / "ravel"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert find_home() == tmp_path / ".local" / "share" / "ravel"


@pytest.mark.parametrize(
    "home, message",
    [("~no-such-user/x", "no home folder"), ("/h\udce9", "not UTF-8"), ("x", "has been deleted")],
)
def test_what_is_no_place_is_said_with_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, message: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RavelError, match=message) as caught:
        find_home(home)
    assert caught.value.code == "bad_request"
    assert caught.value.advice
