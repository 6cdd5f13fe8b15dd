"""The commands in the pages exist: `ravel` commands with their options and arguments, `make` targets, Python modules.

No command is executed. Blocks of code must be whole commands; inline code may leave arguments out. That links name files is
`test_tidy`'s; here, that their fragments name headings, that the start page leads to all pages, and that each reader's
pages stay within a budget of words.
"""

import importlib.util
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from typer.main import get_command

from node.cli.main import app

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted(
    [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
)
MADE: Final = DOCS / "reference" / "cli.md"
"""Generated page whose usage lines are no commands."""
RAVEL: Final = get_command(app)
RAVEL.make_context(
    "ravel", [], resilient_parsing=True
)  # imports what typer imports late, before a test is timed

FENCE: Final = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INDENTED: Final = re.compile(r"^ {4,}(?:\$ )?((?:ravel|make|python) .*)$", re.MULTILINE)
INLINE: Final = re.compile(r"`((?:ravel(?= [a-z-])|make|python|\.venv/bin/python) [^`]+)`")
LINK: Final = re.compile(r"\]\(\s*<?([^)\s>]*)#([^)\s>]+)")
SHELL: Final = {"console", "sh", "bash", "shell"}
OTHERS: Final = {"curl", "createdb", "dot", "uv", "pipx", "pip"}
"""Programs of others that may stand in a page."""


class Budget(NamedTuple):
    """Pages of one reader, by patterns from the repository's root, and the words that they may have."""

    words: int
    pages: tuple[str, ...]


BUDGETS: Final = {
    "readme": Budget(400, ("README.md",)),
    "start page": Budget(250, ("docs/README.md",)),
    "glossary": Budget(900, ("docs/glossary.md",)),
    "people": Budget(3_500, ("docs/people/*",)),
    "apps": Budget(7_000, ("docs/apps/*",)),
    "communities": Budget(6_000, ("docs/communities/*",)),
    "research": Budget(6_000, ("docs/research/*",)),
    "understanding": Budget(8_750, ("docs/understanding/*",)),
    "specification": Budget(22_800, ("docs/specification/*",)),
    "contributors": Budget(3_000, ("CONTRIBUTING.md", "docs/contributing/*", "tests/*")),
    "decisions": Budget(7_600, ("docs/decisions/*",)),
    "changelog": Budget(1_500, ("CHANGELOG.md",)),
    "rest": Budget(1_550, ("*",)),  # ARCHITECTURE.md, readmes of clients, reference pages that no code makes
}
"""Readers by what they came for; a page belongs to the first that names it. A longer document is read by fewer."""
WORDS_MAX: Final = 62_000
"""Words of all pages written by hand: four hours of reading."""
PICTURE_SIZE_MAX: Final = 100_000
"""Bytes of a picture, of which a page has two or three: a slow line takes a second for one."""
GENERATED: Final = "Made from the code by `make reference`"
"""Text of each page that the code makes. Such pages are looked up and not read."""


class WrongCommandError(Exception):
    """The command cannot be meant as it stands."""


def fenced_commands(page: str) -> Iterator[str]:
    """Yield the lines to type: after a prompt in `console` blocks, all of other shell blocks, and indented ones."""
    for _, language, block in FENCE.findall(page):
        for line in map(str.strip, block.replace("\\\n", " ").splitlines()):
            if language == "console" or line.startswith("$ "):
                if line.startswith("$ "):
                    yield line[2:]
            elif (language in SHELL and line) or re.match(r"(ravel|make|python) ", line):
                yield line
    yield from INDENTED.findall(FENCE.sub("", page))


def inline_commands(page: str) -> Iterator[str]:
    """Yield the commands in running text; `key seal|unseal` is two."""
    for code in INLINE.findall(FENCE.sub("", page)):
        words = shlex.split(" ".join(code.split()))
        for chosen in product(*(word.split("|") if "://" not in word else [word] for word in words)):
            yield shlex.join(chosen)


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without comments, assignments and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    skipped = False
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;"):
            if words:
                yield words
            words = []
        elif set(word) <= set("<>"):
            skipped = True
        elif skipped:
            skipped = False
        elif words or not re.match(r"[A-Z_]+=", word):
            words.append(word)


def check(words: list[str], *, is_whole: bool) -> None:
    """Raise WrongCommandError where a command names what there is not."""
    program, rest = words[0], words[1:]
    if program == "ravel":
        check_ravel(rest, is_whole=is_whole)
    elif program == "make":
        check_make(rest)
    elif program in ("python", ".venv/bin/python"):
        check_python(rest)
    elif program not in OTHERS:
        raise WrongCommandError(f"unknown program {program}")


def check_ravel(words: list[str], *, is_whole: bool) -> None:
    """Follow the command's path, and parse its options as the command itself does."""
    command: Any = RAVEL
    context = command.make_context("ravel", [], resilient_parsing=True)
    while True:
        # It makes a context without running anything, and would then pass over an unknown option.
        context.resilient_parsing = False
        try:
            values, left, _ = command.make_parser(context).parse_args(list(words))
        except Exception as error:  # click's own, which typer may bring along under another name
            raise WrongCommandError(f"{command.name}: {error}") from error
        if getattr(command, "commands", None) is None:
            break
        if not left:
            if not is_whole or values.get("version"):
                return
            raise WrongCommandError(f"{command.name} needs a command")
        if left[0] not in command.commands:
            raise WrongCommandError(f"{command.name} has no command {left[0]}")
        command, words = command.commands[left[0]], left[1:]
        context = command.make_context(command.name, [], resilient_parsing=True, parent=context)
    if left:
        raise WrongCommandError(f"{command.name}: too many arguments: {left}")
    for parameter in command.params:
        value = values.get(parameter.name)
        if is_whole and parameter.required and (value is None or value == ()):
            raise WrongCommandError(f"{command.name} needs {parameter.name}")


def check_make(words: list[str]) -> None:
    """Raise WrongCommandError if a target or variable is not in the Makefile."""
    for word in words:
        name, is_set, _ = word.partition("=")
        if is_set and not re.search(rf"\b{name}\b", makefile()):
            raise WrongCommandError(f"no variable {name}")
        if not is_set and not re.search(rf"^{re.escape(name)}:", makefile(), re.MULTILINE):
            raise WrongCommandError(f"no target {name}")


def check_python(words: list[str]) -> None:
    """Raise WrongCommandError if the module, or the file, is not there."""
    if words[0] != "-m":
        if not (ROOT / words[0]).is_file():
            raise WrongCommandError(f"no file {words[0]}")
        return
    path = ROOT / words[1].replace(".", "/")
    is_here = path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
    is_ours = path.is_dir() or (ROOT / words[1].partition(".")[0]).is_dir()
    if not is_here and (is_ours or importlib.util.find_spec(words[1]) is None):
        raise WrongCommandError(f"no module {words[1]}")


@cache
def makefile() -> str:
    """Return the Makefile's text."""
    return (ROOT / "Makefile").read_text(encoding="utf-8")


@cache
def headings(page: Path) -> frozenset[str]:
    """Return the fragments of a page's headings, as a forge makes them."""
    found = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in found)


