"""The system's keyring (Secret Service, KWallet, macOS, Windows), by the optional library `keyring`.

It keeps one key for each sealed file of keys, under the file's own name for it. Backends that the library itself does not
recommend (none at all, one that forgets, files in the clear) are refused.
"""

from typing import TYPE_CHECKING, Final

from node.runtime.errors import ServiceError
from node.runtime.install_hint import install_command

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

_SERVICE: Final = "ravel"
_KEY_SIZE: Final = 32
_PRIORITY_MIN: Final = 1
"""Least priority of the backends that `keyring` calls recommended."""


def put_key(entry: str, key: bytes) -> None:
    """Keep a key. Raises ServiceError `missing_extra`, `locked`."""
    backend = _backend()
    from keyring.errors import KeyringError

    try:
        backend.set_password(_SERVICE, entry, key.hex())
    except (KeyringError, OSError) as error:
        raise _failed(error) from None


def get_key(entry: str) -> bytes:
    """Return the key that is kept under a name. Raises ServiceError `missing_extra`, `locked`."""
    backend = _backend()
    from keyring.errors import KeyringError

    try:
        kept = backend.get_password(_SERVICE, entry)
    except (KeyringError, OSError) as error:
        raise _failed(error) from None
    try:
        key = bytes.fromhex(kept or "")
    except ValueError:
        key = b""
    if len(key) != _KEY_SIZE:
        raise ServiceError(
            "locked",
            "the system's keyring has no key for this node",
            "on another machine, or as another user: take up the user by `ravel init --from-file` or `--words`",
        )
    return key


def drop_key(entry: str) -> None:
    """Forget a key that nothing needs any more; one that is gone already is no error. Raises ServiceError."""
    backend = _backend()
    from keyring.errors import KeyringError, PasswordDeleteError

    try:
        backend.delete_password(_SERVICE, entry)
    except PasswordDeleteError:
        return
    except (KeyringError, OSError) as error:
        raise _failed(error) from None


def _backend() -> "KeyringBackend":
    try:
        import keyring
    except ImportError:
        raise ServiceError(
            "missing_extra",
            "the system's keyring is reached by a library that is not installed",
            f"install it: {install_command('keyring')}; or use a passphrase",
        ) from None
    backend = keyring.get_keyring()
    if backend.priority < _PRIORITY_MIN:
        raise ServiceError(
            "locked",
            f"there is no usable keyring here ({backend.name})",
            "log in to a desktop that has one, or use a passphrase",
        )
    return backend


def _failed(error: Exception) -> ServiceError:
    return ServiceError(
        "locked", f"the system's keyring does not answer: {error}", "unlock it, or use a passphrase"
    )
