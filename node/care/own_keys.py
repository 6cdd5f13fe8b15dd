"""The keys of this node for a page: how they are kept, the user's as words, and another user's in place of an unused one."""

import os
import signal
import unicodedata
from pathlib import Path
from typing import Final

import msgspec
import trio

from node.home.identity import change_protection, key_in_use, open_keys, read_keys
from node.home.key_file import Keys, read_user_seed
from node.home.mnemonic import seed_of, words_of
from node.home.people_file import OwnProfile, read_people, write_people
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from ravel.home import command_for
from ravel.types.care import KeyStatus, KeyWords, RecoveredUser
from storage.engine.losses import note_cause, read_loss

_FILE: Final = "the key file"


class OwnKeys:
    """The keys in a node's folder."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self._home = home
        self._hub = hub
        self._lock = (
            trio.Lock()
        )  # a passphrase costs 256 MiB and half a second: guesses come one after the other
        self.recovered: Keys | None = None
        """Keys that the daemon starts anew with, once there are such."""

    async def show(self) -> KeyStatus:
        """Return how the keys are kept. Raises ServiceError `bad_config`."""
        file = await self._hub.run_blocking(read_keys, self._home)
        loss = await self._hub.run_blocking(read_loss, self._hub.replica.database.folder)
        return {
            "node": file.node,
            "user": file.user,
            "protection": file.protection,
            "unused": await self._hub.run_blocking(self._is_unused),
            "recovered": loss is not None and loss.cause == "recovered",
            "seal_command": f"{command_for(self._home)} key seal",
        }

    async def words(self, passphrase: str) -> KeyWords:
        """Return the user's key as words. Raises ServiceError `wrong_passphrase`, `locked`, and those of `show`."""

        def read() -> list[str]:
            return words_of(open_keys(self._home, lambda: _given(passphrase)).user_seed)

        async with self._lock:
            return {"words": await self._hub.run_blocking(read)}

    async def recover(
        self, words: str, key_file: str, file_passphrase: str, passphrase: str
    ) -> RecoveredUser:
        """Be the user of words or of a key file, and start anew once this is answered; `passphrase` as in `words`.

        Raises ServiceError `already_exists` where the key in use was used, `bad_request`, `bad_input`, and those of `words`.
        """

        def read() -> UserSeed:
            if bool(words.strip()) == bool(key_file):
                raise ServiceError("bad_request", "a user comes by words or by a file", "give one of them")
            if key_file:
                return read_user_seed(key_file.encode(), _FILE, lambda: _given(file_passphrase, _FILE))
            return seed_of(words)

        async with self._lock:
            seed = await self._hub.run_blocking(read)
            # Alone with the store: nobody writes with the key that goes between the look and its end.
            await self._hub.write(self._take_up, seed, passphrase)
            os.kill(os.getpid(), signal.SIGHUP)
        return {"user": id_text(public_key(seed))}

    def _take_up(self, seed: UserSeed, passphrase: str) -> None:
        protection = read_keys(self._home).protection
        secret = _given(passphrase) if protection == "passphrase" else b""
        held = open_keys(self._home, lambda: secret)
        if public_key(held.user_seed) == public_key(seed):
            raise ServiceError(
                "already_exists", "this node has that key already", "join your repos by links of members"
            )
        if not self._is_unused():
            raise key_in_use(self._home)
        taken = Keys(held.node_seed, seed, held.store_key)
        try:
            note_cause(self._hub.replica.database.folder, "recovered")
            people = read_people(self._home)
            # Whoever comes back has a name in each repo, which the name of the key that goes must not replace.
            write_people(self._home, msgspec.structs.replace(people, me=OwnProfile()))
            change_protection(self._home, taken, protection, secret)
        except OSError as error:
            # In place, the key is used from now on: what comes after it failed, and is done at the next start.
            if read_keys(self._home).user != id_text(public_key(seed)):
                raise ServiceError(
                    "storage_failed",
                    f"{self._home} cannot be written: {error}",
                    "check space and permissions there",
                ) from None
        self._hub.replica.own_feeds.is_over = True
        self.recovered = taken

    def _is_unused(self) -> bool:
        """Return True if nothing rests on the key that is in use. Raises OSError."""
        loss = read_loss(self._hub.replica.database.folder)
        # Whoever came by words or a file has the key elsewhere; every other past is of this folder alone.
        has_past = loss is not None and (loss.cause != "recovered" or bool(loss.deleted or loss.returned))
        return not (self._hub.replica.repos or has_past)


def _given(passphrase: str, what: str = "") -> bytes:
    if not passphrase:
        said = f"{what} is sealed with a passphrase" if what else "the keys are sealed with a passphrase"
        raise ServiceError("locked", said, "type it")
    return unicodedata.normalize("NFC", passphrase).encode()  # as `node.home.passphrases` keeps it