def hand_written() -> list[str]:
    """Return the pages that git tracks or would track and no code makes, as paths from the root."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    paths = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    pages = [path for path in paths if path and (ROOT / path).is_file()]
    return [path for path in pages if GENERATED not in (ROOT / path).read_text(encoding="utf-8")]


def count_words(text: str) -> int:
    """Count what has a letter or a digit between two spaces, so no bars of tables, prompts or dashes."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def reader_of(page: str) -> str:
    """Return the first reader whose patterns name a page."""
    return next(
        reader for reader, budget in BUDGETS.items() if any(fnmatch(page, one) for one in budget.pages)
    )


def faults(page: str) -> list[str]:
    """Describe the faults in the commands of a page, each with its command."""
    found: list[str] = []
    for lines, is_whole in ((fenced_commands(page), True), (inline_commands(page), False)):
        for line in lines:
            for words in simple_commands(line):
                try:
                    check(words, is_whole=is_whole)
                except WrongCommandError as error:
                    found.append(f"{line}: {error}")
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if page != MADE], ids=lambda page: page.stem)
def test_every_command_exists(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_fragment_of_a_link_names_a_heading(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = [(target, name) for target, name in LINK.findall(text) if "://" not in target]
    of = {target: headings((page.parent / target).resolve() if target else page) for target, _ in links}
    assert [f"{target}#{name}" for target, name in links if name not in of[target]] == []


def test_every_page_is_reached_from_the_start_page() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not (page.is_relative_to(ROOT) and page.exists()):
            continue
        reached.add(page)
        links = re.findall(r"\]\(\s*<?([^)\s>#]+)", page.read_text(encoding="utf-8"))
        waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    decisions = set((DOCS / "decisions").glob("0*.md"))  # their folder lists them
    assert set(DOCS.rglob("*.md")) - reached - decisions == set()


def test_each_picture_of_the_page_is_shown_and_small() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    made = sorted((DOCS / "pictures").glob("*.png"))
    assert made
    assert [path.name for path in made if f"pictures/{path.name})" not in shown] == []
    assert [path.name for path in made if path.stat().st_size > PICTURE_SIZE_MAX] == []


def test_each_readers_pages_stay_within_their_budget() -> None:
    words = dict.fromkeys(BUDGETS, 0)
    for page in hand_written():
        words[reader_of(page)] += count_words((ROOT / page).read_text(encoding="utf-8"))
    assert {reader: count for reader, count in words.items() if count > BUDGETS[reader].words} == {}
    assert sum(words.values()) <= WORDS_MAX, words


MAPS: Final = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((DOCS / "contributing").glob("*.md")),
]
"""Pages that lead to code by its names."""
_DEFINED: Final = re.compile(r"^\s*(?:async def|def|class) (\w+)|^(\w+)(?:: [^=]+)? = ", re.MULTILINE)


def _sources() -> dict[str, str]:
    """Return the text of each Python file of the product and its tests, by path from the root."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for top in ("analytics", "benchmarks", "clients", "node", "protocol", "storage", "tests", "verifier")
        for path in sorted((ROOT / top).rglob("*.py"))
    }


def _is_absent(code: str, sources: Mapping[str, str], defined: Mapping[str, set[str]]) -> bool:
    """Return True if a span of code names a file or a definition that is not there."""
    path, _, names = code.partition(":")
    if path.endswith(".py"):
        found = [one for one in sources if one == path or one.endswith(f"/{path}")]
        wanted = [part for part in names.split(".") if part]
        return not found or any(all(part not in defined[one] for one in found) for part in wanted)
    if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*(\.\w+)?", code):
        owner, _, member = code.partition(".")
        homes = [one for one in sources if owner in defined[one]]
        if not homes and not member:
            taken = re.compile(rf"^(from .* import .*{owner}|    {owner},$)", re.MULTILINE)
            return not any(taken.search(text) for text in sources.values())
        return not homes or bool(member and all(member not in defined[one] for one in homes))
    return False


@pytest.mark.slow
def test_maps_of_the_code_name_what_is_there() -> None:
    sources = _sources()
    defined = {path: {*chain.from_iterable(_DEFINED.findall(text))} for path, text in sources.items()}
    absent = {}
    for page in MAPS:
        spans = re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        absent[page.name] = [code for code in spans if _is_absent(code, sources, defined)]
    assert {page: codes for page, codes in absent.items() if codes} == {}
