"""Epochs of the second reader: their keys and marks, boxes, and what inits state. From section 2 and 5 of protocol.md.

X25519 is another library's than the product's, and the change from Edwards to Montgomery form is by hand (RFC 7748, 4.1).
"""

from hashlib import sha512
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from nacl import bindings
from nacl.exceptions import CryptoError

from tests.vectors import second_reader as reader
from tests.vectors.second_texts import clients_of

Vector = Any  # whatever a file holds
PRIME = 2**255 - 19
BOX = 32


def sealing_key(epoch_key: bytes, repo: bytes) -> bytes:
    return reader.derive("epoch key and repo to sealing key v1", epoch_key + repo)


def writers_sealing_key(writers_secret: bytes, repo: bytes) -> bytes:
    return reader.derive("writers secret and repo to sealing key v1", writers_secret + repo)


def mark_of(key: bytes) -> bytes:
    """The public key of a sealing key."""
    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()


def x25519_of_seed(seed: bytes) -> bytes:
    """The X25519 private key of an Ed25519 seed, clamped."""
    raw = bytearray(sha512(seed).digest()[:32])
    raw[0] &= 248
    raw[31] = raw[31] & 127 | 64
    return bytes(raw)


def x25519_of_user(user: bytes) -> bytes:
    """The X25519 form of an Ed25519 public key, which must be one of the prime-order group."""
    reader.require(bindings.crypto_core_ed25519_is_valid_point(user), "a key of the prime-order group")
    y = int.from_bytes(user, "little") & (2**255 - 1)
    return ((1 + y) * pow(1 - y, -1, PRIME) % PRIME).to_bytes(32, "little")


def agree(private: bytes, public: bytes) -> bytes:
    """The shared point; refused where it is zero."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        raise reader.Refused("a shared point that is not zero") from None


def box_pad(shared: bytes, mark: bytes, user: bytes) -> bytes:
    return reader.derive("shared point, mark and user to box v1", shared + mark + user)


def make_box(secret: bytes, key: bytes, user: bytes) -> bytes:
    """The box of a user, with the sealing key of the secret."""
    return reader.xor(secret, box_pad(agree(key, x25519_of_user(user)), mark_of(key), user))


def open_box(seed: bytes, mark: bytes, box: bytes) -> bytes:
    """What a user takes out of a box, right or not."""
    return reader.xor(box, box_pad(agree(x25519_of_seed(seed), mark), mark, reader.public_key(seed)))


def open_sealed(epoch_key: bytes, letters: bytes, repo: bytes, mark: bytes, sealed: bytes) -> bytes:
    """What an init seals under its epoch's key."""
    cipher_key = reader.epoch_cipher_key(epoch_key)
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            sealed[24:], letters + repo + mark, sealed[:24], cipher_key
        )
    except CryptoError:
        raise reader.Refused("sealed under the epoch's key") from None


def open_topic(epoch_key: bytes, repo: bytes, states: list[bytes]) -> bytes:
    """The writers' topic that an init states."""
    mark, _, sealed = states
    topic = open_sealed(epoch_key, b"topic", repo, mark, sealed)
    reader.require(len(topic) == reader.ID, "a topic")
    return topic


def open_keys(epoch_key: bytes, repo: bytes, mark: bytes, sealed: bytes) -> list[tuple[bytes, bytes]]:
    """The earlier epochs that an init opens, with their keys."""
    opened = reader.unpack(open_sealed(epoch_key, b"keys", repo, mark, sealed))
    reader.require(reader.fits(opened, ([(reader.ID, reader.KEY)],)), "a list of epochs and keys")
    return [(epoch, key) for epoch, key in opened[0]]


def open_init(encoded: bytes, epoch_id: bytes, epoch_key: bytes, repo: bytes) -> tuple[bytes, bytes]:
    """An init on its epoch's own topic (E6): the epoch in which it was published, and that one's key."""
    topic, key, blocks = reader.open_publication(encoded, reader.epoch_read_key(epoch_key))
    reader.require(
        topic == reader.public_key(reader.epoch_topic_seed(epoch_key, repo)), "the epoch's own topic"
    )
    reader.require(next(iter(blocks)) == epoch_id, "the init of that epoch")
    block = blocks[epoch_id]
    commit = reader.parse_commit(reader.read_block(block), reader.decrypt_unchecked(block, key))
    body_id, body_key = commit["body"]
    tag, body = reader.open_body(reader.decrypt_unchecked(blocks[body_id], body_key))
    reader.require(tag == "epoch-init3", "an init")
    keys_id, keys_key = body["keys"]
    sealed = reader.decrypt_unchecked(blocks[keys_id], keys_key)
    given = dict(open_keys(epoch_key, repo, body["states"][0], sealed))
    reader.require(commit["epoch"] in given, "the key of the epoch that it is published in")
    before = given[commit["epoch"]]
    reader.open_commit(block, key, reader.convergence_secret(before))
    return commit["epoch"], before


