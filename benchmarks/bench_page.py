"""The web page with a very long timeline, in a real headless Chromium: first paint, its rows, typing while much comes in.

python -m benchmarks.bench_page [commits]

A real daemon of a copy of a kept store of real commits (`long_home`), and a browser that has just been started, without
anything in its cache. *First paint* is the browser's own first contentful paint, *rows* the moment at which the window's
200 rows stand in the page; both are counted from the start of the navigation, the exchange of the code for the token
included. *Older* is one further window of 200, from the press of its button to its rows. A jump to a day asks for some
twenty windows of one commit and then for one of 200: what such a window costs in the middle is asked of the API, as the
page would.

*Input delay* is what browsers call so: from a key press to the moment at which the page begins to handle it. Keys are
pressed in the field for posts, above the branch's timeline, on a node that has just joined and fetches the branch: at most
SYNCED commits of it. *Input to paint* is to the next picture. Presses that were handled and drawn within 16 ms are not
reported by the browser, and count as 0.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.common import figure, percentile, timed
from benchmarks.daemons import running
from benchmarks.long_home import REPO, copy_long_home
from tests.e2e.chromium import Chromium, chromium
from tests.e2e.cluster import Peer, run_ravel

_ROUNDS: Final = 5
_WINDOW: Final = 200
_OLDER: Final = 8
SYNCED: Final = 20_000
_TYPED_SECONDS: Final = 30.0
_ROWS: Final = "document.querySelectorAll('#timeline > li').length"
_WATCH: Final = f"""
new PerformanceObserver((list) => {{
  for (const one of list.getEntries()) if (one.name === "first-contentful-paint") window.painted = one.startTime;
}}).observe({{ type: "paint", buffered: true }});
new MutationObserver(() => {{
  if (!window.filled && {_ROWS} >= {_WINDOW}) requestAnimationFrame(() => {{ window.filled ??= performance.now(); }});
}}).observe(document, {{ childList: true, subtree: true }});
"""


_DELAYS: Final = """
window.delays = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) {
    if (one.name === "keydown") window.delays.push([one.processingStart - one.startTime, one.duration]);
  }
}).observe({ type: "event", durationThreshold: 16, buffered: true });
"""


def _open(page: Chromium, peer: Peer) -> tuple[float, float]:
    """Milliseconds until the first contentful paint, and until the rows were drawn."""
    address = json.loads(run_ravel(peer, "open", "--no-browser", "--json").stdout)["address"]
    page.call("Network.clearBrowserCache")
    page.open(address)
    page.until("window.painted && window.filled", 60)
    return float(page.evaluate("window.painted")), float(page.evaluate("window.filled"))


def _press_older(page: Chromium) -> float:
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
            with chromium(folder / f"profile-{number}") as page:
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


def measure_typing(folder: Path, commit_count: int) -> None:
    """Print how long keys wait while a first sync runs."""
    peer = copy_long_home(folder, commit_count)
    newcomer = Peer(folder / "newcomer")
    with running(peer, newcomer), chromium(folder / "profile-typing") as page:
        page.show(1280, 900, "light")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_DELAYS)
        address = json.loads(run_ravel(newcomer, "open", "--no-browser", "--json").stdout)["address"]
        page.open(address)
        page.until("document.getElementById('empty')")
        link = peer.client.create_invitation(REPO, permission="write", expires_seconds=3600)["invitation"]
        newcomer.client.join_repo(link)
        # The branch stands in the list as soon as its repo's root has come, long before its commits have.
        page.until(
            "[...document.querySelectorAll('[data-branch]')].some((one) => one.textContent.includes('main'))",
            60,
        )
        page.click("[data-branch]")
        page.until("document.getElementById('text')")
        page.evaluate("document.getElementById('text').focus(); window.delays.length = 0")
        began, first, pressed, here = time.monotonic(), _held(newcomer), 0, 0
        while here < commit_count and time.monotonic() - began < _TYPED_SECONDS:
            page.press("a", 65, "a")
            pressed += 1
            here = _held(newcomer) if not pressed % 20 else here
        came, seconds = _held(newcomer) - first, time.monotonic() - began
        typed = str(page.evaluate("document.getElementById('text').value"))
        assert typed == "a" * pressed, "each press was typed"
        reported = [(float(delay), float(duration)) for delay, duration in page.evaluate("window.delays")]
        quick = [0.0] * (pressed - len(reported))
        delays, durations = (
            (sorted([*quick, *column]) for column in zip(*reported, strict=True))
            if reported
            else (quick, quick)
        )
        facts = {"presses": pressed, "commits_meanwhile": came, "commits_per_second": round(came / seconds)}
        figure("page_input_delay", percentile(delays, 0.98), "ms", slowest=delays[-1], **facts)
        figure("page_input_to_paint", percentile(durations, 0.98), "ms", slowest=durations[-1], **facts)


def _held(peer: Peer) -> int:
    return int(peer.client.show_status()["commits"])


def main() -> None:
    """Print the figures."""
    for commit_count in [int(one) for one in sys.argv[1:]] or [10_000]:
        with tempfile.TemporaryDirectory() as name:
            measure(Path(name), commit_count)
        with tempfile.TemporaryDirectory() as name:
            measure_typing(Path(name), min(commit_count, SYNCED))


if __name__ == "__main__":
    main()
