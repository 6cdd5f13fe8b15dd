"""The code makes exactly the committed vectors, and a reader that knows only public libraries opens them."""

import json
from pathlib import Path

import msgspec
import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from nacl import bindings

from protocol.signing import BadSignature, verify_signature
from tests.vectors.defects import open_vector
from tests.vectors.generate import FILES, render

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", FILES)
def test_the_code_makes_the_committed_vectors(name: str) -> None:
    assert render(name) == (FOLDER / name).read_text(encoding="utf-8"), (
        "run `make vectors` and read the difference"
    )


def test_every_file_is_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in readme for path in FOLDER.glob("*.json"))


REFUSED = json.loads((FOLDER / "refused.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["defect"])
def test_what_must_be_refused_is_with_its_reason(vector: dict[str, str]) -> None:
    assert open_vector(vector) == vector["reason"]


def test_the_reasons_stand_in_the_docs() -> None:
    text = (FOLDER.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert [reason for reason in {vector["reason"] for vector in REFUSED} if f"`{reason}`" not in text] == []


def test_no_signature_that_libraries_disagree_on_is_taken() -> None:
    cases = json.loads((FOLDER / "ed25519_speccheck.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 12
    for case in cases:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        with pytest.raises(BadSignature):
            verify_signature(key, message, signature)


def _derive(context: str, material: bytes) -> bytes:
    return blake3(material, derive_key_context=f"ravel 2026-11 {context}").digest()


def _open(ciphertext: bytes, key: bytes, convergence: bytes) -> bytes:
    plaintext = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(ciphertext)
    assert blake3(plaintext, key=convergence).digest() == key
    return plaintext


def test_a_second_reader_opens_the_publication_down_to_the_text() -> None:
    """Written from docs/protocol.md, with nothing of Ravel: from the epoch's read secret to the post."""
    vector = json.loads((FOLDER / "commits.json").read_text(encoding="utf-8"))
    read_secret, branch = bytes.fromhex(vector["read_secret"]), bytes.fromhex(vector["branch_id"])
    generation = vector["generation"].to_bytes(4, "little")
    secret = _derive("epoch read secret and branch to branch secret v1", read_secret + branch + generation)
    read_key = _derive("branch secret to branch read key v1", secret)
    convergence = _derive("epoch read secret to convergence secret v1", read_secret)

    tag, topic, sealed_key, blocks, signature = msgspec.msgpack.decode(bytes.fromhex(vector["publication"]))
    assert (tag, topic.hex()) == ("publication1", vector["topic"])
    ids = [blake3(block).digest() for block in blocks]
    assert ids[0].hex() == vector["commit_id"]
    digest = _derive("publication signature v1", msgspec.msgpack.encode([topic, sealed_key, ids]))
    bindings.crypto_sign_open(signature + digest, topic)

    nonce, sealed = sealed_key[:24], sealed_key[24:]
    key = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, topic + ids[0], nonce, read_key)
    tag, child_ids, acks, ciphertext = msgspec.msgpack.decode(blocks[0])
    assert (tag, child_ids, [ack.hex() for ack in acks]) == ("block1", [], vector["acks"])
    tag, links, content, author_signature = msgspec.msgpack.decode(_open(ciphertext, key, convergence))
    assert tag == "commit1"
    signed = _derive("commit signature v1", msgspec.msgpack.encode([acks, links, content]))
    assert signed.hex() == vector["signed_digest"]
    bindings.crypto_sign_open(author_signature + signed, content[0])
    assert content[0].hex() == vector["author"]

    body_id, body_key = content[8]
    assert body_id == ids[1]
    body = msgspec.msgpack.decode(_open(msgspec.msgpack.decode(blocks[1])[3], body_key, convergence))
    assert body == ["post1", vector["text"]]
