"""The web page with a very long timeline, in a real headless Chromium: first paint, its rows, and the way to the middle.

python -m benchmarks.bench_page [commits]

A real daemon of a copy of a kept store of real commits (`long_home`), and a browser that has just been started, without
anything in its cache. *First paint* is the browser's own first contentful paint, *rows* the moment at which the window's
200 rows stand in the page; both are counted from the start of the navigation, the exchange of the code for the token
included. *Older* is one further window of 200, from the press of its button to its rows. A jump to a day asks for some
twenty windows of one commit and then for one of 200: what such a window costs in the middle is asked of the API, as the
page would.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.common import figure, percentile, timed
from benchmarks.daemons import running
from benchmarks.long_home import REPO, copy_long_home
from tests.e2e.browser import Browser, browser
from tests.e2e.cluster import Peer, run_ravel

_ROUNDS: Final = 5
_WINDOW: Final = 200
_OLDER: Final = 8
_ROWS: Final = "document.querySelectorAll('#timeline > li').length"
_WATCH: Final = f"""
new PerformanceObserver((list) => {{
  for (const one of list.getEntries()) if (one.name === "first-contentful-paint") window.painted = one.startTime;
}}).observe({{ type: "paint", buffered: true }});
new MutationObserver(() => {{
  if (!window.filled && {_ROWS} >= {_WINDOW}) requestAnimationFrame(() => {{ window.filled ??= performance.now(); }});
}}).observe(document, {{ childList: true, subtree: true }});
"""


def _open(page: Browser, peer: Peer) -> tuple[float, float]:
    """Milliseconds until the first contentful paint, and until the rows were drawn."""
    address = json.loads(run_ravel(peer, "open", "--no-browser", "--json").stdout)["address"]
    page.call("Network.clearBrowserCache")
    page.open(address)
    page.until("window.painted && window.filled", 60)
    return float(page.evaluate("window.painted")), float(page.evaluate("window.filled"))


def _press_older(page: Browser) -> float:
    """Milliseconds from a press of the button to its rows, the next picture included."""
    return float(
        page.evaluate(
            f"""new Promise((resolve) => {{
              const wanted = {_ROWS} + {_WINDOW}, began = performance.now();
              const look = () => {_ROWS} >= wanted
                ? requestAnimationFrame(() => resolve(performance.now() - began))
                : requestAnimationFrame(look);
              document.getElementById("older").click();
              look();
            }})"""
        )
    )


def measure(folder: Path, commit_count: int) -> None:
    """Print the figures."""
    peer = copy_long_home(folder, commit_count)
    with running(peer):
        painted: list[float] = []
        filled: list[float] = []
        for number in range(_ROUNDS):
            with browser(folder / f"profile-{number}") as page:
                page.show(1280, 900, "light")
                page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
                first, rows = _open(page, peer)
                painted.append(first)
                filled.append(rows)
                if number == _ROUNDS - 1:
                    older = [_press_older(page) for _ in range(_OLDER)]
                    assert page.complaints() == []
        figure("page_first_paint", percentile(painted, 0.5), "ms", commits=commit_count, slowest=max(painted))
        figure("page_rows", percentile(filled, 0.5), "ms", commits=commit_count, slowest=max(filled))
        figure("page_older", percentile(older, 0.5), "ms", commits=commit_count, slowest=max(older))
        middle = [
            timed(
                lambda: peer.client.show_timeline(
                    f"{REPO}:main", after_position=commit_count // 2, limit=_WINDOW
                )
            )
            for _ in range(_ROUNDS)
        ]
        figure("page_window_in_the_middle", percentile(middle, 0.5) * 1000, "ms", commits=commit_count)


def main() -> None:
    """Print the figures."""
    for commit_count in [int(one) for one in sys.argv[1:]] or [10_000]:
        with tempfile.TemporaryDirectory() as name:
            measure(Path(name), commit_count)


if __name__ == "__main__":
    main()
