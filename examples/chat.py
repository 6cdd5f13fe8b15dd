"""A chat on a branch: what you type is a post, what others type appears, and late posts appear where they belong.

    python examples/chat.py FOLDER BRANCH

FOLDER is that of a running node. docs/apps/tutorial.md leads to it.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from ravel import Client, RavelError, connect

SHOWN = 20


class Screen:
    """The chat as it stands: its posts by their places, kept right by edits alone."""

    def __init__(self) -> None:
        self._posts: dict[str, tuple[str, str]] = {}  # commit -> place, line

    def apply(self, event: str, data: dict[str, Any]) -> None:
        """Take in an event of the branch."""
        if event == "reset":
            self._posts.clear()
        elif event == "edit" and (item := data.get("item", {})).get("text") is not None:
            self._posts[data["commit"]] = (data["place"], f"<{item['author'][:6]}> {item['text']}")
        elif event == "edit" and data["edit"] == "move" and data["commit"] in self._posts:
            self._posts[data["commit"]] = (data["place"], self._posts[data["commit"]][1])
        elif event == "edit" and data["edit"] == "remove":
            self._posts.pop(data["commit"], None)

    def lines(self) -> list[str]:
        """The latest posts, in the order that everybody sees."""
        return [line for _, line in sorted(self._posts.values())[-SHOWN:]]


def follow(api: Client, branch: str, screen: Screen) -> None:
    """Show the chat whenever it has changed, until the node stops."""
    try:
        with api.watch_edits(branch) as events:
            for event in events:
                screen.apply(event.name, event.data)
                print("\n" + "\n".join(screen.lines()), flush=True)
    except RavelError as error:
        print(f"{error.message}: {error.advice}", file=sys.stderr)


def main() -> None:
    """Follow in one thread, write in the other."""
    if len(sys.argv) < 3:
        sys.exit(
            "usage: python examples/chat.py FOLDER BRANCH\nFOLDER is that of a running node; `ravel up` names it."
        )
    folder, branch = Path(sys.argv[1]), sys.argv[2]
    following = threading.Thread(target=follow, args=(connect(folder), branch, Screen()), daemon=True)
    following.start()
    api = connect(folder)
    for line in sys.stdin:
        if line.strip():
            api.write_post(branch, line.strip())


if __name__ == "__main__":
    try:
        main()
    except RavelError as error:
        sys.exit(f"{error.message}: {error.advice}")