def remake_derivations(vector: Vector) -> Vector:
    """All from the first five."""
    given = ("epoch_key", "writers_secret", "repo_id", "branch_id", "session_id")
    key, writers_secret, repo, branch, session = (bytes.fromhex(vector[name]) for name in given)
    secret, mark = reader.branch_secret(key, branch), mark_of(sealing_key(key, repo))
    read_key = reader.epoch_read_key(key)
    seeds = {
        "epoch": reader.epoch_topic_seed(key, repo),
        "writers": reader.writers_topic_seed(writers_secret, repo, mark),
        "link": reader.link_topic_seed(writers_secret, branch),
    }
    topics = {name: reader.public_key(seed) for name, seed in seeds.items()}
    return {name: vector[name] for name in given} | {
        "convergence_secret": reader.convergence_secret(key),
        "epoch_read_key": read_key,
        "epoch_cipher_key": reader.epoch_cipher_key(key),
        **{f"{name}_topic_seed": seed for name, seed in seeds.items()},
        **{f"{name}_topic": topic for name, topic in topics.items()},
        "mark": mark,
        "branch_secret": secret,
        "branch_read_key": reader.branch_read_key(secret),
        "branch_mark": reader.branch_mark(secret),
        "key_pad_of_commit_branch_id_on_epoch_topic": reader.commit_key_pad(
            read_key, topics["epoch"], branch
        ),
        "presence_key": reader.presence_key(read_key),
        "blinded_branch_id": reader.blinded_topic(branch, session),
        "branch_id_announced_by_dialer": reader.announced_topic(branch, session, 1),
        "branch_id_announced_by_acceptor": reader.announced_topic(branch, session, 0),
        "circuit_address_of_branch_id_at_repo_id": reader.circuit_address(repo, branch),
        "branch_id_text": reader.id_text(branch),
        "text_clients_of_repo_id_in_branch_id": clients_of(repo, branch),
    }


def remake_boxes(vector: Vector) -> Vector:
    """From the secrets and the members' seeds; each member opens its own box, and no key that is none gives one."""
    repo, key, writers_secret = (
        bytes.fromhex(vector[name]) for name in ("repo_id", "epoch_key", "writers_secret")
    )
    ours, writers = sealing_key(key, repo), writers_sealing_key(writers_secret, repo)
    mark, writers_mark = mark_of(ours), mark_of(writers)
    seeds = {
        reader.public_key(bytes.fromhex(one["seed"])): bytes.fromhex(one["seed"]) for one in vector["order"]
    }
    users = sorted(seeds)
    may_write = [bytes.fromhex(one["user"]) for one in vector["order"] if "writers_box" in one]
    made, for_writers = (
        {user: make_box(secret, sealing, user) for user in some}
        for secret, sealing, some in ((key, ours, users), (writers_secret, writers, sorted(may_write)))
    )
    assert all(open_box(seeds[user], mark, box) == key for user, box in made.items())
    assert all(
        open_box(seeds[user], writers_mark, box) == writers_secret for user, box in for_writers.items()
    )
    taken = open_box(seeds[users[0]], mark, made[users[1]])
    for one in vector["no_users"]:
        assert _is_refused(lambda one=one: make_box(key, ours, bytes.fromhex(one["user"]))), one["why"]
    for one in vector["no_marks"]:
        assert _is_refused(lambda one=one: open_box(seeds[users[0]], bytes.fromhex(one["mark"]), bytes(BOX)))
    order = []
    for place, user in enumerate(users):
        shared = agree(ours, x25519_of_user(user))
        told = {
            "seed": seeds[user],
            "user": user,
            "x25519_private": x25519_of_seed(seeds[user]),
            "x25519": x25519_of_user(user),
            "shared_point": shared,
            "pad": box_pad(shared, mark, user),
            "place": place,
            "box": made[user],
        }
        if user in for_writers:
            told |= {"place_of_writers_box": list(for_writers).index(user), "writers_box": for_writers[user]}
        order.append(told)
    return vector | {
        "sealing_key": ours,
        "mark": mark,
        "writers_sealing_key": writers,
        "writers_mark": writers_mark,
        "order": order,
        "boxes": b"".join(made.values()),
        "writers_boxes": b"".join(for_writers.values()),
        "prekey": remake_prekey_box(vector, key, ours),
        "second_box_opened_by_the_first": {"key": taken, "mark": mark_of(sealing_key(taken, repo))},
    }


def remake_prekey_box(vector: Vector, key: bytes, ours: bytes) -> Vector:
    """The box of a member who has stated a prekey: it opens with that one's private half."""
    user, private = (bytes.fromhex(vector["prekey"][name]) for name in ("user", "private"))
    prekey, mark = mark_of(private), mark_of(ours)
    shared = agree(ours, prekey)
    assert shared == agree(private, mark)
    box = reader.xor(key, box_pad(shared, mark, user))
    return {"user": user, "private": private, "prekey": prekey, "shared_point": shared, "box": box}


def _is_refused(what: Any) -> bool:  # noqa: ANN401  # something to call
    try:
        what()
    except reader.Refused:
        return True
    return False
