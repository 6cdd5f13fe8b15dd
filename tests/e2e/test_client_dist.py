"""The client's wheel in an environment that has what it declares and nothing else: an app runs there.

Offline: what it declares comes from the environment that runs the tests. `make dist` has pip get it from the index.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.e2e.cluster import Peer

pytestmark = [pytest.mark.slow, pytest.mark.extended]
CLIENT: Final = Path(__file__).parents[2] / "clients" / "python"
APP: Final = """
import asyncio, json, sys
before = set(sys.modules)
import ravel

with ravel.connect(sys.argv[1]) as client:
    client.create_repo("from the wheel")
    client.write_post("from the wheel:main", "waiting")
light = set(sys.modules)

async def work():
    async with ravel.connect_async(sys.argv[1]) as client:
        await client.write_post("from the wheel:main", "awaited")
        return await client.show_timeline("from the wheel:main")

items = asyncio.run(work())["items"]
print(json.dumps({
    "texts": [item["text"] for item in items],
    "file": ravel.__file__,
    "light": sorted({name.partition(".")[0] for name in light - before}),
    "all": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
}))
"""


def _names(found: Distribution) -> set[str]:
    """What a distribution needs, without its extras."""
    wanted = map(Requirement, found.requires or ())
    return {one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})}


def _declared(found: Distribution, seen: dict[str, Distribution]) -> dict[str, Distribution]:
    """The same with what that needs in turn, by name."""
    for name in _names(found) - seen.keys():
        seen[name] = distribution(name)
        _declared(seen[name], seen)
    return seen


def _copy(found: Distribution, site: Path) -> None:
    """What a distribution has installed, without its programs and what was compiled."""
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(found.locate_file(file)), site / file)


def test_an_app_needs_the_wheel_and_what_it_declares(standing: Peer, tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(tmp_path / "dist"),
    ]
    subprocess.run(build, cwd=CLIENT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"ravel", f"{wheel.name.split('-py3')[0]}.dist-info"}
    assert "ravel/py.typed" in names

    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--no-input"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    (info,) = site.glob("ravel_client-*.dist-info")
    installed = Distribution.at(info)
    assert _names(installed) == {"httpx", "msgspec"}
    needed = _declared(installed, {})
    for one in needed.values():
        _copy(one, site)

    done = subprocess.run(
        [str(place / "bin" / "python"), "-I", "-c", APP, str(standing.home)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["file"].startswith(str(site))
    assert [text for text in said["texts"] if text] == ["waiting", "awaited"]
    # msgspec looks for typing_extensions, which comes with httpx.
    assert set(said["light"]) - sys.stdlib_module_names - {"typing_extensions"} == {"ravel", "msgspec"}
    assert set(said["all"]) - sys.stdlib_module_names - _modules(needed, site) == {"ravel"}


def _modules(needed: dict[str, Distribution], site: Path) -> set[str]:
    """Top-level modules of these distributions."""
    files = [file for one in needed.values() for file in one.files or () if (site / file).exists()]
    return {file.parts[0].partition(".")[0] for file in files}
