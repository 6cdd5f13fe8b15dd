"""The boards of branches in a terminal, as examples/board shows those of one in a browser: what others do appears at once.

    python examples/board.py FOLDER BRANCH[,BRANCH...] [BOARD]

FOLDER is that of a running node; BOARD, that of the first branch, is edited. Type `add TITLE`, `move NUMBER COLUMN` or
`vote NUMBER`. Edits that nodes make apart come together when they meet: docs/apps/json.md says how.
"""

import sys
import threading
from typing import Any

from ravel import Client, RavelError, connect
from ravel.json_documents import JsonDocument

COLUMNS = ("todo", "doing", "done")


def cards_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """List a board's cards by columns, each with that of its own."""
    return [{**card, "column": column} for column in COLUMNS for card in value.get(column, [])]


def follow(api: Client, branches: list[str]) -> None:
    """Show all boards of the branches whenever one has changed: what a query finds, live."""
    try:
        for result in api.documents(branches, "board").live():
            for found in result.documents:
                print(f"{found['name']} in {found['branch'][:6]}:")
                for number, card in enumerate(cards_of(found["value"])):
                    print(f"  {number} {card['column']}: {card['title']} ({card.get('votes', 0)})")
            print(flush=True)
    except RavelError as error:
        print(f"{error.message}: {error.advice}", file=sys.stderr)


def do(board: JsonDocument, action: str, rest: str) -> None:
    """Run what was typed."""
    if action == "add":
        board.insert("todo", {"title": rest})
        return
    number, _, column = rest.partition(" ")
    card = cards_of(board.read()["value"])[int(number)]["$id"]
    if action == "move":
        board.move(card, column)
    elif action == "vote":
        board.add("votes", item=card)


def main() -> None:
    """Follow in one thread, write in the other."""
    if len(sys.argv) < 3:
        sys.exit("usage: python examples/board.py FOLDER BRANCH[,BRANCH...] [BOARD]")
    folder, named, name = (*sys.argv[1:], "board")[:3]
    branches = named.split(",")
    api = connect(folder)
    threading.Thread(target=follow, args=(api, branches), daemon=True).start()
    board = api.document(branches[0], name)
    for line in sys.stdin:
        action, _, rest = line.strip().partition(" ")
        try:
            do(board, action, rest)
        except (RavelError, ValueError, IndexError) as error:
            print(f"not done: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
