"""The reference pages that are made from the code: commands, configuration, endpoints, state machines.

`python -m tests.reference` (`make reference`) writes them into docs/reference, and the columns, tables and measured
figures of docs/research and docs/understanding, other systems' figures, and what these say of the zoo. A test sees that
they are up to date. It also writes the clients' endpoints and types (`tests.support.client_modules` for Python,
`tests.support.js_client` for JavaScript), and what the API promises (`tests.support.stable_api`), and fails where the
code breaks a promise.
"""

import html
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from node.home.config import default_config_text
from node.home.config_layers import describe_keys, variable_of
from node.home.config_sections import CONFIG_KEYS
from tests.support import (
    client_modules,
    columns_page,
    figures_page,
    js_client,
    observatory_page,
    stable_api,
    zoo_page,
)
from tests.support.endpoint_pages import endpoints_page
from tests.support.exit_codes_page import exit_codes_page
from tests.support.machine_tables import machines_page

_ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = _ROOT / "docs" / "reference"
MADE: Final = "*Made from the code by `make reference`: change it there.*\n"
_HELP: Final = "* `-h, --help`: Show this message and exit.\n"


def pages() -> dict[str, str]:
    """Name of each page -> its text."""
    return {
        "cli.md": _commands(),
        "configuration.md": _configuration(),
        "endpoints.md": endpoints_page(MADE),
        "exit-codes.md": exit_codes_page(MADE),
        "state-machines.md": machines_page(MADE),
    }


def research_pages() -> dict[str, str]:
    """Name of each page of docs/research that is made -> its text."""
    return {"columns.md": columns_page.columns_page(MADE), "tables.md": columns_page.tables_page(MADE)}


def _commands() -> str:
    with TemporaryDirectory() as folder:
        made = Path(folder) / "cli.md"
        typer = [sys.executable, "-m", "typer", "node.cli.main", "utils", "docs", "--name", "ravel"]
        subprocess.run([*typer, "--output", str(made)], check=True, capture_output=True, cwd=_ROOT)
        text = html.unescape(made.read_text())
    text = text.replace(_HELP, "").replace("**Options**:\n\n\n", "")  # every command has it
    abouts = dict(re.findall(r"^#+ `(ravel [^`]+)`\n\n(.+)", text, re.MULTILINE))
    lines: list[str] = []
    group = ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"#+ `(ravel[^`]*)`", line):
            group = heading[1]
        if listed := re.fullmatch(r"\* `([a-z-]+)`: .*\.\.\.", line):  # cut where it did not fit a terminal
            line = f"* `{listed[1]}`: {abouts[f'{group} {listed[1]}']}"
        lines.append(line)
    title, rest = "\n".join(lines).split("\n", 1)
    about = "Also: [exit codes](exit-codes.md), [JSON output](../apps/errors.md#json-output). All commands take `-h`.\n"
    return f"{title}\n\n{MADE}\n{about}{rest.rstrip()}\n"


def _configuration() -> str:
    """Return the page of the commented file that `ravel init` writes: a section each, a key with its default and comment."""
    lines = [
        "# Configuration\n",
        MADE,
        "`config.toml` in the node's folder. What overrides it: [configure](../communities/start.md#configure).",
    ]
    section = ""
    for name, (default, comment) in describe_keys().items():
        if section != name.partition(".")[0]:
            section = name.partition(".")[0]
            lines += ["", f"## [{section}]", "", "| key | default | variable | |", "|---|---|---|---|"]
        about, key = comment.replace("|", "\\|") or "as above", name.partition(".")[2]
        lines.append(f"| `{key}` | `{default}` | `{variable_of(section, key)}` | {about} |")
    made = sum(line.startswith("| `") for line in lines)
    assert made == sum(map(len, CONFIG_KEYS.values())), "a key is not in the commented file, or there twice"
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    (FOLDER.parents[1] / "configs" / "ravel.toml").write_text(default_config_text())
    client_modules.write()
    for path, text in js_client.files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    figures_page.PAGE.write_text(figures_page.figures_page(MADE))
    observatory_page.PAGE.write_text(observatory_page.observatory_page(MADE))
    zoo_page.PAGE.write_text(zoo_page.zoo_page(MADE))
    for name, text in research_pages().items():
        (columns_page.FOLDER / name).write_text(text)
    present = stable_api.present()
    if breaks := stable_api.find_breaks(stable_api.promised(), present):
        sys.exit("\n".join(["the API breaks its promise (docs/apps/http-api.md):", *breaks]))
    stable_api.PATH.write_text(stable_api.text_of(present))


if __name__ == "__main__":
    main()
