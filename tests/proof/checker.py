"""Runs Coq over the proofs, builds the extracted model, and asks it."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
VERSION: Final = "8.16"
"""Release of Coq that the proofs are written for, as Debian 12 has it."""
PROOFS: Final = ("Unique", "Order", "Connected", "Audit")
MODEL: Final = ("Rules", "Epochs", "Eager", "Check", "Extract")
CLOSED: Final = "Closed under the global context"


class Check(NamedTuple):
    """One question to the model: its words, and the theorem or rule that it is about."""

    words: tuple[str, ...]
    about: str


QUICK: Final = (
    Check(("circles", "3"), "d"),
    Check(("eager", "3"), "e"),
    Check(("epochs", "1"), "b, g"),
    Check(("safe", "1", "1"), "a, c"),
    Check(("undo", "0"), "c"),
)
"""Bounds of the tests: some seconds."""
FULL: Final = (
    Check(("safe", "3", "0"), "a, c"),
    Check(("safe", "2", "1"), "a, c"),
    Check(("safe", "1", "2"), "a, c"),
    Check(("safe-large", "2", "0"), "a, c"),
    Check(("safe-large", "1", "1"), "a, c"),
    Check(("safe-quorum", "1", "1"), "a, c"),
    Check(("undo", "1"), "c"),
    Check(("circles", "4"), "d"),
    Check(("eager", "4"), "e"),
    Check(("hostile", "2"), "b, g"),
    Check(("epochs", "2"), "b, g"),
)
"""Bounds of `make proof`."""


class ProofFailedError(Exception):
    """Coq refused a file, a theorem rests on an axiom, or a check found a counterexample."""


def missing() -> str | None:
    """Return why nothing can be checked here, or None."""
    for program in ("coqc", "ocamlopt"):
        if shutil.which(program) is None:
            return f"{program} is not here: apt-get install coq"
    found = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout
    return (
        None
        if found.startswith(VERSION)
        else f"the proofs are for Coq {VERSION}, and here is {found.split()[0]}"
    )


def lay_out(folder: Path) -> Path:
    """Copy the sources into an empty folder, where Coq may write beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in (*HERE.glob("*.v"), HERE / "main.ml"):
        shutil.copy(source, folder)
    return folder


def compile_files(folder: Path, names: Iterable[str]) -> str:
    """Have Coq check files, and return what it printed. Raises ProofFailedError where it refuses one."""
    printed = []
    for name in names:
        ended = subprocess.run(
            ["coqc", "-q", "-Q", ".", "Proof", f"{name}.v"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise ProofFailedError(f"{name}.v: {ended.stderr.strip() or ended.stdout.strip()}")
        printed.append(ended.stdout)
    return "".join(printed)


def theorems(printed: str) -> int:
    """Count the audited theorems; raise ProofFailedError if one rests on what is not proved."""
    if "Axioms:" in printed:
        raise ProofFailedError(printed)
    return printed.count(CLOSED)


def build(folder: Path) -> Path:
    """Compile the extracted model to a program."""
    subprocess.run(
        [
            "ocamlopt",
            "-w",
            "-a",
            "-unsafe",
            "-inline",
            "200",
            "model.mli",
            "model.ml",
            "main.ml",
            "-o",
            "model",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "model"


def ask(program: Path, words: Sequence[str], *, text: str = "", seconds: float | None = None) -> str:
    """Return what the model prints. Raises ProofFailedError with its counterexample."""
    try:
        ended = subprocess.run(
            [program, *words], input=text, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise ProofFailedError(f"{' '.join(words)}: no end after {seconds} s") from None
    if ended.returncode:
        raise ProofFailedError((ended.stdout + ended.stderr).strip())
    return ended.stdout


def admitted(folder: Path = HERE) -> list[str]:
    """Return where a proof was left out."""
    return [
        f"{path.name}: {word}"
        for path in sorted(folder.glob("*.v"))
        for word in re.findall(
            r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b\.?", path.read_text(encoding="utf-8")
        )
        if path.name != "Audit.v" and word != "admit"
    ]
