"""Binds a node's folder to its PostgreSQL database by a store id, so that a wrong URL cannot cost files.

Packs that no row names are swept at start, so a wrong URL in the configuration would cost a node its files. The folder
therefore says which store it belongs to (`store-id`), the database says the same, and where the two differ nothing starts.
"""

from pathlib import Path
from typing import Final

from storage.engine.errors import StorageError
from storage.engine.folders import write_beside

STORE_ID_NAME: Final = "store-id"
PACKS_NAME: Final = "packs"
_ID_SIZE_MAX: Final = 100


def check_unbound(folder: Path) -> None:
    """Raise StorageError if the folder's rows are in a database elsewhere, whatever file lies here."""
    if (folder / STORE_ID_NAME).exists():
        raise StorageError(f"the store of {folder} is in a PostgreSQL database: [storage] url has to name it")


def has_packs(folder: Path) -> bool:
    """Return True if the folder has pack files."""
    packs = folder / PACKS_NAME
    return packs.is_dir() and any(packs.iterdir())


def read_store_id(folder: Path) -> str:
    """Return the id of the store that the folder belongs to, or "". Raises OSError."""
    try:
        with (folder / STORE_ID_NAME).open("rb") as file:
            return file.read(_ID_SIZE_MAX).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""


def write_store_id(folder: Path, store_id: str) -> None:
    """Bind the folder to a store, durably. Raises OSError."""
    target = folder / STORE_ID_NAME
    write_beside(target, lambda _: f"{store_id}\n".encode("ascii"), lambda beside: beside.replace(target))
