"""Keys of tests: sealed at the least cost that a file may say, so that a test is not half a second of Argon2id."""

from typing import Final

from node.home.key_file import Cost

CHEAP: Final = Cost(8192, 1)


def no_passphrase() -> bytes:
    """For keys that must open without one."""
    raise AssertionError("a passphrase was asked for")
