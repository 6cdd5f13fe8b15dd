"""Pictures of the page for README and docs, made by `make screenshots`: two people, their posts, a text, and a phone."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.e2e.browser import CHROMIUM, Browser, browser
from tests.e2e.cluster import Peer, peers, until, until_equal
from tests.e2e.page_steps import enter, open_panel, tab_to

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs/pictures"
_WIDE: Final = (1120, 700)
_PHONE: Final = (390, 700)
_MINUTES: Final = (
    "Minutes of 12 March",
    "",
    "Present: Ann, Ben.",
    "1. Water: on since Sunday. Ben mends the second tap.",
    "2. Beds 3 and 4 are given away, bed 7 is free.",
    "3. Open garden on the 12th of April, from ten.",
)


def take_pictures(folder: Path) -> list[Path]:
    """Start two nodes and a browser, and write the pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    # Chromium still writes into its profile when it is ended.
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with _garden() as (ann, main), profiles as profile, browser(Path(profile)) as page:
        page.show(*_WIDE, "light")
        enter(page, ann)
        page.until("document.querySelectorAll('#timeline > li').length > 5")
        made = [_take(page, folder / "posts.png")]
        page.show(*_PHONE, "dark")
        page.evaluate(f"location.hash = '#/{main}'")
        page.until("document.querySelectorAll('#timeline > li').length > 5")
        made.append(_take(page, folder / "phone.png"))
        page.show(*_WIDE, "light")
        open_panel(page, "text")
        tab_to(page, "#text-editor")
        page.type("\n".join(_MINUTES))
        page.until("document.getElementById('text-state').dataset.unsaved === '0'")
        made.append(_take(page, folder / "text.png"))
    return made


@contextmanager
def _garden() -> Iterator[tuple[Peer, str]]:
    """Ann's node, in sync with Ben's, and the branch in which both wrote."""
    with tempfile.TemporaryDirectory() as folder, peers(Path(folder), "ann", "ben") as (ann, ben):
        for peer, name in ((ann, "Ann Okafor"), (ben, "Benjamin Theodor")):
            peer.client.state_me(name)
        repo = ann.client.create_repo("garden")["repo"]
        ann.client.create_branch(repo, "minutes")
        link = ann.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        ben.client.join_repo(link)
        ann.client.set_petname(ben.client.show_status()["node"], "Ben's laptop", peer=True)
        named = {one["name"]: one["branch"] for one in ann.client.list_branches(repo)["branches"]}
        main = named["main"]
        asked = ann.client.write_post(main, "Beds 3 and 4 are free from April. Who takes them?")["commit"]
        until_equal(ann, ben, main)
        ben.client.reply_to_post(asked, "I take 3, for beans. Is the water on again?")
        until_equal(ann, ben, main)
        ann.client.write_post(main, "Since Sunday. The key hangs in the shed.")
        beds = ann.client.add_file(main, b"bed,holder\n3,Ben\n4,\n7,\n", name="beds.csv")["file"]
        until_equal(ann, ben, main)
        with ben.client.get_file(main, beds) as download:
            assert sum(map(len, download.pieces)) > 0
        until(lambda: _is_held(ann), "Ben has the file")
        ben.client.write_post(main, "Good. Seeds are ordered; they come next week.")
        until_equal(ann, ben, main)
        until(lambda: "Benjamin" in str(ann.client.list_members(repo)), "Ann knows Ben's name")
        yield ann, main


def _is_held(peer: Peer) -> bool:
    [repo] = peer.client.list_repos()["repos"]
    return repo["standing"]["unfetched_files"] == 0


def _take(page: Browser, path: Path) -> Path:
    page.until("!document.getAnimations().some((one) => one.playState === 'running')")
    page.screenshot(path)
    return path


def main() -> None:
    """Make all pictures anew. A test holds their sizes."""
    if CHROMIUM is None:
        sys.exit("make screenshots needs Chromium: apt install chromium")
    for path in take_pictures(FOLDER):
        print(f"{path.relative_to(FOLDER.parent.parent)}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
