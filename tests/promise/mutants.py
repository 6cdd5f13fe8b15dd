"""Takes rules and duties out of the product, one after another, and counts the histories until that is found.

Two kinds of histories look for it: the vectors of verdicts, which a node judges, and those of whole nodes.

A mutant replaces one piece of a module's source. It is installed in a process of its own, before the module is loaded.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

MUTANT: Final = "RAVEL_MUTANT"
"""Environment variable that names the mutant of a process."""
_TABLE: Final = Path(__file__).with_name("mutants.txt")


class Mutant(NamedTuple):
    """One change of a module. What is replaced stands in it once."""

    module: str
    says: str
    """What no longer holds."""
    old: str
    new: str


def load_mutants() -> dict[str, Mutant]:
    """Read the table."""
    found: dict[str, Mutant] = {}
    for part in _TABLE.read_text().split("\n\n"):
        head, *lines = part.strip("\n").split("\n")
        if not head.startswith("["):
            continue
        name, _, rest = head[1:].partition("] ")
        module, _, says = rest.partition(": ")
        old, new = ("\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        found[name] = Mutant(module, says, old, new)
    return found


class Found(NamedTuple):
    """Number of histories that a mutant took, and the check that found it, or nothing."""

    played: int
    check: str

    def __str__(self) -> str:
        return f"{self.played} ({self.check})" if self.check else f"not in {self.played}"


class _Loader(SourceFileLoader):
    """Loads a module with one piece of its source replaced."""

    def __init__(self, fullname: str, path: str, old: str, new: str) -> None:
        super().__init__(fullname, path)
        self._old, self._new = old, new

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname)
        assert source is not None
        assert source.count(self._old) == 1, f"{fullname} has other words now"
        return compile(source.replace(self._old, self._new), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds the one module that is changed."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self._module, self._old, self._new = module, old, new

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Find it where Python would."""
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]  # as it is given
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._old, self._new)
        return spec


def install(name: str) -> None:
    """Take a rule out in this process."""
    mutant = load_mutants()[name]
    assert mutant.module not in sys.modules, f"{mutant.module} was loaded before"
    sys.meta_path.insert(0, _Finder(mutant.module, mutant.old, mutant.new))


def run_mutants(names: list[str], start: int, count: int, processes: int) -> int:
    """Try each mutant on the vectors of verdicts, and on histories of whole nodes; print a table. 1 where none finds one."""
    table, missed = load_mutants(), 0
    with ThreadPoolExecutor(processes) as pool:
        tried = pool.map(
            lambda name: (name, _try_vectors(name), _try_nodes(name, start, count)), names or table
        )
        for name, of_vectors, of_nodes in tried:
            said = f"{name:16} vectors: {of_vectors!s:40} nodes: {of_nodes!s:40}"
            print(f"{said} {table[name].says}", flush=True)
            missed += not (of_vectors.check or of_nodes.check)
    return bool(missed)


def _try_vectors(name: str) -> Found:
    ran = _run(name, "--vectors")
    last = ran.stdout.splitlines()[-1:]
    if not last:
        return Found(0, f"crashed: {ran.stderr[-300:]}")
    number, _, said = last[0].removeprefix("vector ").partition(": ")
    return Found(int(number), "" if said == "holds" else said.partition(": ")[0])


def _try_nodes(name: str, start: int, count: int) -> Found:
    ran = _run(name, "--verbose", "--stop", f"--start={start}", f"--count={count}")
    lines = [line for line in ran.stdout.splitlines() if line.startswith("history ")]
    broken = [line for line in lines if ": holds" not in line]
    if ran.returncode and not broken:
        return Found(len(lines), f"crashed: {ran.stderr[-300:]}")
    return Found(len(lines), broken[0].split(": ")[1] if broken else "")


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.promise", *arguments],
        env={**os.environ, MUTANT: name},
        capture_output=True,
        text=True,
        check=False,
    )
