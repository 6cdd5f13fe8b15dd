"""Feeds every target with what atheris (libFuzzer for Python) finds, an equal share of the seconds each.

    make fuzz SECONDS=600 TARGETS='body config'

Each target runs in a process of its own, because a finding ends the process. It starts from the committed corpus; what
it adds is kept in .fuzz_cache/TARGET, where the next run goes on, and a finding lies beside it as TARGET-crash-HASH.
Atheris sees branches of Python code alone, and most of the decoding is msgspec's C. So the words of a refusal, which
name the field that was wrong, count as branches too, for each tag: what comes further into a structure is kept.
"""

import argparse
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.machine import patience

ROOT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = ROOT / "tests" / "fuzz" / "corpus"
CACHE: Final = ROOT / ".fuzz_cache"
_INSTRUMENTED: Final = ["protocol", "node", "tomllib", "ipaddress", "starlette"]
_LIMITS: Final = ("-seed=1", "-keep_seed=1", "-max_len=4096", "-timeout=20", "-rss_limit_mb=2048")
_GRACE_SECONDS: Final = 60
"""What a target may take beyond its share on an idle machine: to start, to read its corpus, to end its last input."""
_MARK_COUNT: Final = 512
_CHILD: Final = "--one"


def main(arguments: list[str]) -> int:
    """Run the targets one after another; 1 when one of them let something else through than its error."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not there; `make fuzz` installs it", file=sys.stderr)
        return 2
    names = list(importlib.import_module("tests.fuzz.targets").TARGETS)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", type=int, help="for all targets together")
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(names)}; all of them if none is named")
    options = parser.parse_args(arguments)
    if unknown := set(options.targets) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    chosen = options.targets or names
    share = max(1, options.seconds // len(chosen))
    print(f"{len(chosen)} targets, {share} s each; logs in {CACHE}", flush=True)
    results = [_run(name, share) for name in chosen]
    return 0 if all(results) else 1


def _run(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own, and say in one line how it went."""
    found = CACHE / name
    found.mkdir(parents=True, exist_ok=True)
    limits = [*_LIMITS, f"-max_total_time={seconds}", "-print_final_stats=1", f"-artifact_prefix={found}-"]
    corpora = [str(found), str(CORPUS / name)]
    command = [sys.executable, "-m", "tests.fuzz.harness", _CHILD, name, *limits, *corpora]
    log = CACHE / f"{name}.log"
    seconds_max = seconds + patience(_GRACE_SECONDS)
    is_late = False
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                command,
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                timeout=seconds_max,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code, is_late = -1, True
    text = log.read_text(encoding="utf-8", errors="replace")
    executions = _last(r"^stat::number_of_executed_units: (\d+)", text) or _last(r"^#(\d+)", text) or "0"
    coverage = _last(r" cov: (\d+)", text) or "?"
    print(f"  {name:<12} {int(executions):>9,} runs, coverage {coverage:>4}: ", end="")
    if code == 0:
        print("ok", flush=True)
        return True
    reason = _last(r"^((?:\w+\.)*\w+(?:Error|Exception|Group|Timeout|Warning)\b.*)", text)
    if is_late and not reason:
        reason = (
            f"no end within {seconds_max:.0f} s: the last input hangs, or other programs have the processor"
        )
    found_input = _last(r"Test unit written to (\S+)", text)
    print(f"FAILED with {reason or f'exit code {code}'}", flush=True)
    print(f"    input: {found_input or 'none'}; log: {log}", flush=True)
    return False


def _last(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    return str(found[-1]) if found else ""


def _fuzz_one(name: str, limits: list[str]) -> None:
    """The child process: never returns."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=_INSTRUMENTED):
        target = importlib.import_module("tests.fuzz.targets").TARGETS[name]
        peek_tag: Callable[[bytes], str] = importlib.import_module("protocol.codec").peek_tag
    marks = [atheris.instrument_func(_mark()) for _ in range(_MARK_COUNT)]
    tags = {peek_tag(path.read_bytes()) for path in (CORPUS / name).iterdir()}

    def run(data: bytes) -> None:
        refusal = target(data)
        # Without the input's own words and numbers, which would make every refusal a new one.
        kind = re.sub(r"['\"].*['\"]|(?<![\[\d])\d+", "", refusal, flags=re.DOTALL)
        tag = peek_tag(data)
        said = f"{tag} {kind}" if tag in tags else kind
        marks[zlib.crc32(said.encode("utf-8", "replace")) % _MARK_COUNT]()

    atheris.Setup([sys.argv[0], *limits], run)
    atheris.Fuzz()


def _mark() -> Callable[[], None]:
    """A function of its own, so that its one branch counts for itself."""

    def mark() -> None:
        return None

    return mark


if __name__ == "__main__":
    if sys.argv[1:2] == [_CHILD]:
        _fuzz_one(sys.argv[2], sys.argv[3:])
    sys.exit(main(sys.argv[1:]))
