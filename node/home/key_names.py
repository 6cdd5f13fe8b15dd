"""Names of the files of keys in a node's folder, and whether there are some: what commands ask that open no key.

Apart from `identity`, which opens them and imports the libraries for that.
"""

from pathlib import Path
from typing import Final

SECRET_SIZE: Final = 32
"""Bytes of a seed, a store's key or a token."""
KEYS_NAME: Final = "keys.json"
OLDER_NODE_NAME: Final = "node.key"
OLDER_USER_NAME: Final = "user.key"


def has_keys(home: Path) -> bool:
    """Return True if a folder has keys, of this Ravel or an older one."""
    return (home / KEYS_NAME).exists() or has_older_keys(home)


def has_older_keys(home: Path) -> bool:
    """Return True if a folder has keys of an older Ravel, which are yet to be adopted."""
    return (home / OLDER_NODE_NAME).exists()
