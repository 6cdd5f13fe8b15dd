"""All attacks: importing this fills the table."""

from tests.hostile import (
    attacks_by_members,
    attacks_by_websocket,
    attacks_on_api,
    attacks_on_circuits,
    attacks_on_frames,
    attacks_on_relays,
    attacks_on_sync,
    attacks_with_commits,
)
from tests.hostile.table import ATTACKS

__all__ = [
    "ATTACKS",
    "attacks_by_members",
    "attacks_by_websocket",
    "attacks_on_api",
    "attacks_on_circuits",
    "attacks_on_frames",
    "attacks_on_relays",
    "attacks_on_sync",
    "attacks_with_commits",
]
