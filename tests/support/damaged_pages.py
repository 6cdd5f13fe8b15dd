"""Damage of single pages of a SQLite file."""

import sqlite3
from contextlib import closing
from pathlib import Path

_PAGE = 4096


def pages_of(path: Path, name: str) -> list[int]:
    """Numbers of the leaves of a table or an index, which has at most two levels."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    page = path.read_bytes()[(root - 1) * _PAGE : root * _PAGE]
    if page[0] in (10, 13):
        return [root]
    count = int.from_bytes(page[3:5])
    cells = [int.from_bytes(page[12 + 2 * place : 14 + 2 * place]) for place in range(count)]
    return [*(int.from_bytes(page[cell : cell + 4]) for cell in cells), int.from_bytes(page[8:12])]


def harm_page(path: Path, name: str, which: int) -> None:
    """Say of a leaf that it is of another kind: SQLite reads nothing of it."""
    page = pages_of(path, name)[which]
    with path.open("r+b") as file:
        file.seek((page - 1) * _PAGE)
        file.write(b"\x07")
