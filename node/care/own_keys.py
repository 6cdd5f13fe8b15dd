"""The keys of this node for a page: how they are kept, and the user's as words."""

from pathlib import Path

import trio

from node.home.identity import open_keys, read_keys
from node.home.mnemonic import words_of
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from ravel.home import command_for
from ravel.types.care import KeyStatus, KeyWords


class OwnKeys:
    """The keys in a node's folder."""

    def __init__(self, home: Path, run_blocking: RunBlocking) -> None:
        self._home = home
        self._run_blocking = run_blocking
        self._lock = (
            trio.Lock()
        )  # a passphrase costs 256 MiB and half a second: guesses come one after the other

    async def show(self) -> KeyStatus:
        """Return how the keys are kept. Raises ServiceError `bad_config`."""
        file = await self._run_blocking(read_keys, self._home)
        return {
            "node": file.node,
            "user": file.user,
            "protection": file.protection,
            "seal_command": f"{command_for(self._home)} key seal",
        }

    async def words(self, passphrase: str) -> KeyWords:
        """Return the user's key as words. Raises ServiceError `wrong_passphrase`, `locked`, and those of `show`."""

        def read() -> list[str]:
            return words_of(open_keys(self._home, lambda: _given(passphrase)).user_seed)

        async with self._lock:
            return {"words": await self._run_blocking(read)}


def _given(passphrase: str) -> bytes:
    if not passphrase:
        raise ServiceError("locked", "the keys are sealed with a passphrase", "type it")
    return passphrase.encode()
