"""A whole backend of the library `keyring` that keeps keys in memory, in the place of the system's."""

from collections.abc import Iterator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """A keyring of one test."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the library's
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        """What is kept."""
        if self.is_locked:
            raise KeyringLocked("the collection is locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep."""
        if self.is_locked:
            raise KeyringLocked("the collection is locked")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        """Forget."""
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not there")


@contextmanager
def memory_keyring() -> Iterator[MemoryKeyring]:
    """The keyring that the library uses while the block runs."""
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    try:
        yield backend
    finally:
        keyring.set_keyring(before)
