"""Start refuses an environment in which another distribution shares Ravel's folders, and names it."""

import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from node.runtime.errors import ServiceError
from node.runtime.installation import check_installation


def _install(site: Path, name: str, files: dict[str, str]) -> None:
    record = []
    for place, text in files.items():
        path = site / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{place},sha256={digest},{len(text)}")
    info = site / f"{name.replace('-', '_')}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "RECORD").write_text("\n".join(record) + "\n")


OURS = {
    "analytics/__init__.py": '"""Ours."""\n',
    "analytics/order/kernel.py": "",
    "node/daemon.py": "x = 1\n",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_an_environment_of_its_own_is_fine(site: Path) -> None:
    _install(site, "ravel-trial", OURS)
    for folder in ("analytics/__pycache__", "node/before/__pycache__"):
        (site / folder).mkdir(parents=True)
        (site / folder / "gone.cpython-311.opt-1.pyc").touch()
    check_installation("ravel-trial")


def test_no_installation_is_fine() -> None:
    check_installation("ravel-trial")


@pytest.mark.slow
@pytest.mark.parametrize(
    "theirs, named",
    [
        ({"analytics/__init__.py": "import client\n"}, "analytics/__init__.py"),
        ({"analytics/client.py": ""}, "analytics/client.py"),
        ({"analytics/test/all.py": ""}, "analytics/test"),
    ],
)
def test_a_package_of_the_same_name_is_named(site: Path, theirs: dict[str, str], named: str) -> None:
    _install(site, "ravel-trial", OURS)
    _install(site, "analytics-python", theirs)
    with pytest.raises(
        ServiceError, match=f"^analytics-python and ravel-trial .*: {named} is not as"
    ) as refused:
        check_installation("ravel-trial")
    assert refused.value.code == "bad_config"
    assert "pipx install" in refused.value.advice


@pytest.mark.slow
def test_files_that_no_installation_lists_are_named_too(site: Path) -> None:
    _install(site, "ravel-trial", OURS)
    (site / "node" / "daemon.py").write_text("x = 2\n")
    with pytest.raises(ServiceError, match="another program and ravel-trial"):
        check_installation("ravel-trial")
