"""Creates, opens and re-encrypts the node's keys; `key_file` defines the file format.

keys.json   the node's seed, the user's seed, the store's key; sealed by a passphrase or the keyring, or in the clear
"""

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from node.home.key_file import (
    COST,
    Cost,
    KeyFile,
    Keys,
    Protection,
    decode_key_file,
    encode_key_file,
    open_node_keys,
    seal_node_keys,
)
from node.home.private_files import KEYS_NAME, SECRET_SIZE, create_file, replace_file, sweep_drafts
from node.home.system_keyring import drop_key, get_key, put_key
from node.runtime.errors import ServiceError
from protocol.limits.files import KEY_FILE_SIZE_MAX
from ravel.home import command_for, read_private
from storage.engine.copies import drop_open_copies


def read_keys(home: Path) -> KeyFile:
    """Read the folder's file of keys, without opening it. Raises ServiceError `not_initialised`, `bad_config`."""
    path = home / KEYS_NAME
    return decode_key_file(read_private(path, KEY_FILE_SIZE_MAX), str(path), "node")


def open_keys(home: Path, ask_passphrase: Callable[[], bytes]) -> Keys:
    """Open the folder's keys; ask for a passphrase where one is needed.

    Raises ServiceError `wrong_passphrase`, `locked`, `missing_extra`, and those of `read_keys`.
    """
    file = read_keys(home)
    secret = b""
    if file.protection == "passphrase":
        secret = ask_passphrase()
    elif file.protection == "keyring":
        secret = get_key(file.entry)
    return open_node_keys(file, str(home / KEYS_NAME), secret)


def key_in_use(home: Path) -> ServiceError:
    """Return the refusal of another user's key where something rests on the one that is there."""
    ravel = command_for(home)
    return ServiceError(
        "already_exists",
        f"the key in {home} has been used: what was written with it would be lost",
        f"choose another folder: `ravel --home NEW up --words`; or, if nothing there is needed: `{ravel} uninstall`",
    )


def create_keys(
    home: Path, keys: Keys, protection: Protection, passphrase: bytes = b"", cost: Cost = COST
) -> None:
    """Put keys into a folder that has none. Raises ServiceError, OSError; FileExistsError where it has some."""
    file = _seal(keys, protection, passphrase, cost)
    try:
        create_file(home / KEYS_NAME, encode_key_file(file))
    except OSError:
        _drop_unused(home, file)
        raise


def change_protection(
    home: Path, keys: Keys, protection: Protection, passphrase: bytes = b"", cost: Cost = COST
) -> list[Path]:
    """Keep the folder's keys in another way, or under another passphrase: the old file is replaced in one step.

    Where they are sealed, copies of the store from before its secrets were go, and are given. Raises ServiceError, OSError.
    """
    before = read_keys(home)
    # First: once the keys are sealed, none lie in the clear beside them, wherever this is cut.
    sweep_drafts(home)
    file = _seal(keys, protection, passphrase, cost)
    try:
        replace_file(home / KEYS_NAME, encode_key_file(file))
    except OSError:
        _drop_unused(home, file)
        raise
    drop_entry(before)
    return [] if protection == "none" else drop_open_copies(home)


def _seal(keys: Keys, protection: Protection, passphrase: bytes, cost: Cost) -> KeyFile:
    secret = secrets.token_bytes(SECRET_SIZE) if protection == "keyring" else passphrase
    file = seal_node_keys(keys, protection, secret, cost)
    if protection == "keyring":
        put_key(file.entry, secret)
    return file


def _drop_unused(home: Path, file: KeyFile) -> None:
    """Forget what opens a file of keys, unless that is in place: then its folder alone could not be synced."""
    try:
        is_unused = read_keys(home) != file
    except ServiceError as error:
        is_unused = error.code == "not_initialised"
    if is_unused:
        drop_entry(file)


def drop_entry(file: KeyFile) -> None:
    """Delete the keyring's entry of a deleted key file, if the file was sealed by the keyring."""
    if file.protection == "keyring":
        with suppress(ServiceError):  # a key that stays behind opens no file that is left
            drop_key(file.entry)
