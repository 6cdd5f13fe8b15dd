"""`make setup` takes the faster build of python3's version, where it can be used."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

_SETUP: Final = Path(__file__).parents[1] / ".ci" / "setup.sh"
_OPTIMISED: Final = "--enable-optimizations"


def _make_interpreter(path: Path, *, exit_code: int, arguments: str = "") -> None:
    """A python of version 3.99 that was configured so, and in which importing what a setup needs ends so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_plain = _OPTIMISED not in arguments
    said = "echo python3.99" if is_plain else ":"
    path.write_text(
        f'#!/bin/sh\ncase "$2" in *sysconfig*) {said};; *) exit {exit_code};; esac\n', encoding="utf-8"
    )
    path.chmod(0o755)


@pytest.mark.parametrize(
    "arguments, system_exit_code, expected",
    [
        ("", 0, "system/python3.99"),
        ("", 1, "python3"),
        ("", None, "python3"),
        (_OPTIMISED, 0, "python3"),
    ],
    ids=["its own is plain", "the system's has no venv", "the system has none", "its own is optimised"],
)
def test_which_interpreter_a_setup_takes(
    tmp_path: Path, arguments: str, system_exit_code: int | None, expected: str
) -> None:
    _make_interpreter(tmp_path / "bin" / "python3", exit_code=0, arguments=arguments)
    if system_exit_code is not None:
        _make_interpreter(tmp_path / "system" / "python3.99", exit_code=system_exit_code)
    text = _SETUP.read_text(encoding="utf-8")
    function = text[
        text.index("choose_python() {") : text.index("\n}\n", text.index("choose_python() {")) + 3
    ]
    assert "/usr/bin/" in function
    done = subprocess.run(
        ["bash", "-euc", f"{function.replace('/usr/bin/', 'system/')}\nchoose_python"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected
