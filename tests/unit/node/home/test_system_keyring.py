"""Keys sealed by the system's keyring, against a whole backend of the library's own interface that keeps keys in memory."""

import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backends.fail
import keyring.backends.null
import pytest
from keyring.backend import KeyringBackend

from node.home.identity import change_protection, create_keys, open_keys, read_keys
from node.home.key_file import fresh_keys
from node.home.system_keyring import drop_key, get_key, put_key
from node.runtime.errors import ServiceError
from tests.support.keyrings import MemoryKeyring, memory_keyring
from tests.support.keys import CHEAP, no_passphrase


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    with memory_keyring() as backend:
        yield backend


def test_keys_open_by_what_the_keyring_keeps(tmp_path: Path, memory: MemoryKeyring) -> None:
    keys = fresh_keys()
    create_keys(tmp_path, keys, "keyring")
    ((service, entry),) = memory.kept
    assert (service, entry) == ("ravel", read_keys(tmp_path).entry)
    assert open_keys(tmp_path, no_passphrase) == keys
    text = (tmp_path / "keys.json").read_text()
    assert not any(secret in text for secret in (keys.user_seed.hex(), *memory.kept.values()))


def test_a_change_takes_the_old_key_out_of_the_keyring(tmp_path: Path, memory: MemoryKeyring) -> None:
    keys = fresh_keys()
    create_keys(tmp_path, keys, "keyring")
    first = set(memory.kept)
    change_protection(tmp_path, keys, "keyring")
    assert len(memory.kept) == 1
    assert set(memory.kept) != first
    change_protection(tmp_path, keys, "passphrase", b"four random words", CHEAP)
    assert memory.kept == {}


def test_keys_that_could_not_be_written_leave_nothing_in_the_keyring(
    tmp_path: Path, memory: MemoryKeyring
) -> None:
    create_keys(tmp_path, fresh_keys(), "none")
    with pytest.raises(FileExistsError):
        create_keys(tmp_path, fresh_keys(), "keyring")
    assert memory.kept == {}


def test_keys_that_are_in_place_stay_openable_where_their_folder_cannot_be_synced(
    tmp_path: Path, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = fresh_keys(), fresh_keys()

    def fail(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("storage.engine.folders.sync_folder", fail)
    with pytest.raises(OSError, match="Input/output"):
        create_keys(tmp_path, first, "keyring")
    assert open_keys(tmp_path, no_passphrase) == first
    with pytest.raises(OSError, match="Input/output"):
        change_protection(tmp_path, second, "keyring")
    assert open_keys(tmp_path, no_passphrase) == second


@pytest.mark.parametrize("kept", [None, "", "zz", "00" * 31])
def test_a_keyring_without_this_nodes_key_is_said(
    tmp_path: Path, memory: MemoryKeyring, kept: str | None
) -> None:
    create_keys(tmp_path, fresh_keys(), "keyring")
    ((service, entry),) = memory.kept
    memory.kept = {} if kept is None else {(service, entry): kept}
    with pytest.raises(ServiceError, match="no key for this node") as caught:
        open_keys(tmp_path, no_passphrase)
    assert (caught.value.code, "--words" in caught.value.advice) == ("locked", True)


def test_another_key_in_the_keyring_opens_nothing(tmp_path: Path, memory: MemoryKeyring) -> None:
    create_keys(tmp_path, fresh_keys(), "keyring")
    memory.kept = dict.fromkeys(memory.kept, "00" * 32)
    with pytest.raises(ServiceError, match="does not open it"):
        open_keys(tmp_path, no_passphrase)


def test_a_locked_keyring_is_said(tmp_path: Path, memory: MemoryKeyring) -> None:
    create_keys(tmp_path, fresh_keys(), "keyring")
    memory.is_locked = True
    with pytest.raises(ServiceError, match="collection is locked") as caught:
        open_keys(tmp_path, no_passphrase)
    assert caught.value.code == "locked"
    with pytest.raises(ServiceError, match="collection is locked"):
        put_key("entry", b"k" * 32)


def test_dropping_what_is_gone_is_no_error(memory: MemoryKeyring) -> None:
    put_key("entry", b"k" * 32)
    drop_key("entry")
    drop_key("entry")
    assert memory.kept == {}


@pytest.mark.parametrize("backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring])
def test_where_there_is_no_keyring_nothing_is_sealed(
    tmp_path: Path, memory: MemoryKeyring, backend: type[KeyringBackend]
) -> None:
    keyring.set_keyring(backend())
    with pytest.raises(ServiceError, match="no usable keyring") as caught:
        create_keys(tmp_path, fresh_keys(), "keyring")
    assert (caught.value.code, "passphrase" in caught.value.advice) == ("locked", True)
    assert list(tmp_path.iterdir()) == []
    assert memory.kept == {}


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ServiceError) as caught:
        get_key("entry")
    assert (caught.value.code, "[keyring]" in caught.value.advice) == ("missing_extra", True)
