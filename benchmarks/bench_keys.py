"""Time from a key in a text to the same letter in another person's browser, on a direct connection.

    python -m benchmarks.bench_keys [letters]

Two daemons on this machine and two headless Chromiums, each with the same text open. One types, eight letters a second; the
other notes when each letter stands in its editor, saved or not. Both browsers read the machine's own clock.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.common import figure, percentile
from tests.e2e.browser import Browser, browser
from tests.e2e.cluster import join, peers, until_equal
from tests.e2e.page_steps import enter, open_panel

_LETTERS: Final = 200
_PAUSE_SECONDS: Final = 0.125
_INSIDE: Final = "document.getElementById('text-editor')?.shadowRoot?.querySelector('.cm-content')"
_PRESSED: Final = """
window.pressed = [];
addEventListener("keydown", () => pressed.push(performance.timeOrigin + performance.now()), true);
"""
_SEEN: Final = f"""
window.seen = [];
new MutationObserver(() => {{
  const shown = {_INSIDE}.cloneNode(true);
  shown.querySelectorAll(".other").forEach((one) => one.remove());
  const now = performance.timeOrigin + performance.now();
  while (seen.length < shown.textContent.replaceAll("\\u2060", "").length) seen.push(now);
}}).observe({_INSIDE}, {{ childList: true, characterData: true, subtree: true }});
"""


def _open_text(page: Browser) -> None:
    open_panel(page, "text")
    page.until(_INSIDE)


def measure(folder: Path, letters: int) -> None:
    """Print the figure."""
    with (
        peers(folder, "alice", "bob") as (alice, bob),
        browser(folder / "one") as writer,
        browser(folder / "other") as reader,
    ):
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        for page, peer in ((writer, alice), (reader, bob)):
            enter(page, peer)
            _open_text(page)
        reader.until("document.getElementById('text-others').textContent")
        writer.evaluate(_PRESSED)
        reader.evaluate(_SEEN)
        writer.evaluate(f"{_INSIDE}.focus()")
        for _ in range(letters):
            writer.press("a", 65, "a")
            time.sleep(_PAUSE_SECONDS)  # the pace of who types: keys at once would come together
        reader.until(f"seen.length >= {letters}", 60)
        pressed, seen = writer.evaluate("pressed"), reader.evaluate("seen")
        waits = sorted(one - other for one, other in zip(seen, pressed, strict=True))
        figure(
            "key_to_key",
            percentile(waits, 0.5),
            "ms",
            letters=letters,
            p95=round(percentile(waits, 0.95)),
            slowest=round(waits[-1]),
        )


def main() -> None:
    """Print the figure for the command line's number of letters."""
    letters = int(sys.argv[1]) if len(sys.argv) > 1 else _LETTERS
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        measure(Path(name), letters)


if __name__ == "__main__":
    main()
