"""A real headless Chromium or Firefox, and what journeys do in either."""

import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.machine import patience
from tests.support.vendored import AXE

JsonObject = dict[str, Any]
CHROMIUM: Final = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
FIREFOX: Final = next((found for name in ("firefox-esr", "firefox") if (found := shutil.which(name))), None)
ENGINES: Final = {"chromium": CHROMIUM, "firefox": FIREFOX}
"""What tests call a browser -> its program, where there is one."""
CTRL: Final = 2
"""The key that is held, as `press` takes it."""
CHROMIUM_ALONE: Final = pytest.mark.parametrize("engine", ["chromium"], indirect=True)
"""Mark of a journey in a module of each browser that is more about what nodes do than about what a browser does."""
engine = "chromium"
"""The browser that `browser` starts: a fixture of the same name has journeys run in each."""
_POLL_SECONDS: Final = 0.05


class Browser(ABC):
    """One page of one browser."""

    has_themes = True
    """True if it shows a page as dark as well as light when it is told to."""
    shows_barriers = True
    """True if barriers are looked for in it: one browser will do, since what is looked at is the document."""
    presses_buttons = True
    """True if Enter on a button presses it."""
    events: list[JsonObject]
    """What happened so far, as the browser says it."""

    @abstractmethod
    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  # whatever the page says, as JSON
        """The value of an expression in the page."""

    @abstractmethod
    def open(self, address: str) -> None:
        """Go to a page."""

    @abstractmethod
    def reload(self) -> None:
        """Load the page again, and wait for that: what is asked of the page before is answered with an error."""

    @abstractmethod
    def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        """Press a key, which may type something; with modifiers it types nothing."""

    @abstractmethod
    def select_all(self) -> None:
        """Press Ctrl+A in what has the focus."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type into what has the focus."""

    @abstractmethod
    def choose_files(self, selector: str, *paths: Path) -> None:
        """Choose files in a field for files."""

    @abstractmethod
    def choose_in_dialog(self, act: Callable[[], None], path: Path) -> None:
        """Choose a file in the dialog that an act opens."""

    @abstractmethod
    def save_into(self, folder: Path) -> None:
        """Have files that are saved come into a folder."""

    @abstractmethod
    def show(self, width: int, height: int, theme: str) -> None:
        """Take a window's size, and a theme: light or dark."""

    @abstractmethod
    def screenshot(self, path: Path) -> None:
        """A picture of the page."""

    @abstractmethod
    def complaints(self) -> list[str]:
        """What the browser's console said that is no good: errors of scripts, and what the page's policy forbade."""

    @abstractmethod
    def requested(self) -> list[str]:
        """Addresses of everything that was fetched."""

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Wait until an expression holds in the page; fail where it does not in the time that this machine may take."""
        deadline = time.monotonic() + patience(seconds)
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"not in time: {expression}\n{self.text()}"
            time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for

    def text(self) -> str:
        """What the page shows."""
        return str(self.evaluate("document.body.innerText"))

    def click(self, selector: str) -> None:
        """Click on an element once it is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        self.evaluate(f"{found}.click()")

    def fill(self, selector: str, text: str) -> None:
        """Put a text into a field once it is there, as typing does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        self.evaluate(f"{found}.focus(); {found}.select?.()")
        self.type(text)

    def barriers(self, rules: Sequence[str] = ()) -> list[str]:
        """Return the rules, of these or all, that the page breaks by axe-core, with the elements that break them."""
        if not self.evaluate("Boolean(window.axe)"):
            self.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
        asked = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
        found = self.evaluate(f"axe.run(document, {json.dumps(asked)}).then((done) => done.violations)")
        return [
            f"{one['id']}: {node['html']} ({node['failureSummary']})"
            for one in found
            for node in one["nodes"]
        ]


@contextmanager
def browser(folder: Path, languages: str = "") -> Iterator[Browser]:
    """A browser with a profile of its own in `folder` that asks for these languages, ended afterwards."""
    if engine == "firefox":
        from tests.e2e.firefox import firefox

        with firefox(folder, languages) as opened:
            yield opened
        return
    from tests.e2e.chromium import chromium

    with chromium(folder, *([f"--accept-lang={languages}"] if languages else [])) as page:
        yield page
