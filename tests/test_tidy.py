"""Tests of the files themselves: length, names, places, docstrings, links, decisions, nothing left unfinished.

They look at what git tracks or would track, so that a stray file is seen before it is committed.
"""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

FOLDERS: Final = {
    "node", "protocol", "storage", "verifier", "analytics",
    "clients", "configs", "tests", "docs", "benchmarks", "examples", ".ci",
}  # fmt: skip

# Longer than this, a noun is waiting to be split off.
LINE_COUNT_MAX: Final = 600
# Tests and benchmarks are lists of cases, which do not get harder to read with their number.
ANY_LENGTH: Final = ("tests/", "benchmarks/", "storage/migrations/")  # a migration states whole tables

# Words that say nothing of what a file is about.
RETIRED: Final = {"util", "utils", "helper", "helpers", "manager", "managers"}

# Spelt in two halves, so that this file does not hold what it looks for.
UNFINISHED: Final = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
TEXT_SUFFIXES: Final = {".py", ".md", ".toml", ".sh", ".html", ".js", ".css", ".service"}

FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)")

DECISION_LINE_COUNT_MAX: Final = 40
# A record says what was decided, against what, and what follows; where a reader needs it, the question comes first.
DECISION_FORM: Final = re.compile(
    r"# (\d+)\. (\S.*)\n\n(?:\*\*Context\.\*\* .*?)?"
    r"\*\*Decision\.\*\* .*\n\n\*\*Alternatives\.\*\* .*\n\n\*\*Consequences\.\*\* .*",
    re.DOTALL,
)
DECISION_NAMED: Final = re.compile(r"\bdecision(?: \[?|s/)0*(\d+)")
NAMING: Final = (".py", ".js", ".toml", ".md", "Makefile")


@cache
def tracked() -> tuple[str, ...]:
    """Return the files that git tracks or would track and that exist, as paths from the root."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so nothing says which files are the project's")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted(path for path in set(listing.split("\0")) if path and (ROOT / path).is_file()))


def modules() -> list[str]:
    """Return the tracked Python files."""
    return [path for path in tracked() if path.endswith(".py")]


def is_docstring(statement: ast.stmt) -> bool:
    """Return True if a statement is nothing but a literal."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def broken_links(markdown: str, folder: Path) -> list[str]:
    """Return the link targets in a page of this folder that are paths of no file."""
    targets = LINK.findall(FENCED.sub("", markdown))
    files = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    return [file for file in files if file and not (folder / file).exists()]


def decision_pages() -> dict[str, str]:
    """Return the text of each record of a decision by file name."""
    paths = [ROOT / path for path in tracked() if path.startswith("docs/decisions/")]
    return {path.name: path.read_text(encoding="utf-8") for path in paths if path.name != "README.md"}


def decision_faults(name: str, text: str) -> list[str]:
    """Name the parts of a record that have the wrong form."""
    number = re.fullmatch(r"(\d{4})(?:-[a-z0-9]+)+\.md", name)
    parts = DECISION_FORM.fullmatch(text)
    holds = {
        "name": number is not None,
        "form": parts is not None,
        "number": parts is None or number is None or int(parts[1]) == int(number[1]),
        "length": len(text.splitlines()) <= DECISION_LINE_COUNT_MAX,
    }
    return [part for part, is_right in holds.items() if not is_right]


def test_no_module_is_too_long() -> None:
    lengths = {
        path: len((ROOT / path).read_text(encoding="utf-8").splitlines())
        for path in modules()
        if not path.startswith(ANY_LENGTH)
    }
    assert {path: length for path, length in lengths.items() if length > LINE_COUNT_MAX} == {}


def test_no_file_has_a_retired_word_in_its_name() -> None:
    words = {path: set(re.split(r"[^a-z]+", path.lower())) for path in tracked()}
    assert [path for path, found in words.items() if found & RETIRED] == []


def test_top_level_folders_are_the_fixed_ones() -> None:
    assert {path.partition("/")[0] for path in tracked() if "/" in path} - FOLDERS == set()


