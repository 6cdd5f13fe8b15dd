"""Name of the file of keys in a node's folder, for commands that open no key.

Apart from `identity`, which imports the libraries that open it.
"""

from pathlib import Path
from typing import Final

SECRET_SIZE: Final = 32
"""Bytes of a seed, a store's key or a token."""
KEYS_NAME: Final = "keys.json"


def has_keys(home: Path) -> bool:
    """Return True if a folder has keys."""
    return (home / KEYS_NAME).exists()
