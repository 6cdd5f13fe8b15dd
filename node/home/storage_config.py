"""Configuration section [storage]: database location, and how long erasable bodies are kept."""

from dataclasses import dataclass, field
from typing import Final

STORAGE_KEYS: Final = ("url", "erase_after_days")
ERASE_AFTER_DAYS_MAX: Final = 36_500
"""A century."""


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """[storage]: an empty URL stands for a file in the node's folder; a password may be in it.

    `erase_after_days`: days after which `ravel gc` erases bodies that a compaction lets go; 0 erases nothing.
    """

    url: str = field(default="", repr=False)
    erase_after_days: int = 0


def storage_text(url: str) -> str:
    """Write the section as the file has it at first; `url` is a TOML string."""
    return f"""\
[storage]
# Where what the store says is kept: "" is a file in the node's folder (SQLite). A PostgreSQL database is named by
# postgresql://USER@HOST/DATABASE; the password is better in ~/.pgpass than here. Large files stay in the folder.
url = {url}
# Days after which `ravel gc` erases bodies that a compaction of their branch lets go, since that came here; 0: never.
erase_after_days = 0
"""
