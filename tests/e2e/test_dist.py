"""What is installed: the wheel has all it needs, the sdist makes the same wheel, the service files are sound.

Offline: dependencies come from the environment that runs the tests. `make dist` installs them too.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from node.home.service import unit_text
from node.runtime.errors import ERROR_KINDS
from node.runtime.version import VERSION
from tests.support.machine import patience

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python"


def _build(source: Path, target: str, out: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (built,) = out.iterdir()
    return built


def _wheel_of_sdist(folder: Path) -> Path:
    sdist = _build(ROOT, "sdist", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = lambda member, _: member  # Python 3.11.2 has no argument for it
        archive.extractall(folder / "unpacked")  # noqa: S202  # this test made the archive
    (source,) = (folder / "unpacked").iterdir()
    return _build(source, "wheel", folder / "again")


def _install(place: Path, *wheels: Path) -> Path:
    """A fresh environment with these wheels in it; gives its `bin`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--no-input"]
    done = subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", *map(str, wheels)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (site,) = place.glob("lib/python3*/site-packages")
    # A folder named so is looked through for modules, and not for the editable checkout that it may name in turn.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


@pytest.mark.extended
def test_a_node_runs_from_the_wheel_which_holds_data_and_configs_and_which_the_sdist_makes_again(
    tmp_path: Path,
) -> None:
    wheel = _build(ROOT, "wheel", tmp_path / "dist")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("node", "protocol", "storage", "verifier", "analytics"):
        wanted = {
            str(path.relative_to(ROOT))
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert wanted <= names, folder
    data = f"ravel_node-{VERSION}.data/data/share/ravel"
    assert {f"{data}/{path.name}" for path in (ROOT / "configs").iterdir()} <= names
    again = _wheel_of_sdist(tmp_path)
    assert set(zipfile.ZipFile(again).namelist()) == names

    bin_folder = _install(tmp_path / "venv", again, _build(CLIENT, "wheel", tmp_path / "client"))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAVEL", "PYTHON"))
    }

    def ravel(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(bin_folder / "ravel"), "--home", str(tmp_path / "home"), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    where = [str(bin_folder / "python"), "-c", "import storage.engine.database as d; print(d.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert found.stdout.startswith(str(tmp_path / "venv")), "the wheel's own, not the checkout's"
    assert ravel("--version") == f"{VERSION}\n"
    assert "tangles" in ravel("--help")
    ravel("init", "--clear", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(patience(30))
        daemon = subprocess.Popen(
            [str(bin_folder / "ravel"), "--home", str(tmp_path / "home"), "run"],
            cwd=tmp_path,
            env=environment | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(1000).startswith(b"READY=1\n")
            assert VERSION in ravel("status", "--verbose")  # ready means that it answers
            refused = ravel("run", code=ERROR_KINDS["already_running"].exit_code)
            assert f"process {daemon.pid} uses" in refused
            daemon.send_signal(signal.SIGTERM)
            assert manager.recv(1000) == b"STOPPING=1"
            assert daemon.wait(patience(10)) == 0
        finally:
            daemon.kill()
            daemon.wait()


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    client = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert client["version"] == VERSION
    assert f"ravel-client=={VERSION}" in project["dependencies"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here to ask")
@pytest.mark.parametrize("unit", ["of the machine", "of a user"])
def test_systemd_takes_the_units(tmp_path: Path, unit: str) -> None:
    text = (ROOT / "configs/ravel.service").read_text().replace("/usr/local/bin/ravel", "/bin/true")
    if unit == "of a user":  # systemd looks whether the program is there
        text = unit_text(Path("/tmp/a %h $b"), Path("/tmp/a %h"), python="/bin/true")  # noqa: S108  # never made
    (tmp_path / "ravel.service").write_text(text)
    manager = ["--user"] if unit == "of a user" else []
    done = subprocess.run(
        ["systemd-analyze", "verify", *manager, "--man=no", str(tmp_path / "ravel.service")],
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if "ravel.service" in line]) == (
        0,
        [],
    )
