"""Tables of an analysis as rows of plain Python, by either engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analytics.engines.engine import FIRST, Catalog, Engine
from analytics.engines.local_engine import LocalEngine
from analytics.tables.definitions import NAMES
from ravel.exports.checking import Export

_NAMES = {column.name for column in NAMES}


@contextmanager
def ordered_by(engine: Engine, exports: Sequence[Export]) -> Iterator[Catalog]:
    """A catalog of exports whose branches the engine has ordered; the engine is closed in the end."""
    catalog = Catalog(engine, exports)
    try:
        catalog.need("commits")
        engine.order(None)
        catalog.write(FIRST)
        yield catalog
    finally:
        engine.close()


class Counted:
    """Tables that the local engine counts, by their keys."""

    def __init__(self, exports: Sequence[Export], out: Path) -> None:
        self.engine = LocalEngine(exports, out)
        self._exports = exports

    def __enter__(self) -> "Counted":
        self._ordered = ordered_by(self.engine, self._exports)
        self.catalog = self._ordered.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401  # as Python calls it
        self._ordered.__exit__(*error)

    def table(self, name: str, *keys: str) -> dict[Any, dict[str, Any]]:
        """A table that was written, by the cells that tell its rows apart; without the names of branches."""
        rows = self.engine.rows(f"SELECT * FROM {name}")  # noqa: S608  # a name of ours
        rows = [{key: cell for key, cell in row.items() if key not in _NAMES} for row in rows]
        found = keyed(rows, *keys)
        assert len(found) == len(rows)
        return found


def keyed(rows: Sequence[dict[str, Any]], *keys: str) -> dict[Any, dict[str, Any]]:
    """Rows by their cells of these names, without them."""
    found = {}
    for row in rows:
        cells = dict(row)
        key = tuple(cells.pop(name) for name in keys)
        found[key if len(keys) > 1 else key[0]] = cells
    return found
