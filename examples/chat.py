"""A chat on a branch: what you type is a post, what others type appears, and late posts appear where they belong.

    python examples/chat.py FOLDER BRANCH

FOLDER is that of a running node. docs/tutorials/two-apps.md explains it line by line.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from node.client.client import ApiClient
from node.runtime.errors import ServiceError

SHOWN = 20


class Screen:
    """The chat as it stands: its posts by their places, kept right by edits alone."""

    def __init__(self) -> None:
        self._posts: dict[str, tuple[str, str]] = {}  # commit -> place, line

    def apply(self, event: str, data: dict[str, Any]) -> None:
        """Take in an event of the branch."""
        if event == "reset":
            self._posts.clear()
        elif event == "edit" and data["edit"] == "insert" and data["item"]["text"] is not None:
            item = data["item"]
            self._posts[data["commit"]] = (data["place"], f"<{item['author'][:6]}> {item['text']}")
        elif event == "edit" and data["edit"] == "move" and data["commit"] in self._posts:
            self._posts[data["commit"]] = (data["place"], self._posts[data["commit"]][1])
        elif event == "edit" and data["edit"] == "remove":
            self._posts.pop(data["commit"], None)

    def lines(self) -> list[str]:
        """The latest posts, in the order that everybody sees."""
        return [line for _, line in sorted(self._posts.values())[-SHOWN:]]


def follow(api: ApiClient, branch: str, screen: Screen) -> None:
    """Show the chat whenever it has changed, until the node stops."""
    try:
        with api.watch(branch) as events:
            for event in events:
                screen.apply(event.name, event.data)
                print("\n" + "\n".join(screen.lines()), flush=True)
    except ServiceError as error:
        print(f"{error.message}: {error.next_step}", file=sys.stderr)


def main() -> None:
    """Follow in one thread, write in the other."""
    folder, branch = Path(sys.argv[1]), sys.argv[2]
    following = threading.Thread(
        target=follow, args=(ApiClient.for_home(folder), branch, Screen()), daemon=True
    )
    following.start()
    api = ApiClient.for_home(folder)
    for line in sys.stdin:
        if line.strip():
            api.write(branch, line.strip())


if __name__ == "__main__":
    main()
