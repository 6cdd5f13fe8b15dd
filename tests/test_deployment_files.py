"""Files and guides with which a relay is set up on a server: commands, paths, ports and settings are those of the code."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from node.home.config_layers import find_unknown_variables
from node.home.config_sections import Config
from tests.test_docs import FENCE, check, simple_commands

ROOT: Final = Path(__file__).resolve().parent.parent
CONFIGS: Final = ROOT / "configs"
GUIDE: Final = ROOT / "docs/communities/relay.md"
CONTAINERFILE: Final = CONFIGS / "Containerfile"
UNIT: Final = CONFIGS / "ravel.service"
ALL: Final = (GUIDE, CONTAINERFILE, UNIT)
VARIABLE: Final = re.compile(r"\bRAVEL_[A-Z_]+")


def _guide() -> str:
    """Return what the page says of setting a relay up, without its later sections."""
    return GUIDE.read_text(encoding="utf-8").partition("\n## Size it\n")[0]


def _said_of(path: Path, instruction: str) -> list[str]:
    """What stands behind an instruction of the Containerfile."""
    return re.findall(rf"^{instruction} (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_variable_is_a_setting(path: Path) -> None:
    names = {name for name in VARIABLE.findall(path.read_text(encoding="utf-8")) if name != "RAVEL_HOME"}
    assert find_unknown_variables(dict.fromkeys(names, "")) == []


def test_the_image_runs_commands_that_there_are() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    [run] = re.findall(r'^CMD \["sh", "-c", "(.*)"\]$', text, re.MULTILINE)
    found = list(simple_commands(run.replace("; then ", "; ").replace("; else ", "; ")))
    ravel = [words[words.index("ravel") :] for words in found if "ravel" in words]
    assert [words[1] for words in ravel] == ["init", "init", "run"]
    for words in ravel:
        check(words, is_whole=True)
    [health] = re.findall(r"^HEALTHCHECK .* CMD (.*)$", text, re.MULTILINE)
    check(eval(health), is_whole=True)  # noqa: S307  # a list of texts, of this repository's file


def test_the_image_has_one_folder_and_one_port() -> None:
    [volume] = _said_of(CONTAINERFILE, "VOLUME")
    [port] = _said_of(CONTAINERFILE, "EXPOSE")
    text, guide = CONTAINERFILE.read_text(encoding="utf-8"), _guide()
    assert f"RAVEL_HOME={volume}" in text
    assert f"RAVEL_NETWORK_LISTEN=0.0.0.0:{port}" in text
    assert Config().network.listen.endswith(f":{port}")
    assert f":{volume} " in guide
    assert f"ravel --home {volume} relay" in guide
    assert f"relay.example.org:{port}" in guide
    assert "Environment=RAVEL_HOME=%S/ravel" in UNIT.read_text(encoding="utf-8"), "%S is /var/lib"


def test_the_image_takes_the_locked_versions(tmp_path: Path) -> None:
    [command] = re.findall(r"^RUN (sed -n .*requirements.lock) > ", CONTAINERFILE.read_text(), re.MULTILINE)
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(
        re.findall(r"^[a-z]\S*==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    )
    assert all(re.fullmatch(r"[a-z][\w.\[\],-]*==\S+( ;.*)?", line) for line in lines)


def test_the_guide_names_files_that_there_are_and_is_short() -> None:
    blocks = [block for _, _, block in FENCE.findall(_guide())]
    named = {
        name for block in blocks for name in re.findall(r"(?<!\S)(?:\./)?(configs/\S+|clients/\S+)", block)
    }
    assert named == {"configs/ravel.service", "configs/Containerfile", "clients/python"}
    assert all((ROOT / name).exists() for name in named)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(lines) <= 26, "twenty for a server, and those of a container"


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here to ask")
def test_systemd_takes_what_the_guide_adds_to_the_unit(tmp_path: Path) -> None:
    text = _guide().replace("\\\n", " ")
    [command] = re.findall(
        r"^ *(printf '%s\\n' '\[Service\]'.*) > (?:\S*)ravel.service.d/relay.conf", text, re.MULTILINE
    )
    added = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert added.count("\n") == 5
    folder = tmp_path / "ravel.service.d"
    folder.mkdir()
    (folder / "relay.conf").write_text(added)
    unit = UNIT.read_text(encoding="utf-8").replace("/usr/local/bin/ravel", "/bin/true")
    (tmp_path / "ravel.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "ravel.service"],
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if "ravel" in line]) == (0, [])