@pytest.mark.extended
@pytest.mark.slow
def test_every_module_has_a_docstring() -> None:
    # An empty __init__.py only marks its folder as a package.
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in modules()}
    written = {path: source for path, source in sources.items() if source or not path.endswith("__init__.py")}
    assert [path for path, source in written.items() if not ast.get_docstring(ast.parse(source))] == []


def test_package_inits_hold_a_docstring_only() -> None:
    # Importing one module must not run the rest of its package: analytics would get SQLAlchemy with the export's schema.
    # The client's is what apps import from; it imports little itself.
    inits = [
        path
        for path in modules()
        if path.endswith("__init__.py") and path != "clients/python/ravel/__init__.py"
    ]
    bodies = {path: ast.parse((ROOT / path).read_text(encoding="utf-8")).body for path in inits}
    assert [path for path, body in bodies.items() if not all(map(is_docstring, body))] == []


def test_every_room_says_where_to_start_reading() -> None:
    rooms = [path for path in modules() if re.fullmatch(r"(node|storage|analytics)/\w+/__init__\.py", path)]
    assert len(rooms) > 25
    for path in rooms:
        if path.split("/")[1] in ("cli", "importers", "migrations"):
            continue
        text = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or ""
        named = re.findall(r"`(\w+)`", text.partition("Start with")[2])
        assert named, path
        assert [name for name in named if not (ROOT / path).with_name(f"{name}.py").exists()] == [], path


def test_every_link_between_files_resolves() -> None:
    broken = {
        path: broken_links((ROOT / path).read_text(encoding="utf-8"), (ROOT / path).parent)
        for path in tracked()
        if path.endswith(".md")
    }
    assert {path: targets for path, targets in broken.items() if targets} == {}


def test_every_decision_has_the_form_of_a_record() -> None:
    faults = {name: decision_faults(name, text) for name, text in decision_pages().items()}
    assert {name: found for name, found in faults.items() if found} == {}


def test_every_decision_that_a_file_names_has_a_record() -> None:
    numbers = {int(name[:4]) for name in decision_pages()}
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in tracked() if path.endswith(NAMING)}
    named = {path: {int(number) for number in DECISION_NAMED.findall(text)} for path, text in texts.items()}
    assert {path: found - numbers for path, found in named.items() if found - numbers} == {}


@pytest.mark.slow
def test_nothing_is_marked_as_unfinished() -> None:
    texts = [
        path
        for path in tracked()
        if Path(path).suffix in TEXT_SUFFIXES or path.startswith(("Makefile", ".ci/"))
        if "/vendor/" not in path  # of others
    ]
    marked = [path for path in texts if UNFINISHED.search((ROOT / path).read_text(encoding="utf-8"))]
    assert marked == []


PRODUCT: Final = ("analytics/", "benchmarks/", "clients/", "node/", "protocol/", "storage/", "verifier/")
OPENS_WRONGLY: Final = re.compile(
    r"(What|Who|Whose|Whom|Which|Where|Whether|When|How|Why|Of|As|The same|It|Its|They|Their|He|His|One that|One who|Those"
    r"|These|This|That|None|Nobody|Nothing|Also|And|But|So|Then)\b"
)
"""A docstring opens with a verb (functions) or names a thing (classes, modules), and stands alone in a tooltip."""
OPENS_NO_FUNCTION: Final = re.compile(
    r"(The|A|An|All|Each|Every|Any|Some|Both|No|Only|Two|Three|For|From|With|In|At|By|If|On|To|Up|After|Before|Until"
    r"|Between|Within|Without|While|Once)\b"
)


def _is_property(definition: ast.AST) -> bool:
    return any("property" in ast.unparse(one) for one in getattr(definition, "decorator_list", ()))


@pytest.mark.slow
@pytest.mark.extended
def test_docstrings_open_with_a_verb_or_name_a_thing() -> None:
    found = []
    for path in modules():
        if not path.startswith(PRODUCT):
            continue
        for one in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if not isinstance(one, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            text = ast.get_docstring(one) or ""
            is_function = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(one)
            if OPENS_WRONGLY.match(text) or (is_function and OPENS_NO_FUNCTION.match(text)):
                found.append(f"{path}:{getattr(one, 'lineno', 1)}: {text.splitlines()[0]}")
    assert found == []
