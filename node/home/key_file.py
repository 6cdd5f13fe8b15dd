"""Key files: their format, and the key that Argon2id makes of a passphrase (docs/reference/key-file.md).

A file holds either a node's keys (the node's seed, the user's seed, the store's key) or a user's alone, which is what a
person carries to another machine. They are sealed with XChaCha20-Poly1305 by a key that Argon2id makes of a passphrase
(RFC 9106, libsodium's), or by one that the system's keyring keeps; or they lie in the clear. All that a file says beside
its box is authenticated with it: the ids can be read without opening it, and cannot be exchanged.

What a file asks for is bounded before it is done: it may have been written by somebody else.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

from node.home.private_files import SECRET_SIZE
from node.runtime.errors import ServiceError
from protocol.crypto.keys import NodeSeed, StoreKey, UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from protocol.limits.files import KEY_FILE_MEMORY_MAX, KEY_FILE_PASSES_MAX
from protocol.limits.formats import KIB, MIB

FORMAT: Final = "ravel-keys1"
_SALT_SIZE: Final = bindings.crypto_pwhash_SALTBYTES
_NONCE_SIZE: Final = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_MEMORY_MIN: Final = 8 * KIB  # libsodium's

Holds = Literal["node", "user"]
Protection = Literal["passphrase", "keyring", "none"]

_Hex = Annotated[str, msgspec.Meta(pattern=r"\A(?:[0-9a-f]{2})*\Z")]


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cost of deriving a key from a passphrase: Argon2id with one lane."""

    memory: Annotated[int, msgspec.Meta(ge=_MEMORY_MIN, le=KEY_FILE_MEMORY_MAX)]  # bytes
    passes: Annotated[int, msgspec.Meta(ge=1, le=KEY_FILE_PASSES_MAX)]


COST: Final = Cost(256 * MIB, 3)
"""libsodium's "moderate": half a second, and a guess costs a thief as much memory as we have spent."""


class KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON form of a key file. A field that its kind of protection does not use is an empty text."""

    format: Literal["ravel-keys1"]
    holds: Holds
    protection: Protection
    node: str  # ids, as `ravel id` prints them; empty in a user's file
    user: str
    cost: Cost | None
    salt: _Hex
    entry: _Hex  # the keyring's name for the key
    nonce: _Hex
    box: _Hex

    def __repr__(self) -> str:
        return f"KeyFile({self.holds}, {self.protection}, user={self.user})"  # a box may be in the clear


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of a node's file: 32 bytes each. They never show in its repr."""

    node_seed: NodeSeed = field(repr=False)
    user_seed: UserSeed = field(repr=False)
    store_key: StoreKey = field(repr=False)  # what seals secrets in the store


def fresh_keys(user_seed: UserSeed | None = None) -> Keys:
    """Make new keys, or all but the user's."""
    return Keys(
        NodeSeed(secrets.token_bytes(SECRET_SIZE)),
        UserSeed(secrets.token_bytes(SECRET_SIZE)) if user_seed is None else user_seed,
        StoreKey(secrets.token_bytes(SECRET_SIZE)),
    )


def seal_node_keys(keys: Keys, protection: Protection, secret: bytes, cost: Cost = COST) -> KeyFile:
    """Seal a node's keys: `secret` is a passphrase, or the key that the keyring is to keep under the file's `entry`."""
    node, user = id_text(public_key(keys.node_seed)), id_text(public_key(keys.user_seed))
    content = keys.node_seed + keys.user_seed + keys.store_key
    return _seal("node", node, user, content, protection, secret, cost)


def seal_user_key(user_seed: UserSeed, passphrase: bytes, cost: Cost = COST) -> KeyFile:
    """Seal a user's key alone, with a passphrase."""
    return _seal("user", "", id_text(public_key(user_seed)), user_seed, "passphrase", passphrase, cost)


def encode_key_file(file: KeyFile) -> bytes:
    """Encode the file."""
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def decode_key_file(content: bytes, name: str, holds: Holds) -> KeyFile:
    """Decode a key file of the given kind; errors call it `name`.

    Raises ServiceError: `bad_config` if it is no key file of a node, `bad_input` if it is none of a user.
    """
    file = _decode(content, name, holds)
    if file.holds != holds:
        wanted = "a node's" if holds == "node" else "what `ravel key export` writes"
        raise _bad(holds, name, f"it is not {wanted}")
    return file


