"""Files of keys: what is written is read again, what was altered is not, and what a file asks for is bounded."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node.home.key_file import (
    COST,
    Cost,
    KeyFile,
    Keys,
    Protection,
    decode_key_file,
    encode_key_file,
    fresh_keys,
    open_node_keys,
    open_user_key,
    seal_node_keys,
    seal_user_key,
)
from node.runtime.errors import ServiceError
from protocol.crypto.keys import NodeSeed, StoreKey, UserSeed
from protocol.limits.files import KEY_FILE_MEMORY_MAX, KEY_FILE_PASSES_MAX
from protocol.limits.formats import MIB
from tests.support.keys import CHEAP

KEYS = Keys(NodeSeed(b"n" * 32), UserSeed(b"u" * 32), StoreKey(b"s" * 32))
PASSPHRASE = "trôp de mots".encode()


def _sealed(protection: Protection = "passphrase", secret: bytes = PASSPHRASE) -> KeyFile:
    return seal_node_keys(KEYS, protection, secret, CHEAP)


@pytest.mark.parametrize(
    "protection, secret", [("passphrase", PASSPHRASE), ("keyring", b"k" * 32), ("none", b"")]
)
def test_keys_come_back_from_their_file(protection: Protection, secret: bytes) -> None:
    encoded = encode_key_file(_sealed(protection, secret))
    assert open_node_keys(decode_key_file(encoded, "f", "node"), "f", secret) == KEYS
    in_clear = [raw for raw in (b"n", b"u", b"s") if (raw * 32).hex().encode() in encoded]
    assert in_clear == ([b"n", b"u", b"s"] if protection == "none" else [])


def test_a_users_key_comes_back_from_its_file() -> None:
    encoded = encode_key_file(seal_user_key(UserSeed(b"u" * 32), PASSPHRASE, CHEAP))
    assert open_user_key(decode_key_file(encoded, "f", "user"), "f", PASSPHRASE) == b"u" * 32


def test_two_files_of_the_same_keys_have_nothing_secret_in_common() -> None:
    first, second = _sealed(), _sealed()
    assert first.salt != second.salt
    assert first.nonce != second.nonce
    assert first.box != second.box


def test_a_wrong_passphrase_is_said() -> None:
    for wrong in (b"", PASSPHRASE[:-1], PASSPHRASE + b" "):
        with pytest.raises(ServiceError) as caught:
            open_node_keys(_sealed(), "f", wrong)
        assert caught.value.code == "wrong_passphrase"
        assert not wrong or wrong.decode("utf-8", "replace") not in caught.value.message


@pytest.mark.parametrize("field", ["node", "user", "salt", "nonce", "box", "cost", "holds"])
def test_whatever_is_altered_does_not_open(field: str) -> None:
    file = _sealed()
    other = seal_node_keys(fresh_keys(), "passphrase", PASSPHRASE, CHEAP)
    value: Any = {"cost": Cost(16384, 1), "holds": "user"}.get(field, getattr(other, field))
    with pytest.raises(ServiceError) as caught:
        open_node_keys(msgspec.structs.replace(file, **{field: value}), "f", PASSPHRASE)
    assert caught.value.code == "wrong_passphrase"


def test_the_box_of_another_node_under_the_same_key_does_not_open() -> None:
    other = seal_node_keys(fresh_keys(), "keyring", b"k" * 32)
    mixed = msgspec.structs.replace(_sealed("keyring", b"k" * 32), nonce=other.nonce, box=other.box)
    with pytest.raises(ServiceError) as caught:
        open_node_keys(mixed, "f", b"k" * 32)
    assert caught.value.code == "bad_config"


def test_a_clear_file_whose_ids_are_others_is_refused() -> None:
    mixed = msgspec.structs.replace(_sealed("none", b""), box=(b"x" * 96).hex())
    with pytest.raises(ServiceError, match="not those of the ids"):
        open_node_keys(mixed, "f", b"")


@pytest.mark.parametrize(
    "cost",
    [
        {"memory": KEY_FILE_MEMORY_MAX + 1, "passes": 1},
        {"memory": 64 << 30, "passes": 1},
        {"memory": 8192, "passes": KEY_FILE_PASSES_MAX + 1},
        {"memory": 8191, "passes": 1},
        {"memory": 8192, "passes": 0},
        {"memory": 8192.5, "passes": 1},
        None,
    ],
)
def test_a_file_cannot_ask_for_more_than_the_bound(cost: object) -> None:
    document = json.loads(encode_key_file(_sealed())) | {"cost": cost}
    with pytest.raises(ServiceError) as caught:
        decode_key_file(json.dumps(document).encode(), "f", "node")
    assert caught.value.code == "bad_config"


def test_the_largest_cost_is_read() -> None:
    largest = {"memory": KEY_FILE_MEMORY_MAX, "passes": KEY_FILE_PASSES_MAX}
    document = json.loads(encode_key_file(_sealed())) | {"cost": largest}
    file = decode_key_file(json.dumps(document).encode(), "f", "node")
    assert file.cost == Cost(KEY_FILE_MEMORY_MAX, KEY_FILE_PASSES_MAX)
    assert COST.memory >= 64 * MIB, "what the RFC recommends where memory is scarce"


def test_a_machine_without_that_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_arguments: object) -> bytes:
        raise RuntimeError("Unexpected failure in key derivation")

    monkeypatch.setattr("nacl.bindings.crypto_pwhash_alg", no_memory)
    with pytest.raises(ServiceError, match="MiB of memory"):
        _sealed()


def test_a_file_of_one_kind_is_not_taken_for_the_other() -> None:
    users = encode_key_file(seal_user_key(UserSeed(b"u" * 32), PASSPHRASE, CHEAP))
    with pytest.raises(ServiceError) as caught:
        decode_key_file(users, "f", "node")
    assert caught.value.code == "bad_config"
    with pytest.raises(ServiceError, match="ravel key export") as caught:
        decode_key_file(encode_key_file(_sealed()), "f", "user")
    assert caught.value.code == "bad_input"


def test_nothing_secret_is_in_a_repr() -> None:
    assert (b"u" * 32).hex() not in repr(_sealed("none", b""))
    assert "uuuu" not in repr(KEYS)
    assert (b"u" * 32).hex() not in repr(KEYS)


def test_the_documented_example_opens() -> None:
    page = (Path(__file__).parents[4] / "docs/reference/key-file.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    file = decode_key_file(example.encode(), "docs", "node")
    assert open_node_keys(file, "docs", b"correct horse battery staple") == KEYS