def _decode(content: bytes, name: str, holds: Holds) -> KeyFile:
    try:
        file = msgspec.json.decode(content, type=KeyFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(holds, name, f"not of the expected form: {error}") from None
    size = SECRET_SIZE * (3 if file.holds == "node" else 1)
    is_sealed = file.protection != "none"
    sizes = (
        len(file.salt) // 2 == (_SALT_SIZE if file.protection == "passphrase" else 0),
        len(file.entry) // 2 == (16 if file.protection == "keyring" else 0),
        len(file.nonce) // 2 == (_NONCE_SIZE if is_sealed else 0),
        len(file.box) // 2 == size + (bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES if is_sealed else 0),
        (file.cost is None) == (file.protection != "passphrase"),
        file.holds == "node" or file.protection == "passphrase",
    )
    if not all(sizes):
        raise _bad(holds, name, "a part of it is missing, too long or too short")
    return file


def open_node_keys(file: KeyFile, name: str, secret: bytes) -> Keys:
    """Open the keys of a node's file. Raises ServiceError `wrong_passphrase`, `bad_config`, `locked`."""
    content = _open(file, name, secret)
    keys = Keys(NodeSeed(content[:32]), UserSeed(content[32:64]), StoreKey(content[64:]))
    ids = id_text(public_key(keys.node_seed)), id_text(public_key(keys.user_seed))
    if ids != (file.node, file.user):
        raise _bad("node", name, "its keys are not those of the ids that it names")
    return keys


def open_user_key(file: KeyFile, name: str, passphrase: bytes) -> UserSeed:
    """Open the user's seed in a file of it alone. Raises ServiceError `wrong_passphrase`, `bad_input`."""
    seed = UserSeed(_open(file, name, passphrase))
    if id_text(public_key(seed)) != file.user:
        raise _bad("user", name, "its key is not that of the id that it names")
    return seed


def read_user_seed(content: bytes, name: str, ask_passphrase: Callable[[], bytes]) -> UserSeed:
    """Read the user's seed in a file of it alone, or of a node or a backup; ask for a passphrase where one is needed.

    Raises ServiceError `bad_input`, `bad_config`, `wrong_passphrase`, `locked`.
    """
    file = _decode(content, name, "user")
    if file.protection == "keyring":
        raise _bad("user", name, "only the keyring of its own computer opens it")
    passphrase = ask_passphrase() if file.protection == "passphrase" else b""
    if file.holds == "user":
        return open_user_key(file, name, passphrase)
    return open_node_keys(file, name, passphrase).user_seed


def _seal(
    holds: Holds, node: str, user: str, content: bytes, protection: Protection, secret: bytes, cost: Cost
) -> KeyFile:
    by_passphrase, by_keyring = protection == "passphrase", protection == "keyring"
    draft = KeyFile(
        FORMAT,
        holds,
        protection,
        node,
        user,
        cost if by_passphrase else None,
        secrets.token_hex(_SALT_SIZE) if by_passphrase else "",
        secrets.token_hex(16) if by_keyring else "",
        "" if protection == "none" else secrets.token_hex(_NONCE_SIZE),
        "",
    )
    if protection == "none":
        return msgspec.structs.replace(draft, box=content.hex())
    box = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
        content, _beside_box(draft), bytes.fromhex(draft.nonce), _key_from_secret(draft, secret)
    )
    return msgspec.structs.replace(draft, box=box.hex())


def _open(file: KeyFile, name: str, secret: bytes) -> bytes:
    box = bytes.fromhex(file.box)
    if file.protection == "none":
        return box
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            box, _beside_box(file), bytes.fromhex(file.nonce), _key_from_secret(file, secret)
        )
    except CryptoError:
        if file.protection == "keyring":
            raise _bad(file.holds, name, "what the keyring keeps does not open it") from None
        raise ServiceError(
            "wrong_passphrase", f"the passphrase does not open {name}", "try again; nothing was changed"
        ) from None


def _key_from_secret(file: KeyFile, secret: bytes) -> bytes:
    if file.cost is None:
        return secret
    try:
        return bindings.crypto_pwhash_alg(
            SECRET_SIZE,
            secret,
            bytes.fromhex(file.salt),
            file.cost.passes,
            file.cost.memory,
            bindings.crypto_pwhash_ALG_ARGON2ID13,
        )
    except (RuntimeError, MemoryError):  # libsodium could not allocate
        raise ServiceError(
            "locked",
            f"opening the keys takes {file.cost.memory >> 20} MiB of memory, which are not to be had",
            "give the process more memory",
        ) from None


def _beside_box(file: KeyFile) -> bytes:
    """Return the bytes that are authenticated with the box: everything else of the file."""
    return msgspec.json.encode(msgspec.structs.replace(file, box=""))


def _bad(holds: Holds, name: str, problem: str) -> ServiceError:
    code = "bad_config" if holds == "node" else "bad_input"
    return ServiceError(code, f"{name} is no usable file of keys: {problem}", "restore it from a backup")
